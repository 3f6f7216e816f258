//! What somebody new to the program runs into.

use std::fs::OpenOptions;
use std::process::Stdio;

use crate::harness::{Place, assert_shown};

#[test]
fn an_import_that_differs_from_the_record_is_refused() {
    let place = Place::new();
    let id = place.two_iterations();
    let exported = place.run(&["export", &id]);
    let again = place.run_with(&["import", "-"], exported.stdout.as_bytes());
    assert_eq!(again.assert_code(0).stdout, "stdin: 0 imported, 1 already there, 0 refused\n");
    let compact = serde_json::to_string(&exported.json()).unwrap();
    place.run_with(&["import", "-"], compact.as_bytes()).assert_code(0);
    let forged = exported.stdout.replace("long enough at last", "something else entirely");
    let refused = place.run_with(&["import", "-"], forged.as_bytes());
    assert_eq!(refused.assert_code(7).stdout, "stdin: 0 imported, 0 already there, 1 refused\n");
    assert!(refused.stderr.contains("is on record with other content"), "{refused:?}");
    let old = exported.stdout.replace("too short", "two short");
    place.run_with(&["import", "-"], old.as_bytes()).assert_code(7);
    assert_eq!(place.run(&["export", &id]).stdout, exported.stdout, "the record is as it was");
}

#[test]
fn a_run_with_another_end_is_kept_beside_it() {
    let place = Place::new();
    let id = place.two_iterations();
    let exported = place.run(&["export", &id]).json();
    let newest = exported["id"].as_str().unwrap();
    let other = exported.to_string().replace(newest, "another-end");
    place.run_with(&["import", "-"], other.as_bytes()).assert_code(0);
    place.run_with(&["import", "-"], other.as_bytes()).assert_code(0);
    let forged = other.replace("long enough at last", "something else entirely");
    place.run_with(&["import", "-"], forged.as_bytes()).assert_code(7);
    assert_eq!(place.run(&["list", "--json"]).json().as_array().unwrap().len(), 2);
}

#[test]
fn an_iteration_without_text_is_neither_scored_nor_the_best() {
    let place = Place::new();
    place.write("down.toml", "[[reply]]\ntext = \"short\"\n[[reply]]\nerror = \"auth\"\n");
    let args =
        ["run", "--model", "mock:down.toml", "--check", "length:words=4..", "Write something."];
    assert_shown!(place.run(&args));
    let id = place.newest();
    assert_shown!(place.run(&["show", &id]));
}

#[test]
fn a_file_says_which_iteration_was_given() {
    let place = Place::new();
    place
        .run(&[
            "run",
            "--model",
            "mock:replies=one two three|one",
            "--check",
            "length:words=5..",
            "--max-iterations",
            "1",
            "Count.",
        ])
        .assert_code(3);
    let id = place.newest();
    for args in [["show", "--json", &id], ["export", "--format=json", &id]] {
        let thought = place.run(&args).assert_code(0).json();
        assert_eq!(thought["best"]["iteration"], 0, "{thought}");
        assert_eq!(thought["best"]["id"], thought["history"][0]["id"]);
        assert_eq!(thought["best"]["passed"], false);
        assert!(thought["best"]["score"].is_f64());
    }
}

