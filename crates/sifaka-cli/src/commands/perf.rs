//! `sifaka perf`.

use sifaka::journal::RunQuery;
use sifaka::telemetry::{Performance, Timings};
use sifaka::{Error, ErrorKind, Event, EventKind, Result};

use super::{DONE, count};
use crate::app::App;
use crate::args::PerfArgs;
use crate::output::Table;

pub(super) fn run(app: &App, args: &PerfArgs) -> Result<u8> {
    let performance = app.with_journal(async |ctx, journal| {
        let limit = if args.all { 0 } else { 1 };
        let runs = match &args.id {
            Some(id) => vec![journal.resolve(ctx, id).await?.run_id],
            None => {
                let query = RunQuery { limit, ..RunQuery::default() };
                journal.runs(ctx, &query).await?.into_iter().map(|run| run.run_id).collect()
            }
        };
        if runs.is_empty() {
            return Err(Error::new(
                ErrorKind::NotFound,
                "perf",
                "read",
                "nothing is on record yet",
            )
            .suggest("run something: sifaka run --model mock \"Say hello.\""));
        }
        let mut timings = Timings::new();
        for run in runs {
            let events = journal.events(ctx, &run).await?;
            if let Some(note) = remark(&events) {
                if !args.all && events.is_empty() {
                    let message = format!("run {run} {note}");
                    return Err(Error::new(ErrorKind::NotFound, "perf", "read", message)
                        .suggest("`sifaka list` shows the runs that are there"));
                }
                if !args.all {
                    app.talk.say(format!("run {run} {note}"));
                }
            }
            events.iter().for_each(|event| timings.observe_event(event));
        }
        Ok(timings.performance())
    })?;
    if args.json {
        app.out.json(&performance)?;
    } else {
        print(app, &performance)?;
    }
    Ok(DONE)
}

/// What to know of a run whose figures are not those of a whole run.
fn remark(events: &[Event]) -> Option<&'static str> {
    let ended = |event: &Event| {
        matches!(event.kind, EventKind::RunFinished { .. } | EventKind::RunFailed { .. })
    };
    match events {
        [] => Some("was erased, and its times with it"),
        [Event { kind: EventKind::Imported { .. }, .. }, rest @ ..]
            if !rest.iter().any(|event| matches!(event.kind, EventKind::RunResumed { .. })) =>
        {
            Some("was imported; no times came with it")
        }
        events if !events.iter().any(ended) => {
            Some("has no end yet; its time as a whole is not known")
        }
        _ => None,
    }
}

/// Where the time of a run went, by its events.
pub(super) fn of_events(events: &[Event]) -> Performance {
    let mut timings = Timings::new();
    events.iter().for_each(|event| timings.observe_event(event));
    timings.performance()
}

/// The figures as a table.
pub(super) fn print(app: &App, performance: &Performance) -> Result<()> {
    let parts = [
        ("models", performance.model_time),
        ("checks", performance.validation_time),
        ("critics", performance.critic_time),
        ("retrieval", performance.retrieval_time),
    ];
    let mut parts: Vec<String> =
        parts.iter().map(|(name, time)| format!("{name} {:.3} s", time.seconds())).collect();
    // Waits for the record are measured while a run goes, and are not on record themselves.
    if performance.storage_time.0 > 0 {
        parts.push(format!("record {:.3} s", performance.storage_time.seconds()));
    }
    app.out.line(format!(
        "{}, {:.3} s: {}",
        count(performance.runs, "run"),
        performance.total_time.seconds(),
        parts.join(", ")
    ))?;
    if performance.components.is_empty() {
        return Ok(());
    }
    let head =
        ["COMPONENT", "COUNT", "TOTAL s", "MEAN s", "P50 s", "P99 s", "MAX s", "FAILED", "TOKENS"];
    let mut table = Table::new(&head);
    for part in &performance.components {
        let time = |nanos: sifaka::event::Nanos| format!("{:.6}", nanos.seconds());
        table.row([
            part.component.clone(),
            part.count.to_string(),
            time(part.total),
            time(part.mean),
            time(part.p50),
            time(part.p99),
            time(part.max),
            part.failures.to_string(),
            part.tokens.to_string(),
        ]);
    }
    for (n, line) in table.lines().iter().enumerate() {
        app.out.line(if n == 0 { app.out.style.faint(line) } else { line.into() })?;
    }
    Ok(())
}
