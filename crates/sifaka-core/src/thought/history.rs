//! Walking back through the iterations.

use std::sync::Arc;

use super::node::{Link, Node, Reference};
use super::{Thought, items};
use crate::Id;

/// One step of a history: at hand, or only known by reference.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// An iteration that is at hand. Its own history is the steps before it.
    Thought(Thought),
    /// One that is not.
    Reference(Reference),
}

impl Entry {
    /// The iteration's id.
    #[must_use]
    pub fn id(&self) -> &Id {
        match self {
            Self::Thought(thought) => thought.id(),
            Self::Reference(reference) => &reference.id,
        }
    }

    /// The iteration, if it is at hand.
    #[must_use]
    pub fn thought(&self) -> Option<&Thought> {
        match self {
            Self::Thought(thought) => Some(thought),
            Self::Reference(_) => None,
        }
    }
}

/// Iterations from the newest back to the first; see [`Thought::iterations`].
#[derive(Clone, Debug)]
pub struct Iterations(Option<Link>);

impl Iterator for Iterations {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        match self.0.take()? {
            Link::Node(node) => {
                self.0.clone_from(&node.before);
                Some(Entry::Thought(Thought { node }))
            }
            Link::Reference(node) => {
                self.0.clone_from(&node.before);
                Some(Entry::Reference(node.reference.clone()))
            }
        }
    }
}

impl Thought {
    /// This iteration and those before it, newest first.
    #[must_use]
    pub fn iterations(&self) -> Iterations {
        Iterations(Some(Link::Node(Arc::clone(&self.node))))
    }

    /// The iterations before this one, oldest first, complete: nothing is left out at any length.
    #[must_use]
    pub fn history(&self) -> Vec<Entry> {
        let mut entries: Vec<Entry> = self.iterations().skip(1).collect();
        entries.reverse();
        entries
    }

    /// The iteration before, if it is at hand.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        match &self.node.before {
            Some(Link::Node(node)) => Some(Self { node: Arc::clone(node) }),
            Some(Link::Reference(_)) | None => None,
        }
    }

    /// The iteration of this id, if it is this one or in its history and at hand.
    #[must_use]
    pub fn find(&self, id: &Id) -> Option<Self> {
        self.iterations().find_map(|entry| match entry {
            Entry::Thought(thought) if thought.id() == id => Some(thought),
            _ => None,
        })
    }
}

/// Compares two Thoughts with their histories, iteratively.
pub(super) fn equal(a: &Thought, b: &Thought) -> bool {
    let mut pair = (Some(Link::Node(Arc::clone(&a.node))), Some(Link::Node(Arc::clone(&b.node))));
    loop {
        pair = match pair {
            (None, None) => return true,
            (Some(Link::Node(x)), Some(Link::Node(y))) => {
                if Arc::ptr_eq(&x, &y) {
                    return true;
                }
                if !same(&x, &y) {
                    return false;
                }
                (x.before.clone(), y.before.clone())
            }
            (Some(Link::Reference(x)), Some(Link::Reference(y))) => {
                if x.reference != y.reference {
                    return false;
                }
                (x.before.clone(), y.before.clone())
            }
            _ => return false,
        };
    }
}

/// Compares the fields of two iterations, without what came before them. Absent and empty are one.
pub(super) fn same(a: &Node, b: &Node) -> bool {
    (&a.id, &a.parent_id, &a.chain_id, &a.run_id) == (&b.id, &b.parent_id, &b.chain_id, &b.run_id)
        && (a.iteration, a.timestamp) == (b.iteration, b.timestamp)
        && (&a.prompt, &a.system_prompt, &a.text) == (&b.prompt, &b.system_prompt, &b.text)
        && a.model_prompt == b.model_prompt
        && items(a.pre.as_ref()) == items(b.pre.as_ref())
        && items(a.post.as_ref()) == items(b.post.as_ref())
        && a.results() == b.results()
        && items(a.feedback.as_ref()) == items(b.feedback.as_ref())
        && items(a.candidates.as_ref()) == items(b.candidates.as_ref())
        && items(a.failures.as_ref()) == items(b.failures.as_ref())
        && a.usage.as_deref().copied().unwrap_or_default()
            == b.usage.as_deref().copied().unwrap_or_default()
        && a.tags.as_deref().filter(|t| !t.is_empty())
            == b.tags.as_deref().filter(|t| !t.is_empty())
        && a.metadata.as_deref().filter(|m| !m.is_empty())
            == b.metadata.as_deref().filter(|m| !m.is_empty())
        && a.extra.as_deref().filter(|m| !m.is_empty())
            == b.extra.as_deref().filter(|m| !m.is_empty())
}
