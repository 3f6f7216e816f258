//! An answer in pieces, a word at a time.

use std::sync::Arc;
use std::time::Duration;

use futures_util::Stream;
use futures_util::stream::try_unfold;
use sifaka_core::model::Delta;
use sifaka_core::{Context, Result};

use super::Prepared;

/// The deltas of an answer, each after `delay`, ending with the whole or with the script's error.
pub(super) fn stream(
    ctx: &Context,
    prepared: Prepared,
    delay: Duration,
) -> impl Stream<Item = Result<Delta>> + Send {
    let mut pieces = Vec::new();
    for (completion, index) in prepared.response.completions.iter().zip(0_u32..) {
        for word in completion.reasoning.iter().flat_map(|text| words(text)) {
            pieces.push(Delta::Reasoning { index, text: word });
        }
        pieces.extend(words(&completion.text).map(|text| Delta::Text { index, text }));
    }
    let end = match prepared.fault {
        Some(error) => Err(error),
        None => Ok(Delta::Done(Box::new(prepared.response))),
    };
    // After an error `try_unfold` gives nothing more, which is what a broken stream does.
    try_unfold((pieces.into_iter(), Some(end)), move |(mut pieces, mut end)| async move {
        ctx.check()?;
        if let Some(piece) = pieces.next() {
            if !delay.is_zero() {
                ctx.sleep(delay).await?;
            }
            return Ok(Some((piece, (pieces, end))));
        }
        match end.take() {
            Some(end) => end.map(|done| Some((done, (pieces, None)))),
            None => Ok(None),
        }
    })
}

fn words(text: &str) -> impl Iterator<Item = Arc<str>> + '_ {
    text.split_inclusive(char::is_whitespace).map(Arc::from)
}
