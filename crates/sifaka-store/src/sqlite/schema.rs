//! The file: how it is made, known and brought up to date.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use sifaka_core::{Error, ErrorKind, Result};

use super::SqliteOptions;
use super::failure::{io_failure, sqlite_failure};

/// Marks a file as ours; "sifa" in ASCII.
const APPLICATION_ID: i64 = 0x7369_6661;

/// The schema this program writes.
pub(super) const VERSION: i64 = 1;

// Erased text must not survive in the slack of a page. SQLite zeroes what it frees, but leaves
// copies behind when it moves rows between pages. So rows that hold text are only ever added at
// the end of their table and overwritten in place by as many zeros: `events`, `prompts` and
// `bodies` never move a row but under VACUUM, and everything that changes or is sorted in
// differently stands in other tables, which hold no text of a run.
const SCHEMA: &str = "
CREATE TABLE runs (
    run_no     INTEGER PRIMARY KEY,
    run_id     TEXT    NOT NULL UNIQUE,
    chain_id   TEXT,
    started    INTEGER NOT NULL,
    updated    INTEGER NOT NULL,
    status     INTEGER NOT NULL,
    passed     INTEGER,
    score      REAL,
    iterations INTEGER NOT NULL,
    events     INTEGER NOT NULL,
    last_hash  BLOB    NOT NULL,
    closed     INTEGER NOT NULL, -- events it had when it was last closed
    links      INTEGER NOT NULL  -- entries it has in `chain`
);
CREATE INDEX runs_by_start ON runs (started);

CREATE TABLE events (
    event_no     INTEGER PRIMARY KEY,
    run_no       INTEGER NOT NULL,
    seq          INTEGER NOT NULL,
    time         INTEGER NOT NULL,
    kind         TEXT    NOT NULL,
    payload_hash BLOB    NOT NULL,
    hash         BLOB    NOT NULL,
    payload      BLOB
);
CREATE UNIQUE INDEX events_by_run ON events (run_no, seq);

CREATE TABLE prompts (
    run_no INTEGER PRIMARY KEY,
    line   TEXT
);

CREATE TABLE thoughts (
    thought_id TEXT    NOT NULL,
    run_no     INTEGER NOT NULL,
    PRIMARY KEY (thought_id, run_no)
) WITHOUT ROWID;

-- A short hash of key and value: narrows a search down; the event itself decides.
CREATE TABLE tags (
    tag    INTEGER NOT NULL,
    run_no INTEGER NOT NULL,
    PRIMARY KEY (tag, run_no)
) WITHOUT ROWID;

CREATE TABLE bodies (
    body_no INTEGER PRIMARY KEY,
    bytes   BLOB
);
CREATE TABLE blobs (
    hash    BLOB    NOT NULL PRIMARY KEY,
    body_no INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE blob_refs (
    run_no  INTEGER NOT NULL,
    hash    BLOB    NOT NULL,
    elsewhere INTEGER NOT NULL, -- 1: the bytes never were in this journal
    PRIMARY KEY (run_no, hash)
) WITHOUT ROWID;
CREATE INDEX blob_refs_by_hash ON blob_refs (hash);

CREATE TABLE chain (
    n      INTEGER PRIMARY KEY,
    kind   INTEGER NOT NULL,
    run_id TEXT    NOT NULL,
    events INTEGER NOT NULL,
    event  BLOB    NOT NULL,
    time   INTEGER NOT NULL,
    reason TEXT    NOT NULL,
    hash   BLOB    NOT NULL
);

CREATE TABLE leases (
    run_id  TEXT    NOT NULL PRIMARY KEY,
    holder  TEXT    NOT NULL,
    log     INTEGER NOT NULL,
    since   INTEGER NOT NULL,
    expires INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE flags (
    name  TEXT NOT NULL PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;
";

/// One step per earlier version: `MIGRATIONS[v - 1]` takes a file from version `v` to `v + 1`.
const MIGRATIONS: [&str; 0] = [];
const _: () = assert!(MIGRATIONS.len() as i64 + 1 == VERSION, "one step per earlier version");

/// Opens the connection that writes; makes the file and its folder if they are not there.
pub(super) fn open_writer(path: &Path, options: &SqliteOptions) -> Result<Connection> {
    make_file(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection =
        Connection::open_with_flags(path, flags).map_err(|e| sqlite_failure(path, "open", e))?;
    let started = Instant::now();
    loop {
        match prepare(&mut connection, path, options) {
            // Switching to a write-ahead log does not wait for others who do the same.
            Err(error)
                if error.kind() == ErrorKind::Unavailable
                    && started.elapsed() < options.busy_timeout =>
            {
                #[expect(clippy::disallowed_methods, reason = "opening blocks, and says so")]
                std::thread::sleep(Duration::from_millis(5));
            }
            prepared => return prepared.map(|()| connection),
        }
    }
}

/// Opens a connection that reads.
pub(super) fn open_reader(path: &Path, options: &SqliteOptions) -> Result<Connection> {
    let open = || {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(options.busy_timeout)?;
        connection.pragma_update(None, "query_only", true)?;
        Ok(connection)
    };
    open().map_err(|e| sqlite_failure(path, "read", e))
}

fn prepare(connection: &mut Connection, path: &Path, options: &SqliteOptions) -> Result<()> {
    let fail = |e| sqlite_failure(path, "open", e);
    connection.busy_timeout(options.busy_timeout).map_err(fail)?;
    // Before anything is written to it: it may be somebody else's file.
    identify(connection, path)?;
    let mode: String = connection
        .pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))
        .map_err(fail)?;
    if mode != "wal" {
        let message = format!("{} cannot have a write-ahead log here", path.display());
        return Err(Error::new(ErrorKind::Storage, "journal", "open", message)
            .suggest("put the journal on a local disk; network file systems cannot share memory"));
    }
    connection.pragma_update(None, "synchronous", "full").map_err(fail)?;
    connection.pragma_update(None, "secure_delete", true).map_err(fail)?;
    connection.pragma_update(None, "wal_autocheckpoint", 2000).map_err(fail)?;
    // In KiB: runs that are written at once keep their pages at hand.
    connection.pragma_update(None, "cache_size", -16 * 1024).map_err(fail)?;
    connection.set_prepared_statement_cache_capacity(64);
    if let Some(bytes) = options.max_bytes {
        let size: u64 =
            connection.pragma_query_value(None, "page_size", |row| row.get(0)).map_err(fail)?;
        let pages = i64::try_from(bytes / size.max(1)).unwrap_or(i64::MAX).max(1);
        connection
            .pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))
            .map_err(fail)?;
    }
    bring_up_to_date(connection, path)
}

