//! Reading a Thought from JSON, ours or the Python ancestor's.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess};
use serde_json::{Map, Value};

use super::history::same;
use super::node::{Link, Node, Reference, ReferenceNode, Results};
use super::{Thought, VERSION, ancestor, named};
use crate::Id;
use crate::body::Body;
use crate::candidate::Candidate;
use crate::document::Document;
use crate::failure::Failure;
use crate::feedback::CriticFeedback;
use crate::text::{opt_arc_str, opt_time};
use crate::usage::Usage;

/// A Thought as it stands in a file: everything optional, what is unknown kept apart.
#[derive(serde::Deserialize, Default)]
#[serde(default, expecting = "a Thought")]
pub(super) struct Raw {
    #[serde(deserialize_with = "opt_arc_str")]
    pub(super) version: Option<Arc<str>>,
    pub(super) id: Option<Id>,
    pub(super) parent_id: Option<Id>,
    #[serde(deserialize_with = "opt_arc_str")]
    pub(super) chain_id: Option<Arc<str>>,
    pub(super) run_id: Option<Id>,
    pub(super) iteration: Option<u32>,
    #[serde(deserialize_with = "opt_time")]
    pub(super) timestamp: Option<Timestamp>,
    #[serde(deserialize_with = "opt_arc_str")]
    pub(super) prompt: Option<Arc<str>>,
    #[serde(deserialize_with = "opt_arc_str")]
    pub(super) system_prompt: Option<Arc<str>>,
    pub(super) model_prompt: Option<Body>,
    #[serde(deserialize_with = "opt_arc_str")]
    pub(super) text: Option<Arc<str>>,
    #[serde(deserialize_with = "documents")]
    pub(super) pre_generation_context: Vec<Document>,
    #[serde(deserialize_with = "documents")]
    pub(super) post_generation_context: Vec<Document>,
    #[serde(deserialize_with = "named::deserialize")]
    pub(super) validation_results: Results,
    #[serde(deserialize_with = "feedback")]
    pub(super) critic_feedback: Vec<CriticFeedback>,
    pub(super) candidates: Option<Vec<Candidate>>,
    pub(super) usage: Option<Usage>,
    pub(super) failures: Option<Vec<Failure>>,
    pub(super) tags: Option<BTreeMap<String, String>>,
    pub(super) metadata: Option<Map<String, Value>>,
    pub(super) history: Option<Vec<Raw>>,
    #[serde(flatten)]
    pub(super) extra: Map<String, Value>,
}

impl<'de> Deserialize<'de> for Thought {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        build(Raw::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

/// Documents as objects, or as the plain texts the ancestor wrote.
pub(super) fn documents<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<Document>, D::Error> {
    list(d, "a list of documents", |text| Document::new(text))
}

/// Feedback as objects, as plain texts, or as one plain text.
fn feedback<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<CriticFeedback>, D::Error> {
    list(d, "a list of critics' feedback", |text| CriticFeedback::new("critic").with_feedback(text))
}

/// A list, null, or one plain text; its items objects or plain texts.
fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
    what: &'static str,
    plain: fn(&str) -> T,
) -> Result<Vec<T>, D::Error> {
    struct Many<T>(&'static str, fn(&str) -> T);
    impl<'de, T: Deserialize<'de>> de::Visitor<'de> for Many<T> {
        type Value = Vec<T>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
        fn visit_unit<E>(self) -> Result<Vec<T>, E> {
            Ok(Vec::new())
        }
        fn visit_str<E>(self, text: &str) -> Result<Vec<T>, E> {
            Ok(vec![(self.1)(text)])
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<T>, A::Error> {
            let mut items = Vec::with_capacity(seq.size_hint().unwrap_or(0).min(1024));
            while let Some(item) = seq.next_element_seed(One(self.0, self.1))? {
                items.push(item);
            }
            Ok(items)
        }
    }

    struct One<T>(&'static str, fn(&str) -> T);
    impl<'de, T: Deserialize<'de>> de::DeserializeSeed<'de> for One<T> {
        type Value = T;
        fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<T, D::Error> {
            d.deserialize_any(self)
        }
    }
    impl<'de, T: Deserialize<'de>> de::Visitor<'de> for One<T> {
        type Value = T;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
        fn visit_str<E>(self, text: &str) -> Result<T, E> {
            Ok((self.1)(text))
        }
        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
            T::deserialize(de::value::MapAccessDeserializer::new(map))
        }
    }

