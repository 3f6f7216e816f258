//! The journal in a file: SQLite with a write-ahead log.

mod erase;
mod failure;
mod index;
mod journal;
mod lease;
mod log;
mod queue;
mod read;
mod readers;
mod request;
mod row;
mod schema;
mod verify;
mod write;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use sifaka_core::Result;

use failure::io_failure;
use queue::Queue;
use readers::Readers;
use writer::Writer;

pub(crate) use verify::missing_head;

/// How a [`SqliteJournal`] works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqliteOptions {
    /// How long a writer that cannot be reached keeps its run; 30 seconds. One whose process has
    /// ended does not keep it at all. Leases are renewed every third of this.
    pub lease: Duration,
    /// How long to wait for other programs that write; 10 seconds.
    pub busy_timeout: Duration,
    /// The most bytes that wait to be written; 64 MiB. Whoever has more waits.
    pub queue_bytes: usize,
    /// The most reads at a time; 4.
    pub readers: usize,
    /// The largest size of the file; as large as it gets if `None`. Runs beyond it fail to be
    /// written, and go on when there is room again.
    pub max_bytes: Option<u64>,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(30),
            busy_timeout: Duration::from_secs(10),
            queue_bytes: 64 * 1024 * 1024,
            readers: 4,
            max_bytes: None,
        }
    }
}

/// The journal in a file of its own. Several programs may have it open at once.
///
/// What a commit acknowledged is on disk: one thread writes everything that waits in one
/// transaction and waits for the disk once, so many runs at a time cost little more than one.
/// Files and folders it makes can be read by their owner alone. Reads need a tokio runtime.
///
/// Clones share the file. Dropping the last one, with every log it opened, waits until what was
/// handed over is written.
#[derive(Clone)]
pub struct SqliteJournal {
    handle: Arc<Handle>,
}

/// The thread that writes and the connections that read.
pub(crate) struct Handle {
    name: String,
    path: PathBuf,
    queue: Arc<Queue>,
    readers: Arc<Readers>,
    thread: Option<JoinHandle<()>>,
}

impl SqliteJournal {
    /// Opens a journal; makes the file, and the folders above it, if they are not there.
    ///
    /// This reads and writes the file before it returns. In async code call it once, at the
    /// beginning.
    ///
    /// # Errors
    /// [`ErrorKind::Storage`](sifaka_core::ErrorKind::Storage) when the file cannot be made or
    /// written, [`ErrorKind::Corrupt`](sifaka_core::ErrorKind::Corrupt) when it is not a
    /// journal, [`ErrorKind::InvalidInput`](sifaka_core::ErrorKind::InvalidInput) when it is
    /// another program's, [`ErrorKind::Unsupported`](sifaka_core::ErrorKind::Unsupported) when a
    /// newer version wrote it.
    pub fn open(path: impl AsRef<Path>, options: SqliteOptions) -> Result<Self> {
        let path = path.as_ref();
        // Absolute, so that no name means anything special to SQLite.
        let path = std::path::absolute(path).map_err(|error| io_failure(path, "open", error))?;
        let connection = schema::open_writer(&path, &options)?;
        let queue = Arc::new(Queue::new(options.queue_bytes));
        let writer = Writer::new(path.clone(), connection, Arc::clone(&queue), options.lease);
        let thread = std::thread::Builder::new()
            .name("sifaka-journal".to_owned())
            .spawn(move || writer.run())
            .map_err(|error| io_failure(&path, "open", error))?;
        let handle = Handle {
            name: path.display().to_string(),
            queue,
            readers: Arc::new(Readers::new(path.clone(), options)),
            path,
            thread: Some(thread),
        };
        Ok(Self { handle: Arc::new(handle) })
    }

    /// Where the file is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.handle.path
    }
}

impl std::fmt::Debug for SqliteJournal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteJournal").field("path", &self.handle.path).finish_non_exhaustive()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.queue.close();
        self.readers.close();
        if let Some(thread) = self.thread.take() {
            // A writer that panicked has told everybody who waited for it.
            let _ = thread.join();
        }
    }
}
