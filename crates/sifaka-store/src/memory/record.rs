//! What the in-memory journal holds.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use jiff::Timestamp;
use sifaka_core::body::BLOB_THRESHOLD;
use sifaka_core::event::Sealed;
use sifaka_core::journal::{Retention, RunQuery, RunStatus, RunSummary, Verification, Verify};
use sifaka_core::{Body, Event, Hash, Id, Result};

use crate::link::{Link, LinkKind};
use crate::summary::{
    ENOUGH, Summary, asked, being_written, content_fits, prompt_line, thoughts, was_erased,
};

/// Runs, bodies that are stored apart, and the chain over all of it.
#[derive(Default)]
pub(super) struct Records {
    runs: HashMap<Id, Run>,
    /// In the order in which they began.
    order: VecDeque<Id>,
    links: VecDeque<(Link, Hash)>,
    /// The last link that was forgotten: its number and hash.
    base: Option<(i64, Hash)>,
    blobs: HashMap<Hash, Arc<[u8]>>,
    /// The most runs to keep; all of them without.
    capacity: Option<usize>,
}

#[derive(Default)]
struct Run {
    events: Vec<Arc<Event>>,
    /// As many of the events as somebody asked the hashes of.
    sealed: Vec<Sealed>,
    /// Hashes of its bodies that are stored apart.
    blobs: HashSet<Hash>,
    /// What is left to say when it was erased: a summary, and the names of its Thoughts.
    erased: Option<(Summary, Vec<Id>)>,
    is_open: bool,
    /// How many events it had when it was last closed.
    closed: usize,
}

impl Run {
    fn summary(&self) -> Option<Summary> {
        if let Some((summary, _)) = &self.erased {
            return Some(summary.clone());
        }
        let mut summary = Summary::new(self.events.first()?.time);
        for event in &self.events {
            summary.apply(event.time, &event.kind);
        }
        Some(summary)
    }

    fn len(&self) -> usize {
        if self.erased.is_some() { self.sealed.len() } else { self.events.len() }
    }

    /// Hashes what was not yet hashed.
    fn seal(&mut self, blobs: &mut HashMap<Hash, Arc<[u8]>>) -> Result<()> {
        if self.erased.is_some() {
            return Ok(());
        }
        for event in &self.events[self.sealed.len()..] {
            let previous = self.sealed.last().map_or(Hash::ZERO, |sealed| sealed.hash);
            let mut apart = Vec::new();
            let sealed = match event.kind.split_off_bodies(BLOB_THRESHOLD, &mut apart) {
                None => event.seal(previous)?,
                Some(kind) => Event { kind, ..Event::clone(event) }.seal(previous)?,
            };
            for (pointer, body) in apart {
                if let Some(bytes) = body.to_bytes() {
                    blobs.entry(pointer.blob).or_insert(bytes);
                    self.blobs.insert(pointer.blob);
                }
            }
            event.kind.for_each_body(|body| {
                if let Body::Blob(pointer) = body {
                    self.blobs.insert(pointer.blob);
                }
            });
            self.sealed.push(sealed);
        }
        Ok(())
    }

    fn thoughts(&self) -> Vec<Id> {
        match &self.erased {
            Some((_, names)) => names.clone(),
            None => self.events.iter().flat_map(|event| thoughts(&event.kind)).collect(),
        }
    }

    fn fits(&self, query: &RunQuery) -> bool {
        match self.events.first().and_then(|event| asked(&event.kind)) {
            Some((prompt, tags)) => content_fits(query, prompt, tags),
            None => query.contains.is_none() && query.tag.is_none(),
        }
    }

    fn prompt(&self) -> Option<String> {
        self.events
            .first()
            .and_then(|event| asked(&event.kind))
            .map(|(prompt, _)| prompt_line(prompt))
    }
}

impl Records {
    pub(super) fn bounded(runs: usize) -> Self {
        Self { capacity: Some(runs), ..Self::default() }
    }

    pub(super) fn has(&self, run: &Id) -> bool {
        self.runs.get(run).is_some_and(|run| run.len() > 0)
    }

    /// Lets somebody write to a run; gives the number of its next event.
    pub(super) fn open(&mut self, run: &Id) -> Result<u64> {
        let entry = self.runs.entry(run.clone()).or_default();
        if entry.is_open {
            return Err(being_written(run, " in this program already"));
        }
        if entry.erased.is_some() {
            return Err(was_erased(run));
        }
        entry.is_open = true;
        Ok(entry.events.len() as u64)
    }

