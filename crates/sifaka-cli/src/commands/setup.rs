//! From flags and configuration to a chain.

use std::path::Path;
use std::sync::Arc;

use sifaka::config::{ChainConfig, Component, Config};
use sifaka::{Chain, Error, Journal, Registry, Result};

use super::weights;
use crate::app::App;
use crate::args::{ChainArgs, Given, quoted};
use crate::record::BY_FLAGS;

/// What a run needs.
pub(crate) struct Setup {
    name: String,
    chain: ChainConfig,
    config: Option<Config>,
    given: Vec<Given>,
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
        let given = args.given(&chain);
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
                .suggest("name a model: --model local is the embedded one, which needs no key")
                .suggest("or describe a chain once and for all with `sifaka init`"));
        }
        Ok(Self { name, chain, config, given })
    }

    /// Whether the model answers from the record.
    pub(crate) fn replays(&self) -> bool {
        let spec = self.chain.model.as_ref().and_then(|model: &Component| model.spec("name").ok());
        spec.is_some_and(|spec| spec.name() == "replay")
    }

    /// Fetches the weights that its models need and that are not here yet.
    pub(crate) fn fetch_weights(&self, app: &App) -> Result<()> {
        let models = self.chain.model.iter().chain(&self.chain.fallbacks);
        let mut needed = Vec::new();
        // What is wrong with a model's description is told when the chain is built.
        for spec in models.filter_map(|model| model.spec("name").ok()) {
            needed.extend(sifaka::local::needs(&spec).ok().flatten());
        }
        weights::ensure(app, &needed)
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
        built.map_err(|error| self.placed(error))
    }

    /// Says where the mistakes stand: a flag by its name, anything else in the file.
    fn placed(&self, error: Error) -> Error {
        let flag = |place: &str| {
            let inside = format!("{place}.");
            let mut given = self.given.iter();
            given.find(|given| given.place == place || given.place.starts_with(&inside))
        };
        let mut problems = error.all_problems().to_vec();
        let mut by_flags = !problems.is_empty();
        for problem in &mut problems {
            let written = problem.suggestion.strip_prefix("it was written ").map(str::to_owned);
            match flag(&problem.place) {
                Some(given) => {
                    problem.place = given.typed();
                    // The flag is there to see, and the message says what it should be.
                    if written.is_some() {
                        problem.suggestion.clear();
                    }
                }
                None => {
                    by_flags = false;
                    if problem.place == "critics_when" && self.config.is_none() {
                        problem.suggestion = "add a --check, or say --critics-when always".into();
                    }
                    if let Some(written) = written {
                        problem.suggestion = format!("look for {written} in the file");
                    }
                }
            }
        }
        let chain = match self.config.as_ref().and_then(Config::path) {
            Some(path) if !by_flags => format!("chain {} of {}", self.name, path.display()),
            _ => "chain".to_owned(),
        };
        if problems.is_empty() {
            return error.in_component(chain);
        }
        Error::problems(chain, problems)
    }

    /// The command that goes on with a run of this chain, but for the run.
    pub(crate) fn resume_with(&self, app: &App) -> String {
        let paths = [("--config", &app.global.config), ("--journal", &app.global.journal)];
        let mut flags: Vec<String> = paths
            .iter()
            .filter_map(|(flag, path)| Some((flag, path.as_ref()?)))
            .map(|(flag, path)| format!("{flag} {}", quoted(&path.display().to_string())))
            .collect();
        flags.extend(self.given.iter().map(Given::typed));
        flags.iter().map(|flag| format!(" {flag}")).collect()
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
    (BY_FLAGS.to_owned(), ChainConfig::default())
}
