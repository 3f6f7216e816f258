//! What of a request a scripted model keeps to.

use std::sync::Arc;

use sifaka_core::Constraint;
use sifaka_core::model::{Capabilities, FinishReason, Part, Request};
use sifaka_core::{Error, ErrorKind, Result};

/// Fails for a request that needs more than the model says it can do.
pub(super) fn check(
    name: &str,
    can: &Capabilities,
    request: &Request,
    input_tokens: u64,
) -> Result<()> {
    let parts = || request.messages.iter().flat_map(|message| &message.parts);
    let constraints = request.constraints.iter().map(|(_, constraint)| constraint);
    let lacking = if !can.tools && !request.tools.is_empty() {
        "tools"
    } else if !can.json_schema && request.response_format.is_some() {
        "a response format"
    } else if !can.logprobs && request.logprobs.is_some() {
        "log-probabilities"
    } else if !can.system_prompt && request.system.is_some() {
        "a system prompt"
    } else if !can.images && parts().any(|part| matches!(part, Part::Image { .. })) {
        "images"
    } else if !can.guided && constraints.into_iter().any(|constraint| !enforces(can, constraint)) {
        "constraints"
    } else if request.candidates > can.max_candidates {
        "so many candidates"
    } else if let Some(window) = can.context_window.filter(|window| input_tokens > *window) {
        let message = format!("the prompt has {input_tokens} tokens and the model takes {window}");
        return Err(Error::new(ErrorKind::ContextTooLong, name, "generate", message)
            .suggest("shorten the prompt, or set a larger context_window"));
    } else {
        return Ok(());
    };
    let message = format!("the request asks for {lacking}, and the script has none");
    Err(Error::new(ErrorKind::Unsupported, name, "generate", message)
        .suggest("ask for less, or give the scripted model the capability"))
}

fn enforces(can: &Capabilities, constraint: &Constraint) -> bool {
    match constraint {
        Constraint::JsonSchema(_) => can.json_schema,
        Constraint::Regex(_) => can.regex,
        Constraint::Grammar { .. } => can.grammar,
        _ => false,
    }
}

/// The text up to the first stop text and no longer than the token limit, and why it ended if
/// one of them cut it.
pub(super) fn cut(text: Arc<str>, request: &Request) -> (Arc<str>, Option<FinishReason>) {
    let stop = request.stop.iter().filter(|stop| !stop.is_empty());
    let stop = stop.filter_map(|stop| text.find(stop.as_str())).min();
    let most = request.sampling.max_tokens.map(|tokens| {
        // The estimate is a token for three bytes, so the limit is three bytes for a token.
        let bytes = usize::try_from(tokens.saturating_mul(3)).unwrap_or(usize::MAX);
        text.floor_char_boundary(bytes)
    });
    match (stop, most.filter(|most| *most < text.len())) {
        (Some(stop), Some(most)) if most < stop => {
            (Arc::from(&text[..most]), Some(FinishReason::Length))
        }
        (Some(stop), _) => (Arc::from(&text[..stop]), Some(FinishReason::Stop)),
        (None, Some(most)) => (Arc::from(&text[..most]), Some(FinishReason::Length)),
        (None, None) => (text, None),
    }
}
