//! Random Thoughts: every field, every depth of history.

use std::sync::Arc;

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};
use sifaka_core::{
    Body, Candidate, Context, CriticFeedback, Document, Failure, Id, OnUnknown, Origin, Position,
    Score, Severity, Thought, Usage, ValidationResult, Verdict,
};

use crate::clock::ManualClock;
use crate::values::{
    body, failure, id, json, name, number, object, share, text, unknown_fields, usage,
};

/// A retrieved document, with its text at hand or stored apart.
pub fn document() -> BoxedStrategy<Document> {
    let position = (any::<u32>(), any::<u64>(), any::<u64>())
        .prop_map(|(chunk, start, end)| Position { chunk, start, end });
    (
        option::of(text()),
        body(),
        option::of(object()),
        option::of(number()),
        option::of(text()),
        option::of(position),
        unknown_fields(),
    )
        .prop_map(|(id, text, metadata, score, source, position, extra)| Document {
            id: id.map(Arc::from),
            text,
            metadata,
            score,
            source: source.map(Arc::from),
            position,
            extra: extra.into(),
        })
        .boxed()
}

/// A validator's answer.
pub fn validation_result() -> BoxedStrategy<ValidationResult> {
    let verdict = select(vec![Verdict::Passed, Verdict::Failed, Verdict::Unknown]);
    let severity = prop_oneof![3 => Just(Severity::Hard), 1 => Just(Severity::Soft)];
    let on_unknown = prop_oneof![3 => Just(OnUnknown::Fail), 1 => Just(OnUnknown::Pass)];
    let weight = prop_oneof![3 => Just(1.0), 1 => 0.0..10.0];
    (
        (verdict, text(), option::of(share()), vec(text(), 0..3), vec(text(), 0..3)),
        (option::of(object()), severity, on_unknown, weight, unknown_fields()),
    )
        .prop_map(
            |(
                (passed, message, score, issues, suggestions),
                (details, severity, on_unknown, weight, extra),
            )| ValidationResult {
                passed,
                message: Arc::from(message),
                score,
                issues,
                suggestions,
                details,
                severity,
                on_unknown,
                weight,
                extra: extra.into(),
            },
        )
        .boxed()
}

/// A critic's advice, with a text of its own now and then.
pub fn critic_feedback() -> BoxedStrategy<CriticFeedback> {
    (
        (text(), vec(text(), 0..3), vec(text(), 0..3), option::of(share()), option::of(text())),
        (option::of(text()), vec(text(), 0..2), option::of(object()), unknown_fields()),
    )
        .prop_map(
            |(
                (critic, issues, suggestions, confidence, feedback),
                (proposed, evidence, metadata, extra),
            )| CriticFeedback {
                critic_name: Arc::from(critic),
                issues,
                suggestions,
                confidence,
                feedback: feedback.map(Arc::from),
                proposed_text: proposed.map(Arc::from),
                candidate: None,
                evidence,
                metadata,
                extra: extra.into(),
            },
        )
        .boxed()
}

/// One of the texts an iteration chose from.
pub fn candidate() -> BoxedStrategy<Candidate> {
    let origin = option::of(text())
        .prop_map(|critic| critic.map_or(Origin::Sample, |c| Origin::Proposal(Arc::from(c))));
    let score = (any::<bool>(), share()).prop_map(|(passed, value)| Score { passed, value });
    let results = btree_map(name(), validation_result(), 0..3);
    (text(), origin, results, option::of(score), any::<bool>(), unknown_fields())
        .prop_map(|(text, origin, results, score, chosen, extra)| Candidate {
            text: Arc::from(text),
            origin,
            validation_results: Arc::new(
                results.into_iter().map(|(n, r)| (Arc::from(n), r)).collect(),
            ),
            score,
            chosen,
            extra: extra.into(),
        })
        .boxed()
}

/// A change to a Thought that its public API offers.
#[derive(Clone, Debug)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each is the method of the same name with its arguments")]
pub enum Change {
    WithText(String),
    WithSystemPrompt(String),
    WithModelPrompt(Body),
    WithChainId(String),
    WithRunId(Id),
    WithTag(String, String),
    WithMetadata(String, Value),
    WithUsage(Usage),
    AddPreGenerationContext(Document),
    AddPostGenerationContext(Document),
    AddValidationResult(String, ValidationResult),
    AddCriticFeedback(CriticFeedback),
    AddFailure(Failure),
    NextIteration,
}

impl Change {
    /// The Thought that comes of it.
    #[must_use]
    pub fn apply(self, ctx: &Context, thought: &Thought) -> Thought {
        match self {
            Self::WithText(text) => thought.with_text(text),
            Self::WithSystemPrompt(system) => thought.with_system_prompt(system),
            Self::WithModelPrompt(prompt) => thought.with_model_prompt(prompt),
            Self::WithChainId(chain) => thought.with_chain_id(chain),
            Self::WithRunId(run) => thought.with_run_id(run),
            Self::WithTag(key, value) => thought.with_tag(key, value),
            Self::WithMetadata(key, value) => thought.with_metadata(key, value),
            Self::WithUsage(usage) => thought.with_usage(usage),
            Self::AddPreGenerationContext(document) => thought.add_pre_generation_context(document),
            Self::AddPostGenerationContext(document) => {
                thought.add_post_generation_context(document)
            }
            Self::AddValidationResult(name, result) => thought.add_validation_result(&name, result),
            Self::AddCriticFeedback(feedback) => thought.add_critic_feedback(feedback),
            Self::AddFailure(failure) => thought.add_failure(failure),
            Self::NextIteration => thought.next_iteration(ctx),
        }
    }
}

