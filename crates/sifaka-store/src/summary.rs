//! A run in a line, made of its events as they come.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use sifaka_core::journal::{Resolved, RunQuery, RunStatus, RunSummary};
use sifaka_core::{Error, ErrorKind, EventKind, Id, Result, Score, text};

/// The most of a prompt that stands in a summary, in characters.
pub(crate) const PROMPT_CHARACTERS: usize = 200;

/// The most candidates that an ambiguous beginning lists.
const CANDIDATES: usize = 8;

/// What is known about a run without reading its events, except for what was asked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Summary {
    pub(crate) chain_id: Option<Arc<str>>,
    pub(crate) started: Timestamp,
    pub(crate) updated: Timestamp,
    pub(crate) status: RunStatus,
    pub(crate) passed: Option<bool>,
    pub(crate) score: Option<f64>,
    pub(crate) iterations: u32,
}

impl Summary {
    /// Of a run whose first event is at `time`.
    pub(crate) fn new(time: Timestamp) -> Self {
        Self {
            chain_id: None,
            started: time,
            updated: time,
            status: RunStatus::Open,
            passed: None,
            score: None,
            iterations: 0,
        }
    }

    /// Takes the next event.
    pub(crate) fn apply(&mut self, time: Timestamp, kind: &EventKind) {
        self.updated = time;
        match kind {
            EventKind::RunStarted { chain_id, .. } => {
                self.chain_id = Some(Arc::clone(chain_id));
                self.iterations = 1;
            }
            EventKind::Imported { thought } => {
                self.chain_id = thought.chain_id().map(Arc::from);
                self.iterations = thought.iteration().saturating_add(1);
                if thought.text().is_some() {
                    self.end(thought.score());
                }
            }
            EventKind::IterationStarted { .. } => {
                self.iterations = self.iterations.saturating_add(1);
            }
            EventKind::RunFinished { score, .. } => self.end(*score),
            EventKind::RunFailed { .. } => self.status = RunStatus::Failed,
            EventKind::RunResumed { .. } => {
                self.status = RunStatus::Open;
                self.passed = None;
                self.score = None;
            }
            _ => {}
        }
    }

    fn end(&mut self, score: Score) {
        self.status = RunStatus::Finished;
        self.passed = Some(score.passed);
        self.score = Some(score.value);
    }

    /// Whether an event of this name can change anything but the time of a summary.
    pub(crate) fn is_changed_by(kind: &str) -> bool {
        matches!(
            kind,
            "run_started"
                | "imported"
                | "iteration_started"
                | "run_finished"
                | "run_failed"
                | "run_resumed"
        )
    }

    /// What stays of it when the run's content is erased.
    pub(crate) fn erased(&self) -> Self {
        Self { status: RunStatus::Erased, updated: self.updated, ..Self::new(self.started) }
    }

    pub(crate) fn into_run(self, run_id: Id, events: u64, prompt: Option<String>) -> RunSummary {
        RunSummary {
            run_id,
            chain_id: self.chain_id.as_deref().map(str::to_owned),
            started: self.started,
            updated: self.updated,
            status: self.status,
            passed: self.passed,
            score: self.score,
            iterations: self.iterations,
            events,
            prompt,
        }
    }
}

/// What was asked and under which labels, if this is the event that says so.
pub(crate) fn asked(kind: &EventKind) -> Option<(&str, &BTreeMap<String, String>)> {
    match kind {
        EventKind::RunStarted { prompt, tags, .. } => Some((prompt, tags)),
        EventKind::Imported { thought } => Some((thought.prompt(), thought.tags())),
        _ => None,
    }
}

/// The Thoughts that an event brings into the run.
pub(crate) fn thoughts(kind: &EventKind) -> Vec<Id> {
    match kind {
        EventKind::RunStarted { thought_id, .. }
        | EventKind::IterationStarted { thought_id, .. } => vec![thought_id.clone()],
        EventKind::Imported { thought } => {
            thought.iterations().map(|entry| entry.id().clone()).collect()
        }
        _ => Vec::new(),
    }
}

/// A prompt, cut to a line.
pub(crate) fn prompt_line(prompt: &str) -> String {
    text::summarise(prompt, PROMPT_CHARACTERS)
}

/// Whether a run's prompt and tags are what a query asks for. Case does not matter in the prompt.
pub(crate) fn content_fits(
    query: &RunQuery,
    prompt: &str,
    tags: &BTreeMap<String, String>,
) -> bool {
    query.tag.as_ref().is_none_or(|(key, value)| tags.get(key) == Some(value))
        && query.contains.as_ref().is_none_or(|part| {
            prompt.contains(part.as_str()) || prompt.to_lowercase().contains(&part.to_lowercase())
        })
}

