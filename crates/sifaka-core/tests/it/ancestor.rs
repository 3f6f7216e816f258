//! Files of the Python ancestor load, each field where it belongs, and nothing is lost.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sifaka_core::thought::{Entry, Limits};
use sifaka_core::{Thought, Verdict};

const FILES: [&str; 5] = [
    "result-0.2.0",
    "thought-chain-era-first",
    "thought-chain-era",
    "thought-first-design",
    "thought-nested-history",
];

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/ancestor/{name}.json"))
}

fn load(name: &str) -> Thought {
    Thought::load(path(name)).unwrap()
}

fn input(name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(path(name)).unwrap()).unwrap()
}

fn parse(json: &Value) -> Thought {
    Thought::from_json(json.to_string().as_bytes(), &Limits::default()).unwrap()
}

/// Every text, number and truth value, with how often it stands there.
fn leaves(value: &Value, found: &mut BTreeMap<String, i64>, sign: i64) {
    match value {
        Value::Null => {}
        Value::Array(items) => items.iter().for_each(|item| leaves(item, found, sign)),
        Value::Object(fields) => fields.values().for_each(|item| leaves(item, found, sign)),
        leaf => *found.entry(leaf.to_string()).or_default() += sign,
    }
}

/// What stands in the file and not in ours, or not as often.
fn lost(file: &Value, ours: &Value) -> Vec<String> {
    let mut found = BTreeMap::new();
    leaves(file, &mut found, 1);
    leaves(ours, &mut found, -1);
    found.into_iter().filter(|(_, left)| *left > 0).map(|(leaf, _)| leaf).collect()
}

#[test]
fn nothing_is_lost() {
    // What may differ: times gain their zone, as they are UTC, and lose a closing zero.
    let changed: BTreeMap<&str, &[&str]> = BTreeMap::from([
        (
            "result-0.2.0",
            &["\"2026-11-15T02:46:57.658980\"", "\"2026-11-15T02:46:57.659006\""] as &[_],
        ),
        ("thought-chain-era-first", &["\"2026-11-15T02:46:36.686558\""]),
        (
            "thought-chain-era",
            &["\"2026-11-15T02:46:36.686558\"", "\"2026-11-15T02:46:36.686721\""],
        ),
        ("thought-first-design", &[]),
        (
            "thought-nested-history",
            &[
                // One version for the whole file, not one for each entry of its history.
                "\"1.0.0\"",
                "\"2025-05-20T10:00:00\"",
                "\"2025-05-20T10:00:01\"",
                "\"2025-05-20T10:00:02\"",
            ],
        ),
    ]);
    for name in FILES {
        let ours = serde_json::to_value(load(name)).unwrap();
        assert_eq!(lost(&input(name), &ours), changed[name], "{name}");
    }
}

#[test]
fn loading_twice_gives_the_same() {
    for name in FILES {
        let thought = load(name);
        assert_eq!(load(name), thought, "{name}");
        assert_eq!(load(name).id(), thought.id(), "{name}");
        let json = thought.to_json().unwrap();
        let again = Thought::from_json(json.as_bytes(), &Limits::default()).unwrap();
        assert_eq!(again, thought, "{name}");
        assert_eq!(again.to_json().unwrap(), json, "{name}");
    }
}

#[test]
fn an_id_that_is_missing_is_a_function_of_the_content() {
    let mut file = input("thought-first-design");
    let id = parse(&file).id().clone();
    file["generated_text"] = json!("Another text.");
    assert_ne!(parse(&file).id(), &id);
}

