use std::sync::Mutex;

use sifaka_core::event::Transition;
use sifaka_core::{Error, ErrorKind, Result};
use sifaka_resilience::{Guard, Resilience, fall_back, falls_back};

use crate::support::{down, error, failing, listening, only_retry, plain_retry};

#[tokio::test(start_paused = true)]
async fn the_next_is_asked_when_the_one_before_used_up_its_tries() {
    let (ctx, ear) = listening();
    let guards: Vec<Guard> = ["first", "second", "third"]
        .map(|name| Guard::new(name, &only_retry(plain_retry())))
        .to_vec();
    let choices = guards.iter().map(|guard| (guard.component(), guard));
    let asked = Mutex::new(Vec::new());
    let answer = fall_back(&ctx, choices, |guard| {
        asked.lock().unwrap().push(guard.component());
        let failures = if guard.component() == "first" { 9 } else { 0 };
        guard.call(&ctx, failing((0..failures).map(|_| down())))
    });
    assert_eq!(answer.await.unwrap(), 1);
    assert_eq!(*asked.lock().unwrap(), ["first", "second"]);
    let told = ear.all();
    assert_eq!(ear.names()[4..], ["exhausted", "fell-back"]);
    let (component, Transition::FellBack { to, failure }) = &told[5] else { panic!("{told:?}") };
    assert_eq!((component.as_str(), &**to), ("first", "second"));
    assert_eq!(failure.kind, ErrorKind::RetriesExhausted);
}

#[tokio::test]
async fn closures_are_tried_in_order() {
    let (ctx, _) = listening();
    type Ask = Box<dyn Fn() -> Result<&'static str>>;
    let choices: Vec<(&str, Ask)> = vec![
        ("a", Box::new(|| Err(error(ErrorKind::Auth)))),
        ("b", Box::new(|| Ok("b answered"))),
        ("c", Box::new(|| Ok("c answered"))),
    ];
    let answer = fall_back(&ctx, choices, |ask| std::future::ready(ask())).await;
    assert_eq!(answer.unwrap(), "b answered");
}

#[tokio::test]
async fn what_another_would_fail_with_as_well_does_not_fall_back() {
    for kind in ErrorKind::ALL.iter().copied() {
        let (ctx, ear) = listening();
        let choices = [("a", Err(error(kind))), ("b", Ok(2))];
        let result = fall_back(&ctx, choices, std::future::ready).await;
        if falls_back(kind) {
            assert_eq!(result.unwrap(), 2);
            assert_eq!(ear.names(), ["fell-back"]);
        } else {
            assert_eq!(result.unwrap_err().kind(), kind);
            assert_eq!(ear.all(), []);
        }
    }
    assert!(!falls_back(ErrorKind::Cancelled));
    assert!(falls_back(ErrorKind::CircuitOpen));
}

#[tokio::test]
async fn when_all_fail_the_error_tells_of_all() {
    let (ctx, _) = listening();
    let key = Error::new(ErrorKind::Auth, "a", "ask", "no key").suggest("set a key");
    let choices = [("a", Err::<(), _>(key)), ("service", Err(down()))];
    let error = fall_back(&ctx, choices, std::future::ready).await.unwrap_err();
    assert_eq!((error.kind(), error.component()), (ErrorKind::Unavailable, "service"));
    assert_eq!(error.message(), "it is down (before that, a: no key)");
    assert_eq!(error.suggestions(), ["set a key", "start it"]);
}

#[tokio::test]
async fn nothing_to_ask_is_a_mistake_in_the_configuration() {
    let (ctx, _) = listening();
    let none: [(&str, Result<()>); 0] = [];
    let error = fall_back(&ctx, none, std::future::ready).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);
    assert_eq!(error.suggestions().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_open_circuit_falls_back_at_once() {
    let (ctx, ear) = listening();
    let options = Resilience::default().with_retry(None);
    let (first, second) = (Guard::new("first", &options), Guard::new("second", &options));
    for _ in 0..5 {
        first.call(&ctx, failing([down()])).await.unwrap_err();
    }
    let choices = [("first", &first), ("second", &second)];
    let answer = fall_back(&ctx, choices, |guard| guard.call(&ctx, failing([]))).await;
    assert_eq!(answer.unwrap(), 1);
    assert_eq!(ear.names(), ["opened", "rejected", "fell-back"]);
}
