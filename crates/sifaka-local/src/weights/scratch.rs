//! A place for what is not whole yet.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use sifaka_core::Result;

use super::catalogue::Entry;
use super::trouble;

/// A folder beside the weights, on the same disk so that files can be moved into their place. It
/// goes when this is dropped; one that a killed process left goes at the next [`Scratch::claim`].
pub(super) struct Scratch {
    path: PathBuf,
    /// Held so that only one process at a time fetches this entry. The system lets go of it when
    /// the process ends, however it ends.
    _lock: Option<File>,
}

impl Scratch {
    /// Makes a folder for an entry, after whoever else is fetching it is done. `wait` is called
    /// before waiting.
    pub(super) fn claim(folder: &Path, entry: &Entry, wait: &mut dyn FnMut()) -> Result<Self> {
        fs::create_dir_all(folder).map_err(|error| trouble::io("make", folder, &error))?;
        let lock = open_lock(folder, entry)?;
        let lock = match lock.try_lock() {
            Ok(()) => Some(lock),
            Err(TryLockError::WouldBlock) => {
                wait();
                lock.lock().ok().map(|()| lock)
            }
            // Some file systems know no locks. Folders have names of their own, so two processes
            // that fetch the same only do the work twice.
            Err(TryLockError::Error(_)) => None,
        };
        if lock.is_some() {
            clear(folder, entry);
        }
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}{}-{number}{PART}", prefix(entry), std::process::id());
        let path = folder.join(name);
        if path.exists() {
            // Another process had this number once, and nobody could tell whether it is alive.
            fs::remove_dir_all(&path).map_err(|error| trouble::io("clear", &path, &error))?;
        }
        fs::create_dir(&path).map_err(|error| trouble::io("make", &path, &error))?;
        Ok(Self { path, _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// A folder inside it.
    pub(super) fn folder(&self, name: &str) -> Result<PathBuf> {
        let path = self.path.join(name);
        fs::create_dir_all(&path).map_err(|error| trouble::io("make", &path, &error))?;
        Ok(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next pull.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Removes what interrupted pulls left of an entry, unless somebody is fetching it just now.
pub(super) fn sweep(folder: &Path, entry: &Entry) {
    let path = folder.join(format!("{}lock", prefix(entry)));
    // Without a lock file nobody ever fetched anything here.
    let Ok(lock) = File::options().write(true).open(path) else { return };
    if lock.try_lock().is_ok() {
        clear(folder, entry);
    }
}

const PART: &str = ".part";

fn prefix(entry: &Entry) -> String {
    format!(".{}.", entry.name)
}

fn open_lock(folder: &Path, entry: &Entry) -> Result<File> {
    // The file stays: were it removed, two processes could hold the lock of the same name.
    let path = folder.join(format!("{}lock", prefix(entry)));
    let open = File::options().create(true).truncate(false).write(true).open(&path);
    open.map_err(|error| trouble::io("write", &path, &error))
}

/// Removes the folders of an entry; only whoever holds its lock may.
fn clear(folder: &Path, entry: &Entry) {
    let Ok(found) = fs::read_dir(folder) else { return };
    for found in found.flatten() {
        let name = found.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(&prefix(entry)) && name.ends_with(PART) {
            // A child of a killed process may still be writing; the next pull tries again.
            let _ = fs::remove_dir_all(found.path());
        }
    }
}
