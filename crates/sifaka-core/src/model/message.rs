//! What is said to a model.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::response::ToolCall;
use crate::body::Body;

/// Who says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The user.
    User,
    /// The model.
    Assistant,
    /// A tool, answering a call.
    Tool,
}

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Who says it.
    pub role: Role,
    /// What is said.
    pub parts: Vec<Part>,
}

/// A piece of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Part {
    /// Text.
    Text(Body),
    /// An image.
    Image {
        /// Its type, such as `image/png`.
        media_type: Arc<str>,
        /// Its bytes.
        data: Body,
    },
    /// A call the model made earlier.
    ToolCall(ToolCall),
    /// What came of a call.
    ToolResult {
        /// Which call.
        call_id: Arc<str>,
        /// What the tool answered.
        content: Body,
        /// Whether the tool failed.
        is_error: bool,
    },
}

impl Message {
    /// A text of the user's.
    pub fn user(text: impl Into<Body>) -> Self {
        Self { role: Role::User, parts: vec![Part::Text(text.into())] }
    }

    /// A text of the model's.
    pub fn assistant(text: impl Into<Body>) -> Self {
        Self { role: Role::Assistant, parts: vec![Part::Text(text.into())] }
    }

    /// A tool's answer.
    pub fn tool_result(call_id: impl Into<Arc<str>>, content: impl Into<Body>) -> Self {
        let part =
            Part::ToolResult { call_id: call_id.into(), content: content.into(), is_error: false };
        Self { role: Role::Tool, parts: vec![part] }
    }

    /// All the text that is at hand, run together.
    #[must_use]
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        let mut texts = self.parts.iter().filter_map(|part| match part {
            Part::Text(body) | Part::ToolResult { content: body, .. } => body.as_str(),
            Part::Image { .. } | Part::ToolCall(_) => None,
        });
        let first = texts.next().unwrap_or_default();
        match texts.next() {
            None => first.into(),
            Some(second) => {
                let mut all = [first, second].concat();
                all.extend(texts);
                all.into()
            }
        }
    }
}
