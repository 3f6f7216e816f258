//! A Thought is its run's events folded up.

use std::sync::Arc;

use proptest::prelude::*;
use sifaka_core::event::{Checked, Event, EventKind, Fold, Nanos};
use sifaka_core::model::Completion;
use sifaka_core::policy::Decision;
use sifaka_core::{CriticFeedback, ErrorKind, Id, Score, Thought, Usage, ValidationResult};
use sifaka_testkit::runs::{Expected, RandomRun, run};
use sifaka_testkit::thoughts::thought;

/// What a fold shows, comparable.
fn shown(fold: &Fold) -> String {
    let candidates = &fold.round().candidates;
    format!(
        "{} {:?} {:?} {:?} {:?} {candidates:?} {:?} {:?} {:?}",
        serde_json::to_string(&fold.thought()).unwrap(),
        fold.best().map(|(thought, score)| (thought.to_json().unwrap(), score)),
        fold.attempts(),
        fold.usage(),
        fold.ended(),
        fold.failed(),
        fold.round().done,
        fold.worked(),
    )
}

/// What critics said, without which candidate they said it of.
fn said(thought: &Thought) -> Vec<CriticFeedback> {
    let mut said = thought.critic_feedback().to_vec();
    for feedback in &mut said {
        feedback.candidate = None;
    }
    said
}

#[test]
fn a_changed_chain_makes_every_judgement_anew() {
    let id = Id::parse("run").unwrap();
    let failing = Checked {
        index: 0,
        name: "v".into(),
        result: ValidationResult::failed("no"),
        failure: None,
        seconds: Nanos(1),
    };
    let score = Score { passed: false, value: 0.0 };
    let text = |text: &str| EventKind::Generated {
        model: "m".into(),
        completions: vec![Completion::new(text)],
        usage: Usage::default(),
        provider: Default::default(),
        raw: None,
        seconds: Nanos(1),
    };
    let kinds = vec![
        EventKind::RunStarted {
            thought_id: id.clone(),
            chain_id: "old".into(),
            prompt: "p".into(),
            system_prompt: None,
            tags: Default::default(),
            metadata: None,
        },
        text("first"),
        EventKind::Validated { candidate: 0, results: vec![failing] },
        EventKind::Chosen { candidate: 0, score },
        EventKind::IterationStarted {
            thought_id: Id::parse("next").unwrap(),
            decision: Decision::Repair,
        },
        text("second"),
        EventKind::RunResumed { chain_id: "new".into(), changed: true },
    ];
    let time = jiff::Timestamp::UNIX_EPOCH;
    let events = (0..).zip(kinds).map(|(seq, kind)| Event { run_id: id.clone(), seq, time, kind });
    let fold = Fold::of(&events.collect::<Vec<_>>()).unwrap();
    assert!(fold.best().is_none(), "an old verdict is no verdict of the new chain");
    assert!(fold.attempts().is_empty() && fold.round().chosen.is_none());
    let texts: Vec<&str> = fold.round().candidates.iter().map(|c| &*c.text).collect();
    assert_eq!(texts, ["second", "first"], "the best so far is put before the checks again");
    assert!(fold.round().checked.iter().all(Vec::is_empty));
}

fn iterations(fold: &Fold) -> Vec<Expected> {
    let newest = fold.thought().unwrap();
    let mut all: Vec<Expected> = newest
        .iterations()
        .map(|entry| {
            let thought = entry.thought().unwrap();
            Expected {
                text: thought.text().map(Arc::from),
                results: thought.validation_results().to_vec(),
                feedback: said(thought),
                failures: thought.failures().to_vec(),
                candidates: thought.candidates().len(),
                usage: thought.usage(),
            }
        })
        .collect();
    all.reverse();
    all
}

