//! The rate limit, the timeout, and the order of the layers.

use std::future::pending;

use sifaka_core::event::Transition;
use sifaka_core::{ErrorKind, Result};
use sifaka_resilience::{Breaker, Guard, RateLimit, Resilience, Retry};

use crate::support::{down, failing, listening, plain_retry, secs, timed};

#[tokio::test(start_paused = true)]
async fn calls_are_spaced_at_the_given_rate() {
    let (ctx, ear) = listening();
    let limit = RateLimit::per_minute(60).with_burst(2);
    let guard = Guard::new("service", &Resilience::none().with_rate_limit(limit));
    let mut at = Vec::new();
    for _ in 0..5 {
        guard.call(&ctx, failing([])).await.unwrap();
        at.push(ctx.monotonic().as_secs());
    }
    assert_eq!(at, [0, 0, 1, 2, 3]);
    assert_eq!(ear.names(), ["rate-limited"; 3]);
    let (_, first) = &ear.all()[0];
    assert!(matches!(first, Transition::RateLimited { waited } if waited.0 == 1_000_000_000));
}

#[tokio::test(start_paused = true)]
async fn a_turn_after_the_deadline_is_an_error_at_once() {
    let (ctx, ear) = listening();
    let options = Resilience::default().with_rate_limit(RateLimit::per_minute(1));
    let guard = Guard::new("service", &options);
    guard.call(&ctx, failing([])).await.unwrap();
    let hasty = ctx.with_timeout(secs(10));
    let (result, took) = timed(&ctx, guard.call(&hasty, failing([]))).await;
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RateLimited);
    assert_eq!(error.retry_after(), Some(secs(60)));
    assert!(took.is_zero());
    // The turn was not used up.
    let (result, took) = timed(&ctx, guard.call(&ctx, failing([]))).await;
    assert_eq!((result.unwrap(), took), (1, secs(60)));
    assert_eq!(ear.names(), ["rate-limited"]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_takes_too_long_times_out() {
    let (ctx, ear) = listening();
    let guard = Guard::new("service", &Resilience::none().with_timeout(secs(60)));
    let (result, took) = timed(&ctx, guard.call(&ctx, |_| pending::<Result<()>>())).await;
    let error = result.unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::Timeout, "no answer within 60.0s"));
    assert_eq!((took, ear.names()), (secs(60), vec!["timed-out"]));
}

#[tokio::test(start_paused = true)]
async fn a_deadline_before_the_timeout_is_not_a_timeout() {
    let (ctx, ear) = listening();
    let ctx = ctx.with_timeout(secs(5));
    let guard = Guard::new("service", &Resilience::default());
    let (result, took) = timed(&ctx, guard.call(&ctx, |_| pending::<Result<()>>())).await;
    assert_eq!(result.unwrap_err().kind(), ErrorKind::DeadlineExceeded);
    assert_eq!((took, ear.all()), (secs(5), vec![]));
    assert!(guard.is_closed());
}

#[tokio::test(start_paused = true)]
async fn a_timeout_counts_against_the_breaker() {
    let (ctx, ear) = listening();
    let breaker = Breaker { failures: 2, ..Breaker::default() };
    let options = Resilience::none().with_breaker(breaker).with_timeout(secs(1));
    let guard = Guard::new("service", &options);
    for _ in 0..2 {
        guard.call(&ctx, |_| pending::<Result<()>>()).await.unwrap_err();
    }
    assert_eq!(ear.names(), ["timed-out", "timed-out", "opened"]);
}

#[tokio::test(start_paused = true)]
async fn every_try_waits_for_its_turn_and_the_wait_is_no_part_of_the_timeout() {
    let (ctx, ear) = listening();
    let options = Resilience::none()
        .with_retry(plain_retry())
        .with_rate_limit(RateLimit::per_minute(6))
        .with_timeout(secs(5));
    let guard = Guard::new("service", &options);
    let (result, took) = timed(&ctx, guard.call(&ctx, failing([down(), down()]))).await;
    assert_eq!((result.unwrap(), took), (3, secs(20)));
    assert_eq!(ear.names(), ["retrying", "rate-limited", "retrying", "rate-limited"]);
}

#[tokio::test(start_paused = true)]
async fn every_transition_is_told_in_order() {
    let (ctx, ear) = listening();
    let options = Resilience {
        retry: Some(Retry { max_attempts: 3, ..plain_retry() }),
        breaker: Some(Breaker { failures: 3, ..Breaker::default() }),
        rate_limit: Some(RateLimit::per_second(1)),
        timeout: Some(secs(2)),
        idle_timeout: None,
    };
    let guard = Guard::new("service", &options);
    let error = guard.call(&ctx, |_| pending::<Result<()>>()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RetriesExhausted);
    guard.call(&ctx, failing([])).await.unwrap_err();
    ctx.sleep(secs(30)).await.unwrap();
    guard.call(&ctx, failing([])).await.unwrap();
    guard.call(&ctx, failing([])).await.unwrap();
    let expected = "timed-out retrying timed-out retrying timed-out opened exhausted \
                    rejected half-opened closed rate-limited";
    assert_eq!(ear.names().join(" "), expected);
    assert!(ear.all().iter().all(|(component, _)| component == "service"));
}

#[tokio::test(start_paused = true)]
async fn cancelling_ends_a_call_and_a_wait_for_a_turn() {
    let options = Resilience::default().with_rate_limit(RateLimit::per_minute(1));
    let guard = Guard::new("service", &options);
    for turn in ["the call", "the wait for a turn"] {
        let (ctx, _) = listening();
        let stop = async {
            ctx.clock().sleep(secs(3)).await;
            ctx.cancellation().cancel();
        };
        let call = timed(&ctx, guard.call(&ctx, |_| pending::<Result<()>>()));
        let ((result, took), ()) = tokio::join!(call, stop);
        assert_eq!((result.unwrap_err().kind(), took), (ErrorKind::Cancelled, secs(3)), "{turn}");
    }
}

#[tokio::test(start_paused = true)]
async fn with_everything_off_a_call_is_just_made() {
    let (ctx, ear) = listening();
    let guard = Guard::new("service", &Resilience::none());
    for _ in 0..20 {
        let error = guard.call(&ctx, failing([down()])).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
    }
    assert_eq!(ear.all(), []);
}

/// No runtime, so a timer would panic: an answer that is there at once makes none.
#[test]
fn an_answer_that_is_there_at_once_needs_no_timer() {
    let (ctx, _) = listening();
    let ctx = ctx.with_timeout(secs(100));
    let guard = Guard::new("service", &Resilience::default());
    let mut call = Box::pin(guard.call(&ctx, failing([])));
    let waker = std::task::Waker::noop();
    let polled = call.as_mut().poll(&mut std::task::Context::from_waker(waker));
    assert!(matches!(polled, std::task::Poll::Ready(Ok(1))));
}
