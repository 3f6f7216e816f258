//! Random runs: sequences of events that a chain could have written, and what must come of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use serde_json::{Map, Value};
use sifaka_core::event::{Checked, EndReason, Nanos, Prompted, Step};
use sifaka_core::model::{Completion, Provider};
use sifaka_core::policy::Decision;
use sifaka_core::retriever::Stage;
use sifaka_core::{
    Body, Clock, CriticFeedback, Document, Event, EventKind, Failure, Id, Score, Usage,
    ValidationResult,
};

use crate::clock::ManualClock;
use crate::kinds::{
    bystander, called, completion, decision, end_reason, nanos, prompted, provider, words,
};
use crate::thoughts::{critic_feedback, document, validation_result};
use crate::values::{body, failure, object, text, usage, word};

/// A run, and what its Thoughts must be.
#[derive(Clone, Debug)]
pub struct RandomRun {
    /// Its events in order. Deltas among them carry the number of the event that follows.
    pub events: Vec<Event>,
    /// What each iteration must look like when all events are folded.
    pub iterations: Vec<Expected>,
    /// The score of the first text that was chosen.
    pub first_score: Option<Score>,
    /// The best score of any text that was chosen.
    pub best_score: Option<Score>,
    /// What the run consumed.
    pub usage: Usage,
}

/// What an iteration must look like.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expected {
    /// Its text.
    pub text: Option<Arc<str>>,
    /// What the validators said of it, in declared order.
    pub results: Vec<(Arc<str>, ValidationResult)>,
    /// What the critics said, in declared order.
    pub feedback: Vec<CriticFeedback>,
    /// What failed, in the order in which it did.
    pub failures: Vec<Failure>,
    /// How many texts it chose from.
    pub candidates: usize,
    /// What it consumed.
    pub usage: Usage,
}

#[derive(Clone, Debug)]
struct Plan {
    prompt: Arc<str>,
    chain: Arc<str>,
    system: Option<Arc<str>>,
    tags: BTreeMap<String, String>,
    metadata: Option<Map<String, Value>>,
    validators: Vec<String>,
    rounds: Vec<RoundPlan>,
    end: Option<Result<EndReason, Failure>>,
    noise: Vec<(u16, EventKind)>,
}

#[derive(Clone, Debug)]
struct RoundPlan {
    decision: Decision,
    found: Vec<(Stage, Body, Result<Vec<Document>, Failure>)>,
    prompt: Prompted,
    completions: Vec<Completion>,
    usage: Usage,
    provider: Provider,
    raw: Option<Body>,
    seconds: Nanos,
    calls: Vec<EventKind>,
    verdicts: Vec<ValidationResult>,
    /// Sort keys: validators and critics end in any order.
    order: Vec<u8>,
    /// How many answers share one event.
    together: usize,
    critics: Vec<CriticPlan>,
    is_resumed: bool,
}

#[derive(Clone, Debug)]
enum CriticPlan {
    Says(CriticFeedback),
    Fails(Failure),
    IsSkipped(Arc<str>),
}

fn round() -> BoxedStrategy<RoundPlan> {
    let stage = crate::kinds::stage();
    let found = prop_oneof![
        4 => vec(document(), 0..3).prop_map(Ok),
        1 => failure().prop_map(Err),
    ];
    let critic = prop_oneof![
        4 => critic_feedback().prop_map(CriticPlan::Says),
        1 => failure().prop_map(CriticPlan::Fails),
        1 => words().prop_map(CriticPlan::IsSkipped),
    ];
    (
        (decision(), vec((stage, body(), found), 0..3), prompted(), vec(completion(), 1..5)),
        (usage(), provider(), option::of(body()), nanos(), vec(called(), 0..2)),
        (vec(validation_result(), 12), vec(any::<u8>(), 12), 1_usize..4),
        (vec(critic, 0..4), prop::bool::weighted(0.2)),
    )
        .prop_map(
            |(
                (decision, found, prompt, completions),
                (usage, provider, raw, seconds, calls),
                (verdicts, order, together),
                (critics, is_resumed),
            )| RoundPlan {
                decision,
                found,
                prompt,
                completions,
                usage,
                provider,
                raw,
                seconds,
                calls,
                verdicts,
                order,
                together,
                critics,
                is_resumed,
            },
        )
        .boxed()
}

/// Any run that a chain could have written: finished, failed, resumed or left open.
pub fn run() -> BoxedStrategy<RandomRun> {
    let end = prop_oneof![
        3 => end_reason().prop_map(|reason| Some(Ok(reason))),
        1 => failure().prop_map(|failure| Some(Err(failure))),
        1 => Just(None),
    ];
    (
        (words(), words(), option::of(words()), btree_map(text(), text(), 0..2)),
        (option::of(object()), vec(word(), 0..4), vec(round(), 1..4), end),
        vec((any::<u16>(), bystander()), 0..4),
    )
        .prop_map(|((prompt, chain, system, tags), (metadata, names, rounds, end), noise)| {
            let validators =
                names.iter().enumerate().map(|(at, name)| format!("{name}-{at}")).collect();
            let plan =
                Plan { prompt, chain, system, tags, metadata, validators, rounds, end, noise };
            Writer::new().write(plan)
        })
        .boxed()
}

