//! The one place where prompts are put together.
//!
//! Templates are files. [`Prompts`] holds them, lets users put theirs in place of ours, and shows
//! them. [`Prompts::assemble`] makes the prompt of an iteration: the task, what was retrieved, and
//! on a repair the previous text with what was said of it, cut to the model's window. Text from
//! outside is fenced and labelled as data by the `data` filter, which every template uses.

mod assemble;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use serde::Serialize;

use crate::names::nearest;
use crate::{Error, ErrorKind, Problem, Result};

pub use assemble::{Assembled, Task};

/// The templates that come with the crate.
const BUILT_IN: &[(&str, &str)] = &[
    ("context", include_str!("templates/context.md")),
    ("generate", include_str!("templates/generate.md")),
    ("improve", include_str!("templates/improve.md")),
];

/// A set of prompt templates. Cheap to clone.
#[derive(Clone)]
pub struct Prompts {
    environment: Arc<Environment<'static>>,
}

impl Prompts {
    /// The templates that come with the crate.
    ///
    /// # Errors
    /// Never, as long as they are well formed, which a test checks.
    pub fn built_in() -> Result<Self> {
        let mut environment = Environment::empty();
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.add_filter("data", |text: &str, label: &str| as_data(text, label));
        environment.add_filter("join", minijinja::filters::join);
        for (name, source) in BUILT_IN {
            environment.add_template(name, source).map_err(|error| template_error(name, &error))?;
        }
        Ok(Self { environment: Arc::new(environment) })
    }

    /// The same with templates of a component's own, under names of its own.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] with the line when a template is malformed.
    pub fn with_template(
        &self,
        name: impl Into<String>,
        source: impl Into<String>,
    ) -> Result<Self> {
        let (name, source) = (name.into(), source.into());
        let mut environment = Environment::clone(&self.environment);
        environment
            .add_template_owned(name.clone(), source)
            .map_err(|error| template_error(&name, &error))?;
        Ok(Self { environment: Arc::new(environment) })
    }

    /// The same with the user's template in place of ours.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] when there is no template of that name, with the nearest, or
    /// with the line when it is malformed.
    pub fn with_override(
        &self,
        name: impl Into<String>,
        source: impl Into<String>,
    ) -> Result<Self> {
        let name = name.into();
        if self.source(&name).is_none() {
            let known = self.names();
            let near = nearest(&name, known.iter().map(String::as_str)).join(" or ");
            let hint = if near.is_empty() { known.join(", ") } else { near };
            return Err(Error::configuration("prompts", format!("no template is called {name:?}"))
                .suggest(format!("templates are: {hint}")));
        }
        self.with_template(name, source)
    }

    /// The same with every `NAME.md` of a folder in place of ours.
    ///
    /// Blocks; meant for building a chain.
    ///
    /// # Errors
    /// As [`with_override`](Self::with_override), for all files at once.
    pub fn with_folder(&self, folder: &Path) -> Result<Self> {
        let unreadable = |path: &Path, error: &std::io::Error| {
            Error::configuration("prompts", format!("{}: {error}", path.display()))
                .suggest("give a folder of templates, each called NAME.md")
        };
        let entries = std::fs::read_dir(folder).map_err(|error| unreadable(folder, &error))?;
        let mut paths = Vec::new();
        for entry in entries {
            paths.push(entry.map_err(|error| unreadable(folder, &error))?.path());
        }
        paths.retain(|path| path.extension().is_some_and(|e| e == "md"));
        paths.sort();
        let (mut prompts, mut problems) = (self.clone(), Vec::new());
        for path in paths {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let changed = std::fs::read_to_string(&path)
                .map_err(|error| unreadable(&path, &error))
                .and_then(|source| prompts.with_override(name, source));
            match changed {
                Ok(changed) => prompts = changed,
                Err(error) => problems.push(Problem::new(
                    path.display().to_string(),
                    error.message(),
                    error.suggestions().join("; "),
                )),
            }
        }
        if problems.is_empty() { Ok(prompts) } else { Err(Error::problems("prompts", problems)) }
    }

    /// Names of all templates.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            self.environment.templates().map(|(name, _)| name.to_owned()).collect();
        names.sort();
        names
    }

    /// A template as it was written.
    #[must_use]
    pub fn source(&self, name: &str) -> Option<String> {
        self.environment.get_template(name).ok().map(|template| template.source().to_owned())
    }

    /// A template filled in.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] with the template's name and line.
    pub fn render(&self, name: &str, values: &impl Serialize) -> Result<String> {
        self.environment
            .get_template(name)
            .and_then(|template| template.render(minijinja::value::Serde(values)))
            .map_err(|error| template_error(name, &error))
    }
}

impl fmt::Debug for Prompts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prompts").field("names", &self.names()).finish()
    }
}

fn template_error(name: &str, error: &minijinja::Error) -> Error {
    let line = error.line().map(|line| format!(", line {line}")).unwrap_or_default();
    Error::new(
        ErrorKind::Configuration,
        format!("template {name}{line}"),
        "render",
        error.to_string(),
    )
    .suggest("mend the template; `sifaka prompts` prints ours")
}

/// Fences a text that came from outside, so that nothing in it reads as an instruction.
///
/// The mark is a hash of the text, so a text cannot close its own fence: it would have to hold its
/// own hash. The same text always has the same fence, which keeps prompts reproducible.
#[must_use]
pub fn as_data(text: &str, label: &str) -> String {
    let hash = blake3::hash(text.as_bytes()).to_hex();
    // Sixteen digits: too many to find a text that holds its own by trying.
    let mark = &hash[..16];
    let mut fenced = String::with_capacity(text.len() + label.len() + 80);
    for part in ["<data mark=\"", mark, "\" label=\""] {
        fenced.push_str(part);
    }
    // A label is ours, but a source's name in it may not be.
    fenced
        .extend(label.chars().take(200).map(|c| if c == '"' || c.is_control() { ' ' } else { c }));
    for part in ["\">\n", text, "\n</data mark=\"", mark, "\">"] {
        fenced.push_str(part);
    }
    fenced
}
