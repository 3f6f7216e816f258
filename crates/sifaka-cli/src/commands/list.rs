//! `sifaka list`.

use sifaka::journal::{RunQuery, RunStatus, RunSummary};
use sifaka::text::summarise;
use sifaka::{Context, Journal, Result};

use super::DONE;
use crate::app::App;
use crate::args::ListArgs;
use crate::output::Table;

/// How much of a prompt a line shows, in characters.
const PROMPT: usize = 60;

pub(super) fn run(app: &App, args: ListArgs) -> Result<u8> {
    let passed = match (args.passed, args.failed) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    };
    let query = RunQuery {
        chain: args.chain,
        tag: args.tag,
        contains: args.contains,
        passed,
        before: None,
        offset: 0,
        limit: args.limit,
    };
    let runs = match app.journal_if_there()? {
        None => Vec::new(),
        Some(journal) => App::block_on(async { journal.runs(&Context::new(), &query).await })?,
    };
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

/// Where a run stands, in a word or two.
pub(super) fn state(run: &RunSummary) -> &'static str {
    match (run.status, run.passed) {
        (RunStatus::Open, _) => "open",
        (RunStatus::Failed, _) => "failed",
        (RunStatus::Erased, _) => "erased",
        (RunStatus::Finished, Some(true)) => "passed",
        (RunStatus::Finished, Some(false)) => "not passed",
        (RunStatus::Finished, None) => "finished",
    }
}
