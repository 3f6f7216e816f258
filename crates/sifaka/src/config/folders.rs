//! The user's folders.

use std::path::PathBuf;

use sifaka_core::{Error, Result};

use super::FILE_NAME;

/// A variable of the environment that holds a path; an empty one is none.
pub(super) fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// A folder by the XDG rules: the variable if it is an absolute path, else below the home folder.
fn folder(name: &str, below_home: &str) -> Option<PathBuf> {
    let given = variable(name).filter(|path| path.is_absolute());
    given.or_else(|| {
        let home = variable("HOME").or_else(|| variable("USERPROFILE"))?;
        Some(home.join(below_home))
    })
}

/// Where the user's own configuration is, if there is one.
#[must_use]
pub fn user_config() -> Option<PathBuf> {
    folder("XDG_CONFIG_HOME", ".config").map(|folder| folder.join("sifaka").join(FILE_NAME))
}

/// Where runs are recorded when nothing else is said.
///
/// # Errors
/// When the environment names neither a data folder nor a home folder.
pub fn default_journal() -> Result<PathBuf> {
    folder("XDG_DATA_HOME", ".local/share")
        .map(|folder| folder.join("sifaka").join("journal.db"))
        .ok_or_else(|| {
            Error::configuration("journal", "there is no home folder to keep it in")
                .suggest("name a file with --journal, or set HOME or XDG_DATA_HOME")
        })
}
