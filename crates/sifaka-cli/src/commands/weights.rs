//! `sifaka weights`.

use std::path::PathBuf;

use serde::Serialize;
use sifaka::local::weights::{self, Entry, Folder, Progress, State, Status};
use sifaka::{ErrorKind, Result};

use super::DONE;
use crate::app::App;
use crate::args::WeightsCommand;
use crate::output::{Bytes, Table, megabytes};

pub(super) fn run(app: &App, command: &WeightsCommand) -> Result<u8> {
    let folder = Folder::of_user()?;
    match command {
        WeightsCommand::Pull { names } if names.is_empty() => {
            pull(app, &folder, &[weights::find(weights::DEFAULT)?])
        }
        WeightsCommand::Pull { names } => pull(app, &folder, &entries(names)?),
        WeightsCommand::List { verify, json } => list(app, &folder, *verify, *json),
        WeightsCommand::Remove { names } => remove(app, &folder, &entries(names)?),
    }
}

/// All of them, before anything is done: a name that is wrong should not cost a long wait.
fn entries(names: &[String]) -> Result<Vec<&'static Entry>> {
    names.iter().map(|name| weights::find(name)).collect()
}

fn pull(app: &App, folder: &Folder, entries: &[&Entry]) -> Result<u8> {
    for entry in entries {
        let (path, begun) = fetch(app, folder, entry)?;
        let word = if begun { "ready" } else { "there already, and intact" };
        app.talk.say(format!("{}: {word}", entry.name));
        app.out.line(path.to_string_lossy())?;
        // Whoever reads along need not wait for the next.
        app.out.flush()?;
    }
    Ok(DONE)
}

/// Fetches what a run needs and is not here yet.
pub(super) fn ensure(app: &App, entries: &[&Entry]) -> Result<()> {
    for entry in entries {
        let folder = Folder::of_user()?;
        if folder.locate(entry).is_err() {
            fetch(app, &folder, entry)?;
            app.talk.say(format!("{}: ready, kept in {}", entry.name, folder.path().display()));
        }
    }
    Ok(())
}

/// Fetches one, and says whether there was anything to fetch.
fn fetch(app: &App, folder: &Folder, entry: &Entry) -> Result<(PathBuf, bool)> {
    let mut bytes = Bytes::new(app.talk);
    let mut begun = false;
    let pulled = folder.pull(entry, &mut |progress| {
        begun = true;
        let (step, done, total) = match progress {
            Progress::Waiting => ("waiting for another sifaka that fetches it".into(), 0, 0),
            Progress::Fetching { bytes, total } => {
                (format!("fetching {}", entry.package), bytes, total)
            }
            Progress::Unpacking { bytes, total } => {
                ("unpacking and checking".to_owned(), bytes, total)
            }
            _ => return,
        };
        bytes.at(&format!("{}: {step}", entry.name), done, total);
    });
    bytes.finish();
    Ok((pulled?, begun))
}

/// An entry as JSON.
#[derive(Serialize)]
struct Listed<'a> {
    name: &'a str,
    about: &'a str,
    state: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<&'a str>,
    size: u64,
    licence: &'a str,
    package: &'a str,
    path: String,
    files: Vec<ListedFile<'a>>,
}

#[derive(Serialize)]
struct ListedFile<'a> {
    path: String,
    size: u64,
    sha256: &'a str,
}

impl<'a> Listed<'a> {
    fn new(folder: &Folder, status: &'a Status<'_>) -> Self {
        let entry = status.entry;
        let files = entry.files.iter().map(|file| ListedFile {
            path: folder.path().join(file.path).to_string_lossy().into_owned(),
            size: file.size,
            sha256: file.sha256,
        });
        Self {
            name: entry.name,
            about: entry.about,
            state: word(&status.state),
            problem: problem(&status.state),
            size: entry.size(),
            licence: entry.licence,
            package: entry.package,
            path: status.path.to_string_lossy().into_owned(),
            files: files.collect(),
        }
    }
}

fn list(app: &App, folder: &Folder, verify: bool, json: bool) -> Result<u8> {
    let all = folder.list(verify);
    if json {
        let all: Vec<Listed<'_>> = all.iter().map(|status| Listed::new(folder, status)).collect();
        app.out.json(&all)?;
    } else {
        let mut table = Table::new(&["NAME", "STATE", "SIZE", "LICENCE", "PACKAGE", "PATH"]);
        for status in &all {
            let entry = status.entry;
            table.row([
                entry.name,
                word(&status.state),
                &megabytes(entry.size()),
                entry.licence,
                entry.package,
                &status.path.to_string_lossy(),
            ]);
        }
        for (n, line) in table.lines().iter().enumerate() {
            let head = n == 0;
            app.out.line(if head { app.out.style.faint(line) } else { line.into() })?;
        }
    }
    let mut code = DONE;
    for status in &all {
        if let Some(problem) = problem(&status.state) {
            app.talk.warn(&format!("{}: {problem}", status.entry.name));
            code = ErrorKind::Corrupt.exit_code();
        }
    }
    if code != DONE {
        app.talk.say("`sifaka weights pull NAME` fetches it again");
    }
    Ok(code)
}

fn word(state: &State) -> &'static str {
    match state {
        State::Missing => "missing",
        State::Present => "here",
        State::Verified => "verified",
        _ => "damaged",
    }
}

fn problem(state: &State) -> Option<&str> {
    match state {
        State::Damaged(problem) => Some(problem),
        _ => None,
    }
}

fn remove(app: &App, folder: &Folder, entries: &[&Entry]) -> Result<u8> {
    for entry in entries {
        let word = if folder.remove(entry)? { "removed" } else { "was not here" };
        app.talk.say(format!("{}: {word}", entry.name));
    }
    Ok(DONE)
}
