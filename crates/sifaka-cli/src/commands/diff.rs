//! `sifaka diff`.

use sifaka::thought::{Change, Diff};
use sifaka::{Error, ErrorKind, Result, Thought, Verdict};

use super::DONE;
use crate::app::App;
use crate::args::DiffArgs;
use crate::output::clean;
use crate::record::Record;

pub(super) fn run(app: &App, args: &DiffArgs) -> Result<u8> {
    let (older, newer) = app.with_journal(async |ctx, journal| {
        let record = Record::load(ctx, journal, &args.id).await?;
        match &args.other {
            None => iterations(&record, args),
            Some(other) => {
                let other = Record::load(ctx, journal, other).await?;
                Ok((record.answer(), other.answer()))
            }
        }
    })?;
    let diff = older.diff(&newer);
    if args.json {
        return app.out.json(&diff).map(|()| DONE);
    }
    let name = |thought: &Thought, score: f64| {
        format!("iteration {} of {}, score {score:.2}", thought.iteration(), run_of(thought))
    };
    app.out.line(format!("--- {}", name(&older, diff.score_from.value)))?;
    app.out.line(format!("+++ {}", name(&newer, diff.score_to.value)))?;
    lines(app, &diff, "")?;
    for (check, before, after) in &diff.verdicts {
        app.out.line(format!("{}: {} -> {}", clean(check), word(*before), word(*after)))?;
    }
    Ok(DONE)
}

fn run_of(thought: &Thought) -> &str {
    thought.run_id().unwrap_or(thought.id()).as_str()
}

/// The two iterations of one run that the flags name.
fn iterations(record: &Record, args: &DiffArgs) -> Result<(Thought, Thought)> {
    let find = |number: u32| {
        let mut all = record.thought.iterations();
        all.find_map(|entry| entry.thought().filter(|t| t.iteration() == number).cloned())
    };
    let missing = |number: u32| {
        let message = format!("run {} has no iteration {number} at hand", record.run_id);
        Error::new(ErrorKind::NotFound, "diff", "compare", message)
            .suggest(format!("`sifaka show {}` lists them", record.run_id))
    };
    let to = args.to.unwrap_or(record.thought.iteration());
    let newer = find(to).ok_or_else(|| missing(to))?;
    let from = match (args.from, to.checked_sub(1)) {
        (Some(from), _) | (None, Some(from)) => from,
        (None, None) => {
            let message = format!("run {} has one iteration only", record.run_id);
            return Err(Error::invalid_input("diff", message)
                .suggest("compare it with another run: sifaka diff ID1 ID2"));
        }
    };
    Ok((find(from).ok_or_else(|| missing(from))?, newer))
}

/// The lines of two texts: kept, taken out and put in.
pub(super) fn lines(app: &App, diff: &Diff, indent: &str) -> Result<()> {
    for change in &diff.text {
        let (mark, line) = match change {
            Change::Kept(line) => (' ', line),
            Change::Removed(line) => ('-', line),
            Change::Added(line) => ('+', line),
        };
        let text = format!("{indent}{mark} {}", clean(line));
        let text = text.trim_end();
        app.out.line(match change {
            Change::Kept(_) => text.into(),
            Change::Removed(_) => app.out.style.bad(text),
            Change::Added(_) => app.out.style.good(text),
        })?;
    }
    Ok(())
}

fn word(verdict: Option<Verdict>) -> &'static str {
    match verdict {
        None => "not checked",
        Some(Verdict::Passed) => "passed",
        Some(Verdict::Failed) => "failed",
        Some(Verdict::Unknown) => "could not tell",
    }
}
