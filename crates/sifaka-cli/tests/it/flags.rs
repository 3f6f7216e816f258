//! `run` and its flags.

use crate::harness::{Place, assert_shown};

const LONG: &str = "mock:replies=too short|long enough at last";

#[test]
fn help_says_what_there_is() {
    let place = Place::new();
    assert_shown!(place.run(&["--help"]));
}

#[test]
fn help_of_run() {
    let place = Place::new();
    assert_shown!(place.run(&["run", "--help"]));
}

#[test]
fn no_command_is_a_usage_error() {
    let place = Place::new();
    place.run(&[]).assert_code(2);
    let version = place.run(&["--version"]);
    assert_eq!(
        version.assert_code(0).stdout.trim(),
        format!("sifaka {}", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn a_run_that_passes() {
    let place = Place::new();
    assert_shown!(place.run(&[
        "run",
        "--model",
        "mock",
        "--check",
        "length:words=20..60",
        "Explain what a lemur is.",
    ]));
}

#[test]
fn a_run_that_does_not_pass_prints_the_best_text_and_exits_3() {
    let place = Place::new();
    assert_shown!(place.run(&[
        "run",
        "--model",
        "mock:replies=one|one two three|one two",
        "--check",
        "length:words=5..",
        "--max-iterations",
        "2",
        "Count.",
    ]));
}

/// A wish that contradicts a demand is no mistake: only what must hold can rule out every text.
#[test]
fn a_soft_check_may_want_what_a_hard_one_forbids() {
    let place = Place::new();
    let args = ["run", "--model", "mock:reply=short and sweet", "Go.", "--check"];
    let soft = ["length:words=50..,soft=true", "--check", "length:words=..40"];
    let ran = place.run(&[&args[..], &soft].concat());
    assert_eq!(ran.assert_code(0).stdout, "short and sweet\n");
    let hard = ["length:words=50..", "--check", "length:words=..40"];
    let ran = place.run(&[&args[..], &hard].concat());
    assert!(ran.assert_code(2).stderr.contains("no text can pass both"), "{ran:?}");
}

#[test]
fn quiet_says_nothing_and_verbose_says_more() {
    let place = Place::new();
    let args = ["run", "--model", LONG, "--check", "length:words=4..8", "Go."];
    let quiet = place.run(&[&args[..], &["-q"]].concat());
    assert_eq!((quiet.code, &*quiet.stdout, &*quiet.stderr), (0, "long enough at last\n", ""));
    assert_shown!(place.run(&[&args[..], &["-v"]].concat()));
}

#[test]
fn a_dry_run_runs_nothing() {
    let place = Place::new();
    assert_shown!(place.run(&[
        "run",
        "--dry-run",
        "--model",
        "mock:reply=x,price_in=1,price_out=2",
        "--system",
        "Be brief.",
        "--check",
        "length:words=5..",
        "--max-tokens",
        "100",
        "Explain what a lemur is.",
    ]));
    assert!(!place.journal().exists());
    let plan = place.run(&["run", "--dry-run", "--json", "--model", "mock", "Go."]).json();
    assert_eq!(plan["prompt"], "Go.");
}

#[test]
fn the_prompt_comes_from_a_file_or_stdin() {
    let place = Place::new();
    place.write("prompt.txt", "From a file.\n");
    let prompt = |ran: crate::harness::Ran| ran.json()["thought"]["prompt"].clone();
    let run = ["run", "--model", "mock", "--json"];
    assert_eq!(prompt(place.run(&[&run[..], &["--file", "prompt.txt"]].concat())), "From a file.");
    assert_eq!(prompt(place.run_with(&run, b"From stdin.\r\n")), "From stdin.");
    assert_eq!(prompt(place.run_with(&[&run[..], &["-"]].concat(), b"By dash.")), "By dash.");
}

#[test]
fn the_outcome_as_json() {
    let place = Place::new();
    let ran = place.run(&[
        "run",
        "--json",
        "--model",
        LONG,
        "--check",
        "length:words=4..8",
        "--tag",
        "for=test",
        "Go.",
    ]);
    let outcome = ran.assert_code(0).json();
    assert_eq!(outcome["passed"], true);
    assert_eq!(outcome["thought"]["text"], "long enough at last");
    assert_eq!(outcome["thought"]["history"][0]["text"], "too short");
    assert_eq!(outcome["thought"]["tags"]["for"], "test");
}

#[test]
fn every_event_is_a_line_deltas_included() {
    let place = Place::new();
    let ran = place.run(&["run", "--events", "--model", "mock:reply=Hello there.", "Go."]);
    let names: Vec<String> = ran
        .assert_code(0)
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .map(|event| event["type"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(names.first().map(String::as_str), Some("run_started"));
    assert_eq!(names.last().map(String::as_str), Some("run_finished"));
    for name in ["prompted", "delta", "generated", "chosen"] {
        assert!(names.iter().any(|n| n == name), "{name} is missing in {names:?}");
    }
}

#[test]
fn limits_and_advice_by_flags() {
    let place = Place::new();
    let base = ["run", "--json", "--model", "mock:replies=a|b|c|d", "--check", "length:words=5.."];
    let with = |flags: &[&str]| place.run(&[&base[..], flags, &["Go."]].concat()).json();
    assert_eq!(with(&[])["usage"]["calls"], 4);
    assert_eq!(with(&["--max-iterations", "1"])["usage"]["calls"], 2);
    assert_eq!(with(&["--budget-calls", "3"])["reason"]["reason"], "budget");
    assert_eq!(with(&["--budget-tokens", "9"])["reason"]["reason"], "budget");
    let samples = with(&["--samples", "2", "--max-iterations", "0"]);
    assert_eq!(samples["thought"]["candidates"].as_array().unwrap().len(), 2);
    assert_eq!(with(&["--system", "Be brief."])["thought"]["system_prompt"], "Be brief.");
    let seeded = place.run(&[&base[..], &["--seed", "7", "--temperature", "0.5", "Go."]].concat());
    let id = seeded.json()["run_id"].as_str().unwrap().to_owned();
    let events = place.run(&["show", "--events", &id]).stdout;
    assert!(events.contains("\"temperature\":0.5") && events.contains("\"seed\":"), "{events}");
}

#[test]
fn no_journal_keeps_nothing() {
    let place = Place::new();
    let ran = place.run(&["run", "--no-journal", "--model", "mock", "Go."]);
    assert!(!ran.assert_code(0).stderr.contains("head"), "{ran:?}");
    assert!(!place.journal().exists());
    place.run(&["run", "--model", "mock", "Go.", "--journal", "mine.db"]).assert_code(0);
    assert!(place.path().join("mine.db").exists() && !place.journal().exists());
}

#[test]
fn a_run_is_replayed_from_the_record() {
    let place = Place::new();
    let id = place.two_iterations();
    let model = format!("replay:{id}");
    let check = ["--check", "length:words=4..8"];
    let args = [&["run", "--model", &*model][..], &check, &["Write something."]].concat();
    assert_eq!(place.run(&args).assert_code(0).stdout, "long enough at last\n");
    let unrecorded = [&args[..], &["--no-journal"]].concat();
    assert_eq!(place.run(&unrecorded).assert_code(0).stdout, "long enough at last\n");
}
