//! Events folded into durations.

use std::sync::Arc;
use std::time::Duration;

use sifaka_core::event::{Nanos, Step};
use sifaka_core::{Cost, Event, EventKind, Usage};

use crate::histogram::Histogram;
use crate::performance::{ComponentKind, ComponentPerformance, Performance};

/// The most components that are told apart. Further ones are counted as `other`, one for each
/// kind.
pub const MAX_COMPONENTS: usize = 256;

/// Up to so many are looked through one by one before they are searched.
const FEW_COMPONENTS: usize = 16;

const OTHER: &str = "other";
const JOURNAL: &str = "journal";

/// The timings of one run, or of many merged.
///
/// Recording allocates only when a component is seen for the first time and as its first 32
/// durations come.
#[derive(Clone, Debug, Default)]
pub struct Timings {
    runs: u64,
    total: u64,
    /// Sorted by kind and name, so that finding one takes a few comparisons.
    components: Vec<Component>,
}

#[derive(Clone, Debug)]
struct Component {
    kind: ComponentKind,
    name: Arc<str>,
    times: Histogram,
    failures: u64,
    tokens: u64,
    cost: Option<Cost>,
}

impl Timings {
    /// Timings with nothing in them.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes an event's durations into account; most kinds have none.
    pub fn observe(&mut self, kind: &EventKind) {
        match kind {
            EventKind::Generated { model, usage, seconds, .. } => {
                self.called(model, usage, *seconds);
            }
            EventKind::Called { model, response, seconds, .. } => {
                self.called(model, &response.usage, *seconds);
            }
            EventKind::Validated { results, .. } => {
                for checked in results {
                    self.record(ComponentKind::Validator, &checked.name, checked.seconds);
                    if checked.failure.is_some() {
                        let component = self.component(ComponentKind::Validator, &checked.name);
                        component.failures = component.failures.saturating_add(1);
                    }
                }
            }
            EventKind::Critiqued { feedback, seconds, .. } => {
                self.record(ComponentKind::Critic, &feedback.critic_name, *seconds);
            }
            EventKind::Retrieved { retriever, seconds, .. } => {
                self.record(ComponentKind::Retriever, retriever, *seconds);
            }
            EventKind::Failed { step, failure, seconds } => {
                let kind = match step {
                    Step::Retriever(..) => ComponentKind::Retriever,
                    Step::Validator(_) => ComponentKind::Validator,
                    Step::Critic(_) => ComponentKind::Critic,
                    _ => ComponentKind::Other,
                };
                let component = self.component(kind, &failure.component);
                component.failures = component.failures.saturating_add(1);
                // The time of a validator that broke is in its "could not tell".
                if kind != ComponentKind::Validator {
                    component.times.record(seconds.0);
                }
            }
            EventKind::RunFinished { seconds, .. } | EventKind::RunFailed { seconds, .. } => {
                self.runs = self.runs.saturating_add(1);
                self.total = self.total.saturating_add(seconds.0);
            }
            _ => {}
        }
    }

    /// As [`observe`](Self::observe), for an event with its place.
    pub fn observe_event(&mut self, event: &Event) {
        self.observe(&event.kind);
    }

    /// Adds a wait for the journal, which no event tells of.
    pub fn add_storage(&mut self, time: Duration) {
        // The name is looked up before an `Arc` of it would be made.
        let kind = ComponentKind::Storage;
        let index = match self.find(kind, JOURNAL) {
            Ok(index) => index,
            Err(index) => self.insert(index, kind, Arc::from(JOURNAL)),
        };
        self.components[index].times.record(Nanos::from(time).0);
    }

    /// Adds to the wall time, for a run whose end is not among the events.
    pub fn add_total(&mut self, time: Duration) {
        self.total = self.total.saturating_add(Nanos::from(time).0);
    }

