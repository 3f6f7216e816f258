//! Checks that need no account, no download and no network.
//!
//! - [`Length`], `length` by name: characters, words, sentences, paragraphs, lines or tokens.
//! - [`Pattern`], `regex` by name: patterns that must, must not, or so many times occur.
//! - [`Content`], `content` by name: terms that must or must not occur.
//!
//! Each is exact and fast, says what is wrong and where, offers constraints to models that can
//! be guided, and watches text while it is written where it can decide early.
//! [`ValidatorExt`] makes any check soft, gives it a weight or a name; by name, every check made
//! with [`checked`] takes these as options: `length:words=50..,soft=true,weight=0.5`.
//!
//! A file for each check; [`text`] has what they count with.
//!
//! ```
//! use sifaka_core::{Context, Draft, Registry, Spec, Thought, Validator};
//! use sifaka_validators::{Length, ValidatorExt};
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let ctx = Context::new();
//! let thought = Thought::new(&ctx, "Say hello.");
//! let draft = Draft::new("Hello, world!", &thought);
//!
//! let result = Length::words(5..=20).validate(&ctx, &draft).await?;
//! assert_eq!(result.issues, ["2 words, at least 5 asked"]);
//! assert_eq!(result.suggestions, ["write about 3 more words"]);
//! let result = Length::words(5..=20).soft().weight(0.5).validate(&ctx, &draft).await?;
//! assert!(result.allows(), "a soft check only scores");
//!
//! // The same by name, as configuration files and the command line do it.
//! let registry = Registry::new();
//! sifaka_validators::register(&registry);
//! let check = registry.validator(&Spec::parse("length:words=5..20")?)?;
//! assert!(!check.validate(&ctx, &draft).await?.allows());
//! # Ok::<(), sifaka_core::Error>(()) }).unwrap();
//! ```

mod configured;
pub mod content;
mod length;
mod pattern;
mod tally;
pub mod text;

use sifaka_core::Registry;
use sifaka_core::registry::About;

pub use configured::{Configured, Modifiers, ValidatorExt, checked};
pub use content::Content;
pub use length::Length;
pub use pattern::Pattern;

/// Makes the checks of this crate known. All of them take the options of [`Modifiers`] as well.
pub fn register(registry: &Registry) {
    let checks = &registry.validators;
    checks.register(
        About::new(
            "length",
            "How many characters, words, sentences, paragraphs, lines or tokens there are",
            "length:words=50..200",
        ),
        |spec, _| checked(spec, length::from_options),
    );
    checks.register(
        About::new(
            "regex",
            "Patterns that must (require), must not (forbid) or so many times (match, count) occur",
            "regex:forbid=TODO|FIXME",
        ),
        |spec, _| checked(spec, |reader| pattern::from_options(spec, reader)),
    );
    checks.register(
        About::new(
            "content",
            "Terms that must (require) or must not (forbid) occur",
            "content:require=alpha,beta,whole_word=true",
        ),
        |spec, _| checked(spec, content::from_options),
    );
}