/// What a beginning of an id names, given everything that begins so.
///
/// A run's own Thoughts may begin like the run; then the run is meant.
pub(crate) fn choose(prefix: &str, runs: &[Id], thoughts: &[(Id, Id)]) -> Result<Resolved> {
    match (runs, thoughts) {
        ([], []) => Err(Error::new(
            ErrorKind::NotFound,
            "journal",
            "resolve",
            format!("no run or Thought begins with {prefix:?}"),
        )
        .suggest("`sifaka list` shows the runs of this journal")),
        ([run], _) if thoughts.iter().all(|(_, of)| of == run) => {
            Ok(Resolved { run_id: run.clone(), thought_id: None })
        }
        ([], [(thought, run)]) => {
            Ok(Resolved { run_id: run.clone(), thought_id: Some(thought.clone()) })
        }
        _ => {
            let all: Vec<String> = runs
                .iter()
                .map(|run| format!("run {run}"))
                .chain(thoughts.iter().map(|(thought, _)| format!("Thought {thought}")))
                .collect();
            let more = if all.len() > CANDIDATES { " and more" } else { "" };
            let shown = all.iter().take(CANDIDATES).map(String::as_str).collect::<Vec<_>>();
            Err(Error::new(
                ErrorKind::InvalidInput,
                "journal",
                "resolve",
                format!("{prefix:?} is the beginning of {}{more}", shown.join(", ")),
            )
            .suggest("give more of the identifier"))
        }
    }
}

/// How many matches are worth collecting before a beginning is called ambiguous.
pub(crate) const ENOUGH: usize = CANDIDATES + 1;

/// Checks a beginning of an id.
pub(crate) fn check_prefix(prefix: &str) -> Result<()> {
    if prefix.is_empty() {
        return Err(Error::new(ErrorKind::InvalidInput, "journal", "resolve", "the id is empty")
            .suggest("give a run's id, a Thought's id, or the beginning of one"));
    }
    Ok(())
}

/// The error for a second writer of a run.
pub(crate) fn being_written(run: &Id, detail: &str) -> Error {
    Error::new(
        ErrorKind::Conflict,
        "journal",
        "open",
        format!("run {run} is being written{detail}"),
    )
    .suggest("wait until it ends, or end the program that works on it, then try again")
}

/// The error for writing to a run that was erased.
pub(crate) fn was_erased(run: &Id) -> Error {
    Error::new(
        ErrorKind::NotFound,
        "journal",
        "open",
        format!("the content of run {run} was erased; there is nothing to go on from"),
    )
    .suggest("begin a new run")
}

/// The error for an event that does not come next.
pub(crate) fn not_next(run: &Id, seq: u64, expected: u64) -> Error {
    Error::new(
        ErrorKind::Internal,
        "journal",
        "append",
        format!("event {seq} of run {run} does not come next; {expected} was expected"),
    )
    .suggest("read the run again before going on with it")
}

/// The error for an event of another run.
pub(crate) fn wrong_run(run: &Id, of: &Id) -> Error {
    Error::new(
        ErrorKind::Internal,
        "journal",
        "append",
        format!("an event of run {of} was appended to the log of run {run}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> Id {
        Id::parse(text).unwrap()
    }

    #[test]
    fn a_beginning_names_a_run_before_its_own_thoughts() {
        let thoughts = [(id("ab-2"), id("ab-1"))];
        let resolved = choose("ab", &[id("ab-1")], &thoughts).unwrap();
        assert_eq!(resolved, Resolved { run_id: id("ab-1"), thought_id: None });
        let resolved = choose("ab-2", &[], &thoughts).unwrap();
        assert_eq!(resolved.thought_id, Some(id("ab-2")));
    }

    #[test]
    fn an_ambiguous_beginning_lists_what_fits() {
        let error = choose("a", &[id("a1"), id("a2")], &[]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.message().contains("run a1, run a2"), "{error}");
        let error = choose("a", &[id("a1")], &[(id("a3"), id("b"))]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert_eq!(choose("a", &[], &[]).unwrap_err().kind(), ErrorKind::NotFound);
    }

    #[test]
    fn prompts_are_searched_in_any_case() {
        let tags = BTreeMap::from([("k".to_owned(), "v".to_owned())]);
        let query = |part: &str| RunQuery { contains: Some(part.into()), ..RunQuery::default() };
        assert!(content_fits(&query("ÜBER 100%"), "Etwas über 100% davon", &tags));
        assert!(!content_fits(&query("%"), "nothing of the kind", &tags));
        let tagged = RunQuery { tag: Some(("k".into(), "w".into())), ..RunQuery::default() };
        assert!(!content_fits(&tagged, "", &tags));
    }
}
