//! Whether what runs are listed and found by says the same as their events.

use std::collections::BTreeSet;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, params};
use sifaka_core::{EventKind, Id};

use super::read::tag_code;
use super::row::{ERASED, StoredRun};
use crate::summary::{asked, prompt_line, thoughts};

/// What stands beside a run's events, as the events have it.
#[derive(Default)]
pub(super) struct Expected {
    prompt: Option<String>,
    tags: BTreeSet<i64>,
    thoughts: BTreeSet<Id>,
}

impl Expected {
    /// Takes the next event of a run.
    pub(super) fn take(&mut self, run: &Id, seq: u64, kind: &EventKind) {
        if seq == 0
            && let Some((prompt, tags)) = asked(kind)
        {
            self.prompt = Some(prompt_line(prompt));
            self.tags = tags.iter().map(|(key, value)| tag_code(key, value)).collect();
        }
        // The run's own id is found among the runs.
        self.thoughts.extend(thoughts(kind).into_iter().filter(|thought| thought != run));
    }

    /// What is missing or different.
    pub(super) fn problems(
        &self,
        connection: &Connection,
        run: &StoredRun,
    ) -> rusqlite::Result<Vec<String>> {
        let mut problems = Vec::new();
        let id = &run.run_id;
        if !prompt_is(connection, run, |line| match (line, &self.prompt) {
            (ValueRef::Text(line), Some(prompt)) => line == prompt.as_bytes(),
            (ValueRef::Null, prompt) => prompt.is_none(),
            _ => false,
        })? {
            problems
                .push(format!("run {id}: its prompt in the list of runs is not what was asked"));
        }
        for tag in &self.tags {
            let has_tag = connection
                .prepare_cached("SELECT 1 FROM tags WHERE tag = ?1 AND run_no = ?2")?
                .exists([*tag, run.run_no])?;
            if !has_tag {
                problems.push(format!("run {id} cannot be found by one of its tags"));
            }
        }
        for thought in &self.thoughts {
            let has_thought = connection
                .prepare_cached("SELECT 1 FROM thoughts WHERE thought_id = ?1 AND run_no = ?2")?
                .exists(params![thought.as_str(), run.run_no])?;
            if !has_thought {
                problems.push(format!("run {id} cannot be found by its Thought {thought}"));
            }
        }
        Ok(problems)
    }
}

/// The prompt's line of a run that was erased; anything but zeros is a problem.
pub(super) fn erased_problem(
    connection: &Connection,
    run: &StoredRun,
) -> rusqlite::Result<Option<String>> {
    let is_blank = prompt_is(connection, run, |line| match line {
        ValueRef::Null => true,
        ValueRef::Blob(bytes) => bytes.iter().all(|byte| *byte == 0),
        _ => false,
    })?;
    let problem = || format!("run {} was erased, but its prompt is there", run.run_id);
    Ok((!is_blank).then(problem))
}

/// Asks something of the line that `list` shows; none at all is null.
fn prompt_is(
    connection: &Connection,
    run: &StoredRun,
    question: impl Fn(ValueRef<'_>) -> bool,
) -> rusqlite::Result<bool> {
    let answer = connection
        .prepare_cached("SELECT line FROM prompts WHERE run_no = ?1")?
        .query_row([run.run_no], |row| Ok(question(row.get_ref(0)?)))
        .optional()?;
    Ok(answer.unwrap_or_else(|| question(ValueRef::Null)))
}

/// How many entries there should be. Each of them was looked for, so that one more than this is
/// one that no event speaks of. They are sorted by what they are found by and not by run: counting
/// them once is cheaper than looking for those of every run.
#[derive(Default)]
pub(super) struct Totals {
    tags: usize,
    thoughts: usize,
}

impl Totals {
    /// Counts in what a run should have.
    pub(super) fn add(&mut self, expected: &Expected) {
        self.tags += expected.tags.len();
        self.thoughts += expected.thoughts.len();
    }

    /// Entries of all runs, or of one, that no event speaks of.
    pub(super) fn problems(
        &self,
        connection: &Connection,
        only: Option<&Id>,
    ) -> rusqlite::Result<Vec<String>> {
        // Which Thoughts a run had is not known any more once it was erased. Its tags are gone.
        let counts = [
            ("tags", "1", self.tags),
            (
                "thoughts",
                "run_no NOT IN (SELECT run_no FROM runs WHERE status >= ?2)",
                self.thoughts,
            ),
        ];
        let mut problems = Vec::new();
        for (table, which, expected) in counts {
            let sql = format!(
                "SELECT count(*) FROM {table} WHERE {which} AND ?2 AND (?1 IS NULL OR run_no IN \
                 (SELECT run_no FROM runs WHERE run_id = ?1))"
            );
            let id = only.map(Id::as_str);
            let found: usize = connection.query_row(&sql, params![id, ERASED], |row| row.get(0))?;
            if found > expected {
                problems.push(format!(
                    "the index of {table} has {} entries that no event speaks of",
                    found - expected
                ));
            }
        }
        if only.is_none() {
            let strays: u64 = connection.query_row(
                "SELECT count(*) FROM prompts WHERE run_no NOT IN (SELECT run_no FROM runs)",
                [],
                |row| row.get(0),
            )?;
            if strays > 0 {
                problems.push(format!("{strays} prompts belong to runs that are missing"));
            }
        }
        Ok(problems)
    }
}
