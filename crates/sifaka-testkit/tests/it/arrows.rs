//! The workspace shows the architecture: crates point downward, share one lint table, and keep
//! their files short.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// These stand above everything and nothing may use them, so they are not in the list.
const TOP: [&str; 2] = ["sifaka-cli", "sifaka-benches"];

/// Above so many lines a file holds more than one thing.
const LONGEST_FILE: usize = 600;

fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap().to_path_buf()
}

/// Our crates in the order in which the root manifest lists them, lowest first.
fn listed(manifest: &str) -> Vec<&str> {
    manifest
        .lines()
        .skip_while(|line| line.trim() != "[workspace.dependencies]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split_once('='))
        .filter(|(_, value)| value.contains("path = \"crates/"))
        .map(|(name, _)| name.trim())
        .collect()
}

/// The workspace's crates, each with those it is built from, tests aside.
fn crates() -> Vec<(String, Vec<String>)> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    packages
        .iter()
        .map(|package| {
            let uses = package["dependencies"].as_array().unwrap().iter();
            let uses = uses.filter(|d| d["kind"] != "dev" && !d["path"].is_null());
            let uses = uses.map(|d| d["name"].as_str().unwrap().to_owned()).collect();
            (package["name"].as_str().unwrap().to_owned(), uses)
        })
        .collect()
}

/// What is wrong with these crates, given the order.
fn upward(order: &[&str], crates: &[(String, Vec<String>)]) -> Vec<String> {
    let place = |name: &str| order.iter().position(|listed| *listed == name);
    let mut problems = Vec::new();
    for (name, uses) in crates {
        let own = match place(name) {
            Some(place) => place,
            None if TOP.contains(&name.as_str()) => order.len(),
            None => {
                problems.push(format!("{name} is not in [workspace.dependencies]"));
                continue;
            }
        };
        for other in uses {
            if place(other).is_none_or(|place| place >= own) {
                problems.push(format!("{name} uses {other}, which does not stand below it"));
            }
        }
    }
    problems
}

#[test]
fn crates_use_only_those_below_them() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let order = listed(&manifest);
    assert_eq!(order.first(), Some(&"sifaka-core"), "core stands at the bottom");
    let crates = crates();
    assert!(crates.len() > 5, "the workspace's crates are seen: {crates:?}");
    assert_eq!(upward(&order, &crates), Vec::<String>::new());
}

#[test]
fn an_arrow_that_points_upward_is_seen() {
    let order = ["low", "high"];
    let of = |name: &str, uses: &[&str]| {
        (name.to_owned(), uses.iter().map(|u| (*u).to_owned()).collect::<Vec<_>>())
    };
    assert_eq!(upward(&order, &[of("high", &["low"]), of(TOP[0], &["high"])]).len(), 0);
    assert_eq!(upward(&order, &[of("low", &["high"])]).len(), 1);
    assert_eq!(upward(&order, &[of("low", &["low"])]).len(), 1);
    assert_eq!(upward(&order, &[of("low", &[TOP[0]])]).len(), 1);
    assert_eq!(upward(&order, &[of("stray", &[])]).len(), 1);
}

#[test]
fn every_crate_keeps_the_lint_table() {
    for folder in fs::read_dir(root().join("crates")).unwrap() {
        let path = folder.unwrap().path().join("Cargo.toml");
        let Ok(manifest) = fs::read_to_string(&path) else { continue };
        let lines: Vec<&str> = manifest.lines().map(str::trim).collect();
        let in_table = lines.windows(2).any(|pair| pair == ["[lints]", "workspace = true"]);
        assert!(
            in_table || lines.contains(&"lints.workspace = true"),
            "{} does not say lints.workspace = true",
            path.display()
        );
    }
}

#[test]
fn files_are_short() {
    let mut files = Vec::new();
    for folder in fs::read_dir(root().join("crates")).unwrap() {
        rust_files(&folder.unwrap().path().join("src"), &mut files);
    }
    assert!(files.len() > 30, "the sources are seen: {files:?}");
    let long: Vec<String> = files
        .iter()
        .map(|path| (path, fs::read_to_string(path).unwrap().lines().count()))
        .filter(|(_, lines)| *lines >= LONGEST_FILE)
        .map(|(path, lines)| format!("{} has {lines} lines", path.display()))
        .collect();
    assert!(long.is_empty(), "split them: {long:#?}");
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}
