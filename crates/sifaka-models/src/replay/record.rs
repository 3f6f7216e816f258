//! What was asked and answered in a run.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use sifaka_core::event::Prompted;
use sifaka_core::model::{Completion, Message, Part, Provider, Request, Response, Role};
use sifaka_core::{Body, Cost, Event, EventKind, Hash, Result, Usage, text};

use super::not_found;

/// Prompts and their answers.
#[derive(Debug)]
pub(super) struct Record {
    entries: Vec<Entry>,
    by_prompt: HashMap<Hash, usize>,
}

/// A prompt with everything that was answered to it.
#[derive(Debug)]
struct Entry {
    system: Option<Arc<str>>,
    messages: Vec<Message>,
    /// The number of the event that first asked it.
    seq: u64,
    completions: Vec<Answer>,
    /// How many were given so far, round and round.
    given: Mutex<usize>,
}

#[derive(Debug)]
struct Answer {
    completion: Completion,
    /// The call's, on the first of its completions.
    usage: Usage,
    provider: Provider,
}

impl Record {
    pub(super) fn new(name: &str, events: &[Event]) -> Result<Self> {
        let mut record = Self { entries: Vec::new(), by_prompt: HashMap::new() };
        let mut asked: Option<(&Prompted, u64)> = None;
        for event in events {
            match &event.kind {
                EventKind::Prompted(prompt) => asked = Some((prompt, event.seq)),
                EventKind::Generated { model, completions, usage, provider, .. } => {
                    // Without its prompt, as after an erasure, an answer fits nothing.
                    if let Some((prompt, seq)) = asked {
                        record.add(prompt, seq, (model, completions, *usage, provider));
                    }
                }
                EventKind::Called { model, prompt, response, .. } => {
                    let Response { completions, usage, provider, .. } = &**response;
                    record.add(prompt, event.seq, (model, completions, *usage, provider));
                }
                _ => {}
            }
        }
        if record.entries.is_empty() {
            return Err(not_found(name, "the run has no answer of a model to give again")
                .suggest("it may have been erased, or never got that far; see `sifaka show`"));
        }
        Ok(record)
    }

    fn add(
        &mut self,
        prompt: &Prompted,
        seq: u64,
        (model, completions, usage, provider): (&Arc<str>, &[Completion], Usage, &Provider),
    ) {
        let key = key(prompt.system.as_deref(), &prompt.messages);
        let at = *self.by_prompt.entry(key).or_insert_with(|| {
            self.entries.push(Entry {
                system: prompt.system.clone(),
                messages: prompt.messages.clone(),
                seq,
                completions: Vec::new(),
                given: Mutex::new(0),
            });
            self.entries.len() - 1
        });
        let mut provider = provider.clone();
        provider.model.get_or_insert_with(|| String::from(&**model));
        for (completion, place) in completions.iter().zip(0..) {
            self.entries[at].completions.push(Answer {
                completion: completion.clone(),
                usage: if place == 0 { usage } else { Usage::default() },
                provider: provider.clone(),
            });
        }
    }

    /// What was answered to this request's prompt.
    pub(super) fn answer(&self, name: &str, request: &Request) -> Result<Response> {
        let key = key(request.system.as_deref(), &request.messages);
        let Some(entry) = self.by_prompt.get(&key).map(|at| &self.entries[*at]) else {
            return Err(not_found(name, self.difference(request))
                .suggest("replay with the chain, the prompt and the files that were recorded")
                .suggest("`sifaka show` prints the prompts that are on record"));
        };
        let wanted = request.candidates.max(1) as usize;
        let there = entry.completions.len();
        if wanted > there {
            let message = format!("{wanted} candidates are asked for and {there} are on record");
            return Err(not_found(name, message).suggest("ask for as many as were recorded"));
        }
        let mut given = entry.given.lock().unwrap_or_else(PoisonError::into_inner);
        let mut usage = Usage::default();
        let mut response = Response::default();
        for _ in 0..wanted {
            let answer = &entry.completions[*given];
            usage += answer.usage;
            if response.completions.is_empty() {
                response.provider = answer.provider.clone();
            }
            response.completions.push(answer.completion.clone());
            *given = (*given + 1) % there;
        }
        response.usage = Usage { calls: 1, cost: Some(Cost::ZERO), ..usage };
        Ok(response)
    }

