//! The SQLite journal does what every journal must.

use sifaka_store::{SqliteJournal, SqliteOptions};
use tempfile::TempDir;

/// An empty journal in a folder of its own.
pub(crate) fn fresh() -> (SqliteJournal, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let journal =
        SqliteJournal::open(folder.path().join("journal.db"), SqliteOptions::default()).unwrap();
    (journal, folder)
}

sifaka_testkit::journal_trials!(fresh);
