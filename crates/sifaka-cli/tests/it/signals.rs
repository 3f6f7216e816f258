//! Ctrl-C ends a run cleanly with what it has.
#![cfg(unix)]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::harness::{Place, Ran};

/// A first text at once, then one that takes for ever.
const SLOW: &str =
    "[[reply]]\ntext = \"the first text\"\n[[reply]]\ntext = \"late\"\ndelay = 600\n";

fn interrupt(child: &Child) {
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

/// Starts a run, waits until it has said `line`, and sends the signal.
fn interrupted(place: &Place, args: &[&str], line: &str) -> Ran {
    let mut child = place.command(args).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut heard = String::new();
    while !heard.contains(line) {
        assert_ne!(said.read_line(&mut heard).unwrap(), 0, "it ended early: {heard}");
    }
    interrupt(&child);
    let rest = std::thread::spawn(move || {
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut said, &mut rest).map(|_| rest)
    });
    let mut ran = place.wait(child);
    ran.stderr = heard + &rest.join().unwrap().unwrap();
    ran
}

#[test]
fn ctrl_c_gives_the_best_text_so_far() {
    let place = Place::new();
    place.write("slow.toml", SLOW);
    let args = ["run", "--model", "mock:slow.toml", "--check", "length:words=9..", "Go."];
    let ran = interrupted(&place, &args, "iteration 0: does not pass");
    assert_eq!((ran.code, &*ran.stdout), (130, "the first text\n"), "{ran:?}");
    assert!(ran.stderr.contains("it was cancelled"), "{ran:?}");
    place.run(&["verify"]).assert_code(0);
    // It goes on where it ended; the first text is not written again.
    let id = place.newest();
    let resumed = place.run(&[
        "resume",
        &id,
        "--model",
        "mock:reply=nine words are enough for this check at last yes",
        "--check",
        "length:words=9..",
    ]);
    assert!(resumed.assert_code(0).stderr.contains("goes on\niteration 1: passes"), "{resumed:?}");
    let thought = place.run(&["show", "--json", &id]).json();
    assert_eq!(thought["history"][0]["text"], "the first text");
}

#[test]
fn ctrl_c_after_a_passing_text_exits_0() {
    let place = Place::new();
    place.write("slow.toml", SLOW);
    place.write(
        "sifaka.toml",
        "[chains.a]\nmodel = \"mock:slow.toml\"\nchecks = [\"length:words=1..\"]\n\
         critics = [\"scripted:issue=too dry\"]\ncritics_when = \"always\"\n",
    );
    let ran = interrupted(&place, &["run", "Go."], "iteration 0: passes");
    assert_eq!((ran.code, &*ran.stdout), (0, "the first text\n"), "{ran:?}");
}

#[test]
fn ctrl_c_before_any_text_is_an_error() {
    let place = Place::new();
    place.write("slow.toml", "[[reply]]\ntext = \"late\"\ndelay = 600\n");
    let ran = interrupted(&place, &["run", "-v", "--model", "mock:slow.toml", "Go."], "begins");
    assert_eq!((ran.code, &*ran.stdout), (130, ""), "{ran:?}");
    assert!(ran.stderr.contains("sifaka resume"), "{ran:?}");
}

#[test]
fn a_second_ctrl_c_ends_at_once() {
    let place = Place::new();
    place.write("slow.toml", SLOW);
    let args = ["run", "--model", "mock:slow.toml", "--check", "length:words=9..", "Go."];
    let mut child = place.command(&args).spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut hear = |line: &str| {
        let mut heard = String::new();
        while !heard.contains(line) {
            assert_ne!(said.read_line(&mut heard).unwrap(), 0, "it ended early: {heard}");
        }
    };
    hear("iteration 0: does not pass");
    // While somebody else holds the file, the run cannot put its end on record.
    let held = rusqlite::Connection::open(place.journal()).unwrap();
    held.execute_batch("BEGIN IMMEDIATE").unwrap();
    interrupt(&child);
    hear("once more ends at once");
    interrupt(&child);
    let ran = place.wait(child);
    assert_eq!((ran.code, &*ran.stdout), (130, ""), "{ran:?}");
    drop(held);
    place.run(&["verify"]).assert_code(0);
}
