//! A model that answers from a run on record.

mod record;

use std::sync::Arc;

use async_trait::async_trait;
use sifaka_core::model::{Capabilities, Price, Request, Response};
use sifaka_core::{Context, Cost, Error, ErrorKind, Event, Journal, Model, Result, Spec};
use tokio::sync::OnceCell;

use record::Record;

/// Gives the answers of a recorded run again.
///
/// It looks for the prompt it is asked, system prompt and messages alike, among those on record,
/// and gives what was answered then: the iterations' texts, and what critics and validators were
/// told when they asked a model. Where the same prompt was asked several times the answers come in
/// their order, and from the first again after the last. A prompt that is not on record is a
/// [`NotFound`](ErrorKind::NotFound) error that shows the first difference; nothing stands in.
///
/// Usage is one call and the tokens on record, at no cost: replaying pays for nothing, and its
/// [`price`](Model::price) says so. The provider's raw bytes are not given again.
#[derive(Debug)]
pub struct ReplayModel {
    name: Arc<str>,
    record: OnceCell<Record>,
    /// Where to read the record when it is first needed.
    source: Option<(Arc<dyn Journal>, Arc<str>)>,
}

impl ReplayModel {
    /// Answers from these events of one run.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when there is no answer of a model among them.
    pub fn from_events(events: &[Event]) -> Result<Self> {
        let id = events.first().map_or("", |event| event.run_id.as_str());
        let name: Arc<str> = Arc::from(format!("replay:{id}"));
        let record = OnceCell::new_with(Some(Record::new(&name, events)?));
        Ok(Self { name, record, source: None })
    }

    /// Answers from the run that `id` names in `journal`: a run's id, a Thought's, or the unique
    /// beginning of either.
    ///
    /// # Errors
    /// What the journal says, and [`ErrorKind::NotFound`] for a run without answers.
    pub async fn load(journal: &dyn Journal, ctx: &Context, id: &str) -> Result<Self> {
        let name: Arc<str> = Arc::from(format!("replay:{id}"));
        let record = OnceCell::new_with(Some(read(journal, ctx, &name, id).await?));
        Ok(Self { name, record, source: None })
    }

    /// The same, but reads the journal when it is first asked.
    pub fn lazy(journal: Arc<dyn Journal>, id: impl Into<Arc<str>>) -> Self {
        let id = id.into();
        let name = Arc::from(format!("replay:{id}"));
        Self { name, record: OnceCell::new(), source: Some((journal, id)) }
    }

    async fn record(&self, ctx: &Context) -> Result<&Record> {
        self.record
            .get_or_try_init(|| async {
                match &self.source {
                    Some((journal, id)) => read(&**journal, ctx, &self.name, id).await,
                    None => Record::new(&self.name, &[]),
                }
            })
            .await
    }
}

async fn read(journal: &dyn Journal, ctx: &Context, name: &str, id: &str) -> Result<Record> {
    let run = journal.resolve(ctx, id).await?.run_id;
    Record::new(name, &journal.events(ctx, &run).await?)
}

/// The id after the colon.
pub(crate) fn id_of(spec: &Spec) -> Result<String> {
    match spec.argument().map(str::trim).filter(|id| !id.is_empty()) {
        Some(id) => Ok(id.to_owned()),
        None => match spec.options().get("id").and_then(|id| id.as_str()) {
            Some(id) if spec.options().len() == 1 => Ok(id.to_owned()),
            _ => Err(Error::configuration("model replay", "which run to replay is not said")
                .suggest("write replay:ID; `sifaka list` prints the ids")),
        },
    }
}

#[async_trait]
impl Model for ReplayModel {
    fn name(&self) -> &str {
        &self.name
    }

    /// What the recorded model could do is not on record. Whatever it wrote is given again, so
    /// nothing is refused beforehand.
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            tools: true,
            json_schema: true,
            regex: true,
            grammar: true,
            logprobs: true,
            seed: true,
            images: true,
            max_candidates: u32::MAX,
            ..Capabilities::default()
        }
    }

    async fn generate(&self, ctx: &Context, request: &Request) -> Result<Response> {
        ctx.check()?;
        self.record(ctx).await?.answer(&self.name, request)
    }

    fn price(&self) -> Option<Price> {
        Some(Price {
            input_per_million: Cost::ZERO,
            output_per_million: Cost::ZERO,
            cached_per_million: None,
        })
    }
}

pub(crate) fn not_found(name: &str, message: impl Into<String>) -> Error {
    Error::new(ErrorKind::NotFound, name, "replay", message)
}
