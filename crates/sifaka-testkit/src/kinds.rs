//! Random events of every kind, each by itself.

use std::sync::Arc;

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value};
use sifaka_core::event::{CallPurpose, Checked, Cut, EndReason, Nanos, Prompted, Step, Transition};
use sifaka_core::model::{
    Completion, Delta, FinishReason, Message, Part, Provider, Response, Role, Sampling,
    TokenLogprob, ToolCall, TopLogprob,
};
use sifaka_core::policy::Decision;
use sifaka_core::retriever::Stage;
use sifaka_core::{EventKind, Hash, Score};

use crate::thoughts::{critic_feedback, document, thought, validation_result};
use crate::values::{
    body, failure, id, json, name, number, object, share, text, unknown_fields, usage,
};

pub(crate) fn words() -> BoxedStrategy<Arc<str>> {
    text().prop_map(Arc::from).boxed()
}

/// A duration, below the month up to which JSON holds nanoseconds exactly.
pub fn nanos() -> BoxedStrategy<Nanos> {
    (0_u64..1 << 50).prop_map(Nanos).boxed()
}

/// How a text is to come about.
pub fn decision() -> BoxedStrategy<Decision> {
    prop_oneof![
        Just(Decision::Repair),
        (1_u32..5).prop_map(|samples| Decision::Fresh { samples }),
        (1_u32..5).prop_map(|samples| Decision::Constrained { samples }),
        words().prop_map(|reason| Decision::Stop { reason }),
    ]
    .boxed()
}

/// Before or after writing.
pub fn stage() -> BoxedStrategy<Stage> {
    select(vec![Stage::PreGeneration, Stage::PostGeneration]).boxed()
}

fn tool_call() -> BoxedStrategy<ToolCall> {
    (words(), words(), json())
        .prop_map(|(id, name, arguments)| ToolCall { id, name, arguments })
        .boxed()
}

fn part() -> BoxedStrategy<Part> {
    prop_oneof![
        3 => body().prop_map(Part::Text),
        1 => (words(), body()).prop_map(|(media_type, data)| Part::Image { media_type, data }),
        1 => tool_call().prop_map(Part::ToolCall),
        1 => (words(), body(), any::<bool>()).prop_map(|(call_id, content, is_error)| {
            Part::ToolResult { call_id, content, is_error }
        }),
    ]
    .boxed()
}

fn message() -> BoxedStrategy<Message> {
    (select(vec![Role::User, Role::Assistant, Role::Tool]), vec(part(), 0..3))
        .prop_map(|(role, parts)| Message { role, parts })
        .boxed()
}

fn sampling() -> BoxedStrategy<Sampling> {
    let real = || option::of(number());
    (real(), real(), option::of(any::<u32>()), real(), real(), option::of(any::<u64>()))
        .prop_map(|(temperature, top_p, top_k, min_p, repetition_penalty, max_tokens)| Sampling {
            temperature,
            top_p,
            top_k,
            min_p,
            repetition_penalty,
            max_tokens,
        })
        .boxed()
}

/// Exactly what a model was asked.
pub fn prompted() -> BoxedStrategy<Prompted> {
    let cut = (text(), any::<u64>()).prop_map(|(what, tokens)| Cut { what, tokens });
    (
        (words(), select(vec![CallPurpose::Generate, CallPurpose::Advise]), option::of(words())),
        (vec(message(), 0..3), sampling(), 0_u32..5),
        (vec((words(), json()), 0..2), object(), vec(cut, 0..2)),
    )
        .prop_map(
            |(
                (model, purpose, system),
                (messages, sampling, candidates),
                (constraints, options, cut),
            )| Prompted {
                model,
                purpose,
                system,
                messages,
                sampling,
                candidates,
                constraints,
                options,
                cut,
            },
        )
        .boxed()
}

/// A log-probability; JSON has no infinity, and impossible tokens have that one.
fn logprob() -> BoxedStrategy<f64> {
    prop_oneof![4 => -50.0..=0.0, 1 => Just(f64::NEG_INFINITY)].boxed()
}

