//! Where weights are kept.

use std::io;
use std::path::{Path, PathBuf};

use sifaka_core::{Error, ErrorKind, Result, folders};

use super::catalogue::{Entry, File, catalogue};
use super::pull::{Progress, Puller};
use super::{COMPONENT, scratch, sums, trouble};

/// A folder of weights. Several processes may use it at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    path: PathBuf,
}

/// How an entry of the catalogue stands in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status<'a> {
    /// The entry.
    pub entry: &'a Entry,
    /// Where it is, or would be.
    pub path: PathBuf,
    /// Whether it is there.
    pub state: State,
}

/// Whether weights are there.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum State {
    /// They are not, or not all of them.
    Missing,
    /// Every file is there in its right size.
    Present,
    /// Every file is there, and its sum is the catalogue's.
    Verified,
    /// Something is there that is not what it should be; this says what.
    Damaged(String),
}

impl Folder {
    /// The folder at this path. It need not be there yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        // The programs that fetch work in another folder, and later the user may.
        Self { path: std::path::absolute(&path).unwrap_or(path) }
    }

    /// The user's folder: `SIFAKA_WEIGHTS`, or `sifaka/weights` below the user's cache folder.
    ///
    /// # Errors
    /// When the environment names no home folder either.
    pub fn of_user() -> Result<Self> {
        let below = |cache: PathBuf| cache.join("sifaka").join("weights");
        folders::variable("SIFAKA_WEIGHTS")
            .or_else(|| folders::cache().map(below))
            .map(Self::new)
            .ok_or_else(|| {
                Error::configuration(COMPONENT, "there is no home folder to keep weights in")
                    .suggest("set SIFAKA_WEIGHTS to a folder, or HOME")
            })
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where an entry is, or would be: a file, or a folder when it has several.
    #[must_use]
    pub fn path_of(&self, entry: &Entry) -> PathBuf {
        self.path.join(entry.place)
    }

    /// Where an entry is. Only its presence and its size are looked at, which takes no time.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when it is not there and [`ErrorKind::Corrupt`] when its size is
    /// wrong, each with the command that fetches it.
    pub fn locate(&self, entry: &Entry) -> Result<PathBuf> {
        for file in entry.files {
            let path = self.path.join(file.path);
            let found = match path.metadata() {
                Ok(found) => found,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Err(trouble::missing(entry, &path));
                }
                Err(error) => return Err(trouble::io("look for", &path, &error)),
            };
            if !found.is_file() {
                return Err(trouble::damaged(entry, &path, "it is not a file"));
            }
            if found.len() != file.size {
                let what = format!("it has {} bytes instead of {}", found.len(), file.size);
                return Err(trouble::damaged(entry, &path, &what));
            }
        }
        Ok(self.path_of(entry))
    }

    /// Where an entry is, after its sums were checked. Reads every byte.
    ///
    /// # Errors
    /// As [`Folder::locate`], and [`ErrorKind::Corrupt`] when a sum is wrong.
    pub fn verify(&self, entry: &Entry) -> Result<PathBuf> {
        let place = self.locate(entry)?;
        for file in entry.files {
            self.verify_file(entry, file)?;
        }
        Ok(place)
    }

    fn verify_file(&self, entry: &Entry, file: &File) -> Result<()> {
        let path = self.path.join(file.path);
        let sum =
            sums::of_file(&path, file.size).map_err(|error| trouble::io("read", &path, &error))?;
        if (sum.size, sum.sha256.as_str()) == (file.size, file.sha256) {
            return Ok(());
        }
        let what = format!("its SHA-256 is {} instead of {}", sum.sha256, file.sha256);
        Err(trouble::damaged(entry, &path, &what))
    }

    /// How an entry stands; with `verify`, after its sums were checked.
    #[must_use]
    pub fn status<'a>(&self, entry: &'a Entry, verify: bool) -> Status<'a> {
        let looked = if verify { self.verify(entry) } else { self.locate(entry) };
        let state = match looked {
            Ok(_) if verify => State::Verified,
            Ok(_) => State::Present,
            Err(error) if error.kind() == ErrorKind::NotFound => State::Missing,
            Err(error) => State::Damaged(error.message().to_owned()),
        };
        Status { entry, path: self.path_of(entry), state }
    }

    /// How every entry of the catalogue stands; with `verify`, after sums were checked.
    #[must_use]
    pub fn list(&self, verify: bool) -> Vec<Status<'static>> {
        catalogue().iter().map(|entry| self.status(entry, verify)).collect()
    }

    /// Removes an entry's files, and what an interrupted pull left of it. Gives whether any of its
    /// files was there.
    ///
    /// # Errors
    /// When a file cannot be removed.
    pub fn remove(&self, entry: &Entry) -> Result<bool> {
        let mut any = false;
        for file in entry.files {
            let path = self.path.join(file.path);
            match std::fs::remove_file(&path) {
                Ok(()) => any = true,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(trouble::io("remove", &path, &error)),
            }
        }
        let place = self.path_of(entry);
        if place.is_dir() {
            // A folder that holds something of somebody else's stays.
            let _ = std::fs::remove_dir(&place);
        }
        scratch::sweep(&self.path, entry);
        Ok(any)
    }

    /// Fetches an entry with the user's `pip` or `uv`, unless it is there and its sums are right.
    ///
    /// # Errors
    /// As [`Puller::pull`].
    pub fn pull(&self, entry: &Entry, progress: &mut dyn FnMut(Progress)) -> Result<PathBuf> {
        Puller::new(self.clone()).pull(entry, progress)
    }

    /// Where an entry is; fetches it first if it is not there, or not whole.
    ///
    /// # Errors
    /// As [`Puller::pull`].
    pub fn ensure(&self, entry: &Entry, progress: &mut dyn FnMut(Progress)) -> Result<PathBuf> {
        // Whatever is wrong, pulling mends it or says why it cannot.
        self.locate(entry).or_else(|_| self.pull(entry, progress))
    }
}