/// Writes a plan down as events.
struct Writer {
    clock: ManualClock,
    kinds: Vec<EventKind>,
    iterations: Vec<Expected>,
    ids: Vec<Id>,
    best: Option<(usize, Score)>,
    first: Option<Score>,
    usage: Usage,
}

/// A text to choose, and what was said of it by the validator at each place.
struct Entry {
    text: Arc<str>,
    results: BTreeMap<u32, (Arc<str>, ValidationResult)>,
}

impl Entry {
    fn score(&self) -> Score {
        Score::of(self.results.values().map(|(_, result)| result))
    }
}

impl Writer {
    fn new() -> Self {
        Self {
            clock: ManualClock::new(),
            kinds: Vec::new(),
            iterations: Vec::new(),
            ids: Vec::new(),
            best: None,
            first: None,
            usage: Usage::default(),
        }
    }

    fn write(mut self, plan: Plan) -> RandomRun {
        let run = Id::derived(plan.prompt.as_bytes());
        self.kinds.push(EventKind::RunStarted {
            thought_id: run.clone(),
            chain_id: Arc::clone(&plan.chain),
            prompt: plan.prompt,
            system_prompt: plan.system,
            tags: plan.tags,
            metadata: plan.metadata,
        });
        for (number, round) in plan.rounds.into_iter().enumerate() {
            let id = if number == 0 {
                run.clone()
            } else {
                let id = Id::derived(format!("{run} {number}").as_bytes());
                self.kinds.push(EventKind::IterationStarted {
                    thought_id: id.clone(),
                    decision: round.decision.clone(),
                });
                id
            };
            self.ids.push(id);
            self.round(round, &plan.validators, &plan.chain);
        }
        match (plan.end, self.best) {
            (Some(Ok(reason)), Some((at, score))) => self.kinds.push(EventKind::RunFinished {
                reason,
                best: self.ids[at].clone(),
                score,
                usage: self.usage,
                seconds: Nanos(7),
            }),
            (Some(Err(failure)), _) => {
                self.kinds.push(EventKind::RunFailed { failure, seconds: Nanos(7) });
            }
            _ => {}
        }
        for (place, kind) in plan.noise {
            // Anywhere but before the beginning.
            let place = 1 + usize::from(place) % self.kinds.len();
            self.kinds.insert(place, kind);
        }
        self.number(&run)
    }

    fn round(&mut self, plan: RoundPlan, validators: &[String], chain: &Arc<str>) {
        let mut expected = Expected::default();
        let (before, after): (Vec<_>, Vec<_>) =
            plan.found.into_iter().partition(|(stage, ..)| *stage == Stage::PreGeneration);
        self.retrieve(before, &mut expected);
        self.kinds.push(EventKind::Prompted(Box::new(plan.prompt)));
        if plan.is_resumed {
            // The call in flight was lost with the process, and is made again.
            let chain_id = Arc::clone(chain);
            self.kinds.push(EventKind::RunResumed { chain_id, changed: false });
        }
        let mut entries: Vec<Entry> = plan
            .completions
            .iter()
            .map(|c| Entry { text: Arc::clone(&c.text), results: BTreeMap::new() })
            .collect();
        expected.usage += plan.usage;
        self.kinds.push(EventKind::Generated {
            model: Arc::from("model"),
            completions: plan.completions,
            usage: plan.usage,
            provider: plan.provider,
            raw: plan.raw,
            seconds: plan.seconds,
        });
        self.retrieve(after, &mut expected);

        let verdicts = plan.verdicts.iter().cycle();
        let mut answers = Vec::new();
        for candidate in 0..entries.len() {
            for place in 0..validators.len() {
                answers.push((candidate, place));
            }
        }
        shuffle(&mut answers, &plan.order);
        let mut given: Vec<_> = answers.into_iter().zip(verdicts.cloned()).collect();
        self.validate(&mut given, validators, plan.together, &mut entries);
        let mut chosen = self.choose(&entries, None);

        for call in plan.calls {
            if let EventKind::Called { response, .. } = &call {
                expected.usage += response.usage;
            }
            self.kinds.push(call);
        }
        let own = entries.len();
        let mut critics: Vec<(usize, CriticPlan)> = plan.critics.into_iter().enumerate().collect();
        shuffle(&mut critics, &plan.order);
        let mut said = BTreeMap::new();
        for (index, critic) in critics {
            let index = u32::try_from(index).unwrap_or(u32::MAX);
            let step = Step::Critic(index);
            self.kinds.push(match critic {
                CriticPlan::Says(feedback) => {
                    if let Some(text) = &feedback.proposed_text {
                        entries.push(Entry { text: Arc::clone(text), results: BTreeMap::new() });
                    }
                    said.insert(index, feedback.clone());
                    EventKind::Critiqued { index, feedback, seconds: Nanos(5) }
                }
                CriticPlan::Fails(failure) => {
                    expected.failures.push(failure.clone());
                    EventKind::Failed { step, failure, seconds: Nanos(6) }
                }
                CriticPlan::IsSkipped(reason) => {
                    EventKind::Skipped { step, component: Arc::from("critic"), reason }
                }
            });
        }
        expected.feedback = said.into_values().collect();
        if entries.len() > own {
            let proposals =
                (own..entries.len()).flat_map(|c| (0..validators.len()).map(move |p| (c, p)));
            let mut given: Vec<_> = proposals.zip(plan.verdicts.iter().rev().cloned()).collect();
            self.validate(&mut given, validators, plan.together, &mut entries);
            chosen = self.choose(&entries, Some(chosen));
        }
        expected.text = Some(Arc::clone(&entries[chosen].text));
        expected.results = entries[chosen].results.values().cloned().collect();
        expected.candidates = if entries.len() > 1 { entries.len() } else { 0 };
        self.usage += expected.usage;
        self.iterations.push(expected);
    }

