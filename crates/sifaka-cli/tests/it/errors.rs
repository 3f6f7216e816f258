//! Errors say what was wrong, where, and what to do.

use crate::harness::{Place, assert_shown};

#[test]
fn an_unknown_model_gives_the_nearest_name() {
    assert_shown!(Place::new().run(&["run", "--model", "mok", "Go."]));
}

#[test]
fn a_bad_check_says_what_is_wrong_with_it() {
    let check = "length:wrods=5..,words=many";
    assert_shown!(Place::new().run(&["run", "--model", "mock", "--check", check, "Go."]));
}

#[test]
fn an_empty_prompt() {
    let place = Place::new();
    assert_shown!(place.run(&["run", "--model", "mock", "  "]));
    place.run_with(&["run", "--model", "mock"], b" \n").assert_code(2);
}

#[test]
fn a_configuration_that_is_not_there() {
    assert_shown!(Place::new().run(&["run", "--config", "missing.toml", "Go."]));
}

#[test]
fn a_wrong_key_in_the_configuration() {
    let place = Place::new();
    place.write("sifaka.toml", "[chains.a]\nmodel = \"mock\"\nmax_iteration = 3\n");
    assert_shown!(place.run(&["run", "Go."]));
}

#[test]
fn several_problems_of_a_chain() {
    let place = Place::new();
    place.write(
        "sifaka.toml",
        "[chains.a]\nmodel = \"mok\"\nchecks = [\"lenght\"]\nsamples = 0\nredact = [\"(\"]\n",
    );
    assert_shown!(place.run(&["run", "Go."]));
}

#[test]
fn an_unknown_chain() {
    let place = Place::new();
    place.write("sifaka.toml", "[chains.notes]\nmodel = \"mock\"\n");
    assert_shown!(place.run(&["run", "--chain", "note", "Go."]));
}

#[test]
fn a_wrong_id() {
    let place = Place::new();
    place.run(&["show", "nothing"]).assert_code(4);
    place.two_iterations();
    assert_shown!(place.run(&["show", "nothing"]));
    for command in ["resume", "erase", "verify", "export", "perf", "diff"] {
        place.run(&[command, "nothing"]).assert_code(4);
    }
}

#[test]
fn a_model_that_fails_leaves_a_run_to_resume() {
    let place = Place::new();
    place.write("down.toml", "[[reply]]\nerror = \"auth\"\nmessage = \"the key is wrong\"\n");
    assert_shown!(place.run(&["run", "--model", "mock:down.toml", "Go."]));
    let id = place.newest();
    let resumed = place.run(&["resume", &id, "--model", "mock:reply=Here."]);
    assert_eq!(resumed.assert_code(0).stdout, "Here.\n");
    assert!(resumed.stderr.contains("warning: "), "the chain changed: {resumed:?}");
}

#[test]
fn a_usage_error() {
    let place = Place::new();
    place.run(&["run", "--no-such-flag"]).assert_code(2);
    place.run(&["run", "--tag", "novalue", "--model", "mock", "Go."]).assert_code(2);
    place.run(&["prune"]).assert_code(2);
    place.run(&["prune", "--older-than", "soon"]).assert_code(2);
    place.run(&["verify", "--head", "xyz"]).assert_code(2);
}
