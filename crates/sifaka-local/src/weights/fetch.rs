//! Running the user's `pip` or `uv`.

use std::ffi::OsString;
use std::io::{ErrorKind as Io, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sifaka_core::{Error, ErrorKind, Result};

use super::COMPONENT;
use super::catalogue::Entry;
use super::scratch::Scratch;
use super::trouble;

/// Wheels may be built for one system and one Python. These choose the same one everywhere, for
/// the weights inside are the same on all of them.
pub(super) const DOWNLOAD: [&str; 11] = [
    "download",
    "--no-deps",
    "--only-binary=:all:",
    "--platform",
    "manylinux2014_x86_64",
    "--python-version",
    "3.11",
    "--implementation",
    "cp",
    "--abi",
    "cp311",
];

/// The same for `uv`, which downloads by installing.
const INSTALL: [&str; 9] = [
    "pip",
    "install",
    "--no-deps",
    "--only-binary",
    ":all:",
    "--python-platform",
    "x86_64-manylinux2014",
    "--python-version",
    "3.11",
];

/// How often the folder is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// How much of what a program says is kept.
const KEPT: usize = 16 * 1024;

/// A program that fetches packages. No shell is involved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tool {
    /// `pip`, with what goes before its command: `["python3", "-m", "pip"]`.
    Pip(Vec<OsString>),
    /// `uv`.
    Uv(OsString),
}

/// What a tool brought.
#[derive(Debug)]
pub(super) enum Brought {
    /// A wheel.
    Wheel(PathBuf),
    /// The folder of an unpacked one.
    Unpacked(PathBuf),
}

impl Tool {
    /// The first that works of those a user may have.
    pub(super) fn of_user(folder: &Path) -> Option<Self> {
        let pips: &[&[&str]] = &[
            &["python3", "-m", "pip"],
            &["pip3"],
            &["pip"],
            &["python", "-m", "pip"],
            #[cfg(windows)]
            &["py", "-m", "pip"],
        ];
        let pips = pips.iter().map(|words| Self::Pip(words.iter().map(OsString::from).collect()));
        pips.chain([Self::Uv("uv".into())]).find(|tool| tool.works(folder))
    }

    fn works(&self, folder: &Path) -> bool {
        let Some(mut command) = self.command(folder) else { return false };
        command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }

    /// What errors call it.
    fn label(&self) -> &'static str {
        match self {
            Self::Pip(_) => "pip",
            Self::Uv(_) => "uv",
        }
    }

    /// It, working in `folder`: Python runs what lies in its working folder, and the user's may
    /// hold anything.
    fn command(&self, folder: &Path) -> Option<Command> {
        let mut command = match self {
            Self::Pip(words) => {
                let (first, rest) = words.split_first()?;
                let mut command = Command::new(first);
                command.args(rest);
                command
            }
            Self::Uv(program) => Command::new(program),
        };
        command.current_dir(folder).stdin(Stdio::null());
        Some(command)
    }

    /// Fetches an entry's package into the scratch folder. `told` hears how many bytes are there.
    pub(super) fn fetch(
        &self,
        entry: &Entry,
        folder: &Path,
        scratch: &Scratch,
        stall: Duration,
        told: &mut dyn FnMut(u64),
    ) -> Result<Brought> {
        let (into, temporary) = (scratch.folder("fetched")?, scratch.folder("temporary")?);
        let empty = || Error::configuration(COMPONENT, "the command for pip is empty");
        let mut command = self.command(scratch.path()).ok_or_else(empty)?;
        match self {
            Self::Pip(_) => command
                .args(DOWNLOAD)
                .args(["--no-cache-dir", "--disable-pip-version-check", "--no-input", "--quiet"])
                .args(["--progress-bar", "off", "--dest"])
                .arg(&into)
                // Nothing is installed, so there is nothing to protect.
                .env("PIP_REQUIRE_VIRTUALENV", "0"),
            Self::Uv(_) => command
                .args(INSTALL)
                .args(["--no-progress", "--color", "never", "--target"])
                .arg(&into)
                .env("UV_CACHE_DIR", scratch.folder("cache")?),
        };
        // What is half there is below the scratch folder, to be seen and to be cleared away.
        for name in ["TMPDIR", "TMP", "TEMP"] {
            command.env(name, &temporary);
        }
        command.arg(entry.package).stdout(Stdio::null()).stderr(Stdio::piped());
        let (end, said) = follow(command, scratch.path(), stall, told)
            .map_err(|error| self.cannot_run(&error))?;
        match end {
            End::Stalled => {
                Err(trouble::stalled(entry, folder, self.label(), stall.as_secs(), &said))
            }
            End::Exited(status) if !status.success() => {
                Err(trouble::failed(entry, folder, self.label(), status, &said))
            }
            End::Exited(_) => Ok(match self {
                Self::Pip(_) => Brought::Wheel(into.join(entry.wheel.name)),
                Self::Uv(_) => Brought::Unpacked(into),
            }),
        }
    }

    fn cannot_run(&self, error: &std::io::Error) -> Error {
        let kind =
            if error.kind() == Io::NotFound { ErrorKind::NotFound } else { ErrorKind::Storage };
        let message = format!("{} cannot be run: {error}", self.label());
        Error::new(kind, COMPONENT, "pull", message)
            .suggest("check that it can be run from a terminal")
    }
}

