//! Runs are found, by what they say and by their ids.

use std::time::Duration;

use sifaka_core::journal::{RunQuery, RunStatus};
use sifaka_core::policy::Decision;
use sifaka_core::{ErrorKind, EventKind, Id, Journal, Result};

use super::{
    chosen, finished, generated, numbered, panic_on, started, still_context, tagged, write,
};

/// Runs are listed newest first, by chain, label, prompt, outcome and time.
pub async fn lists_runs(journal: &dyn Journal) -> Result<()> {
    let (ctx, clock) = still_context();
    let mut ids = Vec::new();
    for (at, prompt) in ["100% of it", "100 of it", "Größe"].into_iter().enumerate() {
        clock.advance(Duration::from_secs(10));
        let run = Id::new(&ctx);
        let number = at.to_string();
        let mut kinds = vec![tagged(&run, prompt, &[("n", number.as_str()), ("a'b", "c;--")])];
        match at {
            0 => kinds.extend([generated("x"), chosen(true, 0.5), finished(&run, true, 0.5)]),
            1 => kinds.extend([generated("x"), chosen(false, 0.0), finished(&run, false, 0.0)]),
            _ => {}
        }
        write(&ctx, journal, &run, &numbered(&ctx, &run, 0, kinds)).await?;
        ids.push(run);
    }
    let base = RunQuery::default;
    let text = |part: &str| RunQuery { contains: Some(part.into()), ..base() };
    let tag = |key: &str, value: &str| RunQuery { tag: Some((key.into(), value.into())), ..base() };
    let start = ctx.now() - Duration::from_secs(5);
    for (query, expected) in [
        (base(), vec![2, 1, 0]),
        (RunQuery { limit: 2, ..base() }, vec![2, 1]),
        (RunQuery { offset: 1, limit: 1, ..base() }, vec![1]),
        (RunQuery { offset: 9, ..base() }, vec![]),
        (RunQuery { chain: Some("trial@1".into()), ..base() }, vec![2, 1, 0]),
        (RunQuery { chain: Some("trial".into()), ..base() }, vec![]),
        (RunQuery { passed: Some(true), ..base() }, vec![0]),
        (RunQuery { passed: Some(false), ..base() }, vec![1]),
        (RunQuery { before: Some(start), ..base() }, vec![1, 0]),
        (text("100%"), vec![0]),
        (text("_"), vec![]),
        (text("GRÖSSE"), vec![]),
        (text("GRÖß"), vec![2]),
        (RunQuery { limit: 1, offset: 1, ..text("100") }, vec![0]),
        (tag("n", "1"), vec![1]),
        (tag("a'b", "c;--"), vec![2, 1, 0]),
        (tag("n", "'"), vec![]),
    ] {
        let runs = journal.runs(&ctx, &query).await?;
        let found: Vec<&Id> = runs.iter().map(|run| &run.run_id).collect();
        let expected: Vec<&Id> = expected.into_iter().map(|at: usize| &ids[at]).collect();
        assert_eq!(found, expected, "{query:?}");
    }
    let runs = journal.runs(&ctx, &base()).await?;
    let statuses: Vec<RunStatus> = runs.iter().map(|run| run.status).collect();
    assert_eq!(statuses, [RunStatus::Open, RunStatus::Finished, RunStatus::Finished]);
    let oldest = &runs[2];
    assert_eq!((oldest.passed, oldest.score), (Some(true), Some(0.5)));
    assert_eq!((oldest.iterations, oldest.events), (1, 4));
    assert_eq!(oldest.prompt.as_deref(), Some("100% of it"));
    assert_eq!(oldest.chain_id.as_deref(), Some("trial@1"));
    Ok(())
}

/// A run's id, a Thought's id and the unique beginning of either name the run; no character in
/// them has a meaning.
pub async fn resolves_beginnings(journal: &dyn Journal) -> Result<()> {
    let (ctx, _) = still_context();
    for (run, thoughts) in [("run-a1", vec!["th-1", "run-a1-2"]), ("run-b%_", vec!["th-2"])] {
        let run = Id::parse(run)?;
        let mut kinds = vec![started(&run, "p")];
        for thought in thoughts {
            let thought_id = Id::parse(thought)?;
            kinds.push(EventKind::IterationStarted { thought_id, decision: Decision::Repair });
        }
        write(&ctx, journal, &run, &numbered(&ctx, &run, 0, kinds)).await?;
    }
    for (prefix, run, thought) in [
        ("run-a1", "run-a1", None),
        ("run-a", "run-a1", None),
        ("run-a1-", "run-a1", Some("run-a1-2")),
        ("th-2", "run-b%_", Some("th-2")),
        ("run-b%", "run-b%_", None),
    ] {
        let found = journal.resolve(&ctx, prefix).await?;
        assert_eq!(found.run_id.as_str(), run, "{prefix}");
        assert_eq!(found.thought_id.as_ref().map(Id::as_str), thought, "{prefix}");
    }
    for (prefix, kind) in [
        ("run-", ErrorKind::InvalidInput),
        ("th", ErrorKind::InvalidInput),
        ("", ErrorKind::InvalidInput),
        ("%", ErrorKind::NotFound),
        ("run__", ErrorKind::NotFound),
        ("' OR 1=1 --", ErrorKind::NotFound),
        ("\0", ErrorKind::NotFound),
        ("run-a1\u{10ffff}", ErrorKind::NotFound),
        ("zzz", ErrorKind::NotFound),
    ] {
        let Err(error) = journal.resolve(&ctx, prefix).await else { panic_on(prefix) };
        assert_eq!(error.kind(), kind, "{prefix:?}: {error}");
        assert!(!error.suggestions().is_empty(), "{error}");
    }
    let Err(error) = journal.resolve(&ctx, "run-").await else { panic_on("ambiguous") };
    assert!(error.message().contains("run-a1") && error.message().contains("run-b%_"), "{error}");
    let thought = journal.thought(&ctx, "th-1").await?;
    assert_eq!(thought.map(|thought| thought.id().to_string()).as_deref(), Some("th-1"));
    Ok(())
}
