//! Components by name, extended by whoever wants to.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use crate::critic::Critic;
use crate::embedder::Embedder;
use crate::model::Model;
use crate::names::nearest;
use crate::retriever::Retriever;
use crate::spec::Spec;
use crate::validator::Validator;
use crate::{Error, Result};

/// What makes a component from what the user wrote.
pub type Factory<T> = Arc<dyn Fn(&Spec, &Registry) -> Result<Arc<T>> + Send + Sync>;

/// How a component is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// The name it is asked for by.
    pub name: String,
    /// What it is for, in a line.
    pub summary: String,
    /// What it looks like in use.
    pub example: String,
}

impl About {
    /// A listing of this name.
    pub fn new(
        name: impl Into<String>,
        summary: impl Into<String>,
        example: impl Into<String>,
    ) -> Self {
        Self { name: name.into(), summary: summary.into(), example: example.into() }
    }
}

/// Components of one kind by name.
pub struct Names<T: ?Sized> {
    kind: &'static str,
    known: RwLock<BTreeMap<String, (About, Factory<T>)>>,
}

impl<T: ?Sized> Names<T> {
    fn new(kind: &'static str) -> Self {
        Self { kind, known: RwLock::new(BTreeMap::new()) }
    }

    /// Makes a name known, in place of whatever had it.
    pub fn register(
        &self,
        about: About,
        factory: impl Fn(&Spec, &Registry) -> Result<Arc<T>> + Send + Sync + 'static,
    ) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.insert(about.name.clone(), (about, Arc::new(factory)));
    }

    /// Everything that is known, by name.
    #[must_use]
    pub fn list(&self) -> Vec<About> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.values().map(|(about, _)| about.clone()).collect()
    }

    fn find(&self, spec: &Spec) -> Result<Factory<T>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, factory)) = known.get(spec.name()) {
            return Ok(Arc::clone(factory));
        }
        let near = nearest(spec.name(), known.keys().map(String::as_str));
        let all: Vec<&str> = known.keys().map(String::as_str).collect();
        let error = Error::configuration(
            format!("{}s", self.kind),
            format!("no {} is called {:?}", self.kind, spec.name()),
        );
        let error = match near.as_slice() {
            [] => error,
            near => error.suggest(format!("did you mean {}?", near.join(" or "))),
        };
        Err(error.suggest(format!("known are: {}", all.join(", "))))
    }
}

impl<T: ?Sized> fmt::Debug for Names<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.list().into_iter().map(|about| about.name).collect();
        f.debug_struct("Names").field("kind", &self.kind).field("names", &names).finish()
    }
}

/// Named factories of models, validators, critics, retrievers and embedders.
///
/// An unknown name is an error that gives the nearest known ones; nothing stands in for it.
#[derive(Debug)]
pub struct Registry {
    /// Models: `openai:gpt-4o-mini`.
    pub models: Names<dyn Model>,
    /// Validators: `length:words=50..200`.
    pub validators: Names<dyn Validator>,
    /// Critics: `reflexion`.
    pub critics: Names<dyn Critic>,
    /// Retrievers: `bm25:./docs`.
    pub retrievers: Names<dyn Retriever>,
    /// Embedders: `local:embed`.
    pub embedders: Names<dyn Embedder>,
}

impl Registry {
    /// A registry that knows nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self {
            models: Names::new("model"),
            validators: Names::new("check"),
            critics: Names::new("critic"),
            retrievers: Names::new("retriever"),
            embedders: Names::new("embedder"),
        }
    }

    /// The model this names.
    ///
    /// # Errors
    /// For an unknown name with the nearest known ones, and the factory's own.
    pub fn model(&self, spec: &Spec) -> Result<Arc<dyn Model>> {
        self.models.find(spec)?(spec, self)
    }

    /// The validator this names.
    ///
    /// # Errors
    /// As [`model`](Self::model).
    pub fn validator(&self, spec: &Spec) -> Result<Arc<dyn Validator>> {
        self.validators.find(spec)?(spec, self)
    }

    /// The critic this names.
    ///
    /// # Errors
    /// As [`model`](Self::model).
    pub fn critic(&self, spec: &Spec) -> Result<Arc<dyn Critic>> {
        self.critics.find(spec)?(spec, self)
    }

    /// The retriever this names.
    ///
    /// # Errors
    /// As [`model`](Self::model).
    pub fn retriever(&self, spec: &Spec) -> Result<Arc<dyn Retriever>> {
        self.retrievers.find(spec)?(spec, self)
    }

    /// The embedder this names.
    ///
    /// # Errors
    /// As [`model`](Self::model).
    pub fn embedder(&self, spec: &Spec) -> Result<Arc<dyn Embedder>> {
        self.embedders.find(spec)?(spec, self)
    }
}

impl Default for Registry {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check;

    #[test]
    fn an_unknown_name_is_an_error_with_the_nearest_known_ones() {
        let registry = Registry::new();
        registry.validators.register(About::new("length", "counts", "length:words=5.."), |_, _| {
            Ok(Arc::new(check("length", |_| true)))
        });
        assert!(registry.validator(&Spec::parse("length:words=5").unwrap()).is_ok());
        let error = registry.validator(&Spec::parse("lenght").unwrap()).unwrap_err();
        assert_eq!(error.suggestions(), ["did you mean length?", "known are: length"]);
    }
}
