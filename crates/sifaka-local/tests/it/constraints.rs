//! What a schema, pattern or grammar demands is what comes out, whatever the seed.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use regex::Regex;
use serde_json::{Value, json};
use sifaka_core::constraint::Constraint;
use sifaka_core::model::{FinishReason, Request, ResponseFormat};
use sifaka_core::{ErrorKind, Model};

use crate::common::{PROMPTS, block_on, context, model};

/// A small schema, and a check of our own that a value fits it.
fn schemas() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "boolean"})),
        Just(json!({"type": "null"})),
        Just(json!({"type": "number"})),
        (0..50_i64, 1..100_i64).prop_map(
            |(low, more)| json!({"type": "integer", "minimum": low, "maximum": low + more})
        ),
        (0..4_u64, 1..12_u64).prop_map(
            |(min, more)| json!({"type": "string", "minLength": min, "maxLength": min + more})
        ),
        Just(json!({"type": "string"})),
        prop::collection::vec("[a-z]{1,8}", 1..4).prop_map(|mut words| {
            words.sort();
            words.dedup();
            json!({"enum": words})
        }),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            (inner.clone(), 0..3_u64, 0..3_u64).prop_map(|(items, min, more)| {
                json!({"type": "array", "items": items, "minItems": min, "maxItems": min + more})
            }),
            prop::collection::btree_map("[a-z]{1,6}", (inner, any::<bool>()), 1..4).prop_map(
                |fields| {
                    let required: Vec<&String> = fields
                        .iter()
                        .filter(|(_, (_, must))| *must)
                        .map(|(name, _)| name)
                        .collect();
                    let properties: serde_json::Map<String, Value> = fields
                        .iter()
                        .map(|(name, (schema, _))| (name.clone(), schema.clone()))
                        .collect();
                    json!({"type": "object", "properties": properties, "required": required,
                       "additionalProperties": false})
                }
            ),
        ]
    })
}

/// Whether a value fits one of [`schemas`]; written for those alone.
fn fits(schema: &Value, value: &Value) -> bool {
    let bound = |key: &str, default: u64| schema[key].as_u64().unwrap_or(default);
    if let Some(choices) = schema["enum"].as_array() {
        return choices.contains(value);
    }
    match schema["type"].as_str() {
        Some("boolean") => value.is_boolean(),
        Some("null") => value.is_null(),
        Some("number") => value.is_number(),
        Some("integer") => value.as_i64().is_some_and(|n| {
            (schema["minimum"].as_i64().unwrap()..=schema["maximum"].as_i64().unwrap()).contains(&n)
        }),
        Some("string") => value.as_str().is_some_and(|text| {
            let length = text.chars().count() as u64;
            (bound("minLength", 0)..=bound("maxLength", u64::MAX)).contains(&length)
        }),
        Some("array") => value.as_array().is_some_and(|items| {
            (bound("minItems", 0)..=bound("maxItems", u64::MAX)).contains(&(items.len() as u64))
                && items.iter().all(|item| fits(&schema["items"], item))
        }),
        Some("object") => value.as_object().is_some_and(|fields| {
            let required = schema["required"].as_array().unwrap();
            required.iter().all(|name| fields.contains_key(name.as_str().unwrap()))
                && fields.iter().all(|(name, value)| {
                    schema["properties"].get(name).is_some_and(|schema| fits(schema, value))
                })
        }),
        _ => false,
    }
}

/// A small pattern.
fn patterns() -> impl Strategy<Value = String> {
    let atom = prop_oneof![
        "[a-z]{1,5}",
        Just("[a-z]".to_owned()),
        Just("[0-9]".to_owned()),
        Just(r"\d".to_owned()),
        Just("[A-Za-z ]".to_owned()),
        Just(r"\.".to_owned()),
        Just("(?:yes|no|maybe)".to_owned()),
    ];
    let repeated = (
        atom,
        prop_oneof![
            Just(String::new()),
            Just("+".to_owned()),
            Just("*".to_owned()),
            Just("?".to_owned()),
            (0..3_u32, 0..4_u32).prop_map(|(min, more)| format!("{{{min},{}}}", min + more)),
        ],
    )
        .prop_map(|(atom, times)| match times.as_str() {
            "" => atom,
            times => format!("(?:{atom}){times}"),
        });
    let run = prop::collection::vec(repeated, 1..5).prop_map(|parts| parts.concat());
    prop_oneof![run.clone(), (run.clone(), run).prop_map(|(a, b)| format!("(?:{a}|{b})"))]
}

fn drawn<T>(strategy: &impl Strategy<Value = T>, runner: &mut TestRunner) -> T {
    strategy.new_tree(runner).unwrap().current()
}