enum End {
    Exited(ExitStatus),
    /// Nothing came for too long, and we ended it.
    Stalled,
}

/// A child that does not outlive us, whatever makes us leave.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a command to its end and gives the last of what it said. `told` hears how many bytes are
/// below `folder`.
fn follow(
    mut command: Command,
    folder: &Path,
    stall: Duration,
    told: &mut dyn FnMut(u64),
) -> std::io::Result<(End, String)> {
    let mut child = Running(command.spawn()?);
    let tail = Arc::new(Mutex::new(Vec::new()));
    let (done, ended) = sync_channel::<()>(0);
    if let Some(output) = child.0.stderr.take() {
        let tail = Arc::clone(&tail);
        std::thread::spawn(move || {
            keep_tail(output, &tail);
            drop(done);
        });
    }
    let (mut seen, mut last_change) = (0, Instant::now());
    let end = loop {
        // The end of its output is seen at once; one that handed its output on is asked.
        let quiet = ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Disconnected);
        if quiet {
            break End::Exited(child.0.wait()?);
        }
        if let Some(status) = child.0.try_wait()? {
            break End::Exited(status);
        }
        let now = bytes_below(folder, 0);
        if now != seen {
            (seen, last_change) = (now, Instant::now());
            told(now);
        } else if last_change.elapsed() > stall {
            break End::Stalled;
        }
    };
    let said = tail.lock().unwrap_or_else(PoisonError::into_inner);
    let said = String::from_utf8_lossy(&said).into_owned();
    Ok((end, said))
}

fn keep_tail(mut output: impl Read, tail: &Mutex<Vec<u8>>) {
    let mut buffer = [0; 4096];
    loop {
        match output.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => {
                let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
                tail.extend(buffer.iter().take(count));
                let surplus = tail.len().saturating_sub(KEPT);
                tail.drain(..surplus);
            }
            Err(error) if error.kind() == Io::Interrupted => {}
            // What was heard until it broke is worth showing.
            Err(_) => break,
        }
    }
}

/// The bytes of all files below a folder; what goes away meanwhile does not count.
fn bytes_below(folder: &Path, depth: usize) -> u64 {
    const DEEPEST: usize = 12;
    let Ok(found) = std::fs::read_dir(folder) else { return 0 };
    let of = |found: std::fs::DirEntry| match found.metadata() {
        Ok(data) if data.is_dir() && depth < DEEPEST => bytes_below(&found.path(), depth + 1),
        Ok(data) if data.is_file() => data.len(),
        _ => 0,
    };
    found.flatten().map(of).sum()
}
