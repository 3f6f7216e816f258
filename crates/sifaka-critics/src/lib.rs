//! Critics and their prompt templates.
//!
//! - [`ScriptedCritic`], `scripted` by name, says what its script says. Tests and demonstrations
//!   use it.
//!
//! ```
//! use std::sync::Arc;
//! use sifaka_core::{Context, Critic, Model, Review, Thought, critic::Critic as _, model_fn};
//! use sifaka_core::prompt::Prompts;
//! use sifaka_critics::ScriptedCritic;
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let ctx = Context::new();
//! let critic = ScriptedCritic::issue("too curt").named("tone");
//!
//! let model: Arc<dyn Model> = Arc::new(model_fn("none", |_| async { "" }));
//! let (thought, prompts) = (Thought::new(&ctx, "Say hello.").with_text("Hi."), Prompts::built_in()?);
//! let review = Review {
//!     thought: &thought, model: &model, retrievers: &[], validators: &[], tools: &[],
//!     prompts: &prompts,
//! };
//! let feedback = critic.critique(&ctx, &review).await?;
//! assert_eq!((&*feedback.critic_name, &feedback.issues[0][..]), ("tone", "too curt"));
//! # Ok::<(), sifaka_core::Error>(()) }).unwrap();
//! ```

pub mod scripted;

use std::sync::Arc;

use sifaka_core::Registry;
use sifaka_core::registry::About;

pub use scripted::{Advice, ScriptedCritic};

/// Makes `scripted` known.
///
/// Options: a script's path after the colon or as `script`; or `issue` and `suggestion`, lists of
/// them as `issues` and `suggestions` in a file, `feedback`, `confidence`, `proposed_text`, or
/// `error` with `retry_after`; besides `delay` in seconds and `name`.
pub fn register(registry: &Registry) {
    let about = About::new(
        "scripted",
        "A critic that says what its script says; no model",
        "scripted:issue=too curt,suggestion=greet the reader",
    );
    registry.critics.register(about, |spec, _| Ok(Arc::new(scripted::from_spec(spec)?)));
}
