//! A Thought as JSON: flat and linear, `version` first, history oldest first.

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

use super::node::{Link, Node, Reference};
use super::{Thought, VERSION, items, named};
use crate::document::Document;
use crate::validation::ValidationResult;

impl Serialize for Thought {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("version", VERSION)?;
        fields(&self.node, &mut map)?;
        map.serialize_entry("history", &History(&self.node))?;
        extra(&self.node, &mut map)?;
        map.end()
    }
}

fn fields<M: SerializeMap>(node: &Node, map: &mut M) -> Result<(), M::Error> {
    map.serialize_entry("id", &node.id)?;
    map.serialize_entry("parent_id", &node.parent_id)?;
    map.serialize_entry("chain_id", &node.chain_id)?;
    if let Some(run) = &node.run_id {
        map.serialize_entry("run_id", run)?;
    }
    map.serialize_entry("iteration", &node.iteration)?;
    map.serialize_entry("timestamp", &node.timestamp)?;
    map.serialize_entry("prompt", &node.prompt)?;
    map.serialize_entry("system_prompt", &node.system_prompt)?;
    map.serialize_entry("model_prompt", &node.model_prompt)?;
    map.serialize_entry("text", &node.text)?;
    map.serialize_entry::<_, [Document]>("pre_generation_context", items(node.pre.as_ref()))?;
    map.serialize_entry::<_, [Document]>("post_generation_context", items(node.post.as_ref()))?;
    map.serialize_entry("validation_results", &Named(node.results()))?;
    map.serialize_entry("critic_feedback", items(node.feedback.as_ref()))?;
    if let Some(candidates) = &node.candidates {
        map.serialize_entry("candidates", candidates)?;
    }
    if let Some(usage) = &node.usage {
        map.serialize_entry("usage", usage)?;
    }
    if let Some(failures) = &node.failures {
        map.serialize_entry("failures", failures)?;
    }
    if let Some(tags) = &node.tags {
        map.serialize_entry("tags", tags)?;
    }
    map.serialize_entry("metadata", &node.metadata)
}

fn extra<M: SerializeMap>(node: &Node, map: &mut M) -> Result<(), M::Error> {
    for (key, value) in node.extra.iter().flat_map(|extra| extra.iter()) {
        map.serialize_entry(key, value)?;
    }
    Ok(())
}

struct Named<'a>(&'a [(std::sync::Arc<str>, ValidationResult)]);

impl Serialize for Named<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        named::serialize(self.0, serializer)
    }
}

struct History<'a>(&'a Node);

impl Serialize for History<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut links = Vec::new();
        let mut next = self.0.before.as_ref();
        while let Some(link) = next {
            links.push(link);
            next = match link {
                Link::Node(node) => node.before.as_ref(),
                Link::Reference(node) => node.before.as_ref(),
            };
        }
        let mut seq = serializer.serialize_seq(Some(links.len()))?;
        for link in links.into_iter().rev() {
            match link {
                Link::Node(node) => seq.serialize_element(&Step(node))?,
                Link::Reference(node) => seq.serialize_element(&node.reference)?,
            }
        }
        seq.end()
    }
}

/// One entry of the history: an iteration without its own history.
struct Step<'a>(&'a Node);

impl Serialize for Step<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        fields(self.0, &mut map)?;
        extra(self.0, &mut map)?;
        map.end()
    }
}

impl Serialize for Reference {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &self.id)?;
        // A summary that is no text is among the rest.
        if !self.extra.contains_key("summary") {
            map.serialize_entry("summary", &self.summary)?;
        }
        for (key, value) in &self.extra {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}