#[test]
fn the_first_design() {
    let thought = load("thought-first-design");
    assert_eq!(thought.prompt(), "Write a short story about a robot.");
    assert_eq!(thought.text(), Some("Once upon a time a robot wished to see the sea, and went."));
    assert_eq!(
        thought.pre_generation_context()[0].text(),
        Some("Robots are machines that can be programmed to perform tasks.")
    );
    assert_eq!(thought.metadata().unwrap()["author"], "anna");
    assert_eq!(thought.iteration(), 1);
    let (name, result) = &thought.validation_results()[0];
    assert_eq!((&**name, result.passed, result.score), ("validator", Verdict::Passed, Some(1.0)));

    let [improver] = thought.critic_feedback() else { panic!("one improvement") };
    assert_eq!(&*improver.critic_name, "improver");
    assert_eq!(improver.proposed_text.as_deref(), thought.text());
    assert_eq!(improver.feedback.as_deref(), Some("improved"));
    let rest = &improver.metadata.as_ref().unwrap()["ancestor"];
    assert_eq!(rest["original_text"], "Once upon a time, there was a robot named R2D2...");
    assert_eq!((&rest["changes_made"], &rest["processing_time_ms"]), (&json!(true), &json!(41.0)));

    let first = thought.parent().unwrap();
    assert_eq!(thought.parent_id(), Some(first.id()));
    assert_eq!(first.iteration(), 0);
    assert!(!first.validation_passed());
    let result = first.validation_result("validator").unwrap();
    assert_eq!(result.details.as_ref().unwrap()["words"], 30);
    assert_eq!(result.issues, ["Text has only 30 words, minimum required is 50"]);
    let [said] = first.critic_feedback() else { panic!("one critique") };
    assert_eq!(
        said.feedback.as_deref(),
        Some("The story needs more character development and a clearer plot.")
    );
}

#[test]
fn nested_history_with_unknown_fields() {
    let thought = load("thought-nested-history");
    assert_eq!(thought.chain_id(), Some("run-7"));
    assert_eq!(thought.timestamp().to_string(), "2025-05-20T10:00:02Z");
    let history = thought.history();
    let texts: Vec<_> = history.iter().map(|e| e.thought().unwrap().text().unwrap()).collect();
    assert_eq!(texts, ["Sea.", "The sea."], "the file has the newest first");
    for entry in thought.iterations() {
        let iteration = entry.thought().unwrap();
        assert_eq!(iteration.unknown_fields().unwrap()["x_future_field"]["kept"], true);
        let [reflexion, critique] = iteration.critic_feedback() else { panic!("two critiques") };
        assert_eq!(
            (&*reflexion.critic_name, &reflexion.issues[..]),
            ("reflexion", &["dry".into()][..])
        );
        assert_eq!(&*critique.critic_name, "critique");
        assert_eq!(critique.feedback.as_deref(), Some("tone: dry"));
        assert_eq!(critique.metadata.as_ref().unwrap()["ancestor"]["critique"]["tone"], "dry");
    }
}

#[test]
fn the_chain_era() {
    for name in ["thought-chain-era", "thought-chain-era-first"] {
        let thought = load(name);
        assert_eq!(thought.system_prompt(), Some("You are a careful writer."));
        assert!(thought.model_prompt().unwrap().as_str().unwrap().starts_with("Context:\n"));
        let document = &thought.pre_generation_context()[0];
        assert_eq!((document.score, document.origin()), (Some(0.83), Some("robots.md")));
        assert!(thought.validation_result("LengthValidator").is_some());
        let [feedback] = thought.critic_feedback() else { panic!("one critique") };
        assert_eq!(feedback.issues, ["No character development"], "violations are issues");
        assert_eq!(feedback.confidence, Some(0.8));
        assert_eq!(
            feedback.feedback.as_deref(),
            Some("The story needs more character development and a clearer plot.")
        );
        let rest = &feedback.metadata.as_ref().unwrap()["ancestor"];
        assert_eq!(rest["processing_time_ms"], 12.5);
    }
    let thought = load("thought-chain-era");
    let history = thought.history();
    let [Entry::Reference(reference)] = history.as_slice() else { panic!("{history:?}") };
    assert_eq!(&reference.id, load("thought-chain-era-first").id());
    assert_eq!(&*reference.summary, "Iteration 0: 47 chars");
    assert_eq!(reference.extra["iteration"], 0);
    assert_eq!(reference.extra["timestamp"], "2026-11-15T02:46:36.686558Z");
    assert_eq!(thought.parent_id(), Some(&reference.id));
    assert_eq!(thought.parent(), None, "what is not at hand is no error");
}

