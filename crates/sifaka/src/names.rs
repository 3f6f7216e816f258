//! Components by name, with everything that comes built in.

use std::sync::Arc;

use sifaka_core::{Critic, Journal, Model, Registry, Result, Retriever, Spec, Validator};

/// A registry with every built-in component. Add your own to it:
///
/// ```
/// use std::sync::Arc;
/// use sifaka::{Spec, check, registry::About};
///
/// let registry = sifaka::registry();
/// let about = About::new("polite", "Whether it says please", "polite");
/// registry.validators.register(about, |_, _| {
///     Ok(Arc::new(check("polite", |text| text.contains("please"))))
/// });
/// assert!(registry.validator(&Spec::parse("polite")?).is_ok());
/// assert!(registry.validator(&Spec::parse("length:words=5..")?).is_ok());
/// # Ok::<(), sifaka::Error>(())
/// ```
#[must_use]
pub fn registry() -> Registry {
    let registry = Registry::new();
    sifaka_models::register(&registry);
    #[cfg(feature = "local")]
    sifaka_local::register(&registry);
    sifaka_validators::register(&registry);
    sifaka_critics::register(&registry);
    sifaka_retrieval::register(&registry);
    registry
}

/// Makes the models known that answer from a journal: `replay:ID`.
pub fn register_journal(registry: &Registry, journal: Arc<dyn Journal>) {
    sifaka_models::register_replay(registry, journal);
}

/// The built-in model of this name, such as `mock`.
///
/// # Errors
/// [`ErrorKind::Configuration`](crate::ErrorKind::Configuration) for an unknown name, with the
/// nearest known ones, or for options it does not have.
pub fn model(name: &str) -> Result<Arc<dyn Model>> {
    registry().model(&Spec::parse(name)?)
}

/// The built-in check this describes, such as `length:words=50..200`.
///
/// # Errors
/// As [`model()`].
pub fn validator(check: &str) -> Result<Arc<dyn Validator>> {
    registry().validator(&Spec::parse(check)?)
}

/// The built-in critic of this name.
///
/// # Errors
/// As [`model()`].
pub fn critic(name: &str) -> Result<Arc<dyn Critic>> {
    registry().critic(&Spec::parse(name)?)
}

/// The built-in retriever of this name.
///
/// # Errors
/// As [`model()`].
pub fn retriever(name: &str) -> Result<Arc<dyn Retriever>> {
    registry().retriever(&Spec::parse(name)?)
}
