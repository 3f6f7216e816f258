//! Nothing grows with the number of runs.

use std::time::Duration;

use sifaka_telemetry::{Aggregator, MAX_COMPONENTS, Timings};

use crate::support::{finished, generated, retrieved, validated};

#[test]
fn ten_thousand_names_are_at_most_a_few_hundred_components() {
    let mut timings = Timings::new();
    for n in 0..10_000_u64 {
        timings.observe(&generated(&format!("model-{n}"), 1, 2, None));
        timings.observe(&validated(&[(&format!("check-{n}"), 1)]));
    }
    timings.add_storage(Duration::from_millis(1));
    let performance = timings.performance();
    // One "other" for each of the two kinds, and the journal, which is always told apart.
    assert_eq!(performance.components.len(), MAX_COMPONENTS + 3);
    assert_eq!(performance.model_time.seconds(), 10.0);
    assert_eq!(performance.validation_time.seconds(), 10.0);
    let other = &performance.components[0];
    assert!(other.component.ends_with(":other"), "{}", other.component);
    let tokens: u64 = performance.components.iter().map(|component| component.tokens).sum();
    assert_eq!(tokens, 20_000);
}

#[test]
fn merging_keeps_the_bound() {
    let chain = Aggregator::new();
    for n in 0..1_000 {
        let mut run = Timings::new();
        run.observe(&retrieved(&format!("retriever-{n}"), 1));
        chain.merge(&run);
    }
    let performance = chain.performance();
    assert_eq!(performance.components.len(), MAX_COMPONENTS + 1);
    assert_eq!(performance.retrieval_time.seconds(), 1.0);
}

#[test]
fn a_hundred_thousand_runs_take_no_more_room_than_a_hundred() {
    let chain = Aggregator::new();
    // Debug shows every counter there is, so what it lists is what is held.
    let slots = || format!("{:?}", chain.timings()).matches(',').count();
    let run = |ms: u64| {
        let mut run = Timings::new();
        run.observe(&generated("mock", ms, 10, Some(0.001)));
        run.observe(&validated(&[("length", ms % 7)]));
        run.observe(&finished(ms));
        run
    };
    (0..100).for_each(|n| chain.merge(&run(n)));
    let held = slots();
    (0..100_000).for_each(|n| chain.merge(&run(n % 5_000)));
    assert_eq!(slots(), held);
    assert_eq!(chain.performance().runs, 100_100);
}
