//! The contract of a store of records.

use std::fmt;
use std::pin::Pin;

use async_trait::async_trait;
use futures_core::Stream;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::filter::Filter;
use crate::{Context, Error, ErrorKind, Result};

/// Something kept under a namespace and a key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Keeps kinds of records apart: `thought`, `document`, `memory`.
    pub namespace: String,
    /// Names it within its namespace.
    pub key: String,
    /// What is kept.
    pub body: Value,
    /// The text that keyword search looks at.
    #[serde(default)]
    pub text: Option<String>,
    /// The vector that search by meaning looks at.
    #[serde(default)]
    pub vector: Option<Vec<f32>>,
    /// Typed fields that filters look at.
    #[serde(default)]
    pub metadata: Map<String, Value>,
    /// When it was first put.
    pub created: Timestamp,
    /// When it was last put.
    pub updated: Timestamp,
    /// When it stops being there.
    #[serde(default)]
    pub expires: Option<Timestamp>,
}

impl Record {
    /// A record with a body and nothing else.
    pub fn new(
        ctx: &Context,
        namespace: impl Into<String>,
        key: impl Into<String>,
        body: Value,
    ) -> Self {
        let now = ctx.now();
        Self {
            namespace: namespace.into(),
            key: key.into(),
            body,
            text: None,
            vector: None,
            metadata: Map::new(),
            created: now,
            updated: now,
            expires: None,
        }
    }
}

/// What to find, in what order and how much of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Find {
    /// Where to look.
    pub namespace: String,
    /// What has to hold.
    pub filter: Filter,
    /// By what to sort; by key if by nothing else.
    pub sort: Option<Sort>,
    /// Go on after this cursor of an earlier page.
    pub after: Option<String>,
    /// The most records to give.
    pub limit: usize,
}

impl Find {
    /// Everything in a namespace, at most `limit`.
    pub fn all(namespace: impl Into<String>, limit: usize) -> Self {
        Self { namespace: namespace.into(), limit, ..Self::default() }
    }
}

/// What to sort by. Records that are equal in it come in the order of their keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sort {
    /// `created`, `updated`, or a field of the metadata.
    pub field: String,
    /// Largest first.
    pub descending: bool,
}

/// Some of the records, and where to go on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Page {
    /// The records.
    pub records: Vec<Record>,
    /// Where the next page begins; `None` when this was the last.
    pub next: Option<String>,
}

/// What to search for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Search {
    /// Where to look.
    pub namespace: String,
    /// Words to look for.
    pub text: Option<String>,
    /// A vector to look near.
    pub vector: Option<Vec<f32>>,
    /// What has to hold.
    pub filter: Filter,
    /// The most records to give.
    pub limit: usize,
}

/// A record that was found, and how well it fits: 0 to 1, higher is better.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hit {
    /// The record.
    pub record: Record,
    /// How well it fits.
    pub score: f64,
}

/// A change to a store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// A record was put.
    Put(Box<Record>),
    /// A record was deleted.
    Delete {
        /// Its namespace.
        namespace: String,
        /// Its key.
        key: String,
    },
}

/// Changes as they come.
pub type ChangeStream = Pin<Box<dyn Stream<Item = Result<Change>> + Send>>;

/// What a store can do; asked, not guessed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreCapabilities {
    /// Finds by words.
    pub text_search: bool,
    /// Finds by vector.
    pub vector_search: bool,
    /// Filters on metadata by itself.
    pub filter: bool,
    /// Sorts by a field.
    pub sort: bool,
    /// Tells of changes.
    pub watch: bool,
    /// Lets records expire.
    pub expiry: bool,
    /// Applies a batch wholly or not at all.
    pub atomic_batch: bool,
    /// Keeps records when the program ends.
    pub durable: bool,
}

/// Keeps records.
///
/// **Contract.** What `put` acknowledged, `get` gives back, to every reader of the same store,
/// equal to what was put (`created` stays that of the first put). Putting the same record twice is
/// putting it once. Keys and filters are data: no character in them has a meaning to the backend.
/// What a backend cannot do is [`ErrorKind::Unsupported`], never an empty result. An expired
/// record is not there.
#[async_trait]
pub trait Store: Send + Sync {
    /// Its name in records and messages.
    fn name(&self) -> &str;

    /// What it can do.
    fn capabilities(&self) -> StoreCapabilities;

    /// The record under a key.
    async fn get(&self, ctx: &Context, namespace: &str, key: &str) -> Result<Option<Record>>;

    /// Keeps a record, in place of any under the same key.
    async fn put(&self, ctx: &Context, record: Record) -> Result<()>;

    /// Removes a record; says whether there was one.
    async fn delete(&self, ctx: &Context, namespace: &str, key: &str) -> Result<bool>;

    /// Keys of a namespace in order, a page at a time.
    async fn list(
        &self,
        ctx: &Context,
        namespace: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>>;

    /// Records that fit, sorted, a page at a time.
    async fn find(&self, ctx: &Context, find: &Find) -> Result<Page>;

    /// Records nearest to a text or vector, best first.
    async fn search(&self, ctx: &Context, search: &Search) -> Result<Vec<Hit>>;

    /// Applies many changes; all or none where the store can.
    async fn batch(&self, ctx: &Context, changes: Vec<Change>) -> Result<()> {
        for change in changes {
            match change {
                Change::Put(record) => self.put(ctx, *record).await?,
                Change::Delete { namespace, key } => {
                    self.delete(ctx, &namespace, &key).await?;
                }
            }
        }
        Ok(())
    }

    /// Changes in a namespace from now on.
    async fn watch(&self, _ctx: &Context, _namespace: &str) -> Result<ChangeStream> {
        Err(self.unsupported("watch"))
    }

    /// How many records a namespace has.
    async fn count(&self, ctx: &Context, namespace: &str, filter: &Filter) -> Result<u64>;

    /// Whether it can be used just now.
    async fn health(&self, ctx: &Context) -> Result<()>;

    /// The error for what this store cannot do.
    fn unsupported(&self, operation: &'static str) -> Error {
        let message = format!("{} cannot {operation}", self.name());
        Error::new(ErrorKind::Unsupported, self.name(), operation, message)
            .suggest("ask capabilities() first, or use a store that can")
    }
}

impl fmt::Debug for dyn Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Store({})", self.name())
    }
}
