//! The user's folders, as the environment names them.
//!
//! Only names are made here; nothing is read or created.

use std::path::PathBuf;

/// A variable of the environment that holds a path; an empty one is none.
#[must_use]
pub fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

fn home() -> Option<PathBuf> {
    variable("HOME").or_else(|| variable("USERPROFILE"))
}

/// A folder by the XDG rules: the variable if it is an absolute path, else below the home folder.
fn folder(name: &str, below_home: &str) -> Option<PathBuf> {
    absolute(name).or_else(|| Some(home()?.join(below_home)))
}

fn absolute(name: &str) -> Option<PathBuf> {
    variable(name).filter(|path| path.is_absolute())
}

/// Where programs keep what the user wrote for them; `None` when there is no home folder.
#[must_use]
pub fn config() -> Option<PathBuf> {
    folder("XDG_CONFIG_HOME", ".config")
}

/// Where programs keep what must not be lost; `None` when there is no home folder.
#[must_use]
pub fn data() -> Option<PathBuf> {
    folder("XDG_DATA_HOME", ".local/share")
}

/// Where programs keep what can be had again; `None` when there is no home folder.
///
/// Systems that clean up or back up by folder have a place of their own for this, so macOS and
/// Windows get theirs unless `XDG_CACHE_HOME` says otherwise.
#[must_use]
pub fn cache() -> Option<PathBuf> {
    if cfg!(target_os = "macos") {
        folder("XDG_CACHE_HOME", "Library/Caches")
    } else if cfg!(windows) {
        let own = absolute("XDG_CACHE_HOME").or_else(|| absolute("LOCALAPPDATA"));
        own.or_else(|| Some(home()?.join("AppData/Local")))
    } else {
        folder("XDG_CACHE_HOME", ".cache")
    }
}
