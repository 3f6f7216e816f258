//! Going through an imported Thought: every iteration of it, with what they share changed once.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{
    Rule, body, candidate, critique, document, failed, labels, object, shared, unknown_fields,
    validation,
};
use crate::body::Body;
use crate::document::Document;
use crate::thought::{Entry, Link, Node, Reference, Thought, items};

/// Calls `visit` on every body of every iteration. Documents that an iteration has from the one
/// before it are visited once.
pub(in crate::event) fn for_each_body(thought: &Thought, visit: &mut impl FnMut(&Body)) {
    let mut newer: Option<Arc<Vec<Document>>> = None;
    for entry in thought.iterations() {
        let Entry::Thought(thought) = entry else { continue };
        let node = &thought.node;
        node.model_prompt.iter().for_each(&mut *visit);
        if let Some(pre) = &node.pre
            && !newer.as_ref().is_some_and(|newer| Arc::ptr_eq(newer, pre))
        {
            pre.iter().for_each(|document| visit(&document.text));
        }
        newer.clone_from(&node.pre);
        items(node.post.as_ref()).iter().for_each(|document| visit(&document.text));
    }
}

/// The same, with leave to change them.
pub(in crate::event) fn for_each_body_mut(
    thought: &mut Thought,
    visit: &mut impl FnMut(&mut Body),
) {
    let mut pre = Once::default();
    edit(
        thought,
        |node| {
            node.model_prompt.iter_mut().for_each(&mut *visit);
            let mut all = |documents: &mut Vec<Document>| {
                documents.iter_mut().for_each(|document| visit(&mut document.text));
            };
            pre.change(&mut node.pre, |documents| all(Arc::make_mut(documents)));
            node.post.iter_mut().for_each(|documents| all(Arc::make_mut(documents)));
        },
        |_| {},
    );
}

/// Applies a rule to every text of every iteration.
pub(in crate::event) fn rewrite(thought: &mut Thought, rule: &mut Rule<'_>) {
    let mut once = Shared::default();
    // Two closures need the rule, one after the other.
    let rule = std::cell::RefCell::new(rule);
    edit(
        thought,
        |node| once.rewrite(node, &mut **rule.borrow_mut()),
        |reference| rewrite_reference(reference, &mut **rule.borrow_mut()),
    );
}

/// Rebuilds the chain of iterations from the oldest on, each changed.
fn edit(
    thought: &mut Thought,
    mut node: impl FnMut(&mut Node),
    mut reference: impl FnMut(&mut Reference),
) {
    let mut links = Vec::new();
    let mut next = Some(Link::Node(Arc::clone(&thought.node)));
    while let Some(link) = next {
        next = match &link {
            Link::Node(node) => node.before.clone(),
            Link::Reference(node) => node.before.clone(),
        };
        links.push(link);
    }
    let mut before = None;
    for mut link in links.into_iter().rev() {
        match &mut link {
            Link::Node(old) => {
                let new = Arc::make_mut(old);
                new.before = before.take();
                node(new);
            }
            Link::Reference(old) => {
                let new = Arc::make_mut(old);
                new.before = before.take();
                reference(&mut new.reference);
            }
        }
        before = Some(link);
    }
    if let Some(Link::Node(node)) = before {
        thought.node = node;
    }
}

/// Changes what iterations share once, so that it stays shared.
struct Once<T: ?Sized>(Option<(Arc<T>, Arc<T>)>);

impl<T: ?Sized> Default for Once<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: ?Sized> Once<T> {
    fn change(&mut self, field: &mut Option<Arc<T>>, change: impl FnOnce(&mut Arc<T>)) {
        let Some(value) = field else { return };
        match &self.0 {
            Some((old, new)) if Arc::ptr_eq(old, value) => *value = Arc::clone(new),
            _ => {
                let old = Arc::clone(value);
                change(value);
                self.0 = Some((old, Arc::clone(value)));
            }
        }
    }
}

