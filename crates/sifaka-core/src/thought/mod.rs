//! The Thought: a prompt, what became of it, and how.

mod ancestor;
mod diff;
mod file;
mod history;
pub(crate) mod named;
mod node;
mod read;
mod write;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::body::Body;
use crate::candidate::Candidate;
use crate::document::Document;
use crate::failure::Failure;
use crate::feedback::CriticFeedback;
use crate::usage::Usage;
use crate::validation::{Score, ValidationResult};
use crate::{Context, Id};

pub use diff::{Change, Diff};
pub use file::{Limits, NewFile};
pub use history::{Entry, Iterations};
pub use node::Reference;

pub(crate) use node::{Link, Node, items, push};

/// The version that is written into every Thought.
pub const VERSION: &str = "1.0.0";

/// A prompt, the text that answers it, and everything that led there: what was retrieved, the
/// exact prompt, every verdict, every critique, every earlier iteration.
///
/// A Thought is immutable. Each `with_…` and `add_…` gives a new one and leaves the old as it was;
/// what they have in common is shared, so this is cheap. [`next_iteration`](Self::next_iteration)
/// takes constant time and memory however long the history is.
///
/// ```
/// use sifaka_core::{Context, Thought, ValidationResult};
///
/// let ctx = Context::new();
/// let first = Thought::new(&ctx, "Say hello.").with_text("Hi");
/// let checked = first.add_validation_result("length", ValidationResult::failed("2 characters, 5 asked"));
/// assert!(first.validation_passed(), "the old one is as it was");
/// assert!(!checked.validation_passed());
///
/// let second = checked.next_iteration(&ctx).with_text("Hello");
/// assert_eq!(second.iteration(), 1);
/// assert_eq!(second.iterations().count(), 2);
/// ```
#[derive(Clone)]
pub struct Thought {
    pub(crate) node: Arc<Node>,
}

impl Thought {
    /// A new Thought of this prompt.
    pub fn new(ctx: &Context, prompt: impl Into<Arc<str>>) -> Self {
        Self::from_node(Node::new(Id::new(ctx), prompt.into(), ctx.now()))
    }

    pub(crate) fn from_node(node: Node) -> Self {
        Self { node: Arc::new(node) }
    }

    fn changed(&self, change: impl FnOnce(&mut Node)) -> Self {
        let mut node = Node::clone(&self.node);
        change(&mut node);
        Self::from_node(node)
    }

    /// Changes this one in place if nobody else holds it, and a copy if somebody does.
    pub(crate) fn edit(&mut self, change: impl FnOnce(&mut Node)) {
        change(Arc::make_mut(&mut self.node));
    }

    /// Its name.
    #[must_use]
    pub fn id(&self) -> &Id {
        &self.node.id
    }

    /// Name of the iteration before.
    #[must_use]
    pub fn parent_id(&self) -> Option<&Id> {
        self.node.parent_id.as_ref()
    }

    /// Which chain made it: a name and a fingerprint of the configuration.
    #[must_use]
    pub fn chain_id(&self) -> Option<&str> {
        self.node.chain_id.as_deref()
    }

    /// The run it belongs to: the id of that run's first Thought.
    #[must_use]
    pub fn run_id(&self) -> Option<&Id> {
        self.node.run_id.as_ref()
    }

    /// 0 for the first text, then one more for each improvement.
    #[must_use]
    pub fn iteration(&self) -> u32 {
        self.node.iteration
    }

    /// When it was begun. The Unix epoch stands for a file that did not say.
    #[must_use]
    pub fn timestamp(&self) -> Timestamp {
        self.node.timestamp
    }

    /// What was asked.
    #[must_use]
    pub fn prompt(&self) -> &str {
        &self.node.prompt
    }

    /// The standing instructions it was asked under.
    #[must_use]
    pub fn system_prompt(&self) -> Option<&str> {
        self.node.system_prompt.as_deref()
    }

