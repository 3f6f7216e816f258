//! Thoughts are immutable, and JSON is all of them.

use proptest::prelude::*;
use serde_json::{Value, json};
use sifaka_core::thought::{Entry, Limits};
use sifaka_core::{Thought, ValidationResult};
use sifaka_testkit::thoughts::{change, fixed_context, made_thought, thought, thought_json};

fn parse(json: &str) -> Thought {
    Thought::from_json(json.as_bytes(), &Limits::default()).unwrap()
}

proptest! {
    #[test]
    fn a_change_leaves_the_old_thought_as_it_was(old in thought(), changes in prop::collection::vec(change(), 1..5)) {
        let ctx = fixed_context(1);
        let before = old.to_json().unwrap();
        let mut newest = old.clone();
        for change in changes {
            newest = change.apply(&ctx, &newest);
        }
        prop_assert_eq!(&old.to_json().unwrap(), &before);
        drop(newest);
        prop_assert_eq!(old.to_json().unwrap(), before);
    }

    #[test]
    fn json_is_the_whole_thought(thought in thought()) {
        let json = thought.to_json().unwrap();
        let back = parse(&json);
        prop_assert_eq!(&back, &thought, "{}", json);
        prop_assert_eq!(back.to_json().unwrap(), json);
        let compact = serde_json::to_string(&thought).unwrap();
        prop_assert_eq!(serde_json::from_str::<Thought>(&compact).unwrap(), thought);
    }

    #[test]
    fn nothing_in_a_file_is_lost(file in thought_json()) {
        let thought: Thought = serde_json::from_value(file.clone()).unwrap();
        let back = serde_json::to_value(&thought).unwrap();
        missing(&file, &back, "").map_err(TestCaseError::fail)?;
    }

    #[test]
    fn iterations_count_up_and_name_their_parents(thought in made_thought()) {
        let all: Vec<Entry> = thought.iterations().collect();
        prop_assert_eq!(all.len(), thought.iteration() as usize + 1);
        for (steps_back, entry) in all.iter().enumerate() {
            let this = entry.thought().unwrap();
            prop_assert_eq!(this.iteration() as usize, all.len() - 1 - steps_back);
            prop_assert_eq!(this.parent_id(), all.get(steps_back + 1).map(Entry::id));
            prop_assert_eq!(thought.find(this.id()), Some(this.clone()));
        }
        let oldest_first = thought.history();
        prop_assert!(oldest_first.iter().rev().eq(all.iter().skip(1)));
    }

    #[test]
    fn the_next_iteration_shares_what_it_carries(old in thought()) {
        let new = old.next_iteration(&fixed_context(2));
        prop_assert_eq!(new.prompt().as_ptr(), old.prompt().as_ptr());
        prop_assert_eq!(new.system_prompt().map(str::as_ptr), old.system_prompt().map(str::as_ptr));
        prop_assert_eq!(
            new.pre_generation_context().as_ptr(),
            old.pre_generation_context().as_ptr()
        );
        let parent = new.parent().unwrap();
        prop_assert_eq!(parent.text().map(str::as_ptr), old.text().map(str::as_ptr));
        prop_assert_eq!(
            parent.validation_results().as_ptr(),
            old.validation_results().as_ptr()
        );
    }

    #[test]
    fn passing_is_what_the_hard_checks_say(thought in thought()) {
        let results = || thought.validation_results().iter().map(|(_, result)| result);
        prop_assert_eq!(thought.validation_passed(), results().all(ValidationResult::allows));
        let score = thought.score();
        let has_text = thought.text().is_some();
        prop_assert_eq!(score.passed, has_text && thought.validation_passed());
        prop_assert!((0.0..=1.0).contains(&score.value), "{}", score.value);
    }

    #[test]
    fn no_input_panics(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        prop_assert!(Thought::from_json(&bytes, &Limits::default()).is_err());
    }
}

proptest! {
    // Each case waits for the disk.
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_file_is_the_whole_thought(thought in thought()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("thought.json");
        thought.save(&path).unwrap();
        prop_assert_eq!(Thought::load(&path).unwrap(), thought);
    }
}