fn at_least(a: Score, b: Score) -> bool {
    !b.beats(&a)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_fold_is_what_the_run_did(RandomRun { events, iterations: expected, usage, best_score, .. } in run()) {
        let fold = Fold::of(&events).unwrap();
        prop_assert_eq!(iterations(&fold), expected);
        prop_assert_eq!(fold.usage(), usage);
        prop_assert_eq!(fold.best().map(|(_, score)| score), best_score);
        let (best, score) = fold.best().unwrap();
        prop_assert_eq!(best.score(), score, "the best Thought has the results its score is of");
        prop_assert_eq!(fold.next_seq(), events.iter().filter(|e| !e.kind.is_transient()).count() as u64);
    }

    #[test]
    fn any_beginning_of_a_run_folds(RandomRun { events, first_score, .. } in run()) {
        let mut fold = Fold::new();
        for event in &events {
            fold.apply(event).unwrap();
            let thought = fold.thought().unwrap();
            prop_assert_eq!(thought.run_id(), Some(&event.run_id));
            if let Some((best, score)) = fold.best() {
                prop_assert!(at_least(score, first_score.unwrap()), "never worse than it began");
                prop_assert!(thought.find(best.id()).is_some());
            }
        }
    }

    #[test]
    fn events_from_a_file_fold_to_the_same(RandomRun { events, .. } in run()) {
        let stored: Vec<Event> = events
            .iter()
            .map(|event| serde_json::from_str(&serde_json::to_string(event).unwrap()).unwrap())
            .collect();
        prop_assert_eq!(shown(&Fold::of(&stored).unwrap()), shown(&Fold::of(&events).unwrap()));
    }

    #[test]
    fn earlier_folds_are_as_they_were(RandomRun { events, .. } in run()) {
        let half = events.len() / 2;
        let early = Fold::of(&events[..half.max(1)]).unwrap();
        let before = shown(&early);
        let mut late = early.clone();
        for event in &events[half.max(1)..] {
            late.apply(event).unwrap();
        }
        prop_assert_eq!(shown(&early), before);
    }

    #[test]
    fn a_gap_is_an_error(RandomRun { events, .. } in run(), at in any::<prop::sample::Index>()) {
        let mut stored: Vec<Event> =
            events.into_iter().filter(|event| !event.kind.is_transient()).collect();
        let at = at.index(stored.len() - 1);
        stored.remove(at);
        prop_assert_eq!(Fold::of(&stored).unwrap_err().kind(), ErrorKind::Corrupt);
    }

    #[test]
    fn an_imported_thought_folds_to_itself(thought in thought()) {
        let run_id = thought.run_id().cloned().unwrap_or_else(|| Id::derived(b"import"));
        let event = Event {
            run_id: run_id.clone(),
            seq: 0,
            time: thought.timestamp(),
            kind: EventKind::Imported { thought: Box::new(thought.clone()) },
        };
        let fold = Fold::of([&event]).unwrap();
        prop_assert_eq!(fold.thought().unwrap(), &thought.with_run_id(run_id));
    }
}

#[test]
fn an_event_that_cannot_follow_is_an_error() {
    let event = |seq, kind| Event {
        run_id: Id::derived(b"run"),
        seq,
        time: jiff::Timestamp::UNIX_EPOCH,
        kind,
    };
    let chosen = || EventKind::Chosen { candidate: 0, score: Score { passed: true, value: 1.0 } };
    let start = || EventKind::RunStarted {
        thought_id: Id::derived(b"run"),
        chain_id: Arc::from("c"),
        prompt: Arc::from("p"),
        system_prompt: None,
        tags: std::collections::BTreeMap::new(),
        metadata: None,
    };
    for events in [
        vec![event(0, chosen())],
        vec![event(0, start()), event(1, chosen())],
        vec![event(0, start()), event(1, start())],
        vec![event(0, start()), event(1, EventKind::Validated { candidate: 3, results: vec![] })],
    ] {
        let error = Fold::of(&events).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        assert!(error.suggestions()[0].contains("verify"));
    }
}
