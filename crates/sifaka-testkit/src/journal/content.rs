//! Contents of every kind and size.

use sifaka_core::body::BLOB_THRESHOLD;
use sifaka_core::journal::{RunQuery, RunStatus, Verify};
use sifaka_core::{Body, Context, EventKind, Id, Journal, Result, Thought};

use super::{
    assert_clean, assert_events, generated, numbered, panic_on, retrieved, started, still_context,
    whole_run, write,
};

/// The pointers to bodies stored apart in a run's events, as they are stored.
pub(super) async fn pointers(ctx: &Context, journal: &dyn Journal, run: &Id) -> Result<Vec<Body>> {
    let mut found = Vec::new();
    for sealed in journal.sealed(ctx, run).await? {
        if let Some(event) = sealed.open()? {
            event.kind.for_each_body(|body| {
                if matches!(body, Body::Blob(_)) {
                    found.push(body.clone());
                }
            });
        }
    }
    Ok(found)
}

/// Large bodies, and ones that are not text, are stored once, and come back whole.
pub async fn stores_large_bodies_apart(journal: &dyn Journal) -> Result<()> {
    let (ctx, _) = still_context();
    let large = "ä".repeat(BLOB_THRESHOLD);
    let raw = [0_u8, 255, 1].repeat(5);
    let mut runs = Vec::new();
    for _ in 0..2 {
        let run = Id::new(&ctx);
        let EventKind::Generated { model, completions, usage, provider, seconds, .. } =
            generated("x")
        else {
            panic_on("the helper changed")
        };
        let raw = Some(Body::from_bytes(&raw));
        let kinds = vec![
            started(&run, "p"),
            retrieved(&large),
            EventKind::Generated { model, completions, usage, provider, raw, seconds },
        ];
        write(&ctx, journal, &run, &numbered(&ctx, &run, 0, kinds)).await?;
        runs.push(run);
    }
    for run in &runs {
        let bodies = pointers(&ctx, journal, run).await?;
        assert_eq!(bodies.len(), 2);
        assert_eq!(bodies[0].load(&ctx, journal).await?.as_str(), Some(large.as_str()));
        assert_eq!(bodies[1].load(&ctx, journal).await?.as_bytes(), Some(raw.as_slice()));
    }
    let found = journal.verify(&ctx, &Verify::default()).await?;
    assert!(found.is_clean(), "{:?}", found.problems);
    assert_eq!(found.blobs, 2, "stored once");
    Ok(())
}

/// Texts of any alphabet and size come back as they were.
pub async fn takes_texts_of_any_kind(journal: &dyn Journal) -> Result<()> {
    let (ctx, _) = still_context();
    let huge = "0123456789abcdef".repeat(10 * 1024 * 1024 / 16);
    let texts =
        ["", "\0 \u{7f} \u{200b}", "'; DROP TABLE runs; --", "🧪 日本語 ñ \u{202e}olleh", &huge];
    for text in texts {
        let run = Id::new(&ctx);
        let events = whole_run(&ctx, &run, text);
        write(&ctx, journal, &run, &events).await?;
        assert_events(&ctx, journal, &run, &events).await?;
        let runs = journal.runs(&ctx, &RunQuery { limit: 1, ..RunQuery::default() }).await?;
        assert!(runs[0].prompt.as_ref().is_some_and(|line| line.len() < 1000));
    }
    assert_clean(&ctx, journal).await
}

/// A Thought made elsewhere is listed and found by every iteration's id.
pub async fn takes_imported_thoughts(journal: &dyn Journal) -> Result<()> {
    let (ctx, _) = still_context();
    let first = Thought::new(&ctx, "Asked elsewhere").with_tag("from", "file").with_text("a");
    let second = first.next_iteration(&ctx).with_text("b");
    let run = first.id().clone();
    let imported = EventKind::Imported { thought: Box::new(second.clone()) };
    write(&ctx, journal, &run, &numbered(&ctx, &run, 0, vec![imported])).await?;
    let query = RunQuery {
        contains: Some("asked elsewhere".into()),
        tag: Some(("from".into(), "file".into())),
        ..RunQuery::default()
    };
    let runs = journal.runs(&ctx, &query).await?;
    assert_eq!(runs.len(), 1);
    assert_eq!(runs[0].prompt.as_deref(), Some("Asked elsewhere"));
    assert_eq!((runs[0].iterations, runs[0].status), (2, RunStatus::Finished));
    let found = journal.thought(&ctx, second.id().as_str()).await?;
    assert_eq!(found.as_ref().and_then(Thought::text), Some("b"));
    assert_clean(&ctx, journal).await
}
