//! One run.

use std::time::Duration;

use serde_json::json;
use sifaka_core::event::Step;
use sifaka_core::retriever::Stage;
use sifaka_core::{Context, Event, Id};
use sifaka_telemetry::Timings;

use crate::support::{
    called, critiqued, failed, finished, generated, retrieved, run_failed, validated,
};

fn a_run() -> Timings {
    let mut timings = Timings::new();
    for kind in [
        retrieved("docs", 40),
        generated("mock", 1_000, 100, Some(0.25)),
        validated(&[("length", 1), ("length-2", 3)]),
        called("reflexion", "judge", 500, 60),
        critiqued("reflexion", 510),
        generated("mock", 2_000, 200, Some(0.5)),
        validated(&[("length", 2), ("length-2", 4)]),
        finished(3_700),
    ] {
        timings.observe(&kind);
    }
    timings.add_storage(Duration::from_millis(5));
    timings.add_storage(Duration::from_millis(15));
    timings
}

#[test]
fn the_export_says_where_the_time_went() {
    let json = a_run().performance().to_json();
    let part = |component: &str, kind: &str, times: [f64; 5], count: u64, tokens: u64| {
        let [total, mean, p50, p99, max] = times;
        json!({
            "component": component, "kind": kind, "count": count, "total": total, "mean": mean,
            "p50": p50, "p99": p99, "max": max, "failures": 0, "tokens": tokens,
            "cost": if component == "model:mock" { json!(0.75) } else { json!(null) },
        })
    };
    let expected = json!({
        "runs": 1,
        "total_time": 3.7,
        "model_time": 3.5,
        "validation_time": 0.01,
        "critic_time": 0.51,
        "retrieval_time": 0.04,
        "storage_time": 0.02,
        "components": [
            part("model:mock", "model", [3.0, 1.5, 1.0, 2.0, 2.0], 2, 300),
            part("critic:reflexion", "critic", [0.51; 5], 1, 0),
            part("model:judge", "model", [0.5; 5], 1, 60),
            part("retriever:docs", "retriever", [0.04; 5], 1, 0),
            part("journal", "storage", [0.02, 0.01, 0.005, 0.015, 0.015], 2, 0),
            part("validator:length-2", "validator", [0.007, 0.0035, 0.003, 0.004, 0.004], 2, 0),
            part("validator:length", "validator", [0.003, 0.0015, 0.001, 0.002, 0.002], 2, 0),
        ],
    });
    assert_eq!(json, expected);
}

#[test]
fn bottlenecks_come_longest_first() {
    let bottlenecks = a_run().performance().bottlenecks();
    assert_eq!(bottlenecks.len(), 7);
    assert_eq!(bottlenecks[0], ("model:mock".to_owned(), Duration::from_secs(3)));
    assert!(bottlenecks.is_sorted_by(|a, b| a.1 >= b.1));
}

#[test]
fn a_critic_that_asks_a_model_counts_under_both() {
    let mut timings = Timings::new();
    timings.observe(&called("reflexion", "judge", 500, 60));
    timings.observe(&critiqued("reflexion", 510));
    let performance = timings.performance();
    assert_eq!(performance.model_time.seconds(), 0.5);
    assert_eq!(performance.critic_time.seconds(), 0.51);
    let tokens: u64 = performance.components.iter().map(|component| component.tokens).sum();
    assert_eq!(tokens, 60);
}

#[test]
fn failures_are_counted_with_their_time() {
    let mut timings = Timings::new();
    timings.observe(&failed(Step::Retriever(Stage::PreGeneration, 0), "docs", 30));
    timings.observe(&retrieved("docs", 10));
    timings.observe(&failed(Step::Critic(0), "reflexion", 20));
    timings.observe(&failed(Step::Other, "thing", 1));
    // A validator that breaks is told of, and then answers "could not tell".
    timings.observe(&failed(Step::Validator(0), "judge", 7));
    timings.observe(&validated(&[("judge", 7)]));
    let performance = timings.performance();
    let of = |name: &str| {
        let mut all = performance.components.iter();
        let found = all.find(|component| component.component == name).unwrap();
        (found.count, found.failures, found.total.seconds())
    };
    assert_eq!(of("retriever:docs"), (2, 1, 0.04));
    assert_eq!(of("critic:reflexion"), (1, 1, 0.02));
    assert_eq!(of("other:thing"), (1, 1, 0.001));
    assert_eq!(of("validator:judge"), (1, 1, 0.007));
}

#[test]
fn runs_and_wall_time_add_up() {
    let ctx = Context::new();
    let mut timings = Timings::new();
    for (seq, kind) in [(0, finished(1_000)), (1, run_failed(500))] {
        timings.observe_event(&Event { run_id: Id::new(&ctx), seq, time: ctx.now(), kind });
    }
    timings.add_total(Duration::from_millis(250));
    let performance = timings.performance();
    assert_eq!((performance.runs, performance.total_time.seconds()), (2, 1.75));
}

#[test]
fn nothing_seen_is_nothing_and_no_division_by_it() {
    let performance = Timings::new().performance();
    assert_eq!(performance.bottlenecks(), []);
    assert_eq!(performance.to_json()["total_time"], 0.0);
}