#[test]
fn age_and_number_together_erase_only_what_both_name() {
    let place = Place::new();
    let old = place.two_iterations();
    let new = place.two_iterations();
    let dry = |flags: &[&str]| {
        let ran = place.run(&[&["prune", "--dry-run"], flags].concat());
        ran.assert_code(0).stdout.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(dry(&["--older-than", "0s"]).len(), 2);
    assert_eq!(dry(&["--older-than", "0s", "--keep", "1"]).join(" "), old);
    assert!(dry(&["--older-than", "1d", "--keep", "1"]).is_empty());
    let nothing = place.run(&["prune", "--older-than", "1d", "--keep", "1", "--yes"]);
    assert_eq!(nothing.assert_code(0).stderr, "there is nothing to erase\n");
    let pruned = place.run(&["prune", "--older-than", "0s", "--keep", "1", "--yes"]);
    assert_eq!(pruned.assert_code(0).stdout.trim(), old);
    place.run(&["show", &new]).assert_code(0);
    place.run(&["verify"]).assert_code(0);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_noticed() {
    let place = Place::new();
    let id = place.two_iterations();
    let commands: [&[&str]; 9] = [
        &["list"],
        &["show", &id],
        &["export", &id],
        &["verify"],
        &["perf"],
        &["schema"],
        &["doctor"],
        &["run", "--model", "mock:reply=Hello.", "Greet."],
        &["run", "--events", "--model", "mock:reply=Hello.", "Greet."],
    ];
    for args in commands {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let ran = place.wait(place.command(args).stdout(Stdio::from(full)).spawn().unwrap());
        assert_eq!(ran.code, 1, "{args:?}: {ran:?}");
        assert_eq!(ran.stderr.matches("error: output: stdout").count(), 1, "{args:?}: {ran:?}");
        assert_eq!(args[0] == "run", ran.stderr.starts_with("run "), "{args:?}: {ran:?}");
    }
}

#[test]
fn a_run_names_itself_when_it_begins() {
    let place = Place::new();
    let ran = place.run(&["run", "--model", "mock:reply=Hello.", "Greet."]);
    let id = place.newest();
    assert!(ran.stderr.starts_with(&format!("run {id} begins\n")), "{ran:?}");
    let forgotten = place.run(&["run", "--no-journal", "--model", "mock:reply=Hello.", "Greet."]);
    assert!(!forgotten.stderr.contains("run "), "{forgotten:?}");
}

#[test]
fn a_text_that_was_stopped_early_says_so() {
    let place = Place::new();
    let long = "word ".repeat(400);
    let model = format!("mock:reply={long}");
    let args = ["run", "--model", &model, "--check", "content:forbid=word", "Go."];
    let ran = place.run(&args);
    assert!(
        ran.assert_code(3).stderr.contains("stopped by content: the text could no longer pass"),
        "{ran:?}"
    );
}

#[test]
fn the_hint_to_go_on_can_be_typed() {
    let place = Place::new();
    place.write("down.toml", "[[reply]]\nerror = \"auth\"\n");
    let args = ["--model", "mock:down.toml", "--check", "content:require=a lemur"];
    let ran = place.run(&[&["run"], &args[..], &["Go."]].concat());
    let id = place.newest();
    let hint =
        format!("`sifaka resume {id} --model mock:down.toml --check 'content:require=a lemur'`");
    assert!(ran.assert_code(5).stderr.contains(&hint), "{ran:?}");
    let shown = place.run(&["show", &id]);
    assert!(shown.stdout.contains("with the same flags as before"), "{shown:?}");
    let forgotten = place.run(&[&["run", "--no-journal"], &args[..], &["Go."]].concat());
    assert!(!forgotten.assert_code(5).stderr.contains("resume"), "{forgotten:?}");
}

#[test]
fn lists_know_chains_by_name_and_states() {
    let place = Place::new();
    place.write("sifaka.toml", "[chains.notes]\nmodel = \"mock\"\n");
    place.write("down.toml", "[[reply]]\nerror = \"auth\"\n");
    place.run(&["run", "Go."]).assert_code(0);
    place.run(&["run", "--model", "mock:down.toml", "Go."]).assert_code(5);
    let count = |flags: &[&str]| {
        let ran = place.run(&[&["list", "--json"], flags].concat());
        ran.assert_code(0).json().as_array().unwrap().len()
    };
    assert_eq!(count(&["--chain", "notes"]), 2);
    assert_eq!(count(&["--chain", "notes", "--limit", "1"]), 1);
    assert_eq!(count(&["--chain", "note"]), 0);
    assert_eq!(count(&["--state", "failed"]), 1);
    assert_eq!(count(&["--state", "finished", "--chain", "notes"]), 1);
    assert_eq!(count(&["--state", "erased"]), 0);
}

#[test]
fn a_record_that_is_named_must_be_there() {
    let place = Place::new();
    place.run(&["list"]).assert_code(0);
    for args in [&["list"][..], &["verify"], &["show", "x"]] {
        let ran = place.run(&[args, &["--journal", "missing.db"]].concat());
        assert!(ran.assert_code(4).stderr.contains("missing.db is not there"), "{ran:?}");
    }
    assert!(!place.path().join("missing.db").exists());
}

#[test]
fn a_broken_configuration_does_not_keep_the_record_from_being_read() {
    let place = Place::new();
    let id = place.two_iterations();
    place.write("sifaka.toml", "[chains");
    let journal = place.journal();
    let journal = journal.to_str().unwrap();
    for args in [&["list"][..], &["verify"], &["show", &id], &["export", &id], &["perf"]] {
        place.run(args).assert_code(2);
        place.run(&[args, &["--journal", journal]].concat()).assert_code(0);
    }
}

#[test]
fn mistakes_in_flags_name_the_flag() {
    let place = Place::new();
    place.write("sifaka.toml", "[chains.a]\nmodel = \"mock\"\nchecks = [\"length:words=1..\"]\n");
    assert_shown!(place.run(&["run", "--check", "nope", "--temperature", "-1", "Go."]));
    assert_shown!(place.run(&["run", "--samples", "0", "Go."]));
    assert_shown!(place.run(&["run", "--max-iterations", "-1", "Go."]));
    assert_shown!(place.run(&["verify", "--head", "xyz"]));
}

#[test]
fn perf_says_when_there_are_no_times() {
    let place = Place::new();
    place.write("t.json", "{\"id\":\"from-elsewhere\",\"prompt\":\"Greet.\",\"text\":\"Hi\"}");
    place.run(&["import", "t.json"]).assert_code(0);
    let imported = place.run(&["perf", "from-elsewhere"]);
    assert!(imported.assert_code(0).stderr.contains("was imported"), "{imported:?}");
    let id = place.two_iterations();
    place.run(&["erase", "--yes", &id]).assert_code(0);
    let erased = place.run(&["perf", &id]);
    assert!(erased.assert_code(4).stderr.contains("was erased"), "{erased:?}");
}

#[test]
fn pruning_needs_to_be_told_what() {
    let place = Place::new();
    let id = place.two_iterations();
    for flags in [&[][..], &["--yes"], &["--dry-run"]] {
        place.run(&[&["prune"], flags].concat()).assert_code(2);
    }
    let ran = place.run(&["prune", "--keep", "-1", "--yes"]);
    assert!(ran.assert_code(2).stderr.contains("'-1' for '--keep <N>'"), "{ran:?}");
    place.run(&["show", &id]).assert_code(0);
}

#[test]
fn a_record_that_was_cut_off_says_what_helps() {
    let place = Place::new();
    place.two_iterations();
    let whole = std::fs::read(place.journal()).unwrap();
    place.write("cut.db", &whole[..5000]);
    let ran = place.run(&["verify", "--journal", "cut.db"]);
    assert!(ran.assert_code(8).stderr.contains("try: restore the file from a copy"), "{ran:?}");
    assert!(!ran.stderr.contains("run `sifaka verify`"), "{ran:?}");
}
