//! `sifaka list`.

use sifaka::journal::{RunQuery, RunStatus, RunSummary};
use sifaka::text::summarise;
use sifaka::{Context, Journal, Result};

use super::DONE;
use crate::app::App;
use crate::args::{ListArgs, State};
use crate::output::Table;

/// How much of a prompt a line shows, in characters.
const PROMPT: usize = 60;

pub(super) fn run(app: &App, args: &ListArgs) -> Result<u8> {
    let passed = match (args.passed, args.failed) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    };
    // The record knows chains by name and fingerprint, and no states; those are sorted out here.
    let sorted_out = args.chain.is_some() || args.state.is_some();
    let query = RunQuery {
        tag: args.tag.clone(),
        contains: args.contains.clone(),
        passed,
        limit: if sorted_out { 0 } else { args.limit },
        ..RunQuery::default()
    };
    let mut runs = match app.journal_if_there()? {
        None => Vec::new(),
        Some(journal) => App::block_on(async { journal.runs(&Context::new(), &query).await })?,
    };
    if sorted_out {
        runs.retain(|run| fits(run, args));
        if args.limit > 0 {
            runs.truncate(args.limit);
        }
    }
    if args.json {
        return app.out.json(&runs).map(|()| DONE);
    }
    if runs.is_empty() {
        app.talk.say("no runs");
        return Ok(DONE);
    }
    let mut table =
        Table::new(&["RUN", "BEGUN (UTC)", "STATE", "SCORE", "ITER", "CHAIN", "PROMPT"]);
    for run in &runs {
        table.row([
            run.run_id.as_str(),
            &run.started.strftime("%Y-%m-%d %H:%M").to_string(),
            state(run),
            &run.score.map_or_else(|| "-".to_owned(), |score| format!("{score:.2}")),
            &run.iterations.to_string(),
            run.chain_id.as_deref().unwrap_or("-"),
            &run.prompt.as_deref().map_or_else(String::new, |prompt| summarise(prompt, PROMPT)),
        ]);
    }
    for (n, line) in table.lines().iter().enumerate() {
        let head = n == 0;
        app.out.line(if head { app.out.style.faint(line) } else { line.into() })?;
    }
    Ok(DONE)
}

fn fits(run: &RunSummary, args: &ListArgs) -> bool {
    let chain = args.chain.as_deref().is_none_or(|wanted| {
        let id = run.chain_id.as_deref().unwrap_or_default();
        id == wanted || id.rsplit_once('@').is_some_and(|(name, _)| name == wanted)
    });
    let state = args.state.is_none_or(|state| match state {
        State::Open => run.status == RunStatus::Open,
        State::Finished => run.status == RunStatus::Finished,
        State::Failed => run.status == RunStatus::Failed,
        State::Erased => run.status == RunStatus::Erased,
    });
    chain && state
}

/// Where a run stands, in a word or two.
fn state(run: &RunSummary) -> &'static str {
    match (run.status, run.passed) {
        (RunStatus::Open, _) => "open",
        (RunStatus::Failed, _) => "failed",
        (RunStatus::Erased, _) => "erased",
        (RunStatus::Finished, Some(true)) => "passed",
        (RunStatus::Finished, Some(false)) => "not passed",
        (RunStatus::Finished, None) => "finished",
    }
}
