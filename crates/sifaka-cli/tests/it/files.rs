//! Thoughts in and out.

use std::path::Path;

use crate::harness::{Place, assert_shown};

fn ancestor() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../sifaka-core/tests/fixtures/ancestor")
}

#[test]
fn the_ancestors_files_are_imported_once() {
    let place = Place::new();
    let mut files: Vec<String> = Vec::new();
    for entry in std::fs::read_dir(ancestor()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "json") {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            std::fs::copy(&path, place.path().join(&name)).unwrap();
            files.push(name);
        }
    }
    files.sort();
    assert!(files.len() >= 5, "{files:?}");
    let args: Vec<&str> =
        std::iter::once("import").chain(files.iter().map(String::as_str)).collect();
    assert_shown!(place.run(&args));
    let runs = place.run(&["list", "--json"]).json().as_array().unwrap().len();
    let again = place.run(&[&args[..], &["--json"]].concat()).json();
    for report in again.as_array().unwrap() {
        assert!(report["imported"].as_array().unwrap().is_empty(), "{report}");
        assert_eq!(report["already_there"].as_array().unwrap().len(), 1, "{report}");
    }
    assert_eq!(place.run(&["list", "--json"]).json().as_array().unwrap().len(), runs);
    place.run(&["verify"]).assert_code(0);
    let id = place.newest();
    place.run(&["show", &id]).assert_code(0);
}

#[test]
fn what_was_exported_is_imported_as_it_was() {
    let (here, there) = (Place::new(), Place::new());
    let id = here.two_iterations();
    here.run(&["run", "--model", "mock", "Another one."]).assert_code(0);
    let one = here.run(&["export", &id]);
    assert_eq!(one.assert_code(0).json()["text"], "long enough at last");
    here.run(&["export", "--all", "-o", "all.jsonl"]).assert_code(0);
    let lines = std::fs::read_to_string(here.path().join("all.jsonl")).unwrap();
    assert_eq!(lines.lines().count(), 2);
    there.write("all.jsonl", &lines);
    there.run(&["import", "all.jsonl"]).assert_code(0);
    assert_eq!(there.run(&["export", "--all"]).assert_code(0).stdout, lines);
    assert_eq!(there.run(&["export", &id]).stdout, one.stdout);
    let list = here.run(&["export", "--all", "--format", "json"]);
    assert_eq!(list.json().as_array().unwrap().len(), 2);
    let again = there.run_with(&["import", "-"], list.stdout.as_bytes());
    assert_eq!(again.assert_code(0).stdout, "stdin: 0 imported, 2 already there, 0 refused\n");
}

#[test]
fn a_bad_line_is_reported_and_the_others_are_imported() {
    let place = Place::new();
    place.write(
        "some.jsonl",
        "{\"prompt\":\"one\",\"text\":\"a\"}\n\n{\"prompt\": 3}\nnot json\n{\"prompt\":\"two\"}\n",
    );
    place.write("cut.json", "{\"prompt\": \"cut o");
    assert_shown!(place.run(&["import", "some.jsonl", "cut.json", "missing.json"]));
    assert_eq!(place.run(&["list", "--json"]).json().as_array().unwrap().len(), 2);
}

#[test]
fn an_imported_thought_can_be_improved() {
    let place = Place::new();
    place.write("t.json", "{\"id\":\"from-elsewhere\",\"prompt\":\"Greet.\",\"text\":\"Hi\"}");
    place.run(&["import", "t.json"]).assert_code(0);
    let ran = place.run(&[
        "resume",
        "from-elsewhere",
        "--model",
        "mock:reply=Hello to all of you",
        "--check",
        "length:words=4..",
    ]);
    assert_eq!(ran.assert_code(0).stdout, "Hello to all of you\n");
    let thought = place.run(&["show", "--json", "from-elsewhere"]).json();
    assert_eq!(thought["history"][0]["text"], "Hi");
}

#[test]
fn an_export_that_fails_leaves_the_old_file() {
    let place = Place::new();
    place.two_iterations();
    place.write("out.json", "old");
    place.run(&["export", "nothing", "-o", "out.json"]).assert_code(4);
    assert_eq!(std::fs::read_to_string(place.path().join("out.json")).unwrap(), "old");
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1, "no half file is left");
    place.run(&["export", "--all", "-o", "no/such/folder.json"]).assert_code(1);
}