    pub(super) fn extend(&mut self, run: &Id, events: &mut Vec<Arc<Event>>, time: Timestamp) {
        let Some(entry) = self.runs.get_mut(run) else { return };
        let is_new = entry.events.is_empty();
        entry.events.append(events);
        if is_new {
            self.order.push_back(run.clone());
            self.link(LinkKind::Opened, run, 1, time, "");
        }
    }

    /// Ends a log; gives the head of the chain.
    pub(super) fn close(&mut self, run: &Id, time: Timestamp) -> Hash {
        let closed = self.runs.get_mut(run).and_then(|entry| {
            let events = entry.events.len();
            (std::mem::replace(&mut entry.closed, events) != events).then_some(events)
        });
        if let Some(events) = closed {
            self.link(LinkKind::Closed, run, events, time, "");
        }
        self.head()
    }

    pub(super) fn release(&mut self, run: &Id) {
        if let Some(entry) = self.runs.get_mut(run) {
            entry.is_open = false;
            if entry.len() == 0 {
                self.runs.remove(run);
            }
        }
        self.forget();
    }

    fn link(&mut self, kind: LinkKind, run: &Id, events: usize, time: Timestamp, reason: &str) {
        let n =
            self.links.back().map_or_else(|| self.base.map_or(0, |(n, _)| n), |(link, _)| link.n)
                + 1;
        let link = Link {
            n,
            kind,
            run_id: run.as_str().to_owned(),
            events: i64::try_from(events).unwrap_or(i64::MAX),
            event: Hash::ZERO,
            time: i64::try_from(time.as_nanosecond()).unwrap_or(i64::MAX),
            reason: reason.to_owned(),
        };
        let hash = link.hash(self.head());
        self.links.push_back((link, hash));
    }

    /// Keeps to the capacity.
    fn forget(&mut self) {
        let Some(capacity) = self.capacity else { return };
        while self.order.len() > capacity {
            let runs = &self.runs;
            let is_idle = |run: &Id| runs.get(run).is_none_or(|run| !run.is_open);
            let Some(at) = self.order.iter().position(is_idle) else { return };
            if let Some(run) = self.order.remove(at)
                && let Some(gone) = self.runs.remove(&run)
            {
                self.drop_blobs(&gone.blobs);
            }
        }
        while let Some((link, hash)) = self.links.front()
            && !self.runs.contains_key(link.run_id.as_str())
        {
            self.base = Some((link.n, *hash));
            self.links.pop_front();
        }
    }

    fn drop_blobs(&mut self, hashes: &HashSet<Hash>) {
        for hash in hashes {
            if !self.runs.values().any(|run| run.blobs.contains(hash)) {
                self.blobs.remove(hash);
            }
        }
    }

    pub(super) fn blob(&self, hash: &Hash) -> Option<Arc<[u8]>> {
        self.blobs.get(hash).map(Arc::clone)
    }

    pub(super) fn sealed(&mut self, run: &Id) -> Result<&[Sealed]> {
        let Some(entry) = self.runs.get_mut(run) else { return Ok(&[]) };
        entry.seal(&mut self.blobs)?;
        Ok(&entry.sealed)
    }

    pub(super) fn events(&self, run: &Id) -> &[Arc<Event>] {
        self.runs.get(run).map_or(&[], |run| &run.events)
    }

    pub(super) fn head(&self) -> Hash {
        self.links.back().map_or_else(|| self.base_hash(), |(_, hash)| *hash)
    }

    fn base_hash(&self) -> Hash {
        self.base.map_or(Hash::ZERO, |(_, hash)| hash)
    }

    /// Runs, newest first.
    fn newest_first(&self) -> Vec<(&Id, &Run, Summary)> {
        let mut runs: Vec<_> = (self.order.iter().rev())
            .filter_map(|id| {
                let run = self.runs.get(id)?;
                Some((id, run, run.summary()?))
            })
            .collect();
        runs.sort_by_key(|(_, _, summary)| std::cmp::Reverse(summary.started));
        runs
    }

    pub(super) fn list(&self, query: &RunQuery) -> Vec<RunSummary> {
        let limit = if query.limit == 0 { usize::MAX } else { query.limit };
        self.newest_first()
            .into_iter()
            .filter(|(_, run, summary)| {
                query.chain.as_deref().is_none_or(|c| summary.chain_id.as_deref() == Some(c))
                    && query.passed.is_none_or(|passed| summary.passed == Some(passed))
                    && query.before.is_none_or(|before| summary.started < before)
                    && run.fits(query)
            })
            .skip(query.offset)
            .take(limit)
            .map(|(id, run, summary)| summary.into_run(id.clone(), run.len() as u64, run.prompt()))
            .collect()
    }

