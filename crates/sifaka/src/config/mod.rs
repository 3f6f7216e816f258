//! `sifaka.toml`: chains by name, for the program and for libraries alike.
//!
//! ```
//! use sifaka::config::Config;
//!
//! let config = Config::parse(r#"
//!     default_chain = "notes"
//!
//!     [chains.notes]
//!     model = "mock"
//!     checks = ["length:words=5..200"]
//!     max_iterations = 2
//! "#)?;
//! let chain = config.chain("notes", &sifaka::registry(), None)?;
//! assert!(chain.id().starts_with("notes@"));
//! # Ok::<(), sifaka::Error>(())
//! ```
//!
//! Keys and passwords have no place in the file; there is no option for one.

mod build;
mod chain;
mod component;
mod folders;
mod limits;
mod problems;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use sifaka_chain::{Chain, Redaction};
use sifaka_core::names::nearest;
use sifaka_core::{Error, Journal, Registry, Result};

pub use chain::{ChainConfig, CriticsWhenConfig, GuideConfig};
pub use component::Component;
pub use folders::{default_journal, user_config};
pub use limits::{BudgetConfig, StopConfig};

/// The file's name.
pub const FILE_NAME: &str = "sifaka.toml";

/// The variable that names a configuration file.
pub const VARIABLE: &str = "SIFAKA_CONFIG";

/// A commented configuration with every option in it, as `sifaka init` writes it.
pub const COMMENTED: &str = include_str!("commented.toml");

/// What a `sifaka.toml` says.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(title = "sifaka.toml")]
pub struct Config {
    /// Where runs are recorded, relative to this file. Without it, in the user's data folder.
    pub journal: Option<PathBuf>,
    /// The chain to use when none is named. Without it, the only one there is.
    pub default_chain: Option<String>,
    /// Chains by name.
    pub chains: BTreeMap<String, ChainConfig>,
    #[serde(skip)]
    path: Option<PathBuf>,
}

impl Config {
    /// Reads a configuration from text.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](crate::ErrorKind::Configuration) with line and column, and for
    /// an unknown key the nearest known one.
    pub fn parse(text: &str) -> Result<Self> {
        Self::parse_as(text, FILE_NAME)
    }

    fn parse_as(text: &str, place: &str) -> Result<Self> {
        let config: Self =
            toml::from_str(text).map_err(|error| problems::of_toml(place, text, &error))?;
        if let Some(name) = &config.default_chain
            && !config.chains.contains_key(name)
        {
            return Err(config.unknown_chain(name, place));
        }
        Ok(config)
    }

