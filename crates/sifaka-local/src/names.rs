//! The embedded parts by name: `local`, `local:/path/to.gguf`, `local:embed`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use sifaka_core::registry::About;
use sifaka_core::{Embedder, Error, Registry, Result, Spec};

use crate::embed::{MiniLm, StaticEmbedder};
use crate::engine::Options;
use crate::model::{File, LocalModel};
use crate::weights::{self, Folder};

/// Makes the model `local` and the embedders `local:embed`, `local:minilm` and `local:static` known.
///
/// After the colon stands a GGUF file's path or a name of the weights' catalogue; without either it
/// is the default model. Options: `path`, `threads`, `context` in tokens, `tasks` (texts worked on at
/// once), `cache_mb` for beginnings of prompts. A file that is asked for twice is loaded once.
pub fn register(registry: &Registry) {
    let about = About::new(
        "local",
        "The embedded model, or any GGUF file of the Llama family; no key, no network",
        "local:./model.gguf",
    );
    let open: Shared = Shared::default();
    registry.models.register(about, move |spec, _| {
        let (path, options) = read(spec)?;
        let path = match path {
            Some(path) => path,
            None => Folder::of_user()?.locate(weights::find(weights::DEFAULT)?)?,
        };
        Ok(Arc::new(LocalModel::of(open.file(&path, options)?).named(spec.to_string())))
    });
    let about = About::new(
        "local",
        "Embedders on this machine: embed (the better one), minilm, static (the quick one)",
        "local:embed",
    );
    registry.embedders.register(about, |spec, _| embedder(spec));
}

/// The catalogue's entry of an embedder.
fn embedder_weights(spec: &Spec) -> Result<&'static weights::Entry> {
    match spec.argument() {
        None | Some("embed" | "minilm") => weights::find("all-minilm-l6-v2"),
        Some("static") => weights::find("wordllama-256"),
        Some(other) => {
            Err(Error::configuration("embedder local", format!("there is no embedder {other:?}"))
                .suggest("local:embed is all-MiniLM-L6-v2, local:static a table of token vectors"))
        }
    }
}

fn embedder(spec: &Spec) -> Result<Arc<dyn Embedder>> {
    let entry = embedder_weights(spec)?;
    let folder = Folder::of_user()?.locate(entry)?;
    Ok(if entry.name == "wordllama-256" {
        Arc::new(StaticEmbedder::open(&folder)?)
    } else {
        Arc::new(MiniLm::open(&folder)?)
    })
}

/// The entry of the weights' catalogue that an embedder of this name needs, if it needs one.
///
/// # Errors
/// For a name after the colon that is not known.
pub fn embedder_needs(spec: &Spec) -> Result<Option<&'static weights::Entry>> {
    if spec.name() == "local" { embedder_weights(spec).map(Some) } else { Ok(None) }
}

/// The entry of the weights' catalogue that a model of this name needs, if it needs one.
///
/// # Errors
/// For options that `local` does not have.
pub fn needs(spec: &Spec) -> Result<Option<&'static weights::Entry>> {
    if spec.name() != "local" {
        return Ok(None);
    }
    match (read(spec)?.0, named(spec)) {
        (None, _) => weights::find(weights::DEFAULT).map(Some),
        (Some(_), Some(entry)) => Ok(Some(entry)),
        (Some(_), None) => Ok(None),
    }
}

/// The catalogue's entry that stands after the colon.
fn named(spec: &Spec) -> Option<&'static weights::Entry> {
    let name = spec.argument()?.split(',').next()?;
    weights::catalogue().iter().find(|entry| entry.name == name)
}

/// The file and the options of a spec.
fn read(spec: &Spec) -> Result<(Option<PathBuf>, Options)> {
    let mut reader = spec.reader();
    let mut options = Options::default();
    let given = reader.text("path");
    let size = |value: Option<u64>| value.map(|v| usize::try_from(v).unwrap_or(usize::MAX));
    options.threads = size(reader.count("threads"));
    options.context = size(reader.count("context"));
    options.tasks = size(reader.count("tasks")).unwrap_or(options.tasks);
    options.cache_bytes =
        size(reader.count("cache_mb")).map_or(options.cache_bytes, |mb| mb.saturating_mul(1 << 20));
    if options.threads == Some(0) {
        reader.complain("threads", "at least one is needed");
    }
    // What stands before the first option.
    let lead = spec.argument().and_then(|argument| argument.split(',').next());
    let lead = lead.filter(|lead| !lead.is_empty() && !lead.contains('='));
    if given.is_some() && lead.is_some() {
        reader.complain("path", "the file stands after the colon already; give it once");
    }
    reader.finish().map_err(|error| error.in_component("model local"))?;
    let path = match (given, lead) {
        (Some(path), _) => Some(PathBuf::from(path)),
        (None, Some(lead)) => Some(file(lead, named(spec))?),
        (None, None) => None,
    };
    Ok((path, options))
}

/// What stands after the colon: a name of the catalogue, or a path.
fn file(lead: &str, entry: Option<&'static weights::Entry>) -> Result<PathBuf> {
    if let Some(entry) = entry {
        return Ok(Folder::of_user()?.path_of(entry));
    }
    let path = Path::new(lead);
    if !path.exists() && !lead.contains(['/', '\\', '.']) {
        let known: Vec<&str> = weights::catalogue().iter().map(|entry| entry.name).collect();
        return Err(Error::configuration(
            "model local",
            format!("{lead:?} is neither a file nor the name of weights we know"),
        )
        .suggest("give a path: local:/path/to/model.gguf")
        .suggest(format!("known weights are: {}", known.join(", "))));
    }
    Ok(path.to_owned())
}

type Open = HashMap<(PathBuf, Options), Weak<File>>;

/// Files that are open, as long as somebody has them.
#[derive(Clone, Default)]
struct Shared {
    open: Arc<Mutex<Open>>,
}

impl Shared {
    fn file(&self, path: &Path, options: Options) -> Result<Arc<File>> {
        // The same file by another path is the same model.
        let key = (path.canonicalize().unwrap_or_else(|_| path.to_owned()), options);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = open.get(&key).and_then(Weak::upgrade) {
            return Ok(file);
        }
        let file = Arc::new(File::open(path, options)?);
        open.retain(|_, file| file.strong_count() > 0);
        open.insert(key, Arc::downgrade(&file));
        Ok(file)
    }
}
