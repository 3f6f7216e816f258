//! A run as it is on record, with everything that was stored apart.

use sifaka::event::Fold;
use sifaka::journal::Resolved;
use sifaka::{Body, Context, Error, ErrorKind, Event, Id, Journal, Result, Thought};

/// A run, read whole.
pub(crate) struct Record {
    pub(crate) run_id: Id,
    pub(crate) events: Vec<Event>,
    pub(crate) fold: Fold,
    /// What the id named: a Thought of the run, or for the run its newest.
    pub(crate) thought: Thought,
    /// Whether the id named the run itself.
    pub(crate) whole: bool,
}

impl Record {
    /// Reads the run that a run's or Thought's id, or the unique beginning of one, names.
    pub(crate) async fn load(ctx: &Context, journal: &dyn Journal, id: &str) -> Result<Self> {
        let Resolved { run_id, thought_id } = journal.resolve(ctx, id).await?;
        let mut events = journal.events(ctx, &run_id).await?;
        load_bodies(ctx, journal, &mut events).await?;
        let fold = Fold::of(&events)?;
        let Some(newest) = fold.thought() else {
            let message = format!("the content of run {run_id} was erased");
            return Err(Error::new(ErrorKind::NotFound, "journal", "read", message)
                .suggest("`sifaka list` shows the runs that are there"));
        };
        let named = thought_id.filter(|id| *id != run_id);
        let thought = named.as_ref().and_then(|id| newest.find(id));
        let whole = thought.is_none();
        let thought = thought.unwrap_or_else(|| newest.clone());
        Ok(Self { run_id, events, fold, thought, whole })
    }

    /// The text the run gives: the named Thought, or for the run its best.
    pub(crate) fn answer(&self) -> Thought {
        match self.fold.best() {
            Some((best, _)) if self.whole => best.clone(),
            _ => self.thought.clone(),
        }
    }
}

/// Brings in what was stored apart. What is gone stays a pointer: the rest is worth showing.
async fn load_bodies(ctx: &Context, journal: &dyn Journal, events: &mut [Event]) -> Result<()> {
    for event in events {
        let mut loaded = Vec::new();
        let mut apart = Vec::new();
        event.kind.for_each_body(|body| {
            if let Body::Blob(blob) = body {
                apart.push(*blob);
            }
        });
        for blob in apart {
            if let Some(bytes) = journal.blob(ctx, &blob.blob).await? {
                loaded.push((blob, Body::from_bytes(&bytes)));
            }
        }
        event.kind.for_each_body_mut(|body| {
            if let Body::Blob(blob) = body
                && let Some((_, full)) = loaded.iter().find(|(known, _)| known == blob)
            {
                *body = full.clone();
            }
        });
    }
    Ok(())
}