/// The same cases every time, so that a failure can be looked at.
fn runner(seed: u8) -> TestRunner {
    TestRunner::new_with_rng(
        Config::default(),
        TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]),
    )
}

#[test]
fn a_hundred_schemas_are_kept_whatever_the_seed() {
    let Some(model) = model() else { return };
    let (mut runner, strategy) = (runner(1), schemas());
    block_on(async {
        for n in 0..100 {
            let schema = drawn(&strategy, &mut runner);
            let mut request = Request::text(PROMPTS[n % PROMPTS.len()]);
            request.seed = Some(drawn(&any::<u64>(), &mut runner));
            request.sampling.temperature = Some(if n % 3 == 0 { 1.5 } else { 0.7 });
            request.sampling.max_tokens = Some(160);
            request.response_format =
                Some(ResponseFormat::JsonSchema { name: "answer".into(), schema: schema.clone() });
            let response = model.generate(&context(), &request).await.unwrap();
            let completion = &response.completions[0];
            let value: Value = serde_json::from_str(&completion.text)
                .unwrap_or_else(|error| panic!("{n}: {schema}: {:?}: {error}", completion.text));
            assert!(fits(&schema, &value), "{n}: {schema} does not fit {value}");
            assert_eq!(completion.finish_reason, FinishReason::Stop);
        }
    });
}

#[test]
fn a_hundred_patterns_are_kept_whatever_the_seed() {
    let Some(model) = model() else { return };
    let (mut runner, strategy) = (runner(2), patterns());
    block_on(async {
        for n in 0..100 {
            let pattern = drawn(&strategy, &mut runner);
            let mut request = Request::text(PROMPTS[n % PROMPTS.len()]);
            request.seed = Some(drawn(&any::<u64>(), &mut runner));
            request.sampling.temperature = Some(if n % 3 == 0 { 1.5 } else { 0.7 });
            request.sampling.max_tokens = Some(96);
            request.constraints =
                Arc::from([("pattern".into(), Constraint::Regex(pattern.as_str().into()))]);
            let response = model.generate(&context(), &request).await.unwrap();
            let text = &response.completions[0].text;
            let whole = Regex::new(&format!(r"\A(?:{pattern})\z")).unwrap();
            assert!(whole.is_match(text), "{n}: {pattern} does not match {text:?}");
        }
    });
}

#[tokio::test]
async fn several_rules_hold_at_once_and_a_choice_is_one_of_them() {
    let Some(model) = model() else { return };
    let choices: Arc<[String]> = ["Berlin (D)", "Bern", "Paris"].map(String::from).into();
    let mut request = Request::text("Name a capital.");
    request.constraints = Arc::from([
        ("choice".into(), Constraint::Choice(Arc::clone(&choices))),
        ("short".into(), Constraint::Regex("[A-Za-z]{1,4}".into())),
    ]);
    for seed in 0..10 {
        request.seed = Some(seed);
        let response = model.generate(&context(), &request).await.unwrap();
        assert_eq!(&*response.completions[0].text, "Bern");
    }
    request.constraints = Arc::from([("choice".into(), Constraint::Choice(choices.clone()))]);
    for seed in 0..10 {
        request.seed = Some(seed);
        let response = model.generate(&context(), &request).await.unwrap();
        assert!(choices.iter().any(|choice| **choice == *response.completions[0].text));
    }
}

#[tokio::test]
async fn a_grammar_is_kept_and_one_that_cannot_be_read_is_a_clear_error() {
    let Some(model) = model() else { return };
    let rule = |constraint| -> Arc<[_]> { Arc::from([("rule".into(), constraint)]) };
    let lark = r#"start: "Dear " NAME "," "\n" line+
NAME: /[A-Z][a-z]{1,8}/
line: "- " /[a-z ]{1,12}/ "\n""#;
    let mut request = Request::text("Write a list.");
    request.sampling.max_tokens = Some(80);
    request.constraints = rule(Constraint::Grammar { syntax: "lark".into(), text: lark.into() });
    let response = model.generate(&context(), &request).await.unwrap();
    let text = &response.completions[0].text;
    assert!(
        Regex::new(r"\ADear [A-Z][a-z]{1,8},\n(- [a-z ]{1,12}\n)+\z").unwrap().is_match(text),
        "{text:?}"
    );

    request.constraints = rule(Constraint::Regex("a(b".into()));
    let error = model.generate(&context(), &request).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);
    assert!(error.to_string().contains("rule"), "{error}");

    request.constraints = rule(Constraint::Title);
    let error = model.generate(&context(), &request).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}