#[derive(Default)]
struct Shared {
    prompt: Once<str>,
    system: Once<str>,
    pre: Once<Vec<Document>>,
    tags: Once<std::collections::BTreeMap<String, String>>,
    metadata: Once<Map<String, Value>>,
}

impl Shared {
    /// Names, ids and times stay: `id`, `parent_id`, `chain_id`, `run_id`, `iteration`,
    /// `timestamp` and `usage`.
    fn rewrite(&mut self, node: &mut Node, rule: &mut Rule<'_>) {
        let mut prompt = Some(Arc::clone(&node.prompt));
        self.prompt.change(&mut prompt, |text| shared(text, rule));
        node.prompt = prompt.unwrap_or_default();
        self.system.change(&mut node.system_prompt, |text| shared(text, rule));
        self.pre.change(&mut node.pre, |found| documents(found, rule));
        self.tags.change(&mut node.tags, |tags| labels(Arc::make_mut(tags), rule));
        self.metadata.change(&mut node.metadata, |fields| object(Arc::make_mut(fields), rule));
        node.model_prompt.iter_mut().for_each(|prompt| body(prompt, rule));
        node.text.iter_mut().for_each(|text| shared(text, rule));
        node.post.iter_mut().for_each(|found| documents(found, rule));
        if let Some(results) = &mut node.results {
            Arc::make_mut(results).iter_mut().for_each(|(_, result)| validation(result, rule));
        }
        if let Some(feedback) = &mut node.feedback {
            Arc::make_mut(feedback).iter_mut().for_each(|feedback| critique(feedback, rule));
        }
        if let Some(candidates) = &mut node.candidates {
            Arc::make_mut(candidates).iter_mut().for_each(|written| candidate(written, rule));
        }
        if let Some(failures) = &mut node.failures {
            Arc::make_mut(failures).iter_mut().for_each(|failure| failed(failure, rule));
        }
        node.extra.iter_mut().for_each(|extra| unknown_fields(Arc::make_mut(extra), rule));
    }
}

fn documents(documents: &mut Arc<Vec<Document>>, rule: &mut Rule<'_>) {
    Arc::make_mut(documents).iter_mut().for_each(|found| document(found, rule));
}

/// What is known of an iteration that is not at hand has its fields' names and shapes, so it is
/// read as an iteration, rewritten as one, and taken apart again.
fn rewrite_reference(reference: &mut Reference, rule: &mut Rule<'_>) {
    shared(&mut reference.summary, rule);
    if reference.extra.is_empty() {
        return;
    }
    let mut fields = std::mem::take(&mut reference.extra);
    let summary = fields.shift_remove("summary");
    fields.insert("id".to_owned(), Value::from(reference.id.to_string()));
    fields.insert("prompt".to_owned(), Value::from(""));
    let names: Vec<String> = fields.keys().cloned().collect();
    let rewritten = serde_json::from_value::<Thought>(Value::Object(fields)).and_then(|thought| {
        let mut node = Node::clone(&thought.node);
        Shared::default().rewrite(&mut node, rule);
        let unknown = node.extra.take();
        let known = serde_json::to_value(Thought::from_node(node))?;
        Ok((known, unknown))
    });
    // It was read from such fields before. Should it not be one now, nothing of it is kept rather
    // than something that ought to be gone.
    let Ok((Value::Object(known), unknown)) = rewritten else { return };
    for (name, value) in known {
        let is_ours = matches!(name.as_str(), "id" | "prompt" | "version" | "history");
        if !is_ours && names.contains(&name) {
            reference.extra.insert(name, value);
        }
    }
    let summary = summary.into_iter().map(|summary| ("summary".to_owned(), summary));
    let mut others: Map<String, Value> = summary.collect();
    object(&mut others, &mut |text| if text == "summary" { None } else { rule(text) });
    reference.extra.extend(others);
    reference.extra.extend(unknown.iter().flat_map(|fields| Map::clone(fields)));
}