    fn retrieve(
        &mut self,
        found: Vec<(Stage, Body, Result<Vec<Document>, Failure>)>,
        expected: &mut Expected,
    ) {
        for ((stage, query, found), index) in found.into_iter().zip(0_u32..) {
            self.kinds.push(match found {
                Ok(documents) => EventKind::Retrieved {
                    stage,
                    index,
                    retriever: Arc::from("retriever"),
                    query,
                    documents,
                    seconds: Nanos(3),
                },
                Err(failure) => {
                    expected.failures.push(failure.clone());
                    let step = Step::Retriever(stage, index);
                    EventKind::Failed { step, failure, seconds: Nanos(4) }
                }
            });
        }
    }

    /// Answers in the order given; neighbours about the same candidate share an event.
    fn validate(
        &mut self,
        given: &mut Vec<((usize, usize), ValidationResult)>,
        validators: &[String],
        together: usize,
        entries: &mut [Entry],
    ) {
        let mut given = given.drain(..).peekable();
        while let Some(((candidate, place), result)) = given.next() {
            let mut same = vec![(place, result)];
            while same.len() < together
                && let Some((next, result)) = given.next_if(|((other, _), _)| *other == candidate)
            {
                same.push((next.1, result));
            }
            let results = same.into_iter().map(|(place, result)| {
                let index = u32::try_from(place).unwrap_or(u32::MAX);
                let name: Arc<str> = Arc::from(validators[place].as_str());
                entries[candidate].results.insert(index, (Arc::clone(&name), result.clone()));
                Checked { index, name, result, failure: None, seconds: Nanos(2) }
            });
            self.kinds.push(EventKind::Validated {
                candidate: u32::try_from(candidate).unwrap_or(u32::MAX),
                results: results.collect(),
            });
        }
    }

    /// The best of the texts, the earlier of equals; on record unless it was chosen before.
    fn choose(&mut self, entries: &[Entry], before: Option<usize>) -> usize {
        let mut at = before.unwrap_or(0);
        for (place, entry) in entries.iter().enumerate() {
            if entry.score().beats(&entries[at].score()) {
                at = place;
            }
        }
        if before == Some(at) {
            return at;
        }
        let score = entries[at].score();
        let candidate = u32::try_from(at).unwrap_or(u32::MAX);
        self.kinds.push(EventKind::Chosen { candidate, score });
        self.first.get_or_insert(score);
        let round = self.iterations.len();
        let is_better =
            self.best.as_ref().is_none_or(|(best, other)| *best == round || score.beats(other));
        if is_better {
            self.best = Some((round, score));
        }
        at
    }

    fn number(self, run: &Id) -> RandomRun {
        let mut seq = 0;
        let mut events = Vec::with_capacity(self.kinds.len());
        for kind in self.kinds {
            self.clock.advance(Duration::from_nanos(1_000_003));
            let transient = kind.is_transient();
            events.push(Event { run_id: run.clone(), seq, time: self.clock.now(), kind });
            seq += u64::from(!transient);
        }
        RandomRun {
            events,
            iterations: self.iterations,
            first_score: self.first,
            best_score: self.best.map(|(_, score)| score),
            usage: self.usage,
        }
    }
}

/// Puts items in the order of random keys, as many as there are.
fn shuffle<T>(items: &mut Vec<T>, keys: &[u8]) {
    let mut keyed: Vec<(u8, T)> = keys.iter().copied().cycle().zip(std::mem::take(items)).collect();
    keyed.sort_by_key(|(key, _)| *key);
    items.extend(keyed.into_iter().map(|(_, item)| item));
}