/// One text a model wrote.
pub fn completion() -> BoxedStrategy<Completion> {
    let finish = prop_oneof![
        3 => Just(FinishReason::Stop),
        1 => Just(FinishReason::Length),
        1 => Just(FinishReason::ToolCalls),
        1 => Just(FinishReason::ContentFilter),
        1 => words().prop_map(FinishReason::StoppedBy),
        1 => text().prop_map(FinishReason::Other),
    ];
    let top = (text(), logprob()).prop_map(|(token, logprob)| TopLogprob { token, logprob });
    let token = (text(), logprob(), vec(top, 0..2))
        .prop_map(|(token, logprob, top)| TokenLogprob { token, logprob, top });
    (words(), vec(tool_call(), 0..2), option::of(words()), finish, option::of(vec(token, 0..3)))
        .prop_map(|(text, tool_calls, reasoning, finish_reason, logprobs)| Completion {
            text,
            tool_calls,
            reasoning,
            finish_reason,
            logprobs,
        })
        .boxed()
}

/// What a provider said besides the text.
pub fn provider() -> BoxedStrategy<Provider> {
    let word = || option::of(text());
    (word(), word(), word(), vec((text(), text()), 0..2))
        .prop_map(|(request_id, response_id, model, rate_limits)| Provider {
            request_id,
            response_id,
            model,
            rate_limits,
        })
        .boxed()
}

/// A model's whole answer.
pub fn response() -> BoxedStrategy<Response> {
    (vec(completion(), 1..3), usage(), provider(), option::of(body()))
        .prop_map(|(completions, usage, provider, raw)| Response {
            completions,
            usage,
            provider,
            raw,
        })
        .boxed()
}

/// A change in how a component is called.
pub fn transition() -> BoxedStrategy<Transition> {
    prop_oneof![
        (any::<u32>(), nanos(), failure())
            .prop_map(|(attempt, delay, failure)| Transition::Retrying { attempt, delay, failure }),
        any::<u32>().prop_map(|attempts| Transition::RetriesExhausted { attempts }),
        nanos().prop_map(|for_| Transition::CircuitOpened { for_ }),
        Just(Transition::CircuitHalfOpened),
        Just(Transition::CircuitClosed),
        Just(Transition::CircuitRejected),
        nanos().prop_map(|waited| Transition::RateLimited { waited }),
        nanos().prop_map(|after| Transition::TimedOut { after }),
        (words(), failure()).prop_map(|(to, failure)| Transition::FellBack { to, failure }),
    ]
    .boxed()
}

/// Why a run ended.
pub fn end_reason() -> BoxedStrategy<EndReason> {
    prop_oneof![
        Just(EndReason::Passed),
        Just(EndReason::MaxIterations),
        any::<u32>().prop_map(|rounds| EndReason::Plateau { rounds }),
        Just(EndReason::Oscillation),
        text().prop_map(|message| EndReason::Budget { message }),
        Just(EndReason::Deadline),
        Just(EndReason::Cancelled),
        words().prop_map(|message| EndReason::Policy { message }),
        failure().prop_map(|failure| EndReason::Degraded { failure }),
    ]
    .boxed()
}

/// Events that a run may have anywhere, and that say nothing of its Thought.
pub fn bystander() -> BoxedStrategy<EventKind> {
    prop_oneof![
        3 => (words(), transition())
            .prop_map(|(component, transition)| EventKind::Resilience { component, transition }),
        1 => (words(), json()).prop_map(|(name, data)| EventKind::Noted { name, data }),
        1 => (0_u32..4, json())
            .prop_map(|(candidate, report)| EventKind::Guided { candidate, report }),
        1 => delta().prop_map(EventKind::Delta),
        1 => unknown(),
    ]
    .boxed()
}

/// A piece of text as it comes.
pub fn delta() -> BoxedStrategy<Delta> {
    prop_oneof![
        (any::<u32>(), words()).prop_map(|(index, text)| Delta::Text { index, text }),
        (any::<u32>(), words()).prop_map(|(index, text)| Delta::Reasoning { index, text }),
        any::<u32>().prop_map(|index| Delta::Restart { index }),
        response().prop_map(|response| Delta::Done(Box::new(response))),
    ]
    .boxed()
}

