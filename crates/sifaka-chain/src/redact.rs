//! Taking out of the record what must not be in it.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use sifaka_core::{Event, Result};

type Rule = dyn Fn(&str) -> Cow<'_, str> + Send + Sync;

/// A rule that rewrites every text before it is journalled. What the caller gets back is not
/// touched, only what is kept. Names, ids and times are no texts, and stay.
#[derive(Clone)]
pub struct Redaction(Arc<Rule>);

/// Makes a rule of a closure.
pub fn redact_with(rule: impl Fn(&str) -> Cow<'_, str> + Send + Sync + 'static) -> Redaction {
    Redaction(Arc::new(rule))
}

impl Redaction {
    /// The same event with the rule applied to every text in it; see
    /// [`EventKind::rewrite_texts`](sifaka_core::EventKind::rewrite_texts) for what is one. A
    /// chain does this by itself; it is for those who write to a journal without one.
    ///
    /// # Errors
    /// None is known to occur.
    pub fn apply(&self, event: &Event) -> Result<Event> {
        let mut event = event.clone();
        event.kind.rewrite_texts(&mut |text| {
            let new = (self.0)(text);
            // A rule may lend a part of the text, or another text: what counts is what it says.
            (new != text).then(|| new.into_owned())
        });
        Ok(event)
    }
}

impl fmt::Debug for Redaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redaction")
    }
}
