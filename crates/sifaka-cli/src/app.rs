//! What every command works with: where to write, what to read, and the record.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sifaka::config::{self, Config};
use sifaka::store::{SqliteJournal, SqliteOptions};
use sifaka::{Context, Error, ErrorKind, Journal, Result};

use crate::args::Global;
use crate::output::{Out, Talk};

/// The program while it runs.
pub(crate) struct App {
    pub(crate) global: Global,
    /// Where data goes.
    pub(crate) out: Out,
    /// Where talk goes.
    pub(crate) talk: Talk,
}

impl App {
    pub(crate) fn new(global: Global) -> Self {
        let out = Out::new(global.color);
        let talk = Talk::new(&global);
        Self { global, out, talk }
    }

    /// The configuration, if there is one.
    pub(crate) fn config(&self) -> Result<Option<Config>> {
        let here = std::env::current_dir().map_err(|error| {
            Error::new(
                ErrorKind::Storage,
                "sifaka",
                "start",
                format!("the working folder: {error}"),
            )
            .suggest("go to a folder that exists")
        })?;
        Config::discover(&here, self.global.config.as_deref())
    }

    /// Where the record is: `--journal`, the configuration's, or the user's data folder.
    pub(crate) fn journal_path(&self, config: Option<&Config>) -> Result<PathBuf> {
        if let Some(path) = &self.global.journal {
            return Ok(path.clone());
        }
        match config.and_then(Config::journal_path) {
            Some(path) => Ok(path),
            None => config::default_journal(),
        }
    }

    /// Opens the record for writing, and makes it if it is not there.
    pub(crate) fn journal_for_writing(path: &Path) -> Result<Arc<SqliteJournal>> {
        Ok(Arc::new(SqliteJournal::open(path, SqliteOptions::default())?))
    }

    /// Opens the record that the flags and the configuration name; `None` if there is none yet.
    /// One that `--journal` names must be there.
    pub(crate) fn journal_if_there(&self) -> Result<Option<Arc<SqliteJournal>>> {
        // A record that is named needs no configuration, so a broken one does not matter.
        let path = match &self.global.journal {
            Some(path) => path.clone(),
            None => self.journal_path(self.config()?.as_ref())?,
        };
        let there = path.try_exists().map_err(|error| {
            let message = format!("{}: {error}", path.display());
            Error::new(ErrorKind::Storage, "journal", "open", message)
                .suggest("check the folder and its permissions")
        })?;
        match (there, &self.global.journal) {
            (true, _) => Self::journal_for_writing(&path).map(Some),
            (false, None) => Ok(None),
            (false, Some(named)) => {
                let message = format!("{} is not there", named.display());
                Err(Error::new(ErrorKind::NotFound, "journal", "open", message)
                    .suggest("check the path of --journal; `sifaka run` makes the file"))
            }
        }
    }

    /// Opens the record, which must be there.
    pub(crate) fn journal(&self) -> Result<Arc<SqliteJournal>> {
        self.journal_if_there()?.ok_or_else(|| {
            Error::new(ErrorKind::NotFound, "journal", "open", "nothing is on record yet")
                .suggest("run something: sifaka run --model mock \"Say hello.\"")
                .suggest("or name the record with --journal")
        })
    }

    /// Runs a future to its end on this thread.
    pub(crate) fn block_on<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.map_err(|error| no_runtime(&error))?.block_on(future)
    }

    /// Runs a future to its end, with a thread beside it that hears of signals even while this
    /// one computes.
    pub(crate) fn block_on_watched<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|error| no_runtime(&error))?;
        let result = runtime.block_on(future);
        // The thread that waits for signals would never end by itself.
        runtime.shutdown_background();
        result
    }

    /// Opens the record, which must be there, and works with it.
    pub(crate) fn with_journal<T>(
        &self,
        work: impl AsyncFnOnce(&Context, &dyn Journal) -> Result<T>,
    ) -> Result<T> {
        let journal = self.journal()?;
        Self::block_on(async { work(&Context::new(), &*journal).await })
    }
}

fn no_runtime(error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Internal, "sifaka", "start", error.to_string())
}
