//! Models: scripted and replayed.
//!
//! - [`ScriptedModel`], `mock` by name, replies by script: in sequence, by rule or from a file,
//!   with delays and errors where the script asks for them. Tests and demonstrations use it.
//! - [`ReplayModel`], `replay:ID` by name, gives the answers of a recorded run again, to the same
//!   prompts and to no others.
//!
//! [`script`] has what scripted parts of other crates share with it.
//!
//! ```
//! use sifaka_core::{Context, Model, Registry, Spec, model::Request};
//! use sifaka_models::ScriptedModel;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! let ctx = Context::new();
//! let model = ScriptedModel::new(["First try.", "Second try."])
//!     .when_contains("weather", "It rains.");
//! let response = model.generate(&ctx, &Request::text("How is the weather?")).await?;
//! assert_eq!(&*response.completions[0].text, "It rains.");
//! let response = model.generate(&ctx, &Request::text("Say something.")).await?;
//! assert_eq!(&*response.completions[0].text, "First try.");
//! assert_eq!(model.call_count(), 2);
//!
//! // The same by name, as configuration files and the command line do it.
//! let registry = Registry::new();
//! sifaka_models::register(&registry);
//! let model = registry.model(&Spec::parse("mock:replies=one|two")?)?;
//! let response = model.generate(&ctx, &Request::text("Count.")).await?;
//! assert_eq!(&*response.completions[0].text, "one");
//! # Ok::<(), sifaka_core::Error>(()) }).unwrap();
//! ```

pub mod replay;
pub mod script;
pub mod scripted;

use std::sync::Arc;

use sifaka_core::registry::About;
use sifaka_core::{Journal, Registry};

pub use replay::ReplayModel;
pub use scripted::{Reply, ScriptedModel};

/// Makes `mock` known.
///
/// Options: a script's path after the colon or as `script`, or `reply`, or `replies` with `|`
/// between them; `delay`, `chunk_delay` in seconds; `exhausted` (`repeat` or `error`);
/// `price_in`, `price_out` in dollars for a million tokens; `context_window` in tokens.
pub fn register(registry: &Registry) {
    let about = About::new(
        "mock",
        "A scripted model: replies from a file, from options, or built in; no network",
        "mock:script.toml",
    );
    registry.models.register(about, |spec, _| Ok(Arc::new(scripted::from_spec(spec)?)));
}

/// Makes `replay:ID` known, which answers from `journal`. The run is read when the model is first
/// asked, so an unknown id shows then.
pub fn register_replay(registry: &Registry, journal: Arc<dyn Journal>) {
    let about = About::new(
        "replay",
        "Answers from a run on record, to the same prompts; costs nothing",
        "replay:0198c2f4",
    );
    registry.models.register(about, move |spec, _| {
        Ok(Arc::new(ReplayModel::lazy(Arc::clone(&journal), replay::id_of(spec)?)))
    });
}
