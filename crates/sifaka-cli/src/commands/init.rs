//! `sifaka init`.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use sifaka::config::{COMMENTED, FILE_NAME};
use sifaka::{Error, ErrorKind, Result};

use super::DONE;
use crate::app::App;

pub(super) fn run(app: &App, force: bool) -> Result<u8> {
    let path = app.global.config.clone().unwrap_or_else(|| PathBuf::from(FILE_NAME));
    let mut options = File::options();
    options.write(true);
    if force {
        options.create(true).truncate(true)
    } else {
        options.create_new(true)
    };
    let written = options.open(&path).and_then(|mut file| file.write_all(COMMENTED.as_bytes()));
    written.map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            let message = format!("{} is there already", path.display());
            Error::new(ErrorKind::Conflict, "init", "write", message)
                .suggest("keep it, or write over it with --force")
        }
        _ => {
            Error::new(ErrorKind::Storage, "init", "write", format!("{}: {error}", path.display()))
                .suggest("check the folder and its permissions")
        }
    })?;
    app.out.line(path.display().to_string())?;
    app.talk.say("every option stands in it with what it does; try: sifaka run \"Say hello.\"");
    Ok(DONE)
}
