//! Reading the record: list, show, diff, perf, resume.

use crate::harness::{Place, assert_shown};

#[test]
fn list_is_newest_first_and_filters() {
    let place = Place::new();
    assert_shown!(place.run(&["list"]));
    place.two_iterations();
    place
        .run(&[
            "run",
            "--model",
            "mock:reply=x",
            "--check",
            "length:words=9..",
            "--tag",
            "a=b",
            "Another one.",
        ])
        .assert_code(3);
    assert_shown!(place.run(&["list"]));
    let prompts = |flags: &[&str]| {
        let ran = place.run(&[&["list", "--json"], flags].concat());
        let runs = ran.assert_code(0).json();
        let list = runs.as_array().unwrap().iter();
        list.map(|run| run["prompt"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(prompts(&[]), ["Another one.", "Write something."]);
    assert_eq!(prompts(&["--limit", "1"]), ["Another one."]);
    assert_eq!(prompts(&["--passed"]), ["Write something."]);
    assert_eq!(prompts(&["--failed"]), ["Another one."]);
    assert_eq!(prompts(&["--tag", "a=b"]), ["Another one."]);
    assert_eq!(prompts(&["--contains", "something"]), ["Write something."]);
    assert!(prompts(&["--chain", "other"]).is_empty());
}

#[test]
fn show_a_run() {
    let place = Place::new();
    let id = place.two_iterations();
    assert_shown!(place.run(&["show", &id]));
}

#[test]
fn show_a_run_with_everything() {
    let place = Place::new();
    place.write(
        "s.toml",
        "[[reply]]\ntext = \"first line\\nsecond line\"\n\
        [[reply]]\ntext = \"first line\\nbetter second line at last\"\n",
    );
    place
        .run(&[
            "run",
            "--model",
            "mock:s.toml",
            "--check",
            "length:words=6..",
            "--tag",
            "k=v",
            "--system",
            "Be brief.",
            "Write two lines.",
        ])
        .assert_code(0);
    let id = place.newest();
    assert_shown!(place.run(&["show", "--prompts", "--diff", "--timings", &id]));
}

#[test]
fn show_as_json_is_the_thought_and_events_are_lines() {
    let place = Place::new();
    let id = place.two_iterations();
    let thought = place.run(&["show", "--json", &id]).json();
    assert_eq!(thought["text"], "long enough at last");
    assert_eq!(thought["history"].as_array().unwrap().len(), 1);
    let events = place.run(&["show", "--events", &id]);
    assert!(events.assert_code(0).stdout.lines().count() >= 8, "{events:?}");
    // A Thought's own id, or the beginning of one, is as good.
    let first = &thought["history"][0];
    let shown = place.run(&["show", "--json", &first["id"].as_str().unwrap()[..30]]);
    assert!(shown.code == 0, "{shown:?}");
    let second = place.run(&["show", "--json", thought["id"].as_str().unwrap()]).json();
    assert_eq!(second["text"], "long enough at last");
}

#[test]
fn diff_of_iterations_and_of_runs() {
    let place = Place::new();
    let id = place.two_iterations();
    assert_shown!(place.run(&["diff", &id]));
    place.run(&["run", "--model", "mock:reply=long enough again", "Go."]).assert_code(0);
    let other = place.newest();
    assert_shown!(place.run(&["diff", &id, &other]));
    let diff = place.run(&["diff", "--json", "--from", "0", "--to", "1", &id]).json();
    assert_eq!((&diff["from"], &diff["to"]), (&0.into(), &1.into()));
    place.run(&["diff", "--from", "7", &id]).assert_code(4);
    place.run(&["diff", &other]).assert_code(2);
}

#[test]
fn perf_of_one_run_and_of_all() {
    let place = Place::new();
    let id = place.two_iterations();
    assert_shown!(place.run(&["perf", &id]));
    place.two_iterations();
    let all = place.run(&["perf", "--all", "--json"]).json();
    assert_eq!(all["runs"], 2);
    assert_eq!(all["components"][0]["count"], 4);
    assert_eq!(place.run(&["perf", "--json"]).json()["runs"], 1);
}

#[test]
fn resuming_a_finished_run_does_nothing_over() {
    let place = Place::new();
    let id = place.two_iterations();
    let calls =
        |id: &str| place.run(&["show", "--events", id]).stdout.matches("\"generated\"").count();
    let before = calls(&id);
    let args =
        ["--model", "mock:replies=too short|long enough at last", "--check", "length:words=4..8"];
    let ran = place.run(&[&["resume", &id], &args[..]].concat());
    assert_eq!(ran.assert_code(0).stdout, "long enough at last\n");
    assert_eq!(calls(&id), before);
}

#[test]
fn resume_takes_the_chain_that_began_the_run() {
    let place = Place::new();
    place.write("down.toml", "[[reply]]\nerror = \"auth\"\n");
    let file = |model: &str| {
        format!("[chains.a]\nmodel = \"mock:reply=A\"\n[chains.b]\nmodel = \"{model}\"\n")
    };
    place.write("sifaka.toml", file("mock:down.toml"));
    place.run(&["run", "--chain", "b", "Go."]).assert_code(5);
    let id = place.newest();
    place.write("sifaka.toml", file("mock:reply=B"));
    let resumed = place.run(&["resume", &id[..30]]);
    assert_eq!(resumed.assert_code(0).stdout, "B\n");
}
