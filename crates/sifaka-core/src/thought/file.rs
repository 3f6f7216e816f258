//! Thoughts in files of their own.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;

use super::Thought;
use crate::{Error, ErrorKind, Result};

/// Bounds on what is read. JSON nested deeper than 128 levels is always refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most bytes a file may have.
    pub bytes: u64,
    /// The most iterations a Thought may have.
    pub iterations: usize,
}

impl Default for Limits {
    /// 256 MiB, and a million iterations.
    fn default() -> Self {
        Self { bytes: 256 * 1024 * 1024, iterations: 1_000_000 }
    }
}

impl Thought {
    /// Reads JSON, ours or the ancestor's.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] with the line and column when it is damaged, too large, too
    /// deep, of a newer major version, or has no prompt.
    pub fn from_json(json: &[u8], limits: &Limits) -> Result<Self> {
        if json.len() as u64 > limits.bytes {
            return Err(too_large(json.len() as u64, limits));
        }
        // Checked once as a whole, which is quicker than text by text.
        let json = std::str::from_utf8(json).map_err(|error| {
            let place = error.valid_up_to();
            Error::invalid_input("thought", format!("not UTF-8 after byte {place}"))
                .suggest("a Thought is a JSON file in UTF-8")
        })?;
        let thought: Self = serde_json::from_str(json).map_err(|error| {
            let hint = match error.classify() {
                serde_json::error::Category::Eof => "the file ends too early: was it cut off?",
                _ => "a Thought is an object with at least a \"prompt\"",
            };
            Error::invalid_input("thought", format!("not a Thought: {error}")).suggest(hint)
        })?;
        let count = thought.iterations().count();
        if count > limits.iterations {
            return Err(Error::invalid_input(
                "thought",
                format!("{count} iterations, at most {} are read", limits.iterations),
            )
            .suggest("raise the limit if this is meant"));
        }
        Ok(thought)
    }

    /// This Thought with its whole history, as readable JSON.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`]; none is known to occur.
    pub fn to_json(&self) -> Result<String> {
        serde_json::to_string_pretty(self)
            .map_err(|error| Error::new(ErrorKind::Internal, "thought", "write", error.to_string()))
    }

    /// Writes it to a file: to a temporary one beside it first, which then takes its place, so
    /// that a crash leaves the old file or the new one and never half of one.
    ///
    /// Blocks; async code calls it from a thread that may.
    ///
    /// # Errors
    /// [`ErrorKind::Storage`] with the path and the system's reason.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let json = self.to_json()?;
        write_atomically(path, json.as_bytes()).map_err(|error| storage(path, "save", &error))
    }

    /// Reads one from a file.
    ///
    /// Blocks; async code calls it from a thread that may.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] or [`ErrorKind::Storage`] for the file, and as
    /// [`from_json`](Self::from_json) for what is in it.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        Self::load_within(path, &Limits::default())
    }

    /// Reads one from a file, within limits of your own.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn load_within(path: impl AsRef<Path>, limits: &Limits) -> Result<Self> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|error| storage(path, "load", &error))?;
        let mut json = Vec::new();
        // One byte more than allowed shows that there is more, without reading all of it.
        file.take(limits.bytes.saturating_add(1))
            .read_to_end(&mut json)
            .map_err(|error| storage(path, "load", &error))?;
        Self::from_json(&json, limits)
            .map_err(|error| error.in_component(format!("thought file {}", path.display())))
    }
}

fn write_atomically(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(name);
    let written = (|| {
        let mut options = File::options();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&temporary)?;
        file.write_all(bytes)?;
        file.write_all(b"\n")?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    })();
    if written.is_err() {
        // The write's own error is what the caller needs to see.
        let _ = fs::remove_file(&temporary);
    }
    written
}

fn too_large(bytes: u64, limits: &Limits) -> Error {
    Error::invalid_input(
        "thought",
        format!("more than {} bytes; it has at least {bytes}", limits.bytes),
    )
    .suggest("raise the limit if this is meant")
}

fn storage(path: &Path, operation: &'static str, error: &std::io::Error) -> Error {
    let kind = match error.kind() {
        std::io::ErrorKind::NotFound => ErrorKind::NotFound,
        _ => ErrorKind::Storage,
    };
    Error::new(kind, "thought file", operation, format!("{}: {error}", path.display()))
        .suggest("check the path, its permissions and the space on the disk")
}
