//! Many runs.

use proptest::prelude::*;
use sifaka_core::EventKind;
use sifaka_telemetry::{Aggregator, Timings};

use crate::support::{called, critiqued, finished, generated, retrieved, validated};

fn event() -> impl Strategy<Value = EventKind> {
    let ms = 0_u64..100_000;
    let name = prop::sample::select(vec!["a", "b", "c"]);
    (0..6, name, ms, 0_u64..1_000).prop_map(|(which, name, ms, tokens)| match which {
        0 => generated(name, ms, tokens, Some(0.5)),
        1 => called("critic", name, ms, tokens),
        2 => validated(&[(name, ms), ("z", ms / 2)]),
        3 => critiqued(name, ms),
        4 => retrieved(name, ms),
        _ => finished(ms),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn merging_is_observing_all(runs in prop::collection::vec(
        prop::collection::vec(event(), 0..60), 0..8,
    )) {
        let chain = Aggregator::new();
        let mut all = Timings::new();
        for run in &runs {
            let mut timings = Timings::new();
            for kind in run {
                timings.observe(kind);
                all.observe(kind);
            }
            chain.clone().merge(&timings);
        }
        prop_assert_eq!(chain.performance(), all.performance());
    }
}

#[test]
fn runs_on_many_threads_are_all_counted() {
    let chain = Aggregator::new();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let chain = chain.clone();
            scope.spawn(move || {
                let mut run = Timings::new();
                run.observe(&generated("mock", 2, 3, None));
                run.observe(&finished(5));
                (0..250).for_each(|_| chain.merge(&run));
            });
        }
    });
    let performance = chain.performance();
    assert_eq!(performance.runs, 1_000);
    assert_eq!(performance.total_time.seconds(), 5.0);
    assert_eq!(performance.components[0].tokens, 3_000);
    assert_eq!(chain.timings().performance(), performance);
}