/// What kind of file it is: `None` for one without anything in it.
fn identify(connection: &Connection, path: &Path) -> Result<Option<i64>> {
    let read = || {
        // As of one moment: somebody else may be making the file just now.
        let moment = connection.is_autocommit().then(|| connection.unchecked_transaction());
        let _moment = moment.transpose()?;
        let id: i64 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
        let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
        let tables: i64 =
            connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        rusqlite::Result::Ok((id, version, tables))
    };
    let (id, version, tables) = read().map_err(|e| sqlite_failure(path, "open", e))?;
    if id == 0 && tables == 0 {
        return Ok(None);
    }
    if id != APPLICATION_ID {
        let message = format!("{} belongs to another program", path.display());
        return Err(Error::new(ErrorKind::InvalidInput, "journal", "open", message)
            .suggest("name another file; this one was left as it is"));
    }
    if version > VERSION {
        let message = format!(
            "{} was written by a newer version of sifaka (schema {version}, this one knows {VERSION})",
            path.display()
        );
        return Err(Error::new(ErrorKind::Unsupported, "journal", "open", message)
            .suggest("update sifaka, or name another file"));
    }
    if version < 1 {
        let message = format!("{} has the impossible schema {version}", path.display());
        return Err(Error::new(ErrorKind::Corrupt, "journal", "open", message)
            .suggest("restore the file from a copy"));
    }
    Ok(Some(version))
}

fn bring_up_to_date(connection: &mut Connection, path: &Path) -> Result<()> {
    if identify(connection, path)? == Some(VERSION) {
        return Ok(());
    }
    let fail = |e| sqlite_failure(path, "open", e);
    // Several processes may come here at once; all but one find it done.
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fail)?;
    match identify(&transaction, path)? {
        None => {
            transaction.execute_batch(SCHEMA).map_err(fail)?;
            transaction.pragma_update(None, "application_id", APPLICATION_ID).map_err(fail)?;
        }
        Some(version) => {
            let done = usize::try_from(version - 1).unwrap_or(0);
            for step in MIGRATIONS.iter().skip(done) {
                transaction.execute_batch(step).map_err(fail)?;
            }
        }
    }
    transaction.pragma_update(None, "user_version", VERSION).map_err(fail)?;
    transaction.commit().map_err(fail)
}

/// Makes the file so that only its owner can read it, and its folder likewise.
fn make_file(path: &Path) -> Result<()> {
    if let Some(folder) = path.parent() {
        make_folder(folder)?;
    }
    let mut options = fs::OpenOptions::new();
    // One that is there must not even be opened: closing it again would let go of every lock that
    // this process has on it.
    options.create_new(true).write(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    match options.open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        made => made.map(drop).map_err(|error| io_failure(path, "open", error)),
    }
}

/// Makes a folder that only its owner can look into; one that is there stays as it is.
pub(super) fn make_folder(folder: &Path) -> Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    builder.create(folder).map_err(|error| io_failure(folder, "open", error))
}
