//! Rough use: pipes, large and odd texts, places that cannot be written, many at once.

use std::io::Read;
use std::process::Stdio;

use crate::harness::Place;

#[test]
fn no_escape_codes_when_piped() {
    let place = Place::new();
    let id = place.two_iterations();
    let plain = regex::Regex::new("\x1b\\[[0-9]*m").unwrap();
    for args in [&["show", &id][..], &["list"], &["verify"], &["diff", &id], &["doctor"], &["perf"]]
    {
        let ran = place.run(args);
        assert!(!ran.stdout.contains('\x1b') && !ran.stderr.contains('\x1b'), "{ran:?}");
        let coloured = place.run(&[args, &["--color", "always"]].concat());
        let strip = |text: &str| plain.replace_all(text, "").into_owned();
        // Times and free space differ from one moment to the next.
        if !["perf", "doctor"].contains(&args[0]) {
            assert_eq!(strip(&coloured.stdout), ran.stdout, "colour adds nothing but colour");
        }
        if ["show", "list", "verify", "diff"].contains(&args[0]) {
            assert!(coloured.stdout.contains('\x1b'), "{coloured:?}");
        }
    }
    let ran = place.run(&["run", "--model", "mock", "Go."]);
    assert!(!ran.stderr.contains('\x1b'), "{ran:?}");
}

#[test]
fn a_model_cannot_steer_the_terminal_through_show() {
    let place = Place::new();
    place.write("s.json", "[{\"text\": \"\\u001b[31mred\\u0007\"}]");
    let ran = place.run(&["run", "--model", "mock:s.json", "Go."]);
    assert_eq!(ran.assert_code(0).stdout, "\x1b[31mred\x07\n", "a program gets it as it is");
    let shown = place.run(&["show", &place.newest()]);
    assert!(!shown.assert_code(0).stdout.contains('\x1b'), "{shown:?}");
}

#[test]
fn ten_megabytes_on_stdin() {
    let place = Place::new();
    let prompt = "lorem ipsum ".repeat(10 * 1024 * 1024 / 12);
    let ran = place.run_with(&["run", "--model", "mock:reply=Done.", "-q"], prompt.as_bytes());
    assert_eq!((ran.code, &*ran.stdout), (0, "Done.\n"), "{}", ran.stderr);
    let thought = place.run(&["export", &place.newest()]).json();
    assert_eq!(thought["prompt"].as_str().unwrap().len(), prompt.len());
    place.run(&["verify"]).assert_code(0);
}

#[test]
fn odd_letters_survive() {
    let place = Place::new();
    let odd = "Ωß 日本語 🐒\u{200d}👩‍🚀 e\u{301} \u{202e}rtl\u{202c} \u{feff}bom";
    place.run(&["run", "--model", "mock", "--json", odd]).assert_code(0);
    let thought = place.run(&["export", &place.newest()]).json();
    assert_eq!(thought["prompt"], odd);
    let contains = place.run(&["list", "--json", "--contains", "日本語"]).json();
    assert_eq!(contains.as_array().unwrap().len(), 1);
    place.run_with(&["run", "--model", "mock"], b"\xff\xfe not text").assert_code(2);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let place = Place::new();
    for _ in 0..3 {
        place.two_iterations();
    }
    let id = place.newest();
    for args in [&["list"][..], &["show", &id], &["export", "--all"], &["completions", "bash"]] {
        let mut child = place.command(args).stdout(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let ran = place.wait(child);
        assert_eq!((ran.code, ran.stderr.contains("error")), (0, false), "{args:?}: {ran:?}");
    }
}

#[test]
fn a_run_whose_events_nobody_reads_ends() {
    let place = Place::new();
    place.write("slow.toml", "chunk_delay = 0.02\n[[reply]]\ntext = \"one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen\"\n[[reply]]\ntext = \"late\"\ndelay = 600\n");
    let args =
        ["run", "--events", "--model", "mock:slow.toml", "--check", "length:words=99..", "Go."];
    let mut child = place.command(&args).spawn().unwrap();
    let mut first = [0; 64];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    drop(child.stdout.take());
    let ran = place.wait(child);
    assert_eq!(ran.code, 130, "{ran:?}");
    assert_eq!(place.run(&["verify"]).code, 0);
}

#[test]
fn a_place_that_cannot_be_written() {
    let place = Place::new();
    place.write("file", "");
    let ran = place.run(&["run", "--model", "mock", "--journal", "file/journal.db", "Go."]);
    assert_eq!((ran.code, &*ran.stdout), (1, ""), "{ran:?}");
    assert!(ran.stderr.starts_with("error: ") && ran.stderr.contains("try: "), "{ran:?}");
}

#[test]
fn a_file_that_is_no_journal() {
    let place = Place::new();
    place.write("notes.txt", "just some text that is long enough to look like a file ".repeat(40));
    let ran = place.run(&["list", "--journal", "notes.txt"]);
    assert!([2, 8].contains(&ran.code), "{ran:?}");
    let text = std::fs::read_to_string(place.path().join("notes.txt")).unwrap();
    assert!(text.starts_with("just some text"), "it is left as it was");
}

#[test]
fn many_runs_at_once_share_a_journal() {
    let place = Place::new();
    let children: Vec<_> = (0..8)
        .map(|n| {
            place.spawn(&[
                "run",
                "--model",
                "mock",
                "--check",
                "length:words=20..60",
                &format!("Say {n}."),
            ])
        })
        .collect();
    for child in children {
        place.wait(child).assert_code(0);
    }
    assert_eq!(place.run(&["list", "--json"]).json().as_array().unwrap().len(), 8);
    let verified = place.run(&["verify", "--json"]);
    assert_eq!(verified.assert_code(0).json()["runs"], 8);
}