/// An event of a kind that nobody knows yet.
pub fn unknown() -> BoxedStrategy<EventKind> {
    (text(), unknown_fields())
        .prop_map(|(kind, fields)| {
            let mut all = Map::new();
            all.insert("type".to_owned(), Value::from(format!("x_{kind}")));
            all.extend(fields);
            EventKind::Unknown(all)
        })
        .boxed()
}

/// A component's call to a model.
pub fn called() -> BoxedStrategy<EventKind> {
    (words(), words(), prompted(), response(), nanos())
        .prop_map(|(component, model, prompt, response, seconds)| {
            let request = Hash::of(format!("{prompt:?}").as_bytes());
            EventKind::Called {
                component,
                model,
                prompt: Box::new(prompt),
                request,
                response: Box::new(response),
                seconds,
            }
        })
        .boxed()
}

/// Any event, in no particular place of a run.
pub fn any_kind() -> BoxedStrategy<EventKind> {
    let step = prop_oneof![
        (stage(), any::<u32>()).prop_map(|(stage, index)| Step::Retriever(stage, index)),
        any::<u32>().prop_map(Step::Validator),
        any::<u32>().prop_map(Step::Critic),
        Just(Step::Other),
    ];
    let score = (any::<bool>(), share()).prop_map(|(passed, value)| Score { passed, value });
    let checked = (any::<u32>(), name(), validation_result(), nanos()).prop_map(
        |(index, name, result, seconds)| Checked {
            index,
            name: Arc::from(name),
            result,
            failure: None,
            seconds,
        },
    );
    let opening = (
        (id(), words(), words(), option::of(words())),
        (btree_map(text(), text(), 0..2), option::of(object())),
    )
        .prop_map(|((thought_id, chain_id, prompt, system_prompt), (tags, metadata))| {
            EventKind::RunStarted { thought_id, chain_id, prompt, system_prompt, tags, metadata }
        });
    let middle =
        prop_oneof![
            (id(), decision()).prop_map(|(thought_id, decision)| EventKind::IterationStarted {
                thought_id,
                decision
            }),
            (stage(), any::<u32>(), words(), body(), vec(document(), 0..3), nanos()).prop_map(
                |(stage, index, retriever, query, documents, seconds)| EventKind::Retrieved {
                    stage,
                    index,
                    retriever,
                    query,
                    documents,
                    seconds
                }
            ),
            prompted().prop_map(|prompt| EventKind::Prompted(Box::new(prompt))),
            (words(), vec(completion(), 1..5), usage(), provider(), option::of(body()), nanos())
                .prop_map(|(model, completions, usage, provider, raw, seconds)| {
                    EventKind::Generated { model, completions, usage, provider, raw, seconds }
                }),
            called(),
            (any::<u32>(), vec(checked, 0..3))
                .prop_map(|(candidate, results)| EventKind::Validated { candidate, results }),
            (any::<u32>(), score.clone())
                .prop_map(|(candidate, score)| EventKind::Chosen { candidate, score }),
            (any::<u32>(), critic_feedback(), nanos()).prop_map(|(index, feedback, seconds)| {
                EventKind::Critiqued { index, feedback, seconds }
            }),
            (step.clone(), failure(), nanos())
                .prop_map(|(step, failure, seconds)| EventKind::Failed { step, failure, seconds }),
            (step, words(), words()).prop_map(|(step, component, reason)| EventKind::Skipped {
                step,
                component,
                reason
            }),
        ];
    let ending = prop_oneof![
        (end_reason(), id(), score, usage(), nanos()).prop_map(
            |(reason, best, score, usage, seconds)| EventKind::RunFinished {
                reason,
                best,
                score,
                usage,
                seconds
            }
        ),
        (failure(), nanos())
            .prop_map(|(failure, seconds)| EventKind::RunFailed { failure, seconds }),
        (words(), any::<bool>())
            .prop_map(|(chain_id, changed)| EventKind::RunResumed { chain_id, changed }),
    ];
    prop_oneof![
        1 => opening,
        1 => thought().prop_map(|thought| EventKind::Imported { thought: Box::new(thought) }),
        6 => middle,
        2 => ending,
        3 => bystander(),
    ]
    .boxed()
}
