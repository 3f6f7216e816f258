//! The commands, one file each.

mod completions;
mod diff;
mod doctor;
mod drive;
mod erase;
mod export;
mod import;
mod init;
mod list;
mod perf;
mod prompts;
mod prune;
mod resume;
mod run;
mod schema;
mod setup;
mod show;
mod verify;
mod weights;

use sifaka::{Error, Result};

use crate::app::App;
use crate::args::Command;

/// Done, with nothing to object to.
const DONE: u8 = 0;

/// The best text did not pass.
const NOT_PASSED: u8 = 3;

/// Carries a command out and gives the exit code.
pub(crate) fn run(app: &App, command: Command) -> Result<u8> {
    match command {
        Command::Run(args) => run::run(app, &args),
        Command::Resume(args) => resume::run(app, &args),
        Command::List(args) => list::run(app, &args),
        Command::Show(args) => show::run(app, &args),
        Command::Diff(args) => diff::run(app, &args),
        Command::Verify(args) => verify::run(app, &args),
        Command::Export(args) => export::run(app, &args),
        Command::Import(args) => import::run(app, &args),
        Command::Perf(args) => perf::run(app, &args),
        Command::Prune(args) => prune::run(app, &args),
        Command::Erase(args) => erase::run(app, &args),
        Command::Init { force } => init::run(app, force),
        Command::Doctor { json } => doctor::run(app, json),
        Command::Prompts { name, chain } => prompts::run(app, name.as_deref(), chain.as_deref()),
        Command::Weights { command } => weights::run(app, &command),
        Command::Completions { shell } => completions::run(app, shell),
        Command::Schema => schema::run(app),
    }
}

/// Asks before something is done that cannot be undone.
fn confirm(app: &App, command: &str, yes: bool, what: &str) -> Result<bool> {
    if yes {
        return Ok(true);
    }
    app.talk.ask(&format!("Erase what {what} contained?")).ok_or_else(|| {
        let message = format!("this erases what {what} contained, and there is nobody to ask");
        Error::invalid_input(command, message).suggest("say --yes if it is meant")
    })
}

/// `1 run`, `2 runs`.
fn count(number: u64, what: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{number} {what}{s}")
}