    /// Adds all of another's timings.
    pub fn merge(&mut self, other: &Self) {
        self.runs = self.runs.saturating_add(other.runs);
        self.total = self.total.saturating_add(other.total);
        for theirs in &other.components {
            let ours = self.component(theirs.kind, &theirs.name);
            ours.times.merge(&theirs.times);
            ours.failures = ours.failures.saturating_add(theirs.failures);
            ours.spend(theirs.tokens, theirs.cost);
        }
    }

    /// Where the time went.
    #[must_use]
    pub fn performance(&self) -> Performance {
        let sum = |kind: ComponentKind| {
            let of_kind = self.components.iter().filter(|component| component.kind == kind);
            Nanos(of_kind.fold(0_u64, |sum, component| sum.saturating_add(component.times.sum())))
        };
        let mut components: Vec<_> = self.components.iter().map(Component::performance).collect();
        // A stable sort: what took equally long stays in the order of kinds and names.
        components.sort_by_key(|component| std::cmp::Reverse(component.total));
        Performance {
            runs: self.runs,
            total_time: Nanos(self.total),
            model_time: sum(ComponentKind::Model),
            validation_time: sum(ComponentKind::Validator),
            critic_time: sum(ComponentKind::Critic),
            retrieval_time: sum(ComponentKind::Retriever),
            storage_time: sum(ComponentKind::Storage),
            components,
        }
    }

    fn called(&mut self, model: &Arc<str>, usage: &Usage, seconds: Nanos) {
        let component = self.component(ComponentKind::Model, model);
        component.times.record(seconds.0);
        component.spend(usage.tokens(), usage.cost);
    }

    fn record(&mut self, kind: ComponentKind, name: &Arc<str>, seconds: Nanos) {
        self.component(kind, name).times.record(seconds.0);
    }

    /// Where a component is, or where it belongs.
    fn find(&self, kind: ComponentKind, name: &str) -> Result<usize, usize> {
        // Events of one chain share their names, so the same text is mostly the same place.
        let same =
            |component: &Component| std::ptr::eq(&*component.name, name) && component.kind == kind;
        if self.components.len() <= FEW_COMPONENTS
            && let Some(index) = self.components.iter().position(same)
        {
            return Ok(index);
        }
        self.components
            .binary_search_by(|component| (component.kind, &*component.name).cmp(&(kind, name)))
    }

    fn component(&mut self, kind: ComponentKind, name: &Arc<str>) -> &mut Component {
        let index = match self.find(kind, name) {
            Ok(index) => index,
            Err(index) if self.components.len() < MAX_COMPONENTS => {
                self.insert(index, kind, Arc::clone(name))
            }
            Err(_) => match self.find(kind, OTHER) {
                Ok(index) => index,
                Err(index) => self.insert(index, kind, Arc::from(OTHER)),
            },
        };
        &mut self.components[index]
    }

    fn insert(&mut self, index: usize, kind: ComponentKind, name: Arc<str>) -> usize {
        let times = Histogram::default();
        let component = Component { kind, name, times, failures: 0, tokens: 0, cost: None };
        self.components.insert(index, component);
        index
    }
}

impl Component {
    fn spend(&mut self, tokens: u64, cost: Option<Cost>) {
        self.tokens = self.tokens.saturating_add(tokens);
        self.cost = match (self.cost, cost) {
            (Some(ours), Some(theirs)) => Some(ours.saturating_add(theirs)),
            (ours, theirs) => ours.or(theirs),
        };
    }

    fn performance(&self) -> ComponentPerformance {
        let times = &self.times;
        ComponentPerformance {
            component: match self.kind {
                ComponentKind::Storage => self.name.to_string(),
                kind => format!("{kind}:{}", self.name),
            },
            kind: self.kind,
            count: times.count(),
            total: Nanos(times.sum()),
            mean: Nanos(times.mean()),
            p50: Nanos(times.percentile(50)),
            p99: Nanos(times.percentile(99)),
            max: Nanos(times.max()),
            failures: self.failures,
            tokens: self.tokens,
            cost: self.cost,
        }
    }
}
