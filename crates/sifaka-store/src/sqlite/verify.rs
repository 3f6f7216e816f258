//! Proving that the record is intact. Reads row by row, so that size does not matter.

use rusqlite::{Connection, ErrorCode, Rows};
use sifaka_core::journal::{Verification, Verify};
use sifaka_core::{Body, Context, Error, ErrorKind, Hash, Id, Result};

use super::index::{Expected, Totals, erased_problem};
use super::row::{
    EVENT_COLUMNS, LINK_COLUMNS, RUN_COLUMNS, StoredEvent, StoredRun, hash, read_link,
};
use super::writer::Refusal;
use crate::link::{Link, LinkKind};
use crate::summary::Summary;

/// What is said of a head that the chain does not have.
pub(crate) fn missing_head(head: &Hash) -> String {
    format!("the journal does not contain head {head}: its tail was cut, or it is another journal")
}

/// Checks every hash of every run, or of one.
pub(super) fn verify(
    ctx: &Context,
    connection: &Connection,
    what: &Verify,
) -> Result<Verification, Refusal> {
    let mut check =
        Check { ctx, connection, found: Verification::default(), totals: Totals::default() };
    match check.all(what) {
        Ok(()) => {}
        // The rest cannot be read. What was found so far is still worth knowing.
        Err(Refusal::Failed(error))
            if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) =>
        {
            check.problem(format!("the file itself is damaged: {error}"));
        }
        Err(refusal) => return Err(refusal),
    }
    Ok(check.found)
}

struct Check<'a> {
    ctx: &'a Context,
    connection: &'a Connection,
    found: Verification,
    totals: Totals,
}

