//! The bodies inside an event, so that large ones can be stored apart.

use std::sync::Arc;

use super::texts::history;
use super::{EventKind, Prompted};
use crate::body::{BlobRef, Body, Hash};
use crate::model::{Message, Part};

impl EventKind {
    /// Calls `visit` on every body in the event.
    pub fn for_each_body(&self, mut visit: impl FnMut(&Body)) {
        match self {
            Self::Imported { thought } => history::for_each_body(thought, &mut visit),
            Self::Retrieved { query, documents, .. } => {
                visit(query);
                documents.iter().for_each(|document| visit(&document.text));
            }
            Self::Prompted(prompt) => messages(prompt, &mut visit),
            Self::Generated { raw, .. } => raw.iter().for_each(visit),
            Self::Called { prompt, response, .. } => {
                messages(prompt, &mut visit);
                response.raw.iter().for_each(visit);
            }
            // No body is left out here by accident: a new kind has to be named.
            Self::RunStarted { .. }
            | Self::RunResumed { .. }
            | Self::IterationStarted { .. }
            | Self::Guided { .. }
            | Self::Validated { .. }
            | Self::Chosen { .. }
            | Self::Critiqued { .. }
            | Self::Failed { .. }
            | Self::Skipped { .. }
            | Self::Resilience { .. }
            | Self::Noted { .. }
            | Self::RunFinished { .. }
            | Self::RunFailed { .. }
            | Self::Delta(_)
            | Self::Unknown(_) => {}
        }
    }

    /// The same, with leave to change them.
    pub fn for_each_body_mut(&mut self, mut visit: impl FnMut(&mut Body)) {
        match self {
            Self::Imported { thought } => history::for_each_body_mut(thought, &mut visit),
            Self::Retrieved { query, documents, .. } => {
                visit(query);
                documents.iter_mut().for_each(|document| visit(&mut document.text));
            }
            Self::Prompted(prompt) => messages_mut(prompt, &mut visit),
            Self::Generated { raw, .. } => raw.iter_mut().for_each(visit),
            Self::Called { prompt, response, .. } => {
                messages_mut(prompt, &mut visit);
                response.raw.iter_mut().for_each(visit);
            }
            Self::RunStarted { .. }
            | Self::RunResumed { .. }
            | Self::IterationStarted { .. }
            | Self::Guided { .. }
            | Self::Validated { .. }
            | Self::Chosen { .. }
            | Self::Critiqued { .. }
            | Self::Failed { .. }
            | Self::Skipped { .. }
            | Self::Resilience { .. }
            | Self::Noted { .. }
            | Self::RunFinished { .. }
            | Self::RunFailed { .. }
            | Self::Delta(_)
            | Self::Unknown(_) => {}
        }
    }

    /// A copy in which every body above `threshold` bytes, and every one that is not text, is
    /// replaced by a pointer; the bodies that were taken out go to `apart`. `None` when there is
    /// nothing to take out.
    #[must_use]
    pub fn split_off_bodies(
        &self,
        threshold: usize,
        apart: &mut Vec<(BlobRef, Body)>,
    ) -> Option<Self> {
        let large = |body: &Body| match body {
            Body::Text(text) => text.len() > threshold,
            Body::Bytes(_) => true,
            Body::Blob(_) => false,
        };
        let mut any = false;
        self.for_each_body(|body| any |= large(body));
        if !any {
            return None;
        }
        let mut copy = self.clone();
        copy.for_each_body_mut(|body| {
            if large(body)
                && let Some(bytes) = body.as_bytes()
            {
                let blob = BlobRef { blob: Hash::of(bytes), bytes: bytes.len() as u64 };
                apart.push((blob, std::mem::replace(body, Body::Blob(blob))));
            }
        });
        Some(copy)
    }
}

fn messages(prompt: &Prompted, visit: &mut impl FnMut(&Body)) {
    for part in prompt.messages.iter().flat_map(|message| &message.parts) {
        match part {
            Part::Text(body)
            | Part::Image { data: body, .. }
            | Part::ToolResult { content: body, .. } => visit(body),
            Part::ToolCall(_) => {}
        }
    }
}

fn messages_mut(prompt: &mut Prompted, visit: &mut impl FnMut(&mut Body)) {
    let messages: &mut [Message] = &mut prompt.messages;
    for part in messages.iter_mut().flat_map(|message| &mut message.parts) {
        match part {
            Part::Text(body)
            | Part::Image { data: body, .. }
            | Part::ToolResult { content: body, .. } => visit(body),
            Part::ToolCall(_) => {}
        }
    }
}

impl Body {
    /// The bytes, shared, if they are at hand.
    #[must_use]
    pub fn to_bytes(&self) -> Option<Arc<[u8]>> {
        match self {
            Self::Text(text) => Some(Arc::from(Arc::clone(text))),
            Self::Bytes(bytes) => Some(Arc::clone(bytes)),
            Self::Blob(_) => None,
        }
    }
}
