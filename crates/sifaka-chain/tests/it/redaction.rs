//! What a rule takes out is nowhere in the record, and the record still holds together.
#![expect(clippy::unwrap_used, reason = "a test")]

use std::borrow::Cow;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};
use sifaka_chain::redact_with;
use sifaka_core::event::{Fold, Nanos};
use sifaka_core::model::{Completion, FinishReason, Provider, TokenLogprob, TopLogprob};
use sifaka_core::retriever::Stage;
use sifaka_core::{
    Body, Context, CriticFeedback, Document, Event, EventKind, Id, Journal, Thought, Usage,
};
use sifaka_store::MemoryJournal;
use sifaka_testkit::kinds::any_kind;
use sifaka_testkit::runs::run;

use crate::kit::{Asks, Script, wants_good};

const SECRET: &str = "hunter2";

fn stars(text: &str) -> Option<String> {
    text.contains(|c: char| c.is_ascii_alphabetic())
        .then(|| text.replace(|c: char| c.is_ascii_alphabetic(), "*"))
}

fn hashes(text: &str) -> Option<String> {
    text.contains(|c: char| c.is_ascii_digit())
        .then(|| text.replace(|c: char| c.is_ascii_digit(), "#"))
}

/// Whether a field of this name holds a name, an id, a time or one of our own words.
fn is_structure(key: &str) -> bool {
    let ids = ["id", "thought_id", "parent_id", "run_id", "chain_id", "best", "request", "call_id"];
    let names = ["component", "model", "retriever", "name", "critic_name", "to", "media_type"];
    let words = ["type", "stage", "step", "role", "purpose", "kind", "origin"];
    let rest = ["version", "timestamp", "operation", "request_id", "response_id", "blob"];
    let enums = ["finish_reason", "severity", "on_unknown", "rate_limits", "constraints"];
    [&ids[..], &names, &words, &rest, &enums].concat().contains(&key)
}

