//! One writer a run: who holds which, and whether they are still there.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sifaka_core::{Context, Error, ErrorKind, Id, Result};

use super::failure::io_failure;
use super::queue::Queue;
use super::request::Request;
use super::schema::make_folder;

/// The right to write to a run, given back when it is dropped.
pub(super) struct Lease {
    queue: Arc<Queue>,
    run: Id,
    log: i64,
    is_over: bool,
}

impl Lease {
    pub(super) fn new(queue: Arc<Queue>, run: Id, log: i64) -> Self {
        Self { queue, run, log, is_over: false }
    }

    /// Tells this log from every other of the same journal instance.
    pub(super) fn log(&self) -> i64 {
        self.log
    }

    /// It was given back by other means.
    pub(super) fn end(&mut self) {
        self.is_over = true;
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if !self.is_over {
            let release = Request::Release { run: self.run.clone(), log: self.log };
            // When the writer is gone so is its lock file, and the lease with it.
            let _ = self.queue.push(None, [release]);
        }
    }
}

/// The folder in which everybody who writes keeps a locked file.
///
/// A lease names its holder. The holder keeps a lock on a file of that name, which the operating
/// system lets go of however the process ends; so a holder that was killed is known at once, and
/// need not be waited for.
pub(super) struct Holders {
    folder: PathBuf,
    own: Option<(String, PathBuf, File)>,
}

impl Holders {
    pub(super) fn new(journal: &Path) -> Self {
        let mut name = journal.file_name().unwrap_or_default().to_os_string();
        name.push("-writers");
        Self { folder: journal.with_file_name(name), own: None }
    }

    /// Our own name, if we hold anything.
    pub(super) fn own(&self) -> Option<&str> {
        self.own.as_ref().map(|(name, _, _)| name.as_str())
    }

    /// Makes us a holder; gives the name.
    pub(super) fn enlist(&mut self) -> Result<String> {
        if let Some(name) = self.own() {
            return Ok(name.to_owned());
        }
        self.sweep();
        let ctx = Context::new();
        // Somebody who sweeps may remove our file between its making and its locking, or the
        // folder before that.
        for _ in 0..16 {
            make_folder(&self.folder)?;
            let name = Id::new(&ctx).as_str().to_owned();
            let path = self.folder.join(format!("{name}.lock"));
            let file = match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(io_failure(&path, "lock", error)),
            };
            file.lock().map_err(|error| io_failure(&path, "lock", error))?;
            if path.exists() {
                self.own = Some((name.clone(), path, file));
                return Ok(name);
            }
        }
        let message = format!("{}: no lock file could be kept", self.folder.display());
        Err(Error::new(ErrorKind::Storage, "journal", "lock", message)
            .suggest("see whether another program removes files there"))
    }

    /// Whether a holder may still be writing. One that is not loses its file.
    pub(super) fn is_alive(&self, name: &str) -> bool {
        // The name comes from the file; it must not lead out of the folder.
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
            return false;
        }
        is_locked(&self.folder.join(format!("{name}.lock")))
    }

    /// Removes what processes that were killed left behind.
    fn sweep(&self) {
        let Ok(entries) = std::fs::read_dir(&self.folder) else { return };
        for entry in entries.flatten() {
            if entry.path().extension().is_some_and(|extension| extension == "lock") {
                is_locked(&entry.path());
            }
        }
    }
}

/// Whether somebody has a lock on the file; removes it if nobody does.
fn is_locked(path: &Path) -> bool {
    let file = match OpenOptions::new().write(true).open(path) {
        Ok(file) => file,
        // What cannot be looked at counts as held, until the lease runs out.
        Err(error) => return error.kind() != io::ErrorKind::NotFound,
    };
    match file.try_lock() {
        Ok(()) => {
            // If it stays, the next one removes it.
            let _ = std::fs::remove_file(path);
            false
        }
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => true,
    }
}

impl Drop for Holders {
    fn drop(&mut self) {
        if let Some((_, path, file)) = self.own.take() {
            // Removed while it is locked, so that nobody takes it for a dead one's. What stays
            // behind is swept away by the next writer; the folder stays while others use it.
            let _ = std::fs::remove_file(path);
            drop(file);
            let _ = std::fs::remove_dir(&self.folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_is_alive_until_it_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("j.db");
        let mut one = Holders::new(&journal);
        let name = one.enlist().unwrap();
        assert_eq!(one.enlist().unwrap(), name, "once is enough");
        let mut two = Holders::new(&journal);
        let other = two.enlist().unwrap();
        assert!(two.is_alive(&name) && one.is_alive(&other));
        drop(one);
        assert!(!two.is_alive(&name));
        drop(two);
        assert!(!folder.path().join("j.db-writers").exists());
    }

    #[test]
    fn what_a_killed_one_left_is_swept_away() {
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("j.db");
        let left = folder.path().join("j.db-writers").join("dead.lock");
        std::fs::create_dir(left.parent().unwrap()).unwrap();
        std::fs::write(&left, "").unwrap();
        let mut holders = Holders::new(&journal);
        holders.enlist().unwrap();
        assert!(!left.exists());
    }

    #[test]
    fn a_hostile_name_stays_in_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let outside = folder.path().join("outside.lock");
        std::fs::write(&outside, "precious").unwrap();
        let holders = Holders::new(&folder.path().join("j.db"));
        for name in ["../outside", "", "/etc/passwd", "a/../../outside"] {
            assert!(!holders.is_alive(name), "{name}");
        }
        assert!(outside.exists());
    }
}
