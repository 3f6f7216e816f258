//! `sifaka prune`.

use jiff::{SignedDuration, Timestamp};
use sifaka::journal::Retention;
use sifaka::{Context, Error, Id, Journal, Result};

use super::{DONE, confirm, count};
use crate::app::App;
use crate::args::PruneArgs;

/// What the tombstones say.
const REASON: &str = "pruned";

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
        let runs = chosen(ctx, journal, newer_than, args.keep).await?;
        let many = count(runs.len() as u64, "run");
        if args.dry_run {
            print(&runs)?;
            app.talk.say(format!("{many} would be erased"));
            return Ok(DONE);
        }
        if runs.is_empty() {
            app.talk.say("there is nothing to erase");
            return Ok(DONE);
        }
        if !confirm(app, "prune", args.yes, &many)? {
            app.talk.say("nothing was erased");
            return Ok(DONE);
        }
        let erased = match (newer_than, args.keep) {
            (Some(_), Some(_)) => {
                let mut erased = Vec::new();
                for run in runs {
                    if journal.erase(ctx, &run, REASON).await? {
                        erased.push(run);
                    }
                }
                erased
            }
            (newer_than, newest) => {
                journal.prune(ctx, &Retention { newer_than, newest, dry_run: false }).await?
            }
        };
        print(&erased)?;
        let many = count(erased.len() as u64, "run");
        app.talk.say(format!("{many} erased; hashes stay, so the record still verifies"));
        Ok(DONE)
    })
}

/// The runs that would be erased. The journal erases what either rule names; given both, only
/// what both of them name goes.
async fn chosen(
    ctx: &Context,
    journal: &dyn Journal,
    newer_than: Option<Timestamp>,
    newest: Option<usize>,
) -> Result<Vec<Id>> {
    let by = |newer_than, newest| Retention { newer_than, newest, dry_run: true };
    if newer_than.is_none() || newest.is_none() {
        return journal.prune(ctx, &by(newer_than, newest)).await;
    }
    let mut old = journal.prune(ctx, &by(newer_than, None)).await?;
    let beyond = journal.prune(ctx, &by(None, newest)).await?;
    old.retain(|run| beyond.contains(run));
    Ok(old)
}
