use serde_json::json;
use sifaka_resilience::{Breaker, RateLimit, Resilience, Retry, RetryBudget};

use crate::support::secs;

#[test]
fn the_defaults_are_the_documented_ones() {
    let expected = json!({
        "retry": {
            "max_attempts": 5,
            "base_delay": 1.0,
            "factor": 2.0,
            "max_delay": 60.0,
            "jitter": 0.2,
            "budget": { "tokens": 10.0, "refund": 0.1 },
        },
        "breaker": { "failures": 5, "within": 30.0, "open_for": 30.0, "half_open_probes": 1 },
        "rate_limit": false,
        "timeout": 60.0,
        "idle_timeout": 30.0,
    });
    assert_eq!(serde_json::to_value(Resilience::default()).unwrap(), expected);
    assert_eq!(toml::from_str::<Resilience>("").unwrap(), Resilience::default());
    assert_eq!(Resilience::default().problems(), []);
}

#[test]
fn options_survive_a_file() {
    let all = Resilience::default().with_rate_limit(RateLimit::per_minute(30).with_burst(4));
    let odd = Resilience::none().with_retry(Retry { budget: None, ..Retry::default() });
    for options in [Resilience::none(), all, odd] {
        let text = toml::to_string(&options).unwrap();
        assert_eq!(toml::from_str::<Resilience>(&text).unwrap(), options, "{text}");
        let text = serde_json::to_string(&options).unwrap();
        assert_eq!(serde_json::from_str::<Resilience>(&text).unwrap(), options, "{text}");
    }
}

#[test]
fn a_switch_turns_a_layer_off_and_on() {
    let text =
        "retry = false\nbreaker = true\nrate_limit = true\ntimeout = false\nidle_timeout = 5";
    let options: Resilience = toml::from_str(text).unwrap();
    let expected = Resilience {
        retry: None,
        breaker: Some(Breaker::default()),
        rate_limit: Some(RateLimit::default()),
        timeout: None,
        idle_timeout: Some(secs(5)),
    };
    assert_eq!(options, expected);
    let options: Resilience =
        serde_json::from_value(json!({"retry": null, "timeout": null})).unwrap();
    assert_eq!((options.retry, options.timeout), (None, None));
}

#[test]
fn mistakes_in_a_file_are_named() {
    for (text, word) in [
        ("retires = false", "retires"),
        ("retry = { max_attemps = 3 }", "max_attemps"),
        ("timeout = -1.0", "not a time"),
        ("timeout = true", "seconds"),
        ("timeout = \"fast\"", "seconds"),
        ("retry = 3", "table"),
    ] {
        let error = toml::from_str::<Resilience>(text).unwrap_err().to_string();
        assert!(error.contains(word), "{text}: {error}");
    }
}

#[test]
fn every_problem_is_reported_with_what_to_do() {
    let retry = Retry {
        max_attempts: 0,
        factor: 0.5,
        jitter: 1.5,
        budget: Some(RetryBudget { tokens: 0.0, refund: f64::NAN }),
        ..Retry::default()
    };
    let breaker = Breaker { failures: 0, half_open_probes: 0, ..Breaker::default() };
    let options = Resilience {
        retry: Some(retry),
        breaker: Some(breaker),
        rate_limit: Some(RateLimit { requests: 0, per: secs(0), burst: 0 }),
        timeout: Some(secs(0)),
        idle_timeout: Some(secs(0)),
    };
    let problems = options.problems();
    assert_eq!(problems.len(), 12);
    assert!(problems.iter().all(|problem| !problem.suggestion.is_empty()));
}
