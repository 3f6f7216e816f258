//! The connections that read.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use sifaka_core::{Context, Error, ErrorKind, Result};
use tokio::sync::Semaphore;

use super::SqliteOptions;
use super::failure::sqlite_failure;
use super::schema::open_reader;
use super::writer::Refusal;

/// A few connections, opened as they are needed and used again.
pub(super) struct Readers {
    path: PathBuf,
    options: SqliteOptions,
    idle: Mutex<Vec<Connection>>,
    turns: Arc<Semaphore>,
}

impl Readers {
    pub(super) fn new(path: PathBuf, options: SqliteOptions) -> Self {
        let turns = options.readers.clamp(1, Semaphore::MAX_PERMITS);
        Self { path, options, idle: Mutex::new(Vec::new()), turns: Arc::new(Semaphore::new(turns)) }
    }

    /// Reads on a thread that may block, all of it as of one moment.
    pub(super) async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        ctx: &Context,
        read: impl FnOnce(&Connection) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T> {
        let readers = Arc::clone(self);
        ctx.run(async move {
            let turn = Arc::clone(&readers.turns).acquire_owned().await;
            let work = move || {
                let result = readers.read_blocking(read);
                drop(turn);
                result
            };
            tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
                let message = format!("reading ended early: {error}");
                Err(Error::new(ErrorKind::Internal, "journal", "read", message))
            })
        })
        .await
    }

    fn read_blocking<T>(&self, read: impl FnOnce(&Connection) -> Result<T, Refusal>) -> Result<T> {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let pooled = idle().pop();
        let connection = match pooled {
            Some(connection) => connection,
            None => open_reader(&self.path, &self.options)?,
        };
        let result = connection
            .unchecked_transaction()
            .map_err(Refusal::from)
            .and_then(|transaction| read(&transaction));
        let result = result.map_err(|refusal| match refusal {
            Refusal::Refused(error) => error,
            Refusal::Failed(error) => sqlite_failure(&self.path, "read", error),
        });
        idle().push(connection);
        result
    }

    /// Closes what is not in use.
    pub(super) fn close(&self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
