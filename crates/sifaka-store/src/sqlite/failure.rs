//! What SQLite and the file system say, in our words.

use std::io;
use std::path::Path;

use rusqlite::ErrorCode;
use sifaka_core::{Error, ErrorKind};

/// An error of SQLite's about the journal at `path`.
pub(super) fn sqlite_failure(
    path: &Path,
    operation: &'static str,
    error: rusqlite::Error,
) -> Error {
    let (kind, what, hint) = match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => (
            ErrorKind::Storage,
            "the disk is full, or the journal has its largest size",
            "make room and try again; what was acknowledged is safe",
        ),
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => (
            ErrorKind::Storage,
            "the file cannot be written",
            "see that the file and its folder can be written, or name another file",
        ),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => (
            ErrorKind::Unavailable,
            "another program keeps it locked",
            "try again, or see which program that is",
        ),
        Some(ErrorCode::NotADatabase) => (
            ErrorKind::Corrupt,
            "the file is not a journal",
            "name another file; this one was left as it is",
        ),
        Some(ErrorCode::DatabaseCorrupt) => (
            ErrorKind::Corrupt,
            "the file is damaged",
            "run `sifaka verify` to see what is left, or restore a copy",
        ),
        Some(ErrorCode::TooBig) => (
            ErrorKind::InvalidInput,
            "an event is too large to be stored",
            "keep events below a gigabyte",
        ),
        _ => (
            ErrorKind::Storage,
            "the file could not be used",
            "see that the disk works, then try again",
        ),
    };
    let message = format!("{}: {what} ({error})", path.display());
    Error::new(kind, "journal", operation, message).suggest(hint).with_source(error)
}

/// An error of the file system's about `path`.
pub(super) fn io_failure(path: &Path, operation: &'static str, error: io::Error) -> Error {
    let message = format!("{}: {error}", path.display());
    Error::new(ErrorKind::Storage, "journal", operation, message)
        .suggest("see that the folder exists, can be written and has room, or name another file")
        .with_source(error)
}

/// The error when the thread that writes is not there any more.
pub(super) fn writer_gone() -> Error {
    Error::new(
        ErrorKind::Internal,
        "journal",
        "write",
        "the thread that writes the journal has ended",
    )
    .suggest("open the journal again")
}

/// The error for a row that does not hold what it should.
pub(super) fn damaged(what: &str) -> Error {
    Error::new(ErrorKind::Corrupt, "journal", "read", format!("{what} is damaged"))
        .suggest("run `sifaka verify` to see what else is")
}
