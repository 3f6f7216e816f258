//! From flags and configuration to a chain.

use std::path::Path;
use std::sync::Arc;

use sifaka::config::{ChainConfig, Component, Config};
use sifaka::{Chain, Error, Journal, Registry, Result};

use crate::app::App;
use crate::args::ChainArgs;

/// What a chain is called that is made of flags alone.
const FLAGS_ALONE: &str = "flags";

/// What a run needs.
pub(crate) struct Setup {
    name: String,
    chain: ChainConfig,
    config: Option<Config>,
}

impl Setup {
    /// Chooses a chain of the configuration, or begins an empty one, and applies the flags.
    /// Without `--chain`, `usual` is taken if the configuration has it.
    pub(crate) fn new(
        config: Option<Config>,
        args: &ChainArgs,
        usual: Option<&str>,
    ) -> Result<Self> {
        let usual =
            usual.filter(|name| config.as_ref().is_some_and(|c| c.chains.contains_key(*name)));
        let wanted = args.chain.as_deref().or(usual);
        let (name, mut chain) = match &config {
            Some(config) => match config.pick(wanted) {
                Ok((name, chain)) => (name.to_owned(), chain.clone()),
                // The file has nothing to choose from, but the flags say enough.
                Err(_) if wanted.is_none() && args.model.is_some() => bare(),
                Err(error) => return Err(error),
            },
            None => match wanted {
                Some(name) => {
                    return Err(Error::configuration(
                        "chain",
                        format!("no configuration describes a chain {name:?}"),
                    )
                    .suggest("write one with `sifaka init`, or name its file with --config"));
                }
                None => bare(),
            },
        };
        args.apply(&mut chain);
        if chain.model.is_none() {
            let error = match config.as_ref().and_then(Config::path) {
                Some(path) => {
                    let message = format!("chain {name} of {} has no model", path.display());
                    Error::configuration("model", message)
                }
                None => Error::configuration("model", "there is no sifaka.toml and no --model"),
            };
            return Err(error
                .suggest("name a model: --model mock is a scripted one that needs nothing")
                .suggest("or describe a chain once and for all with `sifaka init`"));
        }
        Ok(Self { name, chain, config })
    }

    /// Whether the model answers from the record.
    pub(crate) fn replays(&self) -> bool {
        let spec = self.chain.model.as_ref().and_then(|model: &Component| model.spec("name").ok());
        spec.is_some_and(|spec| spec.name() == "replay")
    }

    /// The chain. `recorded` is the record that components may read, `journal` the one it writes.
    pub(crate) fn build(
        &self,
        recorded: Option<Arc<dyn Journal>>,
        journal: Option<Arc<dyn Journal>>,
    ) -> Result<Chain> {
        let registry: Registry = sifaka::registry();
        if let Some(recorded) = recorded {
            sifaka::register_journal(&registry, recorded);
        }
        let base = self.config.as_ref().map_or(Path::new("."), Config::base);
        let built = self.chain.build(&self.name, base, &registry, journal);
        built.map_err(|error| match self.config.as_ref().and_then(Config::path) {
            Some(path) => error.in_component(format!("chain {} of {}", self.name, path.display())),
            None => error.in_component("chain"),
        })
    }

    /// The record, unless none is to be kept.
    pub(crate) fn journals(&self, app: &App, keep: bool) -> Result<Journals> {
        let path = app.journal_path(self.config.as_ref())?;
        if keep {
            let journal: Arc<dyn Journal> = App::journal_for_writing(&path)?;
            return Ok((Some(Arc::clone(&journal)), Some(journal)));
        }
        if self.replays() && path.exists() {
            return Ok((Some(App::journal_for_writing(&path)?), None));
        }
        Ok((None, None))
    }
}

/// The record that components may read, and the one that is written.
pub(crate) type Journals = (Option<Arc<dyn Journal>>, Option<Arc<dyn Journal>>);

fn bare() -> (String, ChainConfig) {
    (FLAGS_ALONE.to_owned(), ChainConfig::default())
}