    /// Says how the nearest prompt on record differs from what is asked.
    fn difference(&self, request: &Request) -> String {
        let asked = flat(request.system.as_deref(), &request.messages);
        let nearest = self
            .entries
            .iter()
            .map(|entry| (entry, flat(entry.system.as_deref(), &entry.messages)))
            .max_by_key(|(entry, recorded)| (common(&asked, recorded), u64::MAX - entry.seq));
        let Some((entry, recorded)) = nearest else { return "nothing is on record".to_owned() };
        let at = common(&asked, &recorded);
        let line = asked[..at].matches('\n').count() + 1;
        let start = asked[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let shown = |text: &str| match text.get(start..) {
            Some(rest) if !rest.is_empty() => {
                format!("{:?}", text::summarise(rest.lines().next().unwrap_or_default(), 80))
            }
            _ => "its end".to_owned(),
        };
        format!(
            "the prompt is not on record; the nearest (event {}) differs in line {line}: \
             recorded {}, asked {}",
            entry.seq,
            shown(&recorded),
            shown(&asked),
        )
    }
}

/// How many bytes two texts have in common at their beginning, in whole characters.
fn common(a: &str, b: &str) -> usize {
    let pairs = a.chars().zip(b.chars());
    pairs.take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum()
}

/// A prompt as one text, for comparing.
fn flat(system: Option<&str>, messages: &[Message]) -> String {
    let mut out = String::new();
    if let Some(system) = system {
        out.push_str("system: ");
        out.push_str(system);
        out.push('\n');
    }
    for message in messages {
        out.push_str(role(message.role));
        out.push_str(": ");
        for part in &message.parts {
            match part {
                Part::Text(body) | Part::ToolResult { content: body, .. } => match body.as_str() {
                    Some(text) => out.push_str(text),
                    None => out.push_str(&format!("{body:?}")),
                },
                other => out.push_str(&format!("{other:?}")),
            }
        }
        out.push('\n');
    }
    out
}

fn role(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    }
}

/// What a prompt is found by: the same for a body at hand and for a pointer to it, since long
/// ones are stored apart.
fn key(system: Option<&str>, messages: &[Message]) -> Hash {
    let mut bytes = Vec::new();
    // Each piece is a fixed number of bytes, so that no two prompts run together to the same.
    let mut piece = |kind: &str, hash: Hash| {
        bytes.extend_from_slice(Hash::of(kind.as_bytes()).as_bytes());
        bytes.extend_from_slice(hash.as_bytes());
    };
    if let Some(system) = system {
        piece("system", Hash::of(system.as_bytes()));
    }
    for message in messages {
        piece("message", Hash::of(role(message.role).as_bytes()));
        for part in &message.parts {
            match part {
                Part::Text(body) => piece("text", hash(body)),
                Part::Image { media_type, data } => {
                    piece("image", Hash::of(media_type.as_bytes()));
                    piece("data", hash(data));
                }
                Part::ToolResult { call_id, content, is_error } => {
                    piece("result", Hash::of(call_id.as_bytes()));
                    piece(if *is_error { "error" } else { "content" }, hash(content));
                }
                other => piece("other", Hash::of(format!("{other:?}").as_bytes())),
            }
        }
    }
    Hash::of(&bytes)
}

fn hash(body: &Body) -> Hash {
    match body {
        Body::Blob(blob) => blob.blob,
        Body::Text(_) | Body::Bytes(_) => Hash::of(body.as_bytes().unwrap_or_default()),
    }
}
