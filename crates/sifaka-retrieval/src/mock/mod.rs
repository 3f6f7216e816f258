//! A retriever over documents it was given.

mod file;
mod options;

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use sifaka_core::{Context, Document, Filter, Result, Retriever};
use sifaka_models::script::Fault;

pub(crate) use options::from_spec;

/// Finds among the documents it was given those that share words with the query.
///
/// The score is the part of the query's different words that a document has, case ignored; of
/// equal scores the earlier document comes first. It is meant for tests and demonstrations and
/// looks at every document for every query.
#[derive(Debug)]
pub struct MockRetriever {
    name: Arc<str>,
    documents: Vec<(Document, HashSet<String>)>,
    all: bool,
    delay: Duration,
    fault: Option<Fault>,
    /// How many calls fail; all of them if `None`.
    failing: Option<u64>,
    count: AtomicU64,
}

impl MockRetriever {
    /// Finds among these.
    pub fn new(documents: impl IntoIterator<Item = Document>) -> Self {
        let indexed = documents.into_iter().map(|document| {
            let words = words(document.text().unwrap_or_default()).collect();
            (document, words)
        });
        Self {
            name: Arc::from("mock"),
            documents: indexed.collect(),
            all: false,
            delay: Duration::ZERO,
            fault: None,
            failing: None,
            count: AtomicU64::new(0),
        }
    }

    /// Finds among these texts.
    pub fn texts<T: Into<String>>(texts: impl IntoIterator<Item = T>) -> Self {
        Self::new(texts.into_iter().map(|text| Document::new(text.into())))
    }

    /// Finds among the documents of a file: a document as JSON on each line of a `.jsonl`, or in
    /// the list of a `.json`, where a plain text is one too; each paragraph of a `.txt` or `.md`.
    ///
    /// Blocks; meant for building a chain.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](sifaka_core::ErrorKind::Configuration) with the path and the
    /// line of what is wrong.
    pub fn from_file(path: &Path) -> Result<Self> {
        Ok(Self::new(file::read(path)?))
    }

    /// Sets its name; `mock` if not set.
    #[must_use]
    pub fn named(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = name.into();
        self
    }

    /// Gives all documents to every query that is not empty, best first. One that came with a
    /// score keeps it.
    #[must_use]
    pub fn all(mut self) -> Self {
        self.all = true;
        self
    }

    /// Waits this long before every answer.
    #[must_use]
    pub fn with_delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Fails, every time.
    #[must_use]
    pub fn with_error(mut self, fault: impl Into<Fault>) -> Self {
        self.fault = Some(fault.into());
        self
    }

    /// Fails so many times, and then works.
    #[must_use]
    pub fn failing(mut self, fault: impl Into<Fault>, times: u64) -> Self {
        self.failing = Some(times);
        self.with_error(fault)
    }

    /// How often it was asked.
    #[must_use]
    pub fn call_count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    fn score(&self, query: &HashSet<String>, document: &Document, words: &HashSet<String>) -> f64 {
        if let Some(given) = document.score.filter(|_| self.all) {
            return given;
        }
        let shared = query.intersection(words).count();
        #[expect(clippy::cast_precision_loss, reason = "a score")]
        let score = shared as f64 / query.len().max(1) as f64;
        score
    }
}

/// The words of a text, in small letters.
fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
}

#[async_trait]
impl Retriever for MockRetriever {
    fn name(&self) -> &str {
        &self.name
    }

    async fn retrieve(
        &self,
        ctx: &Context,
        query: &str,
        limit: usize,
        filter: &Filter,
    ) -> Result<Vec<Document>> {
        ctx.check()?;
        let call = self.count.fetch_add(1, Ordering::Relaxed);
        if !self.delay.is_zero() {
            ctx.sleep(self.delay).await?;
        }
        if let Some(fault) = &self.fault
            && self.failing.is_none_or(|times| call < times)
        {
            return Err(fault.error(&self.name, "retrieve"));
        }
        if limit == 0 || query.trim().is_empty() {
            return Ok(Vec::new());
        }
        let query: HashSet<String> = words(query).collect();
        let mut found: Vec<(f64, &Document)> = self
            .documents
            .iter()
            .filter(|(document, _)| filter.matches(document.metadata.as_ref()))
            .map(|(document, words)| (self.score(&query, document, words), document))
            .filter(|(score, _)| self.all || *score > 0.0)
            .collect();
        // Stable, so that of equals the earlier one stays first.
        found.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        found.truncate(limit);
        Ok(found.into_iter().map(|(score, document)| document.clone().with_score(score)).collect())
    }
}