/// Whether everything of `a` is in `b`: absent, null and empty are one.
fn missing(a: &Value, b: &Value, at: &str) -> Result<(), String> {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            a.iter().try_for_each(|(key, value)| match b.get(key) {
                Some(other) => missing(value, other, &format!("{at}/{key}")),
                None if is_nothing(value) => Ok(()),
                None => Err(format!("{at}/{key} is gone")),
            })
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => a
            .iter()
            .zip(b)
            .enumerate()
            .try_for_each(|(i, (a, b))| missing(a, b, &format!("{at}/{i}"))),
        (a, b) if a == b || (is_nothing(a) && is_nothing(b)) => Ok(()),
        (a, b) => Err(format!("{at} was {a} and is {b}")),
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

#[test]
fn unknown_fields_survive_at_every_level() {
    let novelty = json!({ "deep": [1, 2.5, "three", null, true] });
    let level = |mut fields: Value| {
        fields["novelty"] = novelty.clone();
        fields
    };
    let step = |id: &str, iteration: u32| {
        level(json!({
            "id": id,
            "iteration": iteration,
            "prompt": "p",
            "pre_generation_context": [level(json!({ "text": "d" }))],
            "post_generation_context": [level(json!({ "text": "e" }))],
            "validation_results": { "v": level(json!({ "passed": true })) },
            "critic_feedback": [level(json!({ "critic_name": "c" }))],
        }))
    };
    let mut file = step("b", 2);
    file["history"] = json!([level(json!({ "id": "z", "summary": "gone" })), step("a", 1)]);
    let thought: Thought = serde_json::from_value(file).unwrap();
    let back = serde_json::to_value(thought.next_iteration(&fixed_context(3))).unwrap();
    assert_eq!(back.get("novelty"), None, "the next iteration is not of that file");
    let history = back["history"].as_array().unwrap();
    assert_eq!(history.len(), 3);
    assert_eq!(history[0]["novelty"], novelty, "reference");
    for entry in &history[1..] {
        for place in [
            "/novelty",
            "/pre_generation_context/0/novelty",
            "/post_generation_context/0/novelty",
            "/validation_results/v/novelty",
            "/critic_feedback/0/novelty",
        ] {
            assert_eq!(entry.pointer(place), Some(&novelty), "{place}");
        }
    }
}

#[test]
fn a_history_keeps_its_order_however_often_it_is_read() {
    let entry = |n: u32| json!({ "id": format!("t{n}"), "iteration": n, "prompt": "p" });
    for (given, wanted) in [
        (vec![0, 1, 2], [0, 1, 2]),
        (vec![2, 1, 0], [0, 1, 2]),
        (vec![0, 2, 1], [0, 2, 1]),
        (vec![1, 2, 0], [0, 2, 1]),
    ] {
        let history: Vec<Value> = given.iter().copied().map(entry).collect();
        let mut file = json!({ "id": "top", "iteration": 3, "prompt": "p", "history": history });
        for _ in 0..3 {
            let thought: Thought = serde_json::from_value(file).unwrap();
            let order: Vec<u32> =
                thought.history().iter().map(|e| e.thought().unwrap().iteration()).collect();
            assert_eq!(order, wanted, "given {given:?}");
            file = serde_json::to_value(&thought).unwrap();
        }
    }
}

#[test]
fn a_long_history_reads_in_linear_time() {
    // With a search through all earlier entries for each this would take minutes.
    let ctx = fixed_context(4);
    let mut thought = Thought::new(&ctx, "p");
    for _ in 0..50_000 {
        thought = thought.next_iteration(&ctx);
    }
    let json = serde_json::to_vec(&thought).unwrap();
    let back = Thought::from_json(&json, &Limits::default()).unwrap();
    assert_eq!(back.iterations().count(), 50_001);
}

#[test]
fn numbers_json_cannot_hold_do_not_spoil_the_file() {
    let odd = |weight: f64, score: f64| ValidationResult {
        weight,
        score: Some(score),
        ..ValidationResult::passed("ok")
    };
    for weight in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, f64::MAX] {
        for score in [f64::NAN, f64::INFINITY, -3.0, 7.0] {
            let thought = Thought::new(&fixed_context(5), "p")
                .add_validation_result("odd", odd(weight, score))
                .add_validation_result("odd", odd(weight, score))
                .add_validation_result("sane", ValidationResult::failed("no"));
            let value = thought.score().value;
            assert!((0.0..=1.0).contains(&value), "{weight} {score}: {value}");
            let json = thought.to_json().unwrap();
            let back = parse(&json);
            assert_eq!(back.score(), thought.score());
            assert_eq!(parse(&back.to_json().unwrap()), back);
        }
    }
}
