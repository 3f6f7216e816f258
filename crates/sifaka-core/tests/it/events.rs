//! Every kind of event is the same after a round trip, and damage is not taken for novelty.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use sifaka_core::event::{Event, EventKind, Nanos};
use sifaka_core::{Cost, ErrorKind, Hash, Id};
use sifaka_testkit::kinds::any_kind;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(384))]

    #[test]
    fn an_event_survives_json(kind in any_kind(), seq in any::<u64>(), nanos in any::<i32>()) {
        let time = jiff::Timestamp::new(1_767_225_600, nanos % 1_000_000_000).unwrap();
        let event = Event { run_id: Id::derived(b"run"), seq, time, kind };
        let json = serde_json::to_string(&event).unwrap();
        let back: Event = serde_json::from_str(&json).unwrap();
        prop_assert_eq!(&back, &event, "{}", json);
        prop_assert_eq!(&serde_json::to_string(&back).unwrap(), &json);
        prop_assert_eq!(back.kind.name(), event.kind.name());
        let value: Value = serde_json::from_str(&json).unwrap();
        prop_assert_eq!(value["type"].as_str(), Some(event.kind.name()));

        let sealed = event.seal(Hash::ZERO).unwrap();
        prop_assert_eq!(sealed.open().unwrap(), Some(event));
    }

    #[test]
    fn durations_below_26_days_are_exact(nanos in 0_u64..26 * 86_400 * 1_000_000_000) {
        let json = serde_json::to_string(&Nanos(nanos)).unwrap();
        prop_assert_eq!(serde_json::from_str::<Nanos>(&json).unwrap(), Nanos(nanos));
    }

    #[test]
    fn money_below_a_million_dollars_is_exact(nanos in 0_u64..=1_000_000_000_000_000) {
        let json = serde_json::to_string(&Cost::from_nanos(nanos)).unwrap();
        prop_assert_eq!(serde_json::from_str::<Cost>(&json).unwrap(), Cost::from_nanos(nanos));
    }
}

#[test]
fn an_event_of_a_kind_nobody_knows_is_kept() {
    let json = r#"{"type":"dreamed","of":{"sheep":[1,2.5,"three"]},"model":"x"}"#;
    let kind: EventKind = serde_json::from_str(json).unwrap();
    assert!(matches!(kind, EventKind::Unknown(_)));
    assert_eq!(kind.name(), "dreamed");
    assert_eq!(serde_json::to_string(&kind).unwrap(), json);
    assert!(!kind.is_transient());
}

#[test]
fn a_damaged_event_of_a_known_kind_is_an_error() {
    for damaged in [
        json!({ "type": "generated" }),
        json!({ "type": "chosen", "candidate": "first", "score": { "passed": true, "value": 1 } }),
        json!({ "type": "iteration_started", "thought_id": "t", "decision": "ponder" }),
        json!({ "type": "imported", "thought": {} }),
        json!({ "no": "type" }),
        json!({ "type": 7 }),
    ] {
        let error = serde_json::from_value::<EventKind>(damaged.clone()).unwrap_err();
        assert!(error.to_string().contains("a whole event of a known type"), "{damaged}: {error}");
    }
    let kind = EventKind::RunResumed { chain_id: "c".into(), changed: false };
    let time = jiff::Timestamp::UNIX_EPOCH;
    let event = Event { run_id: Id::derived(b"run"), seq: 3, time, kind };
    let mut sealed = event.seal(Hash::ZERO).unwrap();
    sealed.payload = Some(br#"{"type":"run_resumed"}"#.to_vec());
    let error = sealed.open().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.message().starts_with("event 3 (run_resumed) of run"), "{error}");
}

/// A kind that is left out of the list of known names would be read as unknown when damaged.
#[test]
fn every_kind_that_can_be_written_is_known_when_it_is_damaged() {
    let mut seen = BTreeSet::new();
    let mut runner = TestRunner::deterministic();
    let kinds = any_kind();
    for _ in 0..1_000 {
        let kind = kinds.new_tree(&mut runner).unwrap().current();
        if !matches!(kind, EventKind::Unknown(_)) {
            seen.insert(kind.name().to_owned());
        }
    }
    assert_eq!(seen.len(), 19, "the generator makes every kind: {seen:?}");
    for name in seen {
        // Every field of this one has a sensible absence.
        let may_be_bare = name == "prompted";
        let bare = serde_json::from_value::<EventKind>(json!({ "type": name }));
        assert_eq!(bare.is_ok(), may_be_bare, "{name}");
    }
}
