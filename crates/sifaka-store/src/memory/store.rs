//! The store that is gone when the program ends.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use futures_util::stream;
use sifaka_core::store::{
    Change, ChangeStream, Find, Hit, Page, Record, Search, StoreCapabilities,
};
use sifaka_core::{Context, Error, ErrorKind, Filter, Result, Store};
use tokio::sync::broadcast::{self, error::RecvError};

use super::search::Query;
use super::shelf::Shelf;
use super::sort::Place;

/// How many changes a watcher may be behind.
const WATCHED_CHANGES: usize = 1024;

/// Keeps records in memory, at most so many: the one that was not used for longest makes room.
///
/// It can do everything a store can, but for surviving the program. Making room is not a change:
/// watchers hear of what was put and deleted, not of what was let go of or has expired.
///
/// Clones share the same records.
#[derive(Clone)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

struct Shared {
    shelf: Mutex<Shelf>,
    changes: broadcast::Sender<Arc<Change>>,
}

/// How a store was used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreStatistics {
    /// Records it has.
    pub entries: usize,
    /// Keys that were asked for and there.
    pub hits: u64,
    /// Keys that were asked for and not there.
    pub misses: u64,
    /// Records that made room for others.
    pub evictions: u64,
    /// Records whose time was up.
    pub expirations: u64,
}

impl MemoryStore {
    /// How many records fit, if nothing else is said.
    pub const CAPACITY: usize = 100_000;

    /// An empty store for [`CAPACITY`](Self::CAPACITY) records.
    #[must_use]
    pub fn new() -> Self {
        Self::with_capacity(Self::CAPACITY)
    }

    /// An empty store for `records` records, at least one.
    #[must_use]
    pub fn with_capacity(records: usize) -> Self {
        let shelf = Mutex::new(Shelf::new(records));
        Self {
            shared: Arc::new(Shared { shelf, changes: broadcast::Sender::new(WATCHED_CHANGES) }),
        }
    }

    /// How it was used so far.
    #[must_use]
    pub fn statistics(&self) -> StoreStatistics {
        self.lock().statistics
    }

