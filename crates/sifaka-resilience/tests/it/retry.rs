use std::error::Error as _;

use sifaka_core::{Error, ErrorKind};
use sifaka_resilience::{Guard, Resilience, Retry, RetryBudget};

use crate::support::{down, error, failing, listening, only_retry, plain_retry, secs, timed};

#[tokio::test(start_paused = true)]
async fn the_delays_are_1_2_4_and_8_seconds() {
    let (ctx, ear) = listening();
    let guard = Guard::new("service", &only_retry(plain_retry()));
    let (result, took) = timed(&ctx, guard.call(&ctx, failing((0..4).map(|_| down())))).await;
    assert_eq!(result.unwrap(), 5);
    assert_eq!(ear.delays(), [1_000, 2_000, 4_000, 8_000]);
    assert_eq!(took.as_secs(), 15);
}

#[tokio::test(start_paused = true)]
async fn jitter_shortens_a_delay_by_at_most_its_part() {
    let (ctx, ear) = listening();
    let guard = Guard::new("service", &only_retry(Retry { budget: None, ..Retry::default() }));
    for _ in 0..50 {
        guard.call(&ctx, failing((0..4).map(|_| down()))).await.unwrap();
    }
    let delays = ear.delays();
    assert_eq!(delays.len(), 200);
    for four in delays.chunks(4) {
        for (delay, full) in four.iter().zip([1_000, 2_000, 4_000, 8_000]) {
            assert!((full * 8 / 10..=full).contains(delay), "{delay} of {full}");
        }
    }
    assert!(delays.iter().any(|delay| !delay.is_multiple_of(1_000)), "nothing was left to chance");
}

#[tokio::test(start_paused = true)]
async fn exhausted_retries_are_a_kind_of_their_own_and_tell_of_the_last() {
    let (ctx, ear) = listening();
    let guard = Guard::new("service", &only_retry(plain_retry()));
    let last = || down().with_retry_after(secs(1));
    let error = guard.call(&ctx, failing((0..9).map(|_| last()))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RetriesExhausted);
    assert_eq!(error.component(), "service");
    assert_eq!(error.message(), "all 5 tries failed, the last with: it is down");
    assert_eq!(error.suggestions()[0], "start it");
    assert_eq!(error.suggestions().len(), 2);
    assert_eq!(error.retry_after(), Some(secs(1)));
    let source = error.source().and_then(|source| source.downcast_ref::<Error>()).unwrap();
    assert_eq!(source.kind(), ErrorKind::Unavailable);
    assert_eq!(ear.names(), ["retrying", "retrying", "retrying", "retrying", "exhausted"]);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_succeed_later_is_not_tried_again() {
    for kind in ErrorKind::ALL.iter().copied().filter(|kind| !kind.is_retryable()) {
        let (ctx, ear) = listening();
        let guard = Guard::new("service", &Resilience::default());
        let got = guard.call(&ctx, failing([error(kind)])).await.unwrap_err();
        assert_eq!((got.kind(), got.message()), (kind, "it is down"));
        assert_eq!(ear.all(), []);
    }
}

#[tokio::test(start_paused = true)]
async fn the_provider_says_when_to_come_back() {
    let (ctx, ear) = listening();
    let guard = Guard::new("service", &only_retry(plain_retry()));
    let limited = |wait| error(ErrorKind::RateLimited).with_retry_after(secs(wait));
    guard.call(&ctx, failing([limited(7), limited(1)])).await.unwrap();
    assert_eq!(ear.delays(), [7_000, 2_000]);
}

#[tokio::test(start_paused = true)]
async fn a_wait_beyond_the_deadline_is_not_begun() {
    let (ctx, ear) = listening();
    let ctx = ctx.with_timeout(secs(5));
    let guard = Guard::new("service", &only_retry(plain_retry()));
    let limited = error(ErrorKind::RateLimited).with_retry_after(secs(60));
    let (result, took) = timed(&ctx, guard.call(&ctx, failing([limited]))).await;
    assert_eq!(result.unwrap_err().kind(), ErrorKind::RateLimited);
    assert!(took.is_zero());
    assert_eq!(ear.all(), []);
}

#[tokio::test(start_paused = true)]
async fn backoff_stops_at_the_deadline_with_the_original_error() {
    let (ctx, ear) = listening();
    let ctx = ctx.with_timeout(secs(5));
    let guard = Guard::new("service", &only_retry(plain_retry()));
    let (result, took) = timed(&ctx, guard.call(&ctx, failing((0..9).map(|_| down())))).await;
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!((took, ear.delays()), (secs(3), vec![1_000, 2_000]));
}

#[tokio::test(start_paused = true)]
async fn the_retry_budget_is_shared_by_calls_and_clones() {
    let (ctx, ear) = listening();
    let budget = Some(RetryBudget { tokens: 5.0, refund: 0.5 });
    let guard = Guard::new("service", &only_retry(Retry { budget, ..plain_retry() }));
    let many = || failing((0..9).map(|_| down()));
    guard.call(&ctx, many()).await.unwrap_err();
    let error = guard.clone().call(&ctx, many()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RetriesExhausted);
    assert_eq!(error.message(), "try 2 failed and the retry budget is spent: it is down");
    assert_eq!(ear.delays().len(), 5);
    // Two successes pay for one more.
    guard.call(&ctx, failing([])).await.unwrap();
    guard.call(&ctx, failing([])).await.unwrap();
    guard.call(&ctx, many()).await.unwrap_err();
    assert_eq!(ear.delays().len(), 6);
}

#[tokio::test(start_paused = true)]
async fn cancelling_ends_the_wait_for_the_next_try() {
    let (ctx, _) = listening();
    let guard = Guard::new("service", &only_retry(plain_retry()));
    let stop = async {
        ctx.clock().sleep(secs(2)).await;
        ctx.cancellation().cancel();
    };
    let call = timed(&ctx, guard.call(&ctx, failing((0..9).map(|_| down()))));
    let ((result, took), ()) = tokio::join!(call, stop);
    let error = result.unwrap_err();
    assert_eq!((error.kind(), took), (ErrorKind::Cancelled, secs(2)));
    assert!(error.source().unwrap().to_string().contains("it is down"));
}

#[tokio::test(start_paused = true)]
async fn a_single_attempt_gives_the_error_as_it_is() {
    for retry in [None, Some(Retry { max_attempts: 1, ..Retry::default() })] {
        let (ctx, ear) = listening();
        let guard = Guard::new("service", &Resilience::none().with_retry(retry));
        let error = guard.call(&ctx, failing([down()])).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert_eq!(ear.all(), []);
    }
}
