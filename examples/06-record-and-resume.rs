//! The record: a journal on disk, proof that it is intact, and a run that goes on where it was
//! left.
//!
//! `cargo run --example 06-record-and-resume`

#![expect(clippy::print_stdout, reason = "an example prints")]

use std::sync::Arc;

use futures_util::StreamExt;
use sifaka::prelude::*;

#[tokio::main]
async fn main() -> Result<()> {
    let folder = std::env::temp_dir().join(format!("sifaka-example-{}", std::process::id()));
    let journal: Arc<dyn Journal> =
        Arc::new(SqliteJournal::open(folder.join("journal.db"), SqliteOptions::default())?);
    let model = Arc::new(ScriptedModel::new(["Too short.", "This one is long enough to pass."]));
    let chain = Chain::builder(Arc::clone(&model))
        .validate(Length::words(5..))
        .journal(Arc::clone(&journal))
        .build()?;

    // Stop reading after the first text, as a crash would.
    let mut stream = chain.run("Write a sentence.").tag("example", "06").stream();
    let mut run = None;
    while let Some(event) = stream.next().await {
        let event = event?;
        run = Some(event.run_id.clone());
        if matches!(event.kind, EventKind::Chosen { .. }) {
            break;
        }
    }
    drop(stream);

    // What is on record is not done, or paid for, again.
    let Some(run) = run else { return Ok(()) };
    let outcome = chain.resume(&run).await?;
    println!("{} ({} calls in all)", outcome.text(), model.call_count());

    let ctx = Context::new();
    let proof = journal.verify(&ctx, &Default::default()).await?;
    println!("{} events, intact: {}", proof.events, proof.is_clean());

    // Erasing removes what was said; hashes and a tombstone stay, and the proof still holds.
    journal.erase(&ctx, &run, "the example is over").await?;
    let proof = journal.verify(&ctx, &Default::default()).await?;
    println!("{} of them erased, intact: {}", proof.erased, proof.is_clean());

    drop((chain, journal));
    std::fs::remove_dir_all(&folder)
        .map_err(|error| Error::new(ErrorKind::Storage, "example", "clean up", error.to_string()))
}