    fn lock(&self) -> MutexGuard<'_, Shelf> {
        self.shared.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The records, without those that have expired.
    fn at(&self, ctx: &Context) -> MutexGuard<'_, Shelf> {
        let mut shelf = self.lock();
        shelf.expire(ctx.now());
        shelf
    }

    /// Tells the watchers; called with the shelf locked, so that changes come in their order.
    fn tell(&self, change: Change) {
        // Nobody may be watching.
        let _ = self.shared.changes.send(Arc::new(change));
    }

    fn apply(&self, shelf: &mut Shelf, change: Change) -> bool {
        match change {
            Change::Put(record) => match shelf.put(*record) {
                Some(change) => self.tell(change),
                None => return false,
            },
            Change::Delete { namespace, key } => {
                if !shelf.remove(&namespace, &key) {
                    return false;
                }
                self.tell(Change::Delete { namespace, key });
            }
        }
        true
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore")
            .field("statistics", &self.statistics())
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Store for MemoryStore {
    fn name(&self) -> &str {
        "memory"
    }

    fn capabilities(&self) -> StoreCapabilities {
        StoreCapabilities {
            text_search: true,
            vector_search: true,
            filter: true,
            sort: true,
            watch: true,
            expiry: true,
            atomic_batch: true,
            durable: false,
        }
    }

    async fn get(&self, ctx: &Context, namespace: &str, key: &str) -> Result<Option<Record>> {
        Ok(self.at(ctx).get(namespace, key))
    }

    async fn put(&self, ctx: &Context, record: Record) -> Result<()> {
        self.apply(&mut self.at(ctx), Change::Put(Box::new(record)));
        Ok(())
    }

    async fn delete(&self, ctx: &Context, namespace: &str, key: &str) -> Result<bool> {
        let change = Change::Delete { namespace: namespace.to_owned(), key: key.to_owned() };
        Ok(self.apply(&mut self.at(ctx), change))
    }

    async fn list(
        &self,
        ctx: &Context,
        namespace: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>> {
        Ok(self.at(ctx).keys(namespace, after, limit))
    }

    async fn find(&self, ctx: &Context, find: &Find) -> Result<Page> {
        let after = find.after.as_deref().map(Place::parse).transpose()?;
        let sort = find.sort.as_ref();
        let is_descending = sort.is_some_and(|sort| sort.descending);
        let shelf = self.at(ctx);
        let mut found: Vec<(Place, &Record)> = shelf
            .records(&find.namespace)
            .filter(|record| find.filter.matches(Some(&record.metadata)))
            .map(|record| (Place::of(record, sort), record))
            .filter(|(place, _)| {
                after.as_ref().is_none_or(|after| place.compare(after, is_descending).is_gt())
            })
            .collect();
        found.sort_by(|(a, _), (b, _)| a.compare(b, is_descending));
        let is_last = found.len() <= find.limit;
        found.truncate(find.limit);
        let next = match found.last() {
            Some((place, _)) if !is_last => Some(place.cursor()?),
            _ => None,
        };
        Ok(Page { records: found.into_iter().map(|(_, record)| record.clone()).collect(), next })
    }

    async fn search(&self, ctx: &Context, search: &Search) -> Result<Vec<Hit>> {
        let shelf = self.at(ctx);
        let records: Vec<&Record> = shelf
            .records(&search.namespace)
            .filter(|record| search.filter.matches(Some(&record.metadata)))
            .collect();
        let query = Query::new(search, &records)?;
        let mut hits: Vec<(f64, &Record)> = records
            .into_iter()
            .filter_map(|record| query.score(record).map(|score| (score, record)))
            .collect();
        hits.sort_by(|(a, x), (b, y)| b.total_cmp(a).then_with(|| x.key.cmp(&y.key)));
        hits.truncate(search.limit);
        let hit = |(score, record): (f64, &Record)| Hit { record: record.clone(), score };
        Ok(hits.into_iter().map(hit).collect())
    }

    async fn batch(&self, ctx: &Context, changes: Vec<Change>) -> Result<()> {
        // Nothing in here can fail, and nobody sees the shelf before all of it is done.
        let mut shelf = self.at(ctx);
        for change in changes {
            self.apply(&mut shelf, change);
        }
        Ok(())
    }

    async fn watch(&self, _ctx: &Context, namespace: &str) -> Result<ChangeStream> {
        let receiver = self.shared.changes.subscribe();
        let state = (receiver, namespace.to_owned());
        Ok(Box::pin(stream::unfold(state, |(mut receiver, namespace)| async move {
            loop {
                let item = match receiver.recv().await {
                    Ok(change) if is_in(&change, &namespace) => Ok(Change::clone(&change)),
                    Ok(_) => continue,
                    Err(RecvError::Lagged(missed)) => Err(lagged(missed)),
                    Err(RecvError::Closed) => return None,
                };
                return Some((item, (receiver, namespace)));
            }
        })))
    }

    async fn count(&self, ctx: &Context, namespace: &str, filter: &Filter) -> Result<u64> {
        let shelf = self.at(ctx);
        let fitting =
            shelf.records(namespace).filter(|record| filter.matches(Some(&record.metadata)));
        Ok(fitting.count() as u64)
    }

    async fn health(&self, _ctx: &Context) -> Result<()> {
        Ok(())
    }
}

fn is_in(change: &Change, wanted: &str) -> bool {
    match change {
        Change::Put(record) => record.namespace == wanted,
        Change::Delete { namespace, .. } => namespace == wanted,
    }
}

fn lagged(missed: u64) -> Error {
    Error::new(
        ErrorKind::Overloaded,
        "memory",
        "watch",
        format!("{missed} changes came faster than they were read and are lost to this watcher"),
    )
    .suggest("read the namespace again, then go on watching")
}
