//! What holds for any sequence of faults.

use std::cell::Cell;

use proptest::prelude::*;
use sifaka_core::ErrorKind;
use sifaka_resilience::{Guard, Resilience, Retry, RetryBudget};

use crate::support::{error, listening};

/// How a call ends: well, or with a retryable or a final error.
fn outcome() -> impl Strategy<Value = Option<ErrorKind>> {
    prop_oneof![
        3 => Just(None),
        5 => prop::sample::select(vec![ErrorKind::Unavailable, ErrorKind::RateLimited]).prop_map(Some),
        1 => Just(Some(ErrorKind::Auth)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn tries_and_retries_keep_to_their_limits(
        outcomes in prop::collection::vec(outcome(), 1..200),
        max_attempts in 1_u32..7,
        tokens in 1_u32..6,
        with_breaker: bool,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let refund = 0.25;
        let budget = Some(RetryBudget { tokens: f64::from(tokens), refund });
        let retry = Retry { max_attempts, budget, ..Retry::default() };
        let mut options = Resilience::default().with_retry(retry);
        if !with_breaker {
            options = options.with_breaker(None);
        }
        runtime.block_on(async {
            let (ctx, ear) = listening();
            let guard = Guard::new("service", &options);
            let next = Cell::new(0);
            let (mut retries, mut successes) = (0_u32, 0_u32);
            while next.get() < outcomes.len() {
                let tries = Cell::new(0_u32);
                let result = guard
                    .call(&ctx, |_| {
                        tries.set(tries.get() + 1);
                        let outcome = outcomes.get(next.get()).copied().flatten();
                        next.set(next.get() + 1);
                        std::future::ready(outcome.map_or(Ok(()), |kind| Err(error(kind))))
                    })
                    .await;
                prop_assert!(tries.get() <= max_attempts);
                retries += tries.get().saturating_sub(1);
                let allowed = f64::from(tokens) + refund * f64::from(successes);
                prop_assert!(f64::from(retries) <= allowed + 1e-9, "{retries} of {allowed}");
                successes += u32::from(result.is_ok());
                if result.is_err_and(|error| error.kind() == ErrorKind::CircuitOpen) {
                    ctx.sleep(std::time::Duration::from_secs(30)).await.unwrap();
                }
            }
            let told = ear.names().iter().filter(|name| **name == "retrying").count();
            prop_assert!(told >= retries as usize, "a retry was not told");
            Ok(())
        })?;
    }
}