/// Any change.
pub fn change() -> BoxedStrategy<Change> {
    prop_oneof![
        3 => text().prop_map(Change::WithText),
        1 => text().prop_map(Change::WithSystemPrompt),
        1 => body().prop_map(Change::WithModelPrompt),
        1 => text().prop_map(Change::WithChainId),
        1 => id().prop_map(Change::WithRunId),
        1 => (text(), text()).prop_map(|(key, value)| Change::WithTag(key, value)),
        1 => (text(), json()).prop_map(|(key, value)| Change::WithMetadata(key, value)),
        1 => usage().prop_map(Change::WithUsage),
        2 => document().prop_map(Change::AddPreGenerationContext),
        2 => document().prop_map(Change::AddPostGenerationContext),
        3 => (prop_oneof![name(), Just("length".to_owned()), Just(String::new())],
              validation_result())
            .prop_map(|(name, result)| Change::AddValidationResult(name, result)),
        3 => critic_feedback().prop_map(Change::AddCriticFeedback),
        1 => failure().prop_map(Change::AddFailure),
        3 => Just(Change::NextIteration),
    ]
    .boxed()
}

/// A context whose clock stands still and whose random numbers are fixed.
#[must_use]
pub fn fixed_context(seed: u64) -> Context {
    Context::builder().clock(Arc::new(ManualClock::new())).seed(seed).build()
}

/// A Thought as a program makes it: a prompt, and changes one after the other.
pub fn made_thought() -> BoxedStrategy<Thought> {
    (any::<u64>(), text(), vec(change(), 0..14))
        .prop_map(|(seed, prompt, changes)| {
            let ctx = fixed_context(seed);
            let first = Thought::new(&ctx, prompt);
            changes.into_iter().fold(first, |thought, change| change.apply(&ctx, &thought))
        })
        .boxed()
}

/// Any Thought: as [`made_thought`], and with what only a file can give it: unknown fields,
/// candidates, and iterations that are not at hand.
pub fn thought() -> BoxedStrategy<Thought> {
    thought_json().prop_map(|json| read(&json)).boxed()
}

/// Any Thought as JSON that loads.
pub fn thought_json() -> BoxedStrategy<Value> {
    let step = (unknown_fields(), option::of(vec(candidate(), 0..3)), any::<u8>());
    let missing = vec((id(), text(), unknown_fields(), any::<bool>()), 0..3);
    (made_thought(), vec(step, 15), missing)
        .prop_map(|(thought, steps, missing)| {
            let mut json = serde_json::to_value(&thought).unwrap_or_else(|error| broken(&error));
            let mut steps = steps.into_iter();
            let mut decorate = |fields: &mut Map<String, Value>, may_be_missing: bool| {
                let Some((unknown, candidates, dice)) = steps.next() else { return };
                if may_be_missing && dice < 32 {
                    let kept = ["id", "iteration", "timestamp"];
                    fields.retain(|key, _| kept.contains(&key.as_str()));
                    fields.insert("summary".to_owned(), json!("not at hand"));
                } else if let Some(candidates) = candidates {
                    fields.insert("candidates".to_owned(), json!(candidates));
                }
                fields.extend(unknown);
            };
            if let Value::Object(fields) = &mut json {
                decorate(fields, false);
                if let Some(Value::Array(history)) = fields.get_mut("history") {
                    for entry in history.iter_mut().filter_map(Value::as_object_mut) {
                        decorate(entry, true);
                    }
                    let missing = missing.into_iter().map(|(id, summary, unknown, dated)| {
                        let mut entry = json!({ "id": id, "summary": summary });
                        if let Value::Object(fields) = &mut entry {
                            fields.extend(unknown);
                            if dated {
                                fields.insert("iteration".to_owned(), json!(0));
                            }
                        }
                        entry
                    });
                    let missing: Vec<Value> = missing.collect();
                    let youngest = missing.last().map(|entry| entry["id"].clone());
                    history.splice(0..0, missing);
                    // An iteration that follows one names it; which is what reading fills in.
                    let oldest = history.iter_mut().find(|entry| entry.get("prompt").is_some());
                    if let Some(youngest) = youngest {
                        match oldest.and_then(Value::as_object_mut) {
                            Some(oldest) => oldest.insert("parent_id".to_owned(), youngest),
                            None => fields.insert("parent_id".to_owned(), youngest),
                        };
                    }
                }
            }
            json
        })
        .boxed()
}

fn read(json: &Value) -> Thought {
    serde_json::from_value(json.clone()).unwrap_or_else(|error| broken(&error))
}

#[expect(clippy::panic, reason = "a generator that is wrong must say so, not generate less")]
fn broken(error: &serde_json::Error) -> ! {
    panic!("the generator of Thoughts is broken: {error}")
}