    deserializer.deserialize_any(Many(what, plain))
}

/// Refuses files of a newer major version.
fn check_version(version: &str) -> Result<(), String> {
    let major = |v: &str| v.split('.').next().and_then(|m| m.parse::<u32>().ok());
    match (major(version), major(VERSION)) {
        (Some(theirs), Some(ours)) if theirs > ours => Err(format!(
            "the file has version {version} and this program reads up to {ours}.x: update sifaka"
        )),
        (None, _) => Err(format!("{version:?} is not a version such as {VERSION}")),
        _ => Ok(()),
    }
}

fn build(raw: Raw) -> Result<Thought, String> {
    if let Some(version) = &raw.version {
        check_version(version)?;
    }
    let mut steps = Vec::new();
    flatten(raw, &mut steps)?;
    let mut before: Option<Link> = None;
    let mut last = None;
    for step in steps {
        if let Some(done) = last.take() {
            before = Some(done);
        }
        last = Some(match step {
            Step::Node(mut node) => {
                share(&mut node, before.as_ref());
                if node.parent_id.is_none() {
                    node.parent_id = before.as_ref().map(|link| link_id(link).clone());
                }
                node.before = before.take();
                Link::Node(Arc::from(node))
            }
            Step::Reference(reference) => {
                Link::Reference(Arc::new(ReferenceNode { reference, before: before.take() }))
            }
        });
    }
    match last {
        Some(Link::Node(node)) => Ok(Thought { node }),
        Some(Link::Reference(_)) | None => Err("the field `prompt` is missing".to_owned()),
    }
}

enum Step {
    Node(Box<Node>),
    Reference(Reference),
}

impl Step {
    fn iteration(&self) -> Option<u32> {
        match self {
            Self::Node(node) => Some(node.iteration),
            Self::Reference(reference) => reference
                .extra
                .get("iteration")
                .and_then(Value::as_u64)
                .and_then(|n| u32::try_from(n).ok()),
        }
    }
}

/// Turns a raw Thought and its history, nested or flat, newest or oldest first, into steps from
/// the oldest to the newest.
fn flatten(mut raw: Raw, steps: &mut Vec<Step>) -> Result<(), String> {
    let mut history = raw.history.take().unwrap_or_default();
    ancestor::generations_become_history(&mut raw, &mut history);
    let mut earlier: Vec<Vec<Step>> = Vec::with_capacity(history.len());
    for entry in history {
        let mut inner = Vec::new();
        flatten(entry, &mut inner)?;
        earlier.push(inner);
    }
    // By the two ends alone: turned round once, it is not turned round when it is read again.
    let mut numbers = earlier.iter().filter_map(|inner| inner.last()?.iteration());
    if let (Some(first), Some(last)) = (numbers.next(), numbers.next_back())
        && first > last
    {
        earlier.reverse();
    }
    let is_nested = earlier.iter().any(|inner| inner.len() > 1);
    let mut seen: HashMap<Id, usize> = HashMap::new();
    for step in earlier.into_iter().flatten() {
        // A nested history repeats what the outer one already has.
        if is_nested && let Step::Node(node) = &step {
            if let Some(Step::Node(other)) = seen.get(&node.id).and_then(|at| steps.get(*at))
                && same(node, other)
            {
                continue;
            }
            seen.insert(node.id.clone(), steps.len());
        }
        steps.push(step);
    }
    steps.push(into_step(raw)?);
    Ok(())
}

fn into_step(mut raw: Raw) -> Result<Step, String> {
    if !raw.extra.is_empty() {
        ancestor::adopt(&mut raw);
    }
    let Some(prompt) = raw.prompt.take() else {
        return into_reference(raw).map(Step::Reference);
    };
    let given = raw.id.take();
    let is_derived = given.is_none();
    // A placeholder until the content, from which a missing id is derived, is in place.
    let mut node = into_node(raw, given.unwrap_or_else(|| Id::derived(b"")), prompt);
    if is_derived {
        let content = serde_json::to_vec(&Thought::from_node(Node::clone(&node)))
            .map_err(|error| error.to_string())?;
        node.id = Id::derived(&content);
    }
    Ok(Step::Node(node))
}

