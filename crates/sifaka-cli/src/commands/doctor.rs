//! `sifaka doctor`.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use serde::Serialize;
use sifaka::config::Config;
use sifaka::journal::Verify;
use sifaka::{Context, Journal, Result};

use super::count;
use crate::app::App;
use crate::output::clean;

/// A journal up to this size is verified on the spot.
const QUICK: u64 = 64 * 1024 * 1024;

/// Below this the disk is nearly full.
const LITTLE: u64 = 256 * 1024 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Ok,
    Warn,
    Fail,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Finding {
    state: State,
    what: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl Finding {
    fn new(state: State, what: &'static str, message: impl Into<String>) -> Self {
        Self { state, what, message: message.into(), hint: None }
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    fn of_error(state: State, what: &'static str, error: &sifaka::Error) -> Self {
        let finding = Self::new(state, what, error.to_string());
        match error.suggestions() {
            [] => finding,
            many => finding.hint(many.join("; ")),
        }
    }
}

pub(super) fn run(app: &App, json: bool) -> Result<u8> {
    let mut findings = Vec::new();
    let config = configuration(app, &mut findings);
    match app.journal_path(config.as_ref()) {
        Ok(path) => journal(&path, &mut findings),
        Err(error) => findings.push(Finding::of_error(State::Fail, "journal", &error)),
    }
    components(&mut findings);
    terminal(&mut findings);
    let failed = findings.iter().any(|finding| finding.state == State::Fail);
    if json {
        app.out.json(&findings)?;
    } else {
        print(app, &findings)?;
    }
    Ok(u8::from(failed))
}

fn print(app: &App, findings: &[Finding]) -> Result<()> {
    let style = app.out.style;
    for finding in findings {
        let word = match finding.state {
            State::Ok => style.good("ok  "),
            State::Warn => style.doubtful("warn"),
            State::Fail => style.bad("fail"),
        };
        app.out.line(format!("{word}  {:<13}  {}", finding.what, clean(&finding.message)))?;
        if let Some(hint) = &finding.hint {
            app.out.line(format!("                     try: {}", clean(hint)))?;
        }
    }
    Ok(())
}

fn configuration(app: &App, findings: &mut Vec<Finding>) -> Option<Config> {
    let config = match app.config() {
        Err(error) => {
            findings.push(Finding::of_error(State::Fail, "configuration", &error));
            return None;
        }
        Ok(None) => {
            let finding = Finding::new(State::Warn, "configuration", "there is no sifaka.toml");
            findings.push(finding.hint("write one with `sifaka init`, or say --model each time"));
            return None;
        }
        Ok(Some(config)) => config,
    };
    let path = config.path().map(|path| path.display().to_string()).unwrap_or_default();
    let chains = count(config.chains.len() as u64, "chain");
    findings.push(Finding::new(State::Ok, "configuration", format!("{path}, {chains}")));
    let registry = sifaka::registry();
    // Replayed models are known once there is a record to answer from.
    sifaka::register_journal(&registry, std::sync::Arc::new(sifaka::store::MemoryJournal::new()));
    for name in config.chains.keys() {
        findings.push(match config.chain(name, &registry, None) {
            Ok(chain) => Finding::new(State::Ok, "chain", chain.id()),
            Err(error) => Finding::of_error(State::Fail, "chain", &error),
        });
    }
    Some(config)
}

fn journal(path: &Path, findings: &mut Vec<Finding>) {
    let shown = path.display();
    if !path.exists() {
        let finding = match nearest_folder(path) {
            Some(folder) if writable(&folder) => {
                Finding::new(State::Ok, "journal", format!("{shown} will be made by the first run"))
            }
            _ => Finding::new(State::Fail, "journal", format!("{shown} cannot be made"))
                .hint("name another place with --journal, or in sifaka.toml"),
        };
        findings.push(finding);
    } else {
        let size = path.metadata().map_or(0, |metadata| metadata.len());
        findings.push(match check(path, size) {
            Ok(finding) => finding,
            Err(error) => Finding::of_error(State::Fail, "journal", &error),
        });
    }
    if let Some(free) = nearest_folder(path).and_then(|folder| free_space(&folder)) {
        let message = format!("{} MB free", free / 1_000_000);
        let state = if free < LITTLE { State::Warn } else { State::Ok };
        let finding = Finding::new(state, "disk", message);
        findings.push(if state == State::Ok {
            finding
        } else {
            finding.hint("make room, or erase old runs with `sifaka prune`")
        });
    }
    findings.push(Finding::new(
        State::Ok,
        "sqlite",
        format!("version {}, built in", rusqlite::version()),
    ));
}

fn check(path: &Path, size: u64) -> Result<Finding> {
    let journal = App::journal_for_writing(path)?;
    let shown = path.display();
    if size > QUICK {
        let message = format!("{shown}, {} MB, not verified", size / 1_000_000);
        return Ok(Finding::new(State::Ok, "journal", message).hint("`sifaka verify` checks it"));
    }
    let found = App::block_on(async { journal.verify(&Context::new(), &Verify::default()).await })?;
    let runs = count(found.runs, "run");
    Ok(if found.is_clean() {
        Finding::new(State::Ok, "journal", format!("{shown}, {runs}, intact"))
    } else {
        let problems = count(found.problems.len() as u64, "problem");
        Finding::new(State::Fail, "journal", format!("{shown}, {runs}, {problems}"))
            .hint("`sifaka verify` lists them")
    })
}

/// The folder a path is in, or the nearest one above it that is there.
fn nearest_folder(path: &Path) -> Option<PathBuf> {
    let absolute = std::path::absolute(path).ok()?;
    absolute.ancestors().skip(1).find(|folder| folder.exists()).map(Path::to_owned)
}

fn writable(folder: &Path) -> bool {
    let probe = folder.join(format!(".sifaka-doctor-{}", std::process::id()));
    let made = std::fs::File::create_new(&probe).is_ok();
    // If it was not made there is nothing to take away.
    let _ = std::fs::remove_file(&probe);
    made
}

#[cfg(unix)]
fn free_space(folder: &Path) -> Option<u64> {
    let space = rustix::fs::statvfs(folder).ok()?;
    space.f_bavail.checked_mul(space.f_frsize)
}

#[cfg(not(unix))]
fn free_space(_: &Path) -> Option<u64> {
    None
}

fn components(findings: &mut Vec<Finding>) {
    let registry = sifaka::registry();
    let lists = [
        ("models", registry.models.list()),
        ("checks", registry.validators.list()),
        ("critics", registry.critics.list()),
        ("retrievers", registry.retrievers.list()),
    ];
    for (what, list) in lists {
        let names: Vec<String> = list.into_iter().map(|about| about.name).collect();
        findings.push(Finding::new(State::Ok, what, names.join(", ")));
    }
}

fn terminal(findings: &mut Vec<Finding>) {
    let word = |yes: bool| if yes { "a terminal" } else { "not a terminal" };
    let message = format!(
        "stdout is {}, stderr is {}",
        word(std::io::stdout().is_terminal()),
        word(std::io::stderr().is_terminal())
    );
    findings.push(Finding::new(State::Ok, "terminal", message));
}
