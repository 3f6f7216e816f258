//! The user's files.

use std::path::PathBuf;

use sifaka_core::folders;
use sifaka_core::{Error, Result};

use super::FILE_NAME;

pub(super) use sifaka_core::folders::variable;

/// Where the user's own configuration is, if there is one.
#[must_use]
pub fn user_config() -> Option<PathBuf> {
    folders::config().map(|folder| folder.join("sifaka").join(FILE_NAME))
}

/// Where runs are recorded when nothing else is said.
///
/// # Errors
/// When the environment names neither a data folder nor a home folder.
pub fn default_journal() -> Result<PathBuf> {
    folders::data().map(|folder| folder.join("sifaka").join("journal.db")).ok_or_else(|| {
        Error::configuration("journal", "there is no home folder to keep it in")
            .suggest("name a file with --journal, or set HOME or XDG_DATA_HOME")
    })
}