    /// The exact prompt the model was given.
    #[must_use]
    pub fn model_prompt(&self) -> Option<&Body> {
        self.node.model_prompt.as_ref()
    }

    /// The text; `None` until one was written.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        self.node.text.as_deref()
    }

    /// What was retrieved before writing.
    #[must_use]
    pub fn pre_generation_context(&self) -> &[Document] {
        items(self.node.pre.as_ref())
    }

    /// What was retrieved about the text.
    #[must_use]
    pub fn post_generation_context(&self) -> &[Document] {
        items(self.node.post.as_ref())
    }

    /// What each validator said of the text, in declared order, under unique names.
    #[must_use]
    pub fn validation_results(&self) -> &[(Arc<str>, ValidationResult)] {
        self.node.results()
    }

    /// What the validator of this name said.
    #[must_use]
    pub fn validation_result(&self, name: &str) -> Option<&ValidationResult> {
        self.node.results().iter().find(|(n, _)| &**n == name).map(|(_, result)| result)
    }

    /// What the critics said of the text.
    #[must_use]
    pub fn critic_feedback(&self) -> &[CriticFeedback] {
        items(self.node.feedback.as_ref())
    }

    /// All the texts this iteration chose from, when there was more than one.
    #[must_use]
    pub fn candidates(&self) -> &[Candidate] {
        items(self.node.candidates.as_ref())
    }

    /// What failed in this iteration without ending it.
    #[must_use]
    pub fn failures(&self) -> &[Failure] {
        items(self.node.failures.as_ref())
    }

    /// What this iteration consumed.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.node.usage.as_deref().copied().unwrap_or_default()
    }

    /// The user's labels.
    #[must_use]
    pub fn tags(&self) -> &BTreeMap<String, String> {
        static NONE: BTreeMap<String, String> = BTreeMap::new();
        self.node.tags.as_deref().unwrap_or(&NONE)
    }

    /// Whatever else is kept with it.
    #[must_use]
    pub fn metadata(&self) -> Option<&Map<String, Value>> {
        self.node.metadata.as_deref()
    }

    /// Fields of its file that we do not know.
    #[must_use]
    pub fn unknown_fields(&self) -> Option<&Map<String, Value>> {
        self.node.extra.as_deref()
    }

    /// The same with another text. What was said of the old text does not hold for the new one
    /// and is left out.
    #[must_use]
    pub fn with_text(&self, text: impl Into<Arc<str>>) -> Self {
        self.changed(|node| {
            node.text = Some(text.into());
            node.results = None;
            node.feedback = None;
            node.post = None;
        })
    }

    /// The same with standing instructions.
    #[must_use]
    pub fn with_system_prompt(&self, system: impl Into<Arc<str>>) -> Self {
        self.changed(|node| node.system_prompt = Some(system.into()))
    }

    /// The same with the exact prompt that was sent.
    #[must_use]
    pub fn with_model_prompt(&self, prompt: impl Into<Body>) -> Self {
        self.changed(|node| node.model_prompt = Some(prompt.into()))
    }

    /// The same under a chain's name.
    #[must_use]
    pub fn with_chain_id(&self, chain: impl Into<Arc<str>>) -> Self {
        self.changed(|node| node.chain_id = Some(chain.into()))
    }

    /// The same as part of a run.
    #[must_use]
    pub fn with_run_id(&self, run: Id) -> Self {
        self.changed(|node| node.run_id = Some(run))
    }

    /// The same with one more label.
    #[must_use]
    pub fn with_tag(&self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.changed(|node| {
            Arc::make_mut(node.tags.get_or_insert_default()).insert(key.into(), value.into());
        })
    }

    /// The same with one more thing kept with it.
    #[must_use]
    pub fn with_metadata(&self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.changed(|node| {
            Arc::make_mut(node.metadata.get_or_insert_default()).insert(key.into(), value.into());
        })
    }

    /// The same with what it consumed.
    #[must_use]
    pub fn with_usage(&self, usage: Usage) -> Self {
        self.changed(|node| node.usage = Some(Arc::new(usage)))
    }

    /// The same with one more document retrieved before writing.
    #[must_use]
    pub fn add_pre_generation_context(&self, document: Document) -> Self {
        self.changed(|node| push(&mut node.pre, document))
    }

    /// The same with one more document retrieved about the text.
    #[must_use]
    pub fn add_post_generation_context(&self, document: Document) -> Self {
        self.changed(|node| push(&mut node.post, document))
    }

    /// The same with one more verdict. A name that is taken gets a number, so that two validators
    /// of one kind keep two results.
    #[must_use]
    pub fn add_validation_result(&self, name: &str, result: ValidationResult) -> Self {
        self.changed(|node| {
            let name = named::unique(node.results(), name);
            push(&mut node.results, (name, result));
        })
    }

    /// The same with one more critique.
    #[must_use]
    pub fn add_critic_feedback(&self, feedback: CriticFeedback) -> Self {
        self.changed(|node| push(&mut node.feedback, feedback))
    }

    /// The same with one more failure on record.
    #[must_use]
    pub fn add_failure(&self, failure: Failure) -> Self {
        self.changed(|node| push(&mut node.failures, failure))
    }

    /// The next iteration: a new id, this one as its parent. It carries prompt, system prompt,
    /// pre-generation context, metadata and tags; the rest stays in the history.
    #[must_use]
    pub fn next_iteration(&self, ctx: &Context) -> Self {
        self.next_with(Id::new(ctx), ctx.now())
    }

    pub(crate) fn next_with(&self, id: Id, now: Timestamp) -> Self {
        let old = &self.node;
        let mut node = Node::new(id, Arc::clone(&old.prompt), now);
        node.parent_id = Some(old.id.clone());
        node.chain_id.clone_from(&old.chain_id);
        node.run_id.clone_from(&old.run_id);
        node.iteration = old.iteration.saturating_add(1);
        node.system_prompt.clone_from(&old.system_prompt);
        node.pre.clone_from(&old.pre);
        node.tags.clone_from(&old.tags);
        node.metadata.clone_from(&old.metadata);
        node.before = Some(Link::Node(Arc::clone(old)));
        Self::from_node(node)
    }

    /// Whether every hard check passed. Without any result this is true; a hard check that could
    /// not tell has not passed, unless it was declared so.
    #[must_use]
    pub fn validation_passed(&self) -> bool {
        self.node.results().iter().all(|(_, result)| result.allows())
    }

    /// How good the text is by its results. Where none was written there is nothing good about it.
    #[must_use]
    pub fn score(&self) -> Score {
        if self.node.text.is_none() {
            return Score { passed: false, value: 0.0 };
        }
        Score::of(self.node.results().iter().map(|(_, result)| result))
    }

    /// Everything the validators found wrong.
    #[must_use]
    pub fn all_validation_issues(&self) -> Vec<&str> {
        self.node.results().iter().flat_map(|(_, r)| &r.issues).map(String::as_str).collect()
    }

    /// Everything the validators suggested.
    #[must_use]
    pub fn all_validation_suggestions(&self) -> Vec<&str> {
        self.node.results().iter().flat_map(|(_, r)| &r.suggestions).map(String::as_str).collect()
    }
}

impl PartialEq for Thought {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.node, &other.node) || history::equal(self, other)
    }
}

impl fmt::Debug for Thought {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Thought")
            .field("id", &self.node.id)
            .field("iteration", &self.node.iteration)
            .field("prompt", &crate::text::summarise(&self.node.prompt, 60))
            .field("text", &self.node.text.as_ref().map(|t| crate::text::summarise(t, 60)))
            .field("results", &self.node.results().len())
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Thought {
    /// The text, or nothing where none was written.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests;
