//! Events with durations.

use std::sync::Arc;

use sifaka_core::event::{Checked, EndReason, Nanos, Prompted, Step};
use sifaka_core::model::Response;
use sifaka_core::retriever::Stage;
use sifaka_core::{
    Body, Context, Cost, CriticFeedback, ErrorKind, EventKind, Failure, Hash, Id, Score, Usage,
    ValidationResult,
};

const MS: u64 = 1_000_000;

fn usage(tokens: u64, dollars: Option<f64>) -> Usage {
    let cost = dollars.map(Cost::from_dollars);
    Usage { calls: 1, input_tokens: tokens, cost, ..Usage::default() }
}

pub(crate) fn generated(model: &str, ms: u64, tokens: u64, dollars: Option<f64>) -> EventKind {
    EventKind::Generated {
        model: Arc::from(model),
        completions: Vec::new(),
        usage: usage(tokens, dollars),
        provider: Default::default(),
        raw: None,
        seconds: Nanos(ms * MS),
    }
}

pub(crate) fn called(component: &str, model: &str, ms: u64, tokens: u64) -> EventKind {
    EventKind::Called {
        component: Arc::from(component),
        model: Arc::from(model),
        prompt: Box::new(Prompted::default()),
        request: Hash::of(b"request"),
        response: Box::new(Response { usage: usage(tokens, None), ..Response::text("advice") }),
        seconds: Nanos(ms * MS),
    }
}

pub(crate) fn validated(results: &[(&str, u64)]) -> EventKind {
    let checked = |(index, (name, ms)): (u32, &(&str, u64))| Checked {
        index,
        name: Arc::from(*name),
        result: ValidationResult::passed("ok"),
        failure: None,
        seconds: Nanos(ms * MS),
    };
    EventKind::Validated { candidate: 0, results: (0..).zip(results).map(checked).collect() }
}

pub(crate) fn critiqued(critic: &str, ms: u64) -> EventKind {
    let feedback = CriticFeedback::new(critic);
    EventKind::Critiqued { index: 0, feedback, seconds: Nanos(ms * MS) }
}

pub(crate) fn retrieved(retriever: &str, ms: u64) -> EventKind {
    EventKind::Retrieved {
        stage: Stage::PreGeneration,
        index: 0,
        retriever: Arc::from(retriever),
        query: Body::from("query"),
        documents: Vec::new(),
        seconds: Nanos(ms * MS),
    }
}

fn failure(component: &str) -> Failure {
    Failure {
        component: Arc::from(component),
        operation: "ask".to_owned(),
        kind: ErrorKind::Unavailable,
        message: "it is down".to_owned(),
        suggestions: Vec::new(),
        extra: Default::default(),
    }
}

pub(crate) fn failed(step: Step, component: &str, ms: u64) -> EventKind {
    EventKind::Failed { step, failure: failure(component), seconds: Nanos(ms * MS) }
}

pub(crate) fn finished(ms: u64) -> EventKind {
    EventKind::RunFinished {
        reason: EndReason::Passed,
        best: Id::new(&Context::new()),
        score: Score { passed: true, value: 1.0 },
        usage: Usage::default(),
        seconds: Nanos(ms * MS),
    }
}

pub(crate) fn run_failed(ms: u64) -> EventKind {
    EventKind::RunFailed { failure: failure("model"), seconds: Nanos(ms * MS) }
}
