//! The journal, and stores of records.
//!
//! A [`Journal`](sifaka_core::Journal) is the record of every run. [`SqliteJournal`] keeps it in
//! one file that survives a crash of the program and of the machine; [`MemoryJournal`] keeps it
//! for as long as the program runs.
//!
//! A [`Store`](sifaka_core::Store) keeps records by namespace and key. [`MemoryStore`] is the one
//! that needs nothing else.
//!
//! ```
//! # use std::sync::Arc;
//! # use sifaka_core::{Context, Event, EventKind, Id, Journal};
//! # use sifaka_store::{SqliteJournal, SqliteOptions};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> sifaka_core::Result<()> {
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("journal.db");
//! let ctx = Context::new();
//! let journal = SqliteJournal::open(&path, SqliteOptions::default())?;
//!
//! let run = Id::new(&ctx);
//! let mut log = journal.open_run(&ctx, &run).await?;
//! log.append(&Arc::new(Event {
//!     run_id: run.clone(),
//!     seq: 0,
//!     time: ctx.now(),
//!     kind: EventKind::RunStarted {
//!         thought_id: run.clone(),
//!         chain_id: "notes".into(),
//!         prompt: "Summarise v0.9".into(),
//!         system_prompt: None,
//!         tags: Default::default(),
//!         metadata: None,
//!     },
//! }))?;
//! log.commit().await?; // from here on it is safe
//! let head = log.close().await?;
//!
//! assert_eq!(journal.head(&ctx).await?, head);
//! assert!(journal.verify(&ctx, &Default::default()).await?.is_clean());
//! # Ok(())
//! # }
//! ```

mod link;
mod memory;
mod sqlite;
mod summary;

pub use memory::{MemoryJournal, MemoryStore, StoreStatistics};
pub use sqlite::{SqliteJournal, SqliteOptions};