impl Check<'_> {
    fn problem(&mut self, problem: String) {
        self.found.problems.push(problem);
    }

    fn all(&mut self, what: &Verify) -> Result<(), Refusal> {
        self.chain(what.head)?;
        self.runs(what.run.as_ref())?;
        let surplus = self.totals.problems(self.connection, what.run.as_ref())?;
        self.found.problems.extend(surplus);
        if what.run.is_none() {
            self.strays()?;
        }
        self.bodies(what.run.as_ref())
    }

    /// The chain over the whole journal.
    fn chain(&mut self, head: Option<Hash>) -> Result<(), Refusal> {
        let connection = self.connection;
        let mut statement =
            connection.prepare(&format!("SELECT {LINK_COLUMNS} FROM chain ORDER BY n"))?;
        let mut rows = statement.query([])?;
        let (mut previous, mut expected) = (Hash::ZERO, 1_i64);
        let mut has_head = head.is_none_or(|head| head == Hash::ZERO);
        while let Some(row) = rows.next()? {
            let n: i64 = row.get(0)?;
            if n != expected {
                self.problem(format!(
                    "links {expected} to {} of the journal's chain are missing",
                    n - 1
                ));
            }
            match read_link(row) {
                Some((link, hash)) => {
                    if link.hash(previous) != hash {
                        self.problem(format!(
                            "link {n} of the journal's chain (run {}) was changed, or does not \
                             follow the one before it",
                            link.run_id
                        ));
                    }
                    previous = hash;
                }
                None => {
                    self.problem(format!("link {n} of the journal's chain cannot be read"));
                    previous = hash(row, 7).unwrap_or(Hash::ZERO);
                }
            }
            has_head |= head == Some(previous);
            expected = n.saturating_add(1);
        }
        self.found.head = Some(previous);
        if let (false, Some(head)) = (has_head, head) {
            self.problem(missing_head(&head));
        }
        Ok(())
    }

    /// Every run, against the chain.
    fn runs(&mut self, only: Option<&Id>) -> Result<(), Refusal> {
        let connection = self.connection;
        let id = only.map(Id::as_str);
        let mut runs = connection.prepare(&format!(
            "SELECT {RUN_COLUMNS} FROM runs WHERE ?1 IS NULL OR run_id = ?1 ORDER BY run_id"
        ))?;
        let mut links = connection.prepare(&format!(
            "SELECT {LINK_COLUMNS} FROM chain WHERE ?1 IS NULL OR run_id = ?1 ORDER BY run_id, n"
        ))?;
        let mut rows = runs.query([id])?;
        let mut links = Links { rows: links.query([id])?, next: None };
        let mut is_known = false;
        while let Some(row) = rows.next()? {
            self.ctx.check()?;
            is_known = true;
            let Some(run) = StoredRun::read(row).ok().flatten() else {
                self.problem("the entry of a run cannot be read".to_owned());
                continue;
            };
            while let Some(link) = links.before(Some(run.run_id.as_str()))? {
                self.missing(&link);
            }
            let mut own = Vec::new();
            while let Some(link) = links.of(run.run_id.as_str())? {
                own.push(link);
            }
            self.run(&run, &own)?;
        }
        while let Some(link) = links.before(None)? {
            is_known = true;
            self.missing(&link);
        }
        match only {
            Some(run) if !is_known => Err(Error::new(
                ErrorKind::NotFound,
                "journal",
                "verify",
                format!("there is no run {run}"),
            )
            .suggest("`sifaka list` shows the runs of this journal")
            .into()),
            _ => Ok(()),
        }
    }

    fn missing(&mut self, link: &Link) {
        if link.kind == LinkKind::Opened {
            self.problem(format!("run {} is missing", link.run_id));
        }
    }

    fn run(&mut self, run: &StoredRun, links: &[Link]) -> Result<(), Refusal> {
        let id = &run.run_id;
        self.found.runs += 1;
        if !links.iter().any(|link| link.kind == LinkKind::Opened) {
            self.problem(format!("run {id} is not in the journal's chain"));
        }
        if usize::try_from(run.links) != Ok(links.len()) {
            self.problem(format!(
                "run {id}: the journal's chain has {} of its {} links",
                links.len(),
                run.links
            ));
        }
        let has_tombstone = links.iter().any(|link| link.kind == LinkKind::Erased);
        if run.is_erased() != has_tombstone {
            let claim = if has_tombstone {
                "not marked as erased, but has a"
            } else {
                "marked as erased, without a"
            };
            self.problem(format!("run {id} is {claim} tombstone"));
        }
        let connection = self.connection;
        let mut statement = connection.prepare_cached(&format!(
            "SELECT {EVENT_COLUMNS} FROM events WHERE run_no = ?1 ORDER BY seq"
        ))?;
        let mut rows = statement.query([run.run_no])?;
        let mut walk = Walk::default();
        while let Some(row) = rows.next()? {
            match StoredEvent::read(row, id, walk.previous) {
                Some(event) => self.event(run, event, links, has_tombstone, &mut walk)?,
                None => {
                    let seq: u64 = row.get(0).unwrap_or(walk.expected);
                    self.problem(format!("run {id}, event {seq}: it cannot be read"));
                    walk.previous = hash(row, 4).unwrap_or(Hash::ZERO);
                    walk.expected = seq.saturating_add(1);
                    walk.count += 1;
                }
            }
        }
        self.run_end(run, links, has_tombstone, &walk);
        self.index(run, has_tombstone, &walk.index)
    }

    fn event(
        &mut self,
        run: &StoredRun,
        event: StoredEvent,
        links: &[Link],
        has_tombstone: bool,
        walk: &mut Walk,
    ) -> Result<(), Refusal> {
        let StoredEvent { mut sealed, is_blank } = event;
        let (id, seq) = (&run.run_id, sealed.header.seq);
        self.found.events += 1;
        if has_tombstone {
            self.found.erased += 1;
            if !is_blank {
                self.problem(format!(
                    "run {id}, event {seq}: it was erased, but its content is there"
                ));
            }
            sealed.payload = None;
        } else if sealed.payload.is_none() {
            self.problem(format!(
                "run {id}, event {seq}: its content is missing, and no tombstone says that it was erased"
            ));
        }
        if let Some(problem) = sealed.problem(walk.previous, walk.expected) {
            self.problem(format!("run {id}, event {seq}: {problem}"));
        }
        for link in links {
            if u64::try_from(link.events) == Ok(seq.saturating_add(1)) && link.event != sealed.hash
            {
                self.problem(format!(
                    "run {id}, event {seq}: it is not the one that link {} of the journal's chain \
                     knows",
                    link.n
                ));
            }
        }
        let time = sealed.header.time;
        let summary = walk.summary.get_or_insert_with(|| Summary::new(time));
        summary.updated = time;
        if let Some(payload) = &sealed.payload {
            let points = payload.windows(7).any(|window| window == b"\"blob\":");
            if (points || Summary::is_changed_by(&sealed.header.kind))
                && let Ok(Some(event)) = sealed.open()
            {
                summary.apply(time, &event.kind);
                walk.index.take(id, seq, &event.kind);
                let mut pointers = Vec::new();
                event.kind.for_each_body(|body| {
                    if let Body::Blob(pointer) = body {
                        pointers.push(pointer.blob);
                    }
                });
                self.pointers(run, seq, &pointers)?;
            }
        }
        walk.previous = sealed.hash;
        walk.expected = seq.saturating_add(1);
        walk.count += 1;
        Ok(())
    }

    fn pointers(&mut self, run: &StoredRun, seq: u64, hashes: &[Hash]) -> Result<(), Refusal> {
        for hash in hashes {
            let is_there = self
                .connection
                .prepare_cached(
                    "SELECT 1 FROM blobs WHERE hash = ?1
                     UNION ALL
                     SELECT 1 FROM blob_refs WHERE run_no = ?2 AND hash = ?1 AND elsewhere = 1",
                )?
                .exists(rusqlite::params![hash.as_bytes(), run.run_no])?;
            if !is_there {
                self.problem(format!(
                    "run {}, event {seq}: the body {hash} is missing",
                    run.run_id
                ));
            }
        }
        Ok(())
    }

    /// What can only be said when all of a run's events were seen.
    fn run_end(&mut self, run: &StoredRun, links: &[Link], has_tombstone: bool, walk: &Walk) {
        let id = &run.run_id;
        let linked = links.iter().filter_map(|link| u64::try_from(link.events).ok()).max();
        let written = linked.unwrap_or(0).max(run.events);
        if walk.count != written || walk.expected != written {
            self.problem(format!("run {id} has {} events; {written} were written", walk.count));
        } else if run.events != written {
            self.problem(format!("run {id} has {written} events; its entry says {}", run.events));
        } else if walk.previous != run.last_hash {
            self.problem(format!("run {id} does not end with the event that was written last"));
        }
        let closed = links.iter().filter(|link| link.kind == LinkKind::Closed);
        let closed = closed.filter_map(|link| u64::try_from(link.events).ok()).max();
        if run.closed != closed.unwrap_or(0) {
            self.problem(format!("run {id}: its entry and the journal's chain differ on its end"));
        }
        let Some(summary) = &walk.summary else { return };
        let expected = if has_tombstone { summary.erased() } else { summary.clone() };
        let is_near = match (expected.score, run.summary.score) {
            (Some(a), Some(b)) => (a - b).abs() < 1e-9,
            (a, b) => a.is_none() && b.is_none(),
        };
        let listed = Summary { score: expected.score, ..run.summary.clone() };
        if listed != expected || !is_near {
            self.problem(format!(
                "run {id}: its entry in the list of runs does not fit its events"
            ));
        }
    }

    /// What the run is listed and found by.
    fn index(
        &mut self,
        run: &StoredRun,
        has_tombstone: bool,
        expected: &Expected,
    ) -> Result<(), Refusal> {
        if has_tombstone {
            self.found.problems.extend(erased_problem(self.connection, run)?);
        } else {
            self.found.problems.extend(expected.problems(self.connection, run)?);
            self.totals.add(expected);
        }
        Ok(())
    }

    /// Events that belong to no run.
    fn strays(&mut self) -> Result<(), Refusal> {
        let connection = self.connection;
        let mut statement = connection.prepare(
            "SELECT run_no, count(*) FROM events
             WHERE run_no NOT IN (SELECT run_no FROM runs) GROUP BY run_no",
        )?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (run_no, count): (i64, u64) = (row.get(0)?, row.get(1)?);
            self.problem(format!(
                "{count} events belong to a run that is missing (number {run_no})"
            ));
        }
        Ok(())
    }

    /// Bodies that are stored apart.
    fn bodies(&mut self, only: Option<&Id>) -> Result<(), Refusal> {
        let connection = self.connection;
        let mut statement = connection.prepare(
            "SELECT h.hash, b.bytes FROM blobs h LEFT JOIN bodies b ON b.body_no = h.body_no
             WHERE ?1 IS NULL OR h.hash IN (
                 SELECT f.hash FROM blob_refs f JOIN runs r ON r.run_no = f.run_no
                 WHERE r.run_id = ?1)",
        )?;
        let mut rows = statement.query([only.map(Id::as_str)])?;
        while let Some(row) = rows.next()? {
            self.ctx.check()?;
            self.found.blobs += 1;
            let bytes = row.get_ref(1)?;
            match (hash(row, 0), bytes.as_blob()) {
                (Some(key), Ok(bytes)) if Hash::of(bytes) == key => {}
                (Some(key), Ok(_)) => self.problem(format!("the body {key} was changed")),
                (Some(key), Err(_)) => self.problem(format!("the body {key} is missing")),
                (None, _) => self.problem("the key of a body was changed".to_owned()),
            }
        }
        Ok(())
    }
}

/// Where the walk along a run's events stands.
#[derive(Default)]
struct Walk {
    previous: Hash,
    expected: u64,
    count: u64,
    summary: Option<Summary>,
    index: Expected,
}

/// Links in the order of their runs. Those that cannot be read were reported already.
struct Links<'a> {
    rows: Rows<'a>,
    next: Option<Link>,
}

impl Links<'_> {
    fn peek(&mut self) -> rusqlite::Result<Option<&Link>> {
        while self.next.is_none() {
            let Some(row) = self.rows.next()? else { return Ok(None) };
            self.next = read_link(row).map(|(link, _)| link);
        }
        Ok(self.next.as_ref())
    }

    /// The next link of a run that sorts before `run`; of any run if that is `None`.
    fn before(&mut self, run: Option<&str>) -> rusqlite::Result<Option<Link>> {
        let is_before = self.peek()?.is_some_and(|link| run.is_none_or(|run| *link.run_id < *run));
        Ok(if is_before { self.next.take() } else { None })
    }

    /// The next link of this run.
    fn of(&mut self, run: &str) -> rusqlite::Result<Option<Link>> {
        let is_its = self.peek()?.is_some_and(|link| link.run_id == run);
        Ok(if is_its { self.next.take() } else { None })
    }
}
