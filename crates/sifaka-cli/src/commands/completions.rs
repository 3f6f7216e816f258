//! `sifaka completions`.

use clap::CommandFactory;
use clap_complete::{Shell, generate};
use sifaka::Result;

use super::DONE;
use crate::app::App;
use crate::args::Cli;

pub(super) fn run(app: &App, shell: Shell) -> Result<u8> {
    let mut script = Vec::new();
    generate(shell, &mut Cli::command(), "sifaka", &mut script);
    app.out.text(&String::from_utf8_lossy(&script)).map(|()| DONE)
}
