//! Tending the record: verify, prune, erase.

use crate::harness::{Place, assert_shown};

#[test]
fn an_intact_record() {
    let place = Place::new();
    let ran = place.run(&["run", "--model", "mock", "Go."]);
    let head = ran.stderr.lines().find_map(|line| line.strip_prefix("head ")).unwrap();
    assert_shown!(place.run(&["verify"]));
    place.two_iterations();
    place.run(&["verify", "--head", head]).assert_code(0);
    let strange = place.run(&["verify", "--head", &"ab".repeat(32)]);
    strange.assert_code(8);
    let one = place.run(&["verify", "--json", &place.newest()]).json();
    assert_eq!((&one["runs"], one["problems"].as_array().unwrap().len()), (&1.into(), 0));
}

#[test]
fn tampering_shows() {
    let place = Place::new();
    let id = place.two_iterations();
    let connection = rusqlite::Connection::open(place.journal()).unwrap();
    let changed = tamper(&connection);
    assert_eq!(changed, 1, "one event was changed");
    drop(connection);
    assert_shown!(place.run(&["verify"]));
    // What was changed is never shown as if it had been recorded so.
    for arguments in [&["show", &id][..], &["export", &id], &["show", "--events", &id]] {
        let ran = place.run(arguments);
        assert_eq!(ran.code, 8, "{arguments:?}");
        let shown = format!("{ran:?}");
        assert!(shown.contains("content was changed"), "{arguments:?}: {shown}");
        assert!(!shown.contains("at once"), "{arguments:?}: {shown}");
    }
}

/// Changes a word in a stored event, behind the program's back.
fn tamper(connection: &rusqlite::Connection) -> usize {
    let (table, column) = payload(connection);
    let sql = format!(
        "SELECT rowid, {column} FROM {table} WHERE CAST({column} AS TEXT) LIKE '%at last%'"
    );
    let (row, bytes): (i64, Vec<u8>) =
        connection.query_row(&sql, [], |row| Ok((row.get(0)?, value(row.get_ref(1)?)))).unwrap();
    let text = String::from_utf8(bytes).unwrap().replacen("at last", "at once", 1);
    let sql = format!("UPDATE {table} SET {column} = ?1 WHERE rowid = ?2");
    connection.execute(&sql, rusqlite::params![text.into_bytes(), row]).unwrap()
}

fn value(value: rusqlite::types::ValueRef<'_>) -> Vec<u8> {
    value.as_bytes().unwrap().to_vec()
}

/// Where payloads are kept.
fn payload(connection: &rusqlite::Connection) -> (String, String) {
    let sql = "SELECT m.name, c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c \
               WHERE m.type = 'table' AND c.name = 'payload'";
    connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap()
}

#[test]
fn erasing_asks_and_leaves_a_record_that_verifies() {
    let place = Place::new();
    let id = place.two_iterations();
    assert_shown!(place.run(&["erase", &id]));
    assert_shown!(place.run(&["erase", "--yes", &id]));
    assert_shown!(place.run(&["show", &id]));
    assert_shown!(place.run(&["verify"]));
    let bytes = std::fs::read(place.journal()).unwrap();
    let text = String::from_utf8_lossy(&bytes);
    assert!(!text.contains("long enough at last"), "the text is gone from the file");
    assert_eq!(place.run(&["list", "--json"]).json()[0]["status"], "erased");
}

#[test]
fn pruning_keeps_the_newest() {
    let place = Place::new();
    let old = place.two_iterations();
    let new = place.two_iterations();
    let dry = place.run(&["prune", "--keep", "1", "--dry-run"]);
    assert_eq!(dry.assert_code(0).stdout.trim(), old);
    assert_shown!(place.run(&["prune", "--keep", "1"]));
    assert_eq!(place.run(&["show", &old]).code, 0, "nothing happened yet");
    assert_shown!(place.run(&["prune", "--keep", "1", "--yes"]));
    place.run(&["show", &old]).assert_code(4);
    place.run(&["show", &new]).assert_code(0);
    place.run(&["verify"]).assert_code(0);
    let none = place.run(&["prune", "--older-than", "30d", "--yes"]);
    assert_eq!(none.assert_code(0).stdout, "");
    let all = place.run(&["prune", "--older-than", "0s", "--yes"]);
    assert_eq!(all.assert_code(0).stdout.trim(), new);
}
