use std::error::Error as _;

use sifaka_core::clock::SystemClock;
use sifaka_core::{Context, ErrorKind};
use sifaka_resilience::{Breaker, Guard, Resilience};
use std::sync::Arc;

use crate::support::{down, error, failing, listening, plain_retry, secs};

fn only_breaker() -> Resilience {
    Resilience::none().with_breaker(Breaker::default())
}

async fn fail(ctx: &Context, guard: &Guard, times: u32) {
    for _ in 0..times {
        let error = guard.call(ctx, failing([down()])).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
    }
}

#[tokio::test(start_paused = true)]
async fn it_opens_after_five_failures_and_says_for_how_long() {
    let (ctx, ear) = listening();
    let guard = Guard::new("service", &only_breaker());
    fail(&ctx, &guard, 5).await;
    assert!(!guard.is_closed());
    ctx.sleep(secs(10)).await.unwrap();
    // A clone shares the state.
    let mut calls = failing([]);
    let mut called = false;
    let error = guard
        .clone()
        .call(&ctx, |ctx| {
            called = true;
            calls(ctx)
        })
        .await
        .unwrap_err();
    assert!(!called, "an open circuit let a call through");
    assert_eq!(error.kind(), ErrorKind::CircuitOpen);
    assert!(error.message().contains("20.0s"), "{}", error.message());
    assert_eq!(error.retry_after(), Some(secs(20)));
    assert!(!error.suggestions().is_empty());
    assert_eq!(ear.names(), ["opened", "rejected"]);
}

#[tokio::test(start_paused = true)]
async fn failures_that_are_old_do_not_count() {
    let (ctx, ear) = listening();
    let guard = Guard::new("service", &only_breaker());
    fail(&ctx, &guard, 4).await;
    ctx.sleep(secs(31)).await.unwrap();
    fail(&ctx, &guard, 4).await;
    assert!(guard.is_closed());
    assert_eq!(ear.all(), []);
}

#[tokio::test(start_paused = true)]
async fn a_probe_closes_it_or_opens_it_again() {
    let (ctx, ear) = listening();
    let guard = Guard::new("service", &only_breaker());
    fail(&ctx, &guard, 5).await;
    ctx.sleep(secs(30)).await.unwrap();
    fail(&ctx, &guard, 1).await;
    ctx.sleep(secs(30)).await.unwrap();
    guard.call(&ctx, failing([])).await.unwrap();
    assert!(guard.is_closed());
    assert_eq!(ear.names(), ["opened", "half-opened", "opened", "half-opened", "closed"]);
}

#[tokio::test(start_paused = true)]
async fn only_the_probe_is_let_through_and_dropping_it_frees_its_place() {
    let (ctx, _) = listening();
    let guard = Guard::new("service", &only_breaker());
    fail(&ctx, &guard, 5).await;
    ctx.sleep(secs(30)).await.unwrap();
    {
        let mut probe =
            Box::pin(guard.call(&ctx, |_| std::future::pending::<sifaka_core::Result<()>>()));
        assert!(futures_util::poll!(&mut probe).is_pending());
        let error = guard.call(&ctx, failing([])).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CircuitOpen);
        assert!(error.message().contains("a trial call is under way"));
    }
    guard.call(&ctx, failing([])).await.unwrap();
    assert!(guard.is_closed());
}

#[tokio::test(start_paused = true)]
async fn errors_of_our_own_do_not_open_it() {
    for kind in ErrorKind::ALL.iter().copied() {
        let (ctx, _) = listening();
        let guard = Guard::new("service", &only_breaker());
        for _ in 0..5 {
            guard.call(&ctx, failing([error(kind)])).await.unwrap_err();
        }
        let opens = matches!(
            kind,
            ErrorKind::Overloaded
                | ErrorKind::Timeout
                | ErrorKind::Unavailable
                | ErrorKind::InvalidResponse
                | ErrorKind::RetriesExhausted
        );
        assert_eq!(!guard.is_closed(), opens, "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_probe_says_nothing() {
    let (ctx, ear) = listening();
    let guard = Guard::new("service", &only_breaker());
    fail(&ctx, &guard, 5).await;
    ctx.sleep(secs(30)).await.unwrap();
    guard.call(&ctx, failing([error(ErrorKind::Cancelled)])).await.unwrap_err();
    assert!(!guard.is_closed());
    guard.call(&ctx, failing([])).await.unwrap();
    assert_eq!(ear.names(), ["opened", "half-opened", "closed"]);
}

#[tokio::test(start_paused = true)]
async fn contexts_whose_clocks_began_apart_see_the_same_circuit() {
    let (old, _) = listening();
    old.sleep(secs(1_000)).await.unwrap();
    let guard = Guard::new("service", &only_breaker());
    fail(&old, &guard, 5).await;
    // A context made now counts its time from zero.
    let new = Context::builder().clock(Arc::new(SystemClock::new())).build();
    let error = guard.call(&new, failing([])).await.unwrap_err();
    assert_eq!(error.retry_after(), Some(secs(30)));
    new.sleep(secs(30)).await.unwrap();
    guard.call(&new, failing([])).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_circuit_that_opens_between_tries_keeps_the_last_error() {
    let (ctx, ear) = listening();
    let breaker = Breaker { failures: 2, ..Breaker::default() };
    let options = Resilience::none().with_breaker(breaker).with_retry(plain_retry());
    let guard = Guard::new("service", &options);
    let error = guard.call(&ctx, failing((0..9).map(|_| down()))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CircuitOpen);
    assert!(error.source().unwrap().to_string().contains("it is down"));
    assert_eq!(ear.names(), ["retrying", "opened", "retrying", "rejected"]);
}
