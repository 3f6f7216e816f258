//! `sifaka prune`.

use jiff::SignedDuration;
use sifaka::journal::Retention;
use sifaka::{Error, Id, Result};

use super::{DONE, confirm, count};
use crate::app::App;
use crate::args::PruneArgs;

pub(super) fn run(app: &App, args: &PruneArgs) -> Result<u8> {
    let print = |runs: &[Id]| runs.iter().try_for_each(|run| app.out.line(run.as_str()));
    app.with_journal(async |ctx, journal| {
        let newer_than = match args.older_than {
            None => None,
            Some(age) => {
                let age = SignedDuration::try_from(age).unwrap_or(SignedDuration::MAX);
                let limit = ctx.now().checked_sub(age).map_err(|_| {
                    Error::invalid_input("prune", "no run can be as old as that")
                        .suggest("give a smaller age, such as 30d")
                })?;
                Some(limit)
            }
        };
        let keep = Retention { newer_than, newest: args.keep, dry_run: true };
        let runs = journal.prune(ctx, &keep).await?;
        let many = count(runs.len() as u64, "run");
        if args.dry_run || runs.is_empty() {
            print(&runs)?;
            app.talk.say(format!("{many} would be erased"));
            return Ok(DONE);
        }
        if !confirm(app, "prune", args.yes, &many)? {
            app.talk.say("nothing was erased");
            return Ok(DONE);
        }
        let erased = journal.prune(ctx, &Retention { dry_run: false, ..keep }).await?;
        print(&erased)?;
        let many = count(erased.len() as u64, "run");
        app.talk.say(format!("{many} erased; hashes stay, so the record still verifies"));
        Ok(DONE)
    })
}
