//! A run as it is on record, with everything that was stored apart.

use serde::Serialize;
use sifaka::event::Fold;
use sifaka::journal::Resolved;
use sifaka::{Body, Context, Error, ErrorKind, Event, Id, Journal, Result, Thought};

/// What a chain is called that is made of flags alone.
pub(crate) const BY_FLAGS: &str = "flags";

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

    /// How a run without an end is taken up again.
    pub(crate) fn how_to_go_on(&self) -> String {
        let by_flags =
            self.fold.chain_id().is_some_and(|id| id.split('@').next() == Some(BY_FLAGS));
        let flags = if by_flags { " with the same flags as before" } else { "" };
        format!("`sifaka resume {}`{flags} goes on with it", self.run_id)
    }

    /// The Thought as it is written to files. A run's says which iteration it gave.
    pub(crate) fn to_write(&self) -> Written<'_> {
        let said = self.thought.unknown_fields().is_some_and(|fields| fields.contains_key("best"));
        let best = self.fold.best().filter(|_| self.whole && !said);
        let best =
            best.filter(|(thought, _)| thought.text().is_some()).map(|(thought, score)| Best {
                id: thought.id().clone(),
                iteration: thought.iteration(),
                passed: score.passed,
                score: score.value,
            });
        Written { thought: &self.thought, best }
    }

    /// The text the run gives: the named Thought, or for the run its best.
    pub(crate) fn answer(&self) -> Thought {
        match self.fold.best() {
            Some((best, _)) if self.whole => best.clone(),
            _ => self.thought.clone(),
        }
    }
}

/// A Thought as it is written to files.
#[derive(Serialize)]
pub(crate) struct Written<'a> {
    #[serde(flatten)]
    thought: &'a Thought,
    #[serde(skip_serializing_if = "Option::is_none")]
    best: Option<Best>,
}

/// The iteration a run gave.
#[derive(Serialize)]
struct Best {
    id: Id,
    iteration: u32,
    passed: bool,
    score: f64,
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
