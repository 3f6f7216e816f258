//! The `sifaka` program: runs chains, shows what happened, proves that the record is intact.

mod app;
mod args;
mod commands;
mod output;
mod record;
mod signals;

use std::process::ExitCode;

use clap::Parser;
use sifaka::Error;

use crate::app::App;
use crate::args::Cli;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let app = App::new(cli.global);
    let failed = |error: Error| {
        app.talk.error(&error);
        error.kind().exit_code()
    };
    let code = commands::run(&app, cli.command).unwrap_or_else(failed);
    ExitCode::from(app.out.flush().map_or_else(failed, |()| code))
}
