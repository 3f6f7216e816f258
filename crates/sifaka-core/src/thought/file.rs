//! Thoughts in files of their own.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

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
        let written = NewFile::create(path).and_then(|mut file| {
            file.write_all(json.as_bytes())?;
            file.write_all(b"\n")?;
            file.finish()
        });
        written.map_err(|error| storage(path, "save", &error))
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

/// A file that takes its place only once it is whole: a crash leaves the old one or the new one.
/// Only its owner may read it. Dropped before [`finish`](Self::finish), it leaves nothing behind.
///
/// Blocks; async code writes it from a thread that may.
#[derive(Debug)]
pub struct NewFile {
    path: PathBuf,
    temporary: PathBuf,
    writer: BufWriter<File>,
}

/// How many names are tried beside the file before it is given up.
const NAMES: u32 = 100;

impl NewFile {
    /// Begins a file that is to stand at `path`, under another name beside it.
    ///
    /// # Errors
    /// What the system says.
    pub fn create(path: &Path) -> io::Result<Self> {
        // Two threads that write the same file must not share a name.
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let mut options = File::options();
        // Never through a link or into a file that somebody else has put there.
        options.write(true).create_new(true);
        // Prompts and texts are nobody else's business.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut tries = 0;
        loop {
            let count = COUNTER.fetch_add(1, Ordering::Relaxed);
            let mut name = path.file_name().unwrap_or_default().to_owned();
            name.push(format!(".{}-{count}.tmp", std::process::id()));
            let temporary = path.with_file_name(name);
            tries += 1;
            match options.open(&temporary) {
                Ok(file) => {
                    let writer = BufWriter::new(file);
                    return Ok(Self { path: path.to_owned(), temporary, writer });
                }
                // Left by a process of the same number that was killed.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries < NAMES => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Puts the file in its place, safe on disk.
    ///
    /// # Errors
    /// What the system says; then the old file is as it was, unless only the folder could not be
    /// made safe.
    pub fn finish(mut self) -> io::Result<()> {
        self.writer.flush()?;
        self.writer.get_ref().sync_all()?;
        fs::rename(&self.temporary, &self.path)?;
        sync_folder(&self.path)
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        // After a rename it is gone already; after a failure half a file is of no use to anybody.
        let _ = fs::remove_file(&self.temporary);
    }
}

/// A new name is only safe once its folder is.
#[cfg(unix)]
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Elsewhere a folder cannot be opened as a file.
#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "the same signature as on unix")]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_file_takes_its_place_whole_or_not_at_all() {
        let folder = std::env::temp_dir().join(format!("sifaka-new-file-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("out.json");
        fs::write(&path, "old").unwrap();
        let mut half = NewFile::create(&path).unwrap();
        let mut whole = NewFile::create(&path).unwrap();
        assert_ne!(half.temporary, whole.temporary, "two at a time do not meet");
        half.write_all(b"ha").unwrap();
        half.flush().unwrap();
        drop(half);
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        whole.write_all(b"new").unwrap();
        whole.finish().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing is left beside it");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_link_under_the_temporary_name_is_not_followed() {
        let folder = std::env::temp_dir().join(format!("sifaka-link-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (path, victim) = (folder.join("out.json"), folder.join("victim"));
        fs::write(&victim, "theirs").unwrap();
        // The next names are foreseeable; other tests may use up a few of them.
        let first = NewFile::create(&path).unwrap();
        let name = first.temporary.file_name().unwrap().to_str().unwrap().to_owned();
        let start = name.find('-').unwrap() + 1;
        let number: u64 = name[start..].trim_end_matches(".tmp").parse().unwrap();
        for next in number + 1..number + 20 {
            let link = folder.join(format!("{}{next}.tmp", &name[..start]));
            std::os::unix::fs::symlink(&victim, link).unwrap();
        }
        let mut second = NewFile::create(&path).unwrap();
        second.write_all(b"ours").unwrap();
        second.finish().unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "theirs");
        assert_eq!(fs::read_to_string(&path).unwrap(), "ours");
        assert!(fs::symlink_metadata(&path).unwrap().is_file());
        drop(first);
        fs::remove_dir_all(&folder).unwrap();
    }
}
