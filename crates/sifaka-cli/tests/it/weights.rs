//! Weights: what is known, what is here, and what goes wrong on the way.
#![cfg(unix)]

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use sifaka_testkit::servers::{self, unavailable};

use crate::harness::{Place, Ran, assert_shown};

/// The program, with a `pip` that does what the script says, and no other programs than those.
fn with_pip(place: &Place, script: &str, args: &[&str]) -> Command {
    let tools = place.path().join("tools");
    fs::create_dir_all(&tools).unwrap();
    let pip = tools.join("pip");
    let head = "#!/bin/sh\n[ \"$1\" = --version ] && exit 0\n\
                while [ \"$1\" != --dest ]; do shift; done\n";
    fs::write(&pip, format!("{head}{script}\n")).unwrap();
    fs::set_permissions(&pip, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = place.command(args);
    command.env("PATH", &tools);
    command
}

fn run(place: &Place, command: &mut Command) -> Ran {
    place.wait(command.spawn().unwrap())
}

fn folder(place: &Place) -> PathBuf {
    place.path().parent().unwrap().join("cache/sifaka/weights")
}

fn left(folder: &Path) -> Vec<String> {
    let found = fs::read_dir(folder).unwrap();
    let names = found.map(|found| found.unwrap().file_name().to_string_lossy().into_owned());
    names.filter(|name| name.ends_with(".part")).collect()
}

#[test]
fn help_of_weights() {
    let place = Place::new();
    assert_shown!(place.run(&["weights", "--help"]));
    assert_shown!(place.run(&["weights", "pull", "--help"]));
    place.run(&["weights"]).assert_code(2);
    place.run(&["weights", "remove"]).assert_code(2);
}

#[test]
fn nothing_is_here_at_first() {
    let place = Place::new();
    assert_shown!(place.run(&["weights", "list"]));
    let listed = place.run(&["weights", "list", "--json", "--verify"]);
    let first = &listed.assert_code(0).json()[0];
    assert_eq!(first["name"], "smollm2-135m-instruct");
    assert_eq!(first["state"], "missing");
    assert_eq!(first["files"][0]["size"], 98_362_432);
    let removed = place.run(&["weights", "remove", "wordllama-256"]);
    assert_eq!(removed.assert_code(0).stderr, "wordllama-256: was not here\n");
    assert!(!folder(&place).exists(), "looking makes nothing");
}

#[test]
fn the_folder_is_below_the_users_cache() {
    let place = Place::new();
    let path_with = |cache: &str| {
        let mut command = place.command(&["weights", "list", "--json"]);
        let listed = run(&place, command.env("XDG_CACHE_HOME", cache)).json();
        listed[2]["path"].as_str().unwrap().to_owned()
    };
    assert_eq!(path_with("/some/where"), "/some/where/sifaka/weights/wordllama-256");
    let usual = if cfg!(target_os = "macos") { "Library/Caches" } else { ".cache" };
    let usual = place.path().parent().unwrap().join(usual).join("sifaka/weights/wordllama-256");
    for none in ["", "not/absolute"] {
        assert_eq!(Path::new(&path_with(none)), usual);
    }
}

#[test]
fn damage_is_reported() {
    let place = Place::new();
    let elsewhere = place.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("smollm2-135m-instruct-q4_1.gguf"), "GGUF").unwrap();
    let list = |args: &[&str]| {
        let mut command = place.command(&[&["weights", "list"], args].concat());
        run(&place, command.env("SIFAKA_WEIGHTS", &elsewhere))
    };
    assert_shown!(list(&[]));
    assert_eq!(list(&["--json", "-q"]).assert_code(8).json()[0]["state"], "damaged");
    let mut command = place.command(&["weights", "remove", "smollm2-135m-instruct"]);
    run(&place, command.env("SIFAKA_WEIGHTS", &elsewhere)).assert_code(0);
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
}

#[test]
fn a_name_that_is_not_known() {
    let place = Place::new();
    assert_shown!(place.run(&["weights", "pull", "wordllama-256", "minilm-l6-v2"]));
    assert!(!folder(&place).exists(), "nothing was begun");
}