    /// Runs, and Thoughts with their runs, whose ids begin so; of an exact id only that.
    pub(super) fn beginning_with(&self, prefix: &str) -> (Vec<Id>, Vec<(Id, Id)>) {
        if self.has_id(prefix) {
            return (
                self.order.iter().filter(|id| id.as_str() == prefix).cloned().collect(),
                vec![],
            );
        }
        let runs = self.order.iter().filter(|id| id.as_str().starts_with(prefix)).cloned();
        let mut thoughts: Vec<(Id, Id)> = Vec::new();
        for (id, run) in self.order.iter().filter_map(|id| Some((id, self.runs.get(id)?))) {
            let named = run.thoughts().into_iter().filter(|thought| thought != id);
            let fitting = named.filter(|thought| thought.as_str().starts_with(prefix));
            thoughts.extend(fitting.map(|thought| (thought, id.clone())));
        }
        if thoughts.iter().any(|(thought, _)| thought.as_str() == prefix) {
            thoughts.retain(|(thought, _)| thought.as_str() == prefix);
            return (Vec::new(), thoughts);
        }
        thoughts.truncate(ENOUGH);
        (runs.take(ENOUGH).collect(), thoughts)
    }

    fn has_id(&self, id: &str) -> bool {
        self.runs.get(id).is_some_and(|run| run.len() > 0)
    }

    pub(super) fn verify(&mut self, what: &Verify) -> Result<Verification> {
        let mut found = Verification { head: Some(self.head()), ..Verification::default() };
        let mut previous = self.base_hash();
        for (link, hash) in &self.links {
            if link.hash(previous) != *hash {
                found.problems.push(format!("link {} of the journal's chain was changed", link.n));
            }
            previous = *hash;
        }
        if let Some(head) = what.head
            && head != self.base_hash()
            && !self.links.iter().any(|(_, hash)| *hash == head)
        {
            found.problems.push(crate::sqlite::missing_head(&head));
        }
        for (id, run) in &mut self.runs {
            if what.run.as_ref().is_some_and(|only| only != id) || run.len() == 0 {
                continue;
            }
            run.seal(&mut self.blobs)?;
            found.runs += 1;
            let mut previous = Hash::ZERO;
            for (seq, sealed) in (0_u64..).zip(&run.sealed) {
                found.events += 1;
                found.erased += u64::from(sealed.payload.is_none());
                if let Some(problem) = sealed.problem(previous, seq) {
                    found.problems.push(format!("run {id}, event {seq}: {problem}"));
                }
                previous = sealed.hash;
            }
        }
        found.blobs = self.blobs.len() as u64;
        for (hash, bytes) in &self.blobs {
            if Hash::of(bytes) != *hash {
                found.problems.push(format!("the body {hash} was changed"));
            }
        }
        Ok(found)
    }

    pub(super) fn erase(&mut self, run: &Id, time: Timestamp, reason: &str) -> Result<bool> {
        let Some(entry) = self.runs.get_mut(run) else { return Ok(false) };
        if entry.is_open {
            return Err(being_written(run, " in this program"));
        }
        let (None, Some(summary)) = (&entry.erased, entry.summary()) else { return Ok(false) };
        entry.seal(&mut self.blobs)?;
        entry.erased = Some((summary.erased(), entry.thoughts()));
        entry.events = Vec::new();
        entry.sealed.iter_mut().for_each(|sealed| sealed.payload = None);
        let (events, blobs) = (entry.sealed.len(), std::mem::take(&mut entry.blobs));
        self.drop_blobs(&blobs);
        self.link(LinkKind::Erased, run, events, time, reason);
        Ok(true)
    }

    /// The runs that need not be kept, oldest first.
    pub(super) fn beyond(&self, keep: &Retention) -> Vec<Id> {
        let mut runs = self.newest_first();
        runs.retain(|(_, _, summary)| summary.status != RunStatus::Erased);
        let beyond = |(place, (id, run, summary)): (usize, &(&Id, &Run, Summary))| {
            let is_old = keep.newer_than.is_some_and(|time| summary.updated < time);
            let is_extra = keep.newest.is_some_and(|newest| place >= newest);
            (!run.is_open && (is_old || is_extra)).then(|| (*id).clone())
        };
        let mut victims: Vec<Id> = runs.iter().enumerate().filter_map(beyond).collect();
        victims.reverse();
        victims
    }
}
