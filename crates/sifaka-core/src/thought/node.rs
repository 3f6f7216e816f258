//! One iteration as it is held in memory, and the chain of iterations before it.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::Id;
use crate::body::Body;
use crate::candidate::Candidate;
use crate::document::Document;
use crate::failure::Failure;
use crate::feedback::CriticFeedback;
use crate::usage::Usage;
use crate::validation::ValidationResult;

pub(crate) type Results = Vec<(Arc<str>, ValidationResult)>;

/// The fields of one iteration. Everything of any size is behind an `Arc`, so that copying a node
/// copies pointers.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) id: Id,
    pub(crate) parent_id: Option<Id>,
    pub(crate) chain_id: Option<Arc<str>>,
    pub(crate) run_id: Option<Id>,
    pub(crate) iteration: u32,
    pub(crate) timestamp: Timestamp,
    pub(crate) prompt: Arc<str>,
    pub(crate) system_prompt: Option<Arc<str>>,
    pub(crate) model_prompt: Option<Body>,
    pub(crate) text: Option<Arc<str>>,
    pub(crate) pre: Option<Arc<Vec<Document>>>,
    pub(crate) post: Option<Arc<Vec<Document>>>,
    pub(crate) results: Option<Arc<Results>>,
    pub(crate) feedback: Option<Arc<Vec<CriticFeedback>>>,
    pub(crate) candidates: Option<Arc<Vec<Candidate>>>,
    pub(crate) failures: Option<Arc<Vec<Failure>>>,
    pub(crate) usage: Option<Arc<Usage>>,
    pub(crate) tags: Option<Arc<BTreeMap<String, String>>>,
    pub(crate) metadata: Option<Arc<Map<String, Value>>>,
    pub(crate) extra: Option<Arc<Map<String, Value>>>,
    pub(crate) before: Option<Link>,
}

/// The iteration before: at hand, or only known by reference.
#[derive(Clone, Debug)]
pub(crate) enum Link {
    Node(Arc<Node>),
    Reference(Arc<ReferenceNode>),
}

/// An earlier iteration that is not at hand.
#[derive(Clone, Debug)]
pub(crate) struct ReferenceNode {
    pub(crate) reference: Reference,
    pub(crate) before: Option<Link>,
}

/// Stands in the history for an iteration that is not at hand.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    /// The iteration's id.
    pub id: Id,
    /// What is known of it, in a line.
    pub summary: Arc<str>,
    /// Whatever else the file said of it.
    pub extra: Map<String, Value>,
}

impl Node {
    pub(crate) fn new(id: Id, prompt: Arc<str>, timestamp: Timestamp) -> Self {
        Self {
            id,
            parent_id: None,
            chain_id: None,
            run_id: None,
            iteration: 0,
            timestamp,
            prompt,
            system_prompt: None,
            model_prompt: None,
            text: None,
            pre: None,
            post: None,
            results: None,
            feedback: None,
            candidates: None,
            failures: None,
            usage: None,
            tags: None,
            metadata: None,
            extra: None,
            before: None,
        }
    }

    pub(crate) fn results(&self) -> &[(Arc<str>, ValidationResult)] {
        self.results.as_ref().map_or(&[], |results| results)
    }
}

/// Pushes onto a list that may be shared or absent.
pub(crate) fn push<T: Clone>(list: &mut Option<Arc<Vec<T>>>, item: T) {
    Arc::make_mut(list.get_or_insert_default()).push(item);
}

/// What a list that may be absent holds.
pub(crate) fn items<T>(list: Option<&Arc<Vec<T>>>) -> &[T] {
    list.map_or(&[], |list| list)
}

// Dropping a long history must not recurse: each node hands its predecessor to a loop.
fn unlink(mut next: Option<Link>) {
    while let Some(link) = next {
        next = match link {
            Link::Node(node) => Arc::into_inner(node).and_then(|mut node| node.before.take()),
            Link::Reference(node) => Arc::into_inner(node).and_then(|mut node| node.before.take()),
        };
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if self.before.is_some() {
            unlink(self.before.take());
        }
    }
}

impl Drop for ReferenceNode {
    fn drop(&mut self) {
        if self.before.is_some() {
            unlink(self.before.take());
        }
    }
}
