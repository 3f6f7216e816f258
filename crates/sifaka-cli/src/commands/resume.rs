//! `sifaka resume`.

use sifaka::journal::Resolved;
use sifaka::{Context, Journal, Result, Thought};

use super::drive::{self, Course};
use super::setup::Setup;
use crate::app::App;
use crate::args::ResumeArgs;

pub(super) fn run(app: &App, args: &ResumeArgs) -> Result<u8> {
    let journal = app.journal()?;
    let (run_id, name, begun) = App::block_on(async {
        let ctx = Context::new();
        let Resolved { run_id, .. } = journal.resolve(&ctx, &args.id).await?;
        let fold = journal.fold(&ctx, &run_id).await?;
        // The chain that began the run goes on with it, if the configuration still has it.
        let chain = fold.as_ref().and_then(|fold| fold.chain_id());
        let name = chain.and_then(|id| id.split('@').next()).map(str::to_owned);
        let begun = fold.as_ref().and_then(|fold| fold.thought()).map_or(0, Thought::iteration);
        Ok((run_id, name, begun))
    })?;
    drop(journal);
    let setup = Setup::new(app.config()?, &args.chain, name.as_deref())?;
    let (recorded, journal) = setup.journals(app, true)?;
    setup.fetch_weights(app)?;
    let chain = setup.build(recorded, journal)?;
    let course = Course { begun, recorded: true, flags: setup.resume_with(app) };
    drive::drive(app, chain.resume(&run_id), args.shape, &course)
}
