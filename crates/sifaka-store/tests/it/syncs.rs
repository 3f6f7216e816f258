//! Acknowledged means synced. A kill alone would not notice a missing sync: the kernel still has
//! the data. So this test binary counts them.

use std::ffi::c_int;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use sifaka_core::{Id, Journal};
use sifaka_testkit::journal::{still_context, whole_run};

use crate::sqlite::fresh;

/// The file of every sync in this process, in order.
static SYNCS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn note(descriptor: c_int) {
    if let Ok(path) = std::fs::read_link(format!("/proc/self/fd/{descriptor}")) {
        SYNCS.lock().unwrap_or_else(PoisonError::into_inner).push(path);
    }
}

/// Takes the place of the C library's function in this program.
#[expect(unsafe_code, reason = "the symbol has to be the C library's")]
#[unsafe(no_mangle)]
extern "C" fn fdatasync(descriptor: c_int) -> c_int {
    note(descriptor);
    // SAFETY: the system call takes one number and touches no memory.
    unsafe { libc::syscall(libc::SYS_fdatasync, descriptor) as c_int }
}

/// Takes the place of the C library's function in this program.
#[expect(unsafe_code, reason = "the symbol has to be the C library's")]
#[unsafe(no_mangle)]
extern "C" fn fsync(descriptor: c_int) -> c_int {
    note(descriptor);
    // SAFETY: the system call takes one number and touches no memory.
    unsafe { libc::syscall(libc::SYS_fsync, descriptor) as c_int }
}

fn syncs_of(path: &Path) -> usize {
    let syncs = SYNCS.lock().unwrap_or_else(PoisonError::into_inner);
    syncs.iter().filter(|synced| synced.as_path() == path).count()
}

fn log_of(journal: &Path) -> PathBuf {
    let name = format!("{}-wal", journal.file_name().unwrap().to_str().unwrap());
    journal.canonicalize().unwrap().with_file_name(name)
}

#[test]
fn syncs_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap().join("file");
    let file = std::fs::File::create(&path).unwrap();
    assert_eq!(syncs_of(&path), 0);
    file.sync_all().unwrap();
    file.sync_data().unwrap();
    assert_eq!(syncs_of(&path), 2, "one of each kind");

    let database = path.with_file_name("database");
    let connection = rusqlite::Connection::open(&database).unwrap();
    connection.execute_batch("CREATE TABLE t (x)").unwrap();
    assert!(syncs_of(&database) > 0, "SQLite's are counted as well");
}

#[tokio::test]
async fn every_commit_is_synced_before_it_is_acknowledged() {
    let (journal, _folder) = fresh();
    let log_file = log_of(journal.path());
    let (ctx, _) = still_context();
    let run = Id::new(&ctx);
    let mut log = journal.open_run(&ctx, &run).await.unwrap();
    for event in whole_run(&ctx, &run, "p") {
        log.append(&event).unwrap();
        let before = syncs_of(&log_file);
        log.commit().await.unwrap();
        assert!(syncs_of(&log_file) > before, "event {} was acknowledged unsynced", event.seq);
    }
    let before = syncs_of(&log_file);
    log.close().await.unwrap();
    assert!(syncs_of(&log_file) > before, "the head was given out unsynced");
}

#[tokio::test]
async fn many_commits_share_a_sync() {
    let (journal, _folder) = fresh();
    let log_file = log_of(journal.path());
    let (ctx, _) = still_context();
    let mut logs = Vec::new();
    for _ in 0..64 {
        let run = Id::new(&ctx);
        let mut log = journal.open_run(&ctx, &run).await.unwrap();
        log.append(&whole_run(&ctx, &run, "p")[0]).unwrap();
        logs.push(log);
    }
    let before = syncs_of(&log_file);
    // On one thread all of them are handed over before any can be answered.
    let commits = logs.iter_mut().map(|log| log.commit());
    let done = futures_util::future::join_all(commits).await;
    assert!(done.iter().all(Result::is_ok));
    let count = syncs_of(&log_file) - before;
    assert!((1..=16).contains(&count), "{count} syncs for 64 commits");
}
