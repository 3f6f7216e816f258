//! Folding events into Thoughts: live, from a journal, and on resume, by the same code.

use std::sync::Arc;

use super::{Checked, EndReason, Event, EventKind, Prompted, Step, Transition};
use crate::body::Hash;
use crate::candidate::{Candidate, Origin};
use crate::failure::Failure;
use crate::model::{Completion, Response};
use crate::policy::{Attempt, Decision};
use crate::retriever::Stage;
use crate::thought::{Node, push};
use crate::usage::Usage;
use crate::validation::Score;
use crate::{Error, ErrorKind, Id, Result, Thought};

/// A run's events folded up: the newest Thought with its history, the best one, and how far the
/// newest iteration got.
#[derive(Clone, Debug)]
pub struct Fold {
    next_seq: u64,
    current: Option<Thought>,
    best: Option<(Thought, Score)>,
    round: Round,
    attempts: Vec<Attempt>,
    usage: Usage,
    ended: Option<EndReason>,
    failed: Option<Failure>,
    chain_id: Option<Arc<str>>,
    seconds: u64,
    redacted: bool,
}

/// The name of the note that says that a run's texts were redacted before they were kept.
pub const REDACTED: &str = "redacted";

/// How far an iteration got: what is here need not be done again.
#[derive(Clone, Debug)]
pub struct Round {
    /// How its text comes about.
    pub decision: Decision,
    /// The texts to choose from.
    pub candidates: Vec<Candidate>,
    /// The completions the model gave.
    pub completions: Vec<Completion>,
    /// Places of the validators that answered, for each candidate.
    pub checked: Vec<Vec<u32>>,
    /// The chosen candidate and its score, over the candidates known then.
    pub chosen: Option<(u32, Score)>,
    /// Steps that answered, failed or were left out.
    pub done: Vec<Step>,
    /// Calls of components to models, for answering the same again.
    pub calls: Vec<Call>,
    /// Places of the critics whose feedback the Thought has, in the order it has it.
    critics: Vec<u32>,
    /// Stages at which something was retrieved.
    retrieved: Vec<Stage>,
    /// Whether its text was made elsewhere, so that nothing needs to be written.
    pub is_brought_along: bool,
    usage: Usage,
}

/// A component's call to a model, and what came of it.
#[derive(Clone, Debug)]
pub struct Call {
    /// Who asked.
    pub component: Arc<str>,
    /// Hash of what was asked.
    pub request: Hash,
    /// What was answered.
    pub response: Response,
}

impl Round {
    /// Whether something was retrieved at a stage.
    #[must_use]
    pub fn has_retrieved(&self, stage: Stage) -> bool {
        self.retrieved.contains(&stage)
    }

    fn new(decision: Decision) -> Self {
        Self {
            decision,
            candidates: Vec::new(),
            completions: Vec::new(),
            checked: Vec::new(),
            chosen: None,
            done: Vec::new(),
            calls: Vec::new(),
            critics: Vec::new(),
            retrieved: Vec::new(),
            is_brought_along: false,
            usage: Usage::default(),
        }
    }
}

impl Default for Fold {
    fn default() -> Self {
        Self::new()
    }
}

impl Fold {
    /// Before the first event.
    #[must_use]
    pub fn new() -> Self {
        Self {
            next_seq: 0,
            current: None,
            best: None,
            round: Round::new(Decision::Fresh { samples: 1 }),
            attempts: Vec::new(),
            usage: Usage::default(),
            ended: None,
            failed: None,
            chain_id: None,
            seconds: 0,
            redacted: false,
        }
    }

