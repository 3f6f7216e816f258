//! Reading what a folder of weights has, and saying what is wrong with it.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use serde::de::DeserializeOwned;
use sifaka_core::{Error, ErrorKind, Result};

/// No settings or vocabulary is larger; the largest known have 20 MB.
const LARGEST_TEXT: u64 = 64 << 20;

/// A file that is there but not what it should be.
pub(super) fn damaged(path: &Path, message: impl AsRef<str>) -> Error {
    let message = format!("{}: {}", path.display(), message.as_ref());
    Error::new(ErrorKind::Corrupt, "local:embed", "open", message)
        .suggest("fetch the weights again")
}

/// A file that cannot be opened or read.
pub(super) fn unreadable(path: &Path, error: io::Error) -> Error {
    let kind = match error.kind() {
        io::ErrorKind::NotFound => ErrorKind::NotFound,
        io::ErrorKind::UnexpectedEof => ErrorKind::Corrupt,
        _ => ErrorKind::Storage,
    };
    Error::new(kind, "local:embed", "open", format!("{}: {error}", path.display()))
        .with_source(error)
        .suggest("check the folder of the weights, or fetch them again")
}

/// A file that is sound but asks for what is not implemented.
pub(super) fn unsupported(path: &Path, message: impl AsRef<str>) -> Error {
    let message = format!("{}: {}", path.display(), message.as_ref());
    Error::new(ErrorKind::Unsupported, "local:embed", "open", message)
        .suggest("use the weights this embedder was made for")
}

/// A whole text file.
pub(super) fn text(path: &Path) -> Result<String> {
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(LARGEST_TEXT + 1).read_to_string(&mut text))
        .map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => damaged(path, "it is not text").with_source(error),
            _ => unreadable(path, error),
        })?;
    if text.len() as u64 > LARGEST_TEXT {
        return Err(damaged(path, format!("it has more than {} MB", LARGEST_TEXT >> 20)));
    }
    Ok(text)
}

/// A JSON file.
pub(super) fn json<T: DeserializeOwned>(path: &Path) -> Result<T> {
    serde_json::from_str(&text(path)?).map_err(|error| {
        damaged(path, format!("it is not as expected: {error}")).with_source(error)
    })
}