    /// Reads a file. Blocks.
    ///
    /// # Errors
    /// As [`parse`](Self::parse), and when the file cannot be read.
    pub fn load(path: &Path) -> Result<Self> {
        let place = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| {
            Error::configuration(&place, format!("the file cannot be read: {error}"))
                .suggest("check the path, or write a file with `sifaka init`")
        })?;
        let mut config = Self::parse_as(&text, &place)?;
        config.path = Some(path.to_owned());
        Ok(config)
    }

    /// Finds and reads the configuration: the file `explicit` names, else the one `SIFAKA_CONFIG`
    /// names, else the nearest `sifaka.toml` from `start` upward, else the user's. `None` when
    /// there is none of these. Blocks.
    ///
    /// # Errors
    /// As [`load`](Self::load); a file that was named must be there.
    pub fn discover(start: &Path, explicit: Option<&Path>) -> Result<Option<Self>> {
        let variable = folders::variable(VARIABLE);
        let user = user_config();
        match find(start, explicit, variable.as_deref(), user.as_deref()) {
            Some(path) => Self::load(&path).map(Some),
            None => Ok(None),
        }
    }

    /// The file it was read from.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The folder that relative paths in it start from.
    #[must_use]
    pub fn base(&self) -> &Path {
        match self.path.as_deref().and_then(Path::parent) {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        }
    }

    /// Where it says that runs are recorded.
    #[must_use]
    pub fn journal_path(&self) -> Option<PathBuf> {
        self.journal.as_ref().map(|journal| self.base().join(journal))
    }

    /// The chain of this name, or the default one: as `default_chain` says, or the only one.
    ///
    /// # Errors
    /// For an unknown name with the nearest known ones, and when there is no telling which.
    pub fn pick(&self, name: Option<&str>) -> Result<(&str, &ChainConfig)> {
        let place = self.place();
        if let Some(name) = name.or(self.default_chain.as_deref()) {
            return self
                .chains
                .get_key_value(name)
                .map(|(name, chain)| (name.as_str(), chain))
                .ok_or_else(|| self.unknown_chain(name, &place));
        }
        let mut chains = self.chains.iter();
        match (chains.next(), chains.next()) {
            (Some((name, chain)), None) => Ok((name, chain)),
            (None, _) => Err(Error::configuration(&place, "it describes no chain")
                .suggest("add [chains.NAME] with a model; `sifaka init` shows how")),
            (Some(_), Some(_)) => {
                Err(Error::configuration(&place, "it describes several chains and no default")
                    .suggest(format!("name one with --chain: {}", self.known().join(", ")))
                    .suggest("or set default_chain in the file"))
            }
        }
    }

    /// Builds the chain of this name.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](crate::ErrorKind::Configuration) with every problem of the
    /// chain at once; for an unknown name with the nearest known ones.
    pub fn chain(
        &self,
        name: &str,
        registry: &Registry,
        journal: Option<Arc<dyn Journal>>,
    ) -> Result<Chain> {
        let (name, chain) = self.pick(Some(name))?;
        chain.build(name, self.base(), registry, journal).map_err(|error| {
            let place = format!("{}, chain {name}", self.place());
            error.in_component(place)
        })
    }

    /// What is to be taken out before something is recorded: by the rules of the chain of this
    /// name, or of the default one. Where there is no telling which chain that is, by those of
    /// all chains. `None` when there are no rules.
    ///
    /// # Errors
    /// For an unknown name, and for rules that are not regular expressions.
    pub fn redaction(&self, name: Option<&str>) -> Result<Option<Redaction>> {
        let chains = match self.pick(name) {
            Ok((_, chain)) => vec![chain],
            Err(_) if name.is_none() => self.chains.values().collect(),
            Err(error) => return Err(error),
        };
        let rules: Vec<String> = chains.iter().flat_map(|chain| &chain.redact).cloned().collect();
        let mut problems = Vec::new();
        let redaction = build::redaction(&rules, &mut problems);
        if problems.is_empty() {
            return Ok(redaction);
        }
        Err(Error::problems("chain", problems).in_component(self.place()))
    }

    fn place(&self) -> String {
        self.path.as_ref().map_or_else(|| FILE_NAME.to_owned(), |path| path.display().to_string())
    }

    fn known(&self) -> Vec<&str> {
        self.chains.keys().map(String::as_str).collect()
    }

    fn unknown_chain(&self, name: &str, place: &str) -> Error {
        let known = self.known();
        let error = Error::configuration(place, format!("no chain is called {name:?}"));
        match nearest(name, known.iter().copied()).as_slice() {
            [] if known.is_empty() => error.suggest("the file describes no chain"),
            [] => error.suggest(format!("chains are: {}", known.join(", "))),
            near => error.suggest(format!("did you mean {}?", near.join(" or "))),
        }
    }
}

/// Which file to read; those that somebody named are taken whether they are there or not.
fn find(
    start: &Path,
    explicit: Option<&Path>,
    variable: Option<&Path>,
    user: Option<&Path>,
) -> Option<PathBuf> {
    if let Some(named) = explicit.or(variable) {
        return Some(named.to_owned());
    }
    let upward = start.ancestors().map(|folder| folder.join(FILE_NAME));
    upward.chain(user.map(Path::to_owned)).find(|path| path.is_file())
}

/// The JSON Schema of `sifaka.toml`, for editors.
#[must_use]
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(Config).into()
}

#[cfg(test)]
mod tests;