#[test]
fn without_pip() {
    let place = Place::new();
    let mut command = place.command(&["weights", "pull"]);
    assert_shown!(run(&place, command.env("PATH", place.path())));
}

#[test]
fn without_network() {
    let place = Place::new();
    let script = "echo 'WARNING: Retrying after NewConnectionError' >&2\n\
                  echo 'ERROR: No matching distribution found' >&2\nexit 1";
    let mut command = with_pip(&place, script, &["weights", "pull", "all-minilm-l6-v2"]);
    assert_shown!(run(&place, &mut command));
    assert!(left(&folder(&place)).is_empty());
}

#[test]
fn a_run_without_a_model_tries_the_embedded_one_and_says_what_to_do_without_network() {
    let place = Place::new();
    let script = "echo 'WARNING: Retrying after NewConnectionError' >&2\nexit 1";
    assert_shown!(run(&place, &mut with_pip(&place, script, &["run", "Go."])));
    // What is not described must be named, to go on with it as well.
    place.run(&["resume", "0198"]).assert_code(4);
}

#[test]
fn the_embedded_model_writes_and_the_record_verifies() {
    let Some(gguf) = servers::gguf() else { return };
    let place = Place::new();
    let model = format!("local:{}", gguf.display());
    let args = [
        "run",
        "--model",
        &model,
        "--seed",
        "7",
        "--check",
        "length:words=1..200",
        "--max-tokens",
        "60",
        "Write two sentences about lemurs.",
    ];
    let shown = place.run(&args).assert_code(0).stdout.clone();
    assert_eq!(shown, place.run(&args).assert_code(0).stdout, "the same seed");
    assert!(shown.len() > 20, "{shown}");
    place.run(&["verify"]).assert_code(0);
}

#[test]
fn a_full_disk_in_a_folder_below_the_working_one() {
    let place = Place::new();
    let script = "[ -d \"$2\" ] || exit 9\necho '[Errno 28] No space left on device' >&2\nexit 1";
    let mut command = with_pip(&place, script, &["weights", "pull", "wordllama-256"]);
    assert_shown!(run(&place, command.env("SIFAKA_WEIGHTS", "mine")));
    assert!(left(&place.path().join("mine")).is_empty());
}

/// Killed in the middle of a fetch: nothing is there, and the next pull clears away the rest.
#[test]
fn a_kill_leaves_nothing_that_looks_whole() {
    let place = Place::new();
    let args = ["weights", "pull", "wordllama-256"];
    // It goes on until its folder is gone, as a child does whose parent was killed.
    let hangs = "echo half > \"$2/half\"\nwhile [ -d \"$2\" ]; do /bin/sleep 0.1; done";
    let mut child = with_pip(&place, hangs, &args).spawn().unwrap();
    let mut said = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut said).unwrap();
    assert_eq!(said, "wordllama-256: fetching wordllama==0.4.0.post1, 19.2 MB\n");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(left(&folder(&place)).len(), 1);
    let listed = place.run(&["weights", "list", "--json"]).json();
    assert!(listed.as_array().unwrap().iter().all(|entry| entry["state"] == "missing"));
    run(&place, &mut with_pip(&place, "exit 1", &args)).assert_code(6);
    assert!(left(&folder(&place)).is_empty());
}

#[test]
fn the_smallest_is_pulled_for_real() {
    let place = Place::new();
    let mut command = place.command(&["weights", "pull", "wordllama-256"]);
    command.envs(std::env::vars_os()).env("SIFAKA_WEIGHTS", folder(&place));
    let ran = run(&place, &mut command);
    if matches!(ran.code, 4 | 6) {
        unavailable("weights for real", &ran.stderr);
        return;
    }
    assert_shown!(ran);
    assert_shown!(place.run(&["weights", "list", "--verify"]));
    assert_shown!(place.run(&["weights", "pull", "wordllama-256"]));
    let removed = place.run(&["weights", "remove", "wordllama-256"]);
    assert_eq!(removed.assert_code(0).stderr, "wordllama-256: removed\n");
}