fn into_node(raw: Raw, id: Id, prompt: Arc<str>) -> Box<Node> {
    let some = |list: Vec<_>| (!list.is_empty()).then(|| Arc::new(list));
    Box::new(Node {
        id,
        parent_id: raw.parent_id,
        chain_id: raw.chain_id,
        run_id: raw.run_id,
        iteration: raw.iteration.unwrap_or(0),
        timestamp: raw.timestamp.unwrap_or(Timestamp::UNIX_EPOCH),
        prompt,
        system_prompt: raw.system_prompt,
        model_prompt: raw.model_prompt,
        text: raw.text,
        pre: some(raw.pre_generation_context),
        post: some(raw.post_generation_context),
        results: (!raw.validation_results.is_empty()).then(|| Arc::new(raw.validation_results)),
        feedback: (!raw.critic_feedback.is_empty()).then(|| Arc::new(raw.critic_feedback)),
        candidates: raw.candidates.map(Arc::new),
        failures: raw.failures.map(Arc::new),
        usage: raw.usage.map(Arc::new),
        tags: raw.tags.map(Arc::new),
        metadata: raw.metadata.map(Arc::new),
        extra: (!raw.extra.is_empty()).then(|| Arc::new(raw.extra)),
        before: None,
    })
}

fn into_reference(mut raw: Raw) -> Result<Reference, String> {
    let id = match raw.id.take() {
        Some(id) => id,
        None => match ancestor::take(&mut raw.extra, "thought_id") {
            Some(text) => Id::parse(&text).map_err(|error| error.message().to_owned())?,
            None => return Err("the field `prompt` is missing".to_owned()),
        },
    };
    let summary = ancestor::take(&mut raw.extra, "summary").unwrap_or_default();
    let unknown = std::mem::take(&mut raw.extra);
    let (has_iteration, has_timestamp) = (raw.iteration.is_some(), raw.timestamp.is_some());
    // Whatever it says of itself is kept, in the spelling of an iteration that is at hand.
    let node = into_node(raw, id.clone(), Arc::from(""));
    let fields = serde_json::to_value(Thought::from_node(*node)).map_err(|e| e.to_string())?;
    let mut extra = Map::new();
    for (key, value) in fields.as_object().into_iter().flatten() {
        let is_said = match key.as_str() {
            "version" | "id" | "prompt" | "history" => false,
            "iteration" => has_iteration,
            "timestamp" => has_timestamp,
            _ => match value {
                Value::Null => false,
                Value::Array(items) => !items.is_empty(),
                Value::Object(fields) => !fields.is_empty(),
                _ => true,
            },
        };
        if is_said {
            extra.insert(key.clone(), value.clone());
        }
    }
    extra.extend(unknown);
    Ok(Reference { id, summary: Arc::from(summary), extra })
}

fn link_id(link: &Link) -> &Id {
    match link {
        Link::Node(node) => &node.id,
        Link::Reference(node) => &node.reference.id,
    }
}

/// Shares what an iteration has in common with the one before it, as it was when it was made.
fn share(node: &mut Node, before: Option<&Link>) {
    fn adopt<T: PartialEq + ?Sized>(mine: &mut Option<Arc<T>>, theirs: Option<&Arc<T>>) {
        if let (Some(a), Some(b)) = (mine.as_mut(), theirs)
            && a == b
        {
            *a = Arc::clone(b);
        }
    }
    let Some(Link::Node(old)) = before else { return };
    if node.prompt == old.prompt {
        node.prompt = Arc::clone(&old.prompt);
    }
    adopt(&mut node.system_prompt, old.system_prompt.as_ref());
    adopt(&mut node.chain_id, old.chain_id.as_ref());
    adopt(&mut node.pre, old.pre.as_ref());
    adopt(&mut node.tags, old.tags.as_ref());
    adopt(&mut node.metadata, old.metadata.as_ref());
}
