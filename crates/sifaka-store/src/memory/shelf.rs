//! What the in-memory store holds: records, the order of their use, and when they expire.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use sifaka_core::store::{Change, Record};

use super::store::StoreStatistics;

/// A namespace and a key.
type Name = (String, String);

/// Records by namespace and key, no more than a number of them.
pub(super) struct Shelf {
    namespaces: BTreeMap<String, BTreeMap<String, Slot>>,
    /// By when they were last used, oldest first.
    used: BTreeMap<u64, Name>,
    /// By when they expire, soonest first.
    expiring: BTreeSet<(Timestamp, Name)>,
    capacity: usize,
    ticks: u64,
    pub(super) statistics: StoreStatistics,
}

struct Slot {
    record: Record,
    used: u64,
}

impl Shelf {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            namespaces: BTreeMap::new(),
            used: BTreeMap::new(),
            expiring: BTreeSet::new(),
            capacity: capacity.max(1),
            ticks: 0,
            statistics: StoreStatistics::default(),
        }
    }

    /// Lets go of what has expired. Whoever reads calls this first.
    pub(super) fn expire(&mut self, now: Timestamp) {
        while let Some((at, (namespace, key))) = self.expiring.first()
            && *at <= now
        {
            let (namespace, key) = (namespace.clone(), key.clone());
            self.remove(&namespace, &key);
            self.statistics.expirations += 1;
        }
    }

    pub(super) fn get(&mut self, namespace: &str, key: &str) -> Option<Record> {
        let slot = self.namespaces.get_mut(namespace).and_then(|records| records.get_mut(key));
        let Some(slot) = slot else {
            self.statistics.misses += 1;
            return None;
        };
        self.statistics.hits += 1;
        self.ticks += 1;
        if let Some(name) = self.used.remove(&slot.used) {
            self.used.insert(self.ticks, name);
        }
        slot.used = self.ticks;
        Some(slot.record.clone())
    }

    /// The records of a namespace, by key.
    pub(super) fn records(&self, namespace: &str) -> impl Iterator<Item = &Record> {
        let records = self.namespaces.get(namespace).into_iter().flatten();
        records.map(|(_, slot)| &slot.record)
    }

    /// Keys of a namespace after one, in order.
    pub(super) fn keys(&self, namespace: &str, after: Option<&str>, limit: usize) -> Vec<String> {
        use std::ops::Bound;
        let Some(records) = self.namespaces.get(namespace) else { return Vec::new() };
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let keys = records.range::<str, _>((from, Bound::Unbounded));
        keys.take(limit).map(|(key, _)| key.clone()).collect()
    }

    /// Puts a record; gives the change, if it is one.
    pub(super) fn put(&mut self, mut record: Record) -> Option<Change> {
        let old = self.namespaces.get(&record.namespace).and_then(|all| all.get(&record.key));
        if let Some(old) = old {
            record.created = old.record.created;
            if old.record == record {
                return None;
            }
        }
        self.remove(&record.namespace, &record.key);
        while self.used.len() >= self.capacity
            && let Some((_, (namespace, key))) = self.used.pop_first()
        {
            self.remove(&namespace, &key);
            self.statistics.evictions += 1;
        }
        self.ticks += 1;
        let name = (record.namespace.clone(), record.key.clone());
        if let Some(at) = record.expires {
            self.expiring.insert((at, name.clone()));
        }
        self.used.insert(self.ticks, name);
        let slot = Slot { record: record.clone(), used: self.ticks };
        let records = self.namespaces.entry(record.namespace.clone()).or_default();
        records.insert(record.key.clone(), slot);
        self.statistics.entries = self.used.len();
        Some(Change::Put(Box::new(record)))
    }

    /// Removes a record; says whether there was one.
    pub(super) fn remove(&mut self, namespace: &str, key: &str) -> bool {
        let Some(records) = self.namespaces.get_mut(namespace) else { return false };
        let Some(slot) = records.remove(key) else { return false };
        if records.is_empty() {
            self.namespaces.remove(namespace);
        }
        self.used.remove(&slot.used);
        if let Some(at) = slot.record.expires {
            self.expiring.remove(&(at, (namespace.to_owned(), key.to_owned())));
        }
        self.statistics.entries = self.used.len();
        true
    }
}
