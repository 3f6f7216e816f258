//! `sifaka erase`.

use sifaka::Result;

use super::{DONE, confirm};
use crate::app::App;
use crate::args::EraseArgs;

pub(super) fn run(app: &App, args: &EraseArgs) -> Result<u8> {
    app.with_journal(async |ctx, journal| {
        let run = journal.resolve(ctx, &args.id).await?.run_id;
        if !confirm(app, "erase", args.yes, &format!("run {run}"))? {
            app.talk.say("nothing was erased");
            return Ok(DONE);
        }
        let erased = journal.erase(ctx, &run, &args.reason).await?;
        if erased {
            app.out.line(run.as_str())?;
            app.talk.say("erased; its hashes stay, so the record still verifies");
        } else {
            app.talk.say("it had been erased already");
        }
        Ok(DONE)
    })
}