    /// All of these events, in order.
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub fn of<'a>(events: impl IntoIterator<Item = &'a Event>) -> Result<Self> {
        let mut fold = Self::new();
        for event in events {
            fold.apply(event)?;
        }
        Ok(fold)
    }

    /// The number the next event must have.
    #[must_use]
    pub fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// The newest Thought with everything before it; `None` before the first event.
    #[must_use]
    pub fn thought(&self) -> Option<&Thought> {
        self.current.as_ref()
    }

    /// The best Thought so far and its score; `None` until a text was validated.
    #[must_use]
    pub fn best(&self) -> Option<(&Thought, Score)> {
        let (best, score) = self.best.as_ref()?;
        // While it is the newest, what is said of it later belongs to it.
        let thought = self.current.as_ref().filter(|current| current.id() == best.id());
        Some((thought.unwrap_or(best), *score))
    }

    /// How far the newest iteration got.
    #[must_use]
    pub fn round(&self) -> &Round {
        &self.round
    }

    /// Every finished iteration, oldest first.
    #[must_use]
    pub fn attempts(&self) -> &[Attempt] {
        &self.attempts
    }

    /// What the run consumed so far.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// Why the run ended, if it did.
    #[must_use]
    pub fn ended(&self) -> Option<&EndReason> {
        self.ended.as_ref()
    }

    /// Why the run failed, if it did and was not resumed.
    #[must_use]
    pub fn failed(&self) -> Option<&Failure> {
        self.failed.as_ref()
    }

    /// The chain that last worked on the run.
    #[must_use]
    pub fn chain_id(&self) -> Option<&str> {
        self.chain_id.as_deref()
    }

    /// How long finished processes worked on the run, in nanoseconds.
    #[must_use]
    pub fn worked(&self) -> super::Nanos {
        super::Nanos(self.seconds)
    }

    /// Whether texts of the run were redacted before they were kept.
    #[must_use]
    pub fn is_redacted(&self) -> bool {
        self.redacted
    }

    /// Takes the next event.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] when it cannot follow what came before.
    pub fn apply(&mut self, event: &Event) -> Result<()> {
        if event.kind.is_transient() {
            return Ok(());
        }
        if event.seq != self.next_seq {
            return Err(corrupt(event, &format!("number {} was expected", self.next_seq)));
        }
        self.step(event)?;
        self.next_seq += 1;
        Ok(())
    }

    fn step(&mut self, event: &Event) -> Result<()> {
        if let EventKind::RunStarted {
            thought_id,
            chain_id,
            prompt,
            system_prompt,
            tags,
            metadata,
        } = &event.kind
        {
            if self.current.is_some() {
                return Err(corrupt(event, "the run had begun already"));
            }
            let mut node = Node::new(thought_id.clone(), Arc::clone(prompt), event.time);
            node.run_id = Some(event.run_id.clone());
            node.chain_id = Some(Arc::clone(chain_id));
            node.system_prompt.clone_from(system_prompt);
            node.tags = (!tags.is_empty()).then(|| Arc::new(tags.clone()));
            node.metadata = metadata.clone().map(Arc::new);
            self.current = Some(Thought::from_node(node));
            self.chain_id = Some(Arc::clone(chain_id));
            return Ok(());
        }
        if let EventKind::Imported { thought } = &event.kind {
            if self.current.is_some() {
                return Err(corrupt(event, "the run had begun already"));
            }
            self.import(event, thought);
            return Ok(());
        }
        let Some(current) = self.current.as_mut() else {
            return Err(corrupt(event, "the run had not begun"));
        };
        match &event.kind {
            EventKind::RunResumed { chain_id, changed } => {
                self.chain_id = Some(Arc::clone(chain_id));
                self.ended = None;
                self.failed = None;
                if *changed {
                    self.start_judging_anew();
                }
            }
            EventKind::IterationStarted { thought_id, decision } => {
                let next = current.next_with(thought_id.clone(), event.time);
                self.leave(decision.clone(), next);
            }
            EventKind::Retrieved { stage, index, documents, .. } => {
                // What an iteration retrieves anew takes the place of what it was handed.
                let first = !self.round.has_retrieved(*stage);
                current.edit(|node| {
                    let list = match stage {
                        Stage::PreGeneration => &mut node.pre,
                        Stage::PostGeneration => &mut node.post,
                    };
                    if first {
                        *list = None;
                    }
                    Arc::make_mut(list.get_or_insert_default()).extend_from_slice(documents);
                });
                self.round.retrieved.push(*stage);
                self.round.done.push(Step::Retriever(*stage, *index));
            }
            EventKind::Prompted(prompt) => current.edit(|node| prompted(node, prompt)),
            EventKind::Generated { completions, usage, .. } => {
                self.spend(*usage);
                self.generated(completions);
            }
            EventKind::Called { component, request, response, .. } => {
                self.spend(response.usage);
                self.round.calls.push(Call {
                    component: Arc::clone(component),
                    request: *request,
                    response: Response::clone(response),
                });
            }
            EventKind::Validated { candidate, results } => {
                for failure in results.iter().filter_map(|checked| checked.failure.as_ref()) {
                    current.edit(|node| push(&mut node.failures, failure.clone()));
                }
                if !self.validated(*candidate, results) {
                    return Err(corrupt(event, &format!("there is no candidate {candidate}")));
                }
            }
            EventKind::Chosen { candidate, score } => {
                if !self.chosen(*candidate, *score) {
                    return Err(corrupt(event, &format!("there is no candidate {candidate}")));
                }
            }
            EventKind::Critiqued { index, feedback, .. } => {
                // Critics end in any order; the Thought has them in the declared one.
                let place = self.round.critics.partition_point(|other| other <= index);
                self.round.critics.insert(place, *index);
                current.edit(|node| {
                    let list = Arc::make_mut(node.feedback.get_or_insert_default());
                    list.insert(place.min(list.len()), feedback.clone());
                });
                if let Some(text) = &feedback.proposed_text {
                    let origin = Origin::Proposal(Arc::clone(&feedback.critic_name));
                    self.candidate(Arc::clone(text), origin);
                }
                self.round.done.push(Step::Critic(*index));
            }
            EventKind::Failed { step, failure, .. } => {
                current.edit(|node| push(&mut node.failures, failure.clone()));
                self.round.done.push(*step);
            }
            EventKind::Skipped { step, .. } => self.round.done.push(*step),
            EventKind::Resilience { component, transition } => {
                let failed = matches!(
                    transition,
                    Transition::Retrying { .. } | Transition::RetriesExhausted { .. }
                );
                if failed && component.starts_with("model:") {
                    // A try that failed is a call all the same: it may have been billed.
                    self.spend(Usage { calls: 1, ..Usage::default() });
                }
            }
            EventKind::Noted { name, .. } => self.redacted |= &**name == REDACTED,
            EventKind::RunFinished { reason, seconds, .. } => {
                self.ended = Some(reason.clone());
                self.seconds = self.seconds.saturating_add(seconds.0);
            }
            EventKind::RunFailed { failure, seconds } => {
                self.failed = Some(failure.clone());
                self.seconds = self.seconds.saturating_add(seconds.0);
            }
            EventKind::RunStarted { .. }
            | EventKind::Imported { .. }
            | EventKind::Guided { .. }
            | EventKind::Delta(_)
            | EventKind::Unknown(_) => {}
        }
        Ok(())
    }

    fn import(&mut self, event: &Event, thought: &Thought) {
        let mut thought = thought.clone();
        thought.edit(|node| {
            node.run_id.get_or_insert_with(|| event.run_id.clone());
        });
        if let Some(text) = thought.text() {
            // A candidate without results: whoever goes on with the run checks it anew.
            self.candidate(Arc::from(text), Origin::Sample);
            self.round.is_brought_along = true;
            self.best = Some((thought.clone(), thought.score()));
        }
        self.chain_id = thought.chain_id().map(Arc::from);
        self.current = Some(thought);
    }

    /// Forgets every judgement: a changed chain has other checks. The best text so far is put
    /// before them again, beside the newest.
    fn start_judging_anew(&mut self) {
        let best = self.best.take().and_then(|(thought, _)| thought.node.text.clone());
        for candidate in &mut self.round.candidates {
            candidate.validation_results = Arc::default();
            candidate.score = None;
            candidate.chosen = false;
        }
        self.round.checked.iter_mut().for_each(Vec::clear);
        self.round.chosen = None;
        self.round.done.retain(|step| matches!(step, Step::Retriever(..)));
        self.attempts.clear();
        if let Some(text) = best
            && self.round.candidates.iter().all(|candidate| candidate.text != text)
        {
            self.candidate(text, Origin::Sample);
        }
        if let Some(current) = self.current.as_mut() {
            current.edit(|node| node.results = None);
        }
    }

    /// Fetches the documents of the newest iteration that were stored apart.
    ///
    /// # Errors
    /// What the store says; [`ErrorKind::NotFound`] for one that was erased.
    pub async fn load_documents(
        &mut self,
        ctx: &crate::Context,
        blobs: &dyn crate::Blobs,
    ) -> Result<()> {
        let Some(current) = self.current.as_mut() else { return Ok(()) };
        for stage in [Stage::PreGeneration, Stage::PostGeneration] {
            let mut documents = match stage {
                Stage::PreGeneration => current.pre_generation_context().to_vec(),
                Stage::PostGeneration => current.post_generation_context().to_vec(),
            };
            if documents.iter().all(|document| document.text().is_some()) {
                continue;
            }
            for document in &mut documents {
                document.text = document.text.load(ctx, blobs).await?;
            }
            let documents = Some(Arc::new(documents));
            current.edit(|node| match stage {
                Stage::PreGeneration => node.pre = documents,
                Stage::PostGeneration => node.post = documents,
            });
        }
        Ok(())
    }

    fn leave(&mut self, decision: Decision, next: Thought) {
        let old = std::mem::replace(&mut self.round, Round::new(decision));
        if let (Some((best, _)), Some(current)) = (self.best.as_mut(), self.current.as_ref())
            && best.id() == current.id()
        {
            *best = current.clone();
        }
        if let Some((_, score)) = old.chosen {
            self.attempts.push(Attempt { decision: old.decision, score, usage: old.usage });
        }
        self.current = Some(next);
    }

    fn spend(&mut self, usage: Usage) {
        self.usage += usage;
        self.round.usage += usage;
        let total = self.round.usage;
        if let Some(current) = self.current.as_mut() {
            current.edit(|node| node.usage = Some(Arc::new(total)));
        }
    }

    fn generated(&mut self, completions: &[Completion]) {
        self.round.completions.extend_from_slice(completions);
        for completion in completions {
            self.candidate(Arc::clone(&completion.text), Origin::Sample);
        }
        // Until one is chosen the first stands for the iteration.
        if let (Some(first), Some(current)) = (completions.first(), self.current.as_mut())
            && current.text().is_none()
        {
            current.edit(|node| node.text = Some(Arc::clone(&first.text)));
        }
    }

    fn candidate(&mut self, text: Arc<str>, origin: Origin) {
        self.round.candidates.push(Candidate {
            text,
            origin,
            validation_results: Arc::default(),
            score: None,
            chosen: false,
            extra: crate::Extra::default(),
        });
        self.round.checked.push(Vec::new());
        if self.round.candidates.len() > 1 {
            self.show_candidates();
        }
    }

    fn validated(&mut self, candidate: u32, results: &[Checked]) -> bool {
        let at = candidate as usize;
        let is_alone = self.round.candidates.len() == 1;
        let (Some(entry), Some(checked)) =
            (self.round.candidates.get_mut(at), self.round.checked.get_mut(at))
        else {
            return false;
        };
        if is_alone && let Some(current) = self.current.as_mut() {
            // Thought and candidate share the list; let go of it so that it grows in place.
            current.edit(|node| node.results = None);
        }
        let list = Arc::make_mut(&mut entry.validation_results);
        list.reserve_exact(results.len());
        for Checked { index, name, result, .. } in results {
            // Validators end in any order; results stand in the declared one.
            let place = checked.partition_point(|other| other < index);
            checked.insert(place, *index);
            list.insert(place, (Arc::clone(name), result.clone()));
        }
        if is_alone {
            self.show_results(at);
        } else {
            self.show_candidates();
        }
        true
    }

    fn chosen(&mut self, candidate: u32, score: Score) -> bool {
        let at = candidate as usize;
        let Some(entry) = self.round.candidates.get_mut(at) else { return false };
        entry.score = Some(score);
        let text = Arc::clone(&entry.text);
        for (place, other) in self.round.candidates.iter_mut().enumerate() {
            other.chosen = place == at;
            if other.score.is_none() && !other.validation_results.is_empty() {
                other.score = Some(Score::of(other.validation_results.iter().map(|(_, r)| r)));
            }
        }
        let before = self.round.chosen.replace((candidate, score));
        if let Some(current) = self.current.as_mut() {
            current.edit(|node| {
                node.text = Some(text);
                if let (Some((about, _)), Some(feedback)) = (before, node.feedback.as_mut())
                    && about != candidate
                {
                    // What the critics said was about the text they saw.
                    for said in Arc::make_mut(feedback) {
                        said.candidate.get_or_insert(about);
                    }
                }
            });
        }
        self.show_results(at);
        if self.round.candidates.len() > 1 {
            self.show_candidates();
        }
        let Some(current) = self.current.as_ref() else { return false };
        let is_better = match &self.best {
            None => true,
            // A proposal that beat this iteration's own text updates it in place.
            Some((best, _)) if best.id() == current.id() => true,
            Some((_, best)) => score.beats(best),
        };
        if is_better {
            self.best = Some((current.clone(), score));
        }
        true
    }

    fn show_results(&mut self, candidate: usize) {
        let Some(entry) = self.round.candidates.get(candidate) else { return };
        let results = Some(&entry.validation_results).filter(|results| !results.is_empty());
        if let Some(current) = self.current.as_mut() {
            current.edit(|node| node.results = results.cloned());
        }
    }

    fn show_candidates(&mut self) {
        let candidates = self.round.candidates.clone();
        if let Some(current) = self.current.as_mut() {
            current.edit(|node| node.candidates = Some(Arc::new(candidates)));
        }
    }

    /// The Thought of an id, if this run has it.
    #[must_use]
    pub fn find(&self, id: &Id) -> Option<Thought> {
        self.current.as_ref()?.find(id)
    }
}

fn prompted(node: &mut Node, prompt: &Prompted) {
    use crate::model::Part;
    node.model_prompt = prompt.messages.last().and_then(|message| {
        message.parts.iter().find_map(|part| match part {
            Part::Text(body) => Some(body.clone()),
            _ => None,
        })
    });
}

fn corrupt(event: &Event, why: &str) -> Error {
    Error::new(
        ErrorKind::Corrupt,
        "journal",
        "fold",
        format!("event {} ({}) of run {}: {why}", event.seq, event.kind.name(), event.run_id),
    )
    .suggest("run `sifaka verify` to see what is damaged")
}