#[test]
fn the_result_object() {
    let thought = load("result-0.2.0");
    assert_eq!((thought.prompt(), thought.text()), ("Sea.", Some("The sea rolls and rolls.")));
    assert_eq!(thought.timestamp().to_string(), "2026-11-15T02:46:57.65898Z");
    let rest = &thought.metadata().unwrap()["ancestor"];
    assert_eq!(rest["updated_at"], "2026-11-15T02:46:57.659012");
    assert_eq!((&rest["config_used"], &rest["tools_used"]), (&Value::Null, &json!([])));
    let first = thought.parent().unwrap();
    assert_eq!((first.prompt(), first.text()), ("Sea.", Some("The sea.")));
    assert_eq!(first.model_prompt().unwrap().as_str(), Some("Improve: Sea."));
    assert_eq!((first.usage().calls, first.usage().output_tokens), (1, 10));
    assert_eq!(first.metadata().unwrap()["ancestor"]["model"], "gpt-4o-mini");
}

#[test]
fn a_result_whose_last_generation_is_its_text_has_no_iteration_for_it() {
    let mut file = input("result-0.2.0");
    file["final_text"] = json!("The sea.");
    let thought = parse(&file);
    assert!(thought.history().is_empty());
    assert_eq!(thought.model_prompt().unwrap().as_str(), Some("Improve: Sea."));
    assert_eq!(thought.usage().output_tokens, 10);
    let ours = serde_json::to_value(&thought).unwrap();
    assert_eq!(lost(&file, &ours), ["\"2026-11-15T02:46:57.658980\""]);
}

#[test]
fn a_result_with_critiques_and_validations() {
    let mut file = input("result-0.2.0");
    file["validations"] = json!([
        { "validator": "LengthValidator", "passed": true, "score": 0.9, "when": "now" },
        { "validator": "LengthValidator", "passed": false, "issues": ["short"] },
    ]);
    file["critiques"] = json!([
        { "critic": "reflexion", "feedback": "dry", "suggestions": ["waves"], "needs_improvement": true },
    ]);
    let thought = parse(&file);
    assert_eq!(thought.validation_results().len(), 2);
    assert_eq!(thought.validation_result("LengthValidator-2").unwrap().passed, Verdict::Failed);
    let [critic] = thought.critic_feedback() else { panic!("one critique") };
    assert_eq!((&*critic.critic_name, critic.feedback.as_deref()), ("reflexion", Some("dry")));
    assert_eq!(critic.extra["needs_improvement"], true);
}

/// Fields with values of a kind we did not expect are kept where they can be found.
#[test]
fn odd_values_are_kept_whole() {
    let file = json!({
        "prompt": "p",
        "generated_text": 7,
        "critique": ["list"],
        "critiques": "words",
        "validations": { "v": "words" },
        "retrieved_context": { "a": 1.5 },
        "created_at": "yesterday",
        "generations": "none",
        "improvement_results": [
            { "improved_text": 3, "message": { "m": 4 } },
            "better",
        ],
        "critic_feedback": [{ "violations": { "v": 8 }, "feedback": { "critique": 9, "x": "y" } }],
        "metadata": { "ancestor": "mine" },
        "history": [{
            "thought_id": "t1",
            "id": "t0",
            "summary": { "s": 5 },
            "text": "a text without its prompt",
            "tags": { "k": "tagged" },
            "metadata": { "m": 6 },
            "model": "gpt",
        }],
    });
    let thought = parse(&file);
    let ours = serde_json::to_value(&thought).unwrap();
    assert_eq!(lost(&file, &ours), Vec::<String>::new(), "{ours:#}");
    let json = thought.to_json().unwrap();
    assert_eq!(json.matches("\"summary\"").count(), 1, "no field is written twice");
    assert_eq!(Thought::from_json(json.as_bytes(), &Limits::default()).unwrap(), thought);
    assert_eq!(ours["metadata"]["ancestor"]["ancestor"], "mine");
}

#[test]
fn a_nested_history_is_flat_and_has_nothing_twice() {
    let step = |n: u32, history: &[&Value]| {
        json!({
            "id": format!("t{n}"), "iteration": n, "prompt": "p",
            "generated_text": format!("text {n}"), "history": history,
        })
    };
    let zero = step(0, &[]);
    let one = step(1, &[&zero]);
    let two = step(2, &[&zero, &one]);
    let thought = parse(&step(3, &[&zero, &one, &two]));
    let ids: Vec<String> = thought.history().iter().map(|e| e.id().to_string()).collect();
    assert_eq!(ids, ["t0", "t1", "t2"]);
}