/// The texts that still have letters, with where they stand.
fn letters(value: &Value, place: &str, found: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            // The tags of enums stand where others have a text.
            let tag = place.ends_with(".reason.reason") || place.ends_with(".decision");
            let ours = tag || text.starts_with("[redacted: ") || text == "[redacted]";
            if !ours && text.contains(|c: char| c.is_ascii_alphabetic()) {
                found.push(format!("{place}: {text:?}"));
            }
        }
        Value::Array(items) => items.iter().for_each(|item| letters(item, place, found)),
        Value::Object(fields) => {
            for (key, value) in fields.iter().filter(|(key, _)| !is_structure(key)) {
                letters(value, &format!("{place}.{key}"), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn every_kind_of_event_survives_a_rule_that_takes_every_letter(kind in any_kind()) {
        let mut redacted = kind.clone();
        redacted.rewrite_texts(&mut stars);
        prop_assert_eq!(redacted.name(), kind.name());
        let json = serde_json::to_string(&redacted).unwrap();
        let back: EventKind = serde_json::from_str(&json).unwrap();
        prop_assert_eq!(&back, &redacted, "{}", &json);
        let mut found = Vec::new();
        letters(&serde_json::from_str(&json).unwrap(), kind.name(), &mut found);
        prop_assert!(found.is_empty(), "{:#?}\n{}", found, json);

        let mut same = kind.clone();
        same.rewrite_texts(&mut |_| None);
        let before = serde_json::to_string(&kind).unwrap();
        if !before.contains("\"hex\"") {
            prop_assert_eq!(serde_json::to_value(&same).unwrap(), serde_json::to_value(&kind).unwrap());
        }
    }

    #[test]
    fn a_run_folds_as_before_whatever_a_rule_takes_out(run in run(), digits in any::<bool>()) {
        let (mut before, mut after) = (Fold::new(), Fold::new());
        for event in run.events.iter().filter(|event| !event.kind.is_transient()) {
            let mut redacted = event.clone();
            redacted.kind.rewrite_texts(&mut if digits { hashes as fn(&str) -> Option<String> } else { stars });
            let json = serde_json::to_string(&redacted).unwrap();
            before.apply(event).unwrap();
            after.apply(&serde_json::from_str::<Event>(&json).unwrap()).unwrap();
        }
        prop_assert_eq!(after.chain_id(), before.chain_id());
        prop_assert_eq!(after.usage(), before.usage());
        let ids = |fold: &Fold| {
            let thought = fold.thought().unwrap();
            thought.iterations().map(|entry| entry.id().clone()).collect::<Vec<_>>()
        };
        prop_assert_eq!(ids(&after), ids(&before));
        let best = |fold: &Fold| fold.best().map(|(best, score)| (best.id().clone(), score));
        prop_assert_eq!(best(&after), best(&before));
    }
}

/// An event after the rule that takes out the secret, as JSON.
fn taken(mut kind: EventKind) -> Value {
    assert!(serde_json::to_string(&kind).unwrap().contains(SECRET), "it is there to be taken out");
    kind.rewrite_texts(&mut |text| text.contains(SECRET).then(|| text.replace(SECRET, "[gone]")));
    let json = serde_json::to_value(&kind).unwrap();
    assert!(!json.to_string().contains(SECRET), "{json}");
    assert_eq!(serde_json::from_value::<EventKind>(json.clone()).unwrap(), kind);
    json
}

#[test]
fn keys_and_numbers_of_what_the_user_gives_are_searched() {
    let metadata = json!({ "hunter2": "x", "[gone]": "first", "card": 41_111_111, "deep": [{ "hunter2": 1 }] });
    let mut kind = EventKind::RunStarted {
        thought_id: Id::derived(b"hunter2"),
        chain_id: "notes@1234".into(),
        prompt: "pay with 41111111 by hunter2".into(),
        system_prompt: Some("hunter2".into()),
        tags: [("hunter2".to_owned(), "hunter2".to_owned())].into(),
        metadata: metadata.as_object().cloned(),
    };
    let json = taken(kind.clone());
    assert_eq!(json["tags"], json!({ "[gone]": "[gone]" }));
    let expected =
        json!({ "[gone]": "first", "card": 41_111_111, "deep": [{ "[gone]": 1 }], "[gone]+": "x" });
    assert_eq!(json["metadata"], expected, "no entry takes another's place");
    kind.rewrite_texts(&mut |text| text.contains("4111").then(|| "[number]".to_owned()));
    let json = serde_json::to_value(&kind).unwrap();
    assert_eq!(json["metadata"]["card"], "[number]");
    assert_eq!(json["chain_id"], "notes@1234");
}

#[test]
fn an_unknown_field_does_not_become_one_of_ours() {
    let document: Document =
        serde_json::from_value(json!({ "text": "a", "hunter2": "b" })).unwrap();
    let mut kind = EventKind::Retrieved {
        stage: Stage::PreGeneration,
        index: 0,
        retriever: "web".into(),
        query: "q".into(),
        documents: vec![document],
        seconds: Nanos(1),
    };
    kind.rewrite_texts(&mut |text| (text == SECRET).then(|| "text".to_owned()));
    let json = serde_json::to_value(&kind).unwrap();
    assert_eq!(json["documents"][0]["text+"], "b");
    assert_eq!(serde_json::from_value::<EventKind>(json).unwrap(), kind);
}

fn generated(completion: Completion, raw: Body) -> EventKind {
    EventKind::Generated {
        model: "m".into(),
        completions: vec![completion],
        usage: Usage::default(),
        provider: Provider::default(),
        raw: Some(raw),
        seconds: Nanos(1),
    }
}

#[test]
fn a_secret_in_pieces_is_not_kept_beside_the_text() {
    let token = |text: &str| TokenLogprob {
        token: text.to_owned(),
        logprob: -0.5,
        top: vec![TopLogprob { token: text.to_owned(), logprob: -0.5 }],
    };
    let mut completion = Completion::new("it is hunter2");
    completion.logprobs = Some(["it is ", "hunt", "er2"].map(token).to_vec());
    completion.finish_reason = FinishReason::StoppedBy("length".into());
    let json = taken(generated(completion, "data: hunt\n\ndata: er2\n\n".into()));
    assert!(!json.to_string().contains("hunt"), "{json}");
    assert_eq!(json["raw"], "[redacted: 23 bytes as they came]");
    assert_eq!(json["completions"][0]["logprobs"][1]["logprob"], -0.5);
    assert_eq!(json["completions"][0]["finish_reason"]["stopped_by"], "length");

    let mut clean = generated(Completion::new("fine"), Body::from_bytes(&[0xff, 1, 2]));
    clean.rewrite_texts(&mut |_| None);
    let json = serde_json::to_value(&clean).unwrap();
    assert_eq!(json["raw"], "[redacted: 3 bytes that are not text]");
}

#[test]
fn an_imported_thought_is_searched_in_all_its_history() {
    let ctx = Context::new();
    let document = Document::new("hunter2").with_id("hunter2").with_source("hunter2");
    let first = Thought::new(&ctx, "about hunter2")
        .with_chain_id("hunter@1")
        .with_system_prompt("hunter2")
        .with_model_prompt("hunter2")
        .with_tag("hunter2", "hunter2")
        .with_metadata("hunter2", "hunter2")
        .add_pre_generation_context(document.clone())
        .with_text("hunter2")
        .add_post_generation_context(document)
        .add_critic_feedback(CriticFeedback::new("kind").with_proposed_text("hunter2"));
    let last = first.next_iteration(&ctx).with_text("hunter2").next_iteration(&ctx);
    let json = taken(EventKind::Imported { thought: Box::new(last.clone()) });
    let thought: Thought = serde_json::from_value(json["thought"].clone()).unwrap();
    assert_eq!(thought.id(), last.id());
    assert_eq!(thought.chain_id(), Some("hunter@1"));
    assert_eq!(thought.iterations().count(), 3);
    assert_eq!(json["thought"]["history"][0]["critic_feedback"][0]["critic_name"], "kind");
    assert_eq!(last.prompt(), "about hunter2", "the caller's is as it was");

    let mut file = serde_json::to_value(&last).unwrap();
    file["history"][0] = json!({
        "id": "gone", "summary": "hunter2", "iteration": 0, "text": "hunter2", "odd": "hunter2",
        "timestamp": "2026-01-01T00:00:00Z", "pre_generation_context": [{ "text": "hunter2" }],
    });
    let referring: Thought = serde_json::from_value(file).unwrap();
    let json = taken(EventKind::Imported { thought: Box::new(referring) });
    let entry = &json["thought"]["history"][0];
    assert_eq!(entry["timestamp"], "2026-01-01T00:00:00Z");
    assert_eq!((&entry["summary"], &entry["odd"]), (&json!("[gone]"), &json!("[gone]")));
    assert_eq!(entry["pre_generation_context"][0]["text"], "[gone]");
}

#[tokio::test]
async fn redaction_applies_before_anything_is_journalled() {
    let journal = Arc::new(MemoryJournal::new());
    let model = Script::says(["the key is hunter2, bad", "hunter2 is good"]);
    let chain = wants_good(model)
        .journal(Arc::clone(&journal) as Arc<dyn Journal>)
        .redact(redact_with(|text| {
            if text.contains("hunter2") {
                text.replace("hunter2", "[redacted]").into()
            } else {
                text.into()
            }
        }))
        .build()
        .unwrap();
    let outcome = chain.run("Write with hunter2.").await.unwrap();
    assert_eq!(outcome.text(), "hunter2 is good", "the caller's text is not touched");
    let ctx = Context::new();
    let events = journal.events(&ctx, outcome.run_id()).await.unwrap();
    let all = serde_json::to_string(&events).unwrap();
    assert!(all.contains("[redacted] is good"));
    assert!(!all.contains("hunter2"));
    assert!(journal.verify(&ctx, &Default::default()).await.unwrap().is_clean());
}

/// Rules that hit our own words broke the record, or changed the chain's id, before names were
/// told from texts.
#[tokio::test]
async fn a_rule_as_wide_as_can_be_neither_stops_a_run_nor_changes_its_chain() {
    let journal = Arc::new(MemoryJournal::new());
    let model = Script::says(["bad", "advice", "advice", "good"]);
    let chain = wants_good(model)
        .critic(Asks)
        .journal(Arc::clone(&journal) as Arc<dyn Journal>)
        .redact(redact_with(|_| Cow::Borrowed("")))
        .build()
        .unwrap();
    let outcome = chain.run("Write.").await.unwrap();
    assert!(outcome.passed());
    let ctx = Context::new();
    let fold = journal.fold(&ctx, outcome.run_id()).await.unwrap().unwrap();
    assert_eq!(fold.chain_id(), Some(chain.id()));
    assert_eq!(fold.thought().unwrap().text(), Some(""));
    assert_eq!(fold.best().unwrap().0.id(), outcome.thought().id());
    assert!(journal.verify(&ctx, &Default::default()).await.unwrap().is_clean());
}
