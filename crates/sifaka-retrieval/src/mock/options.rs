//! A mock retriever from what the user wrote: `mock:docs.jsonl,delay=0.1`.

use std::path::Path;

use sifaka_core::{Error, Result, Spec};
use sifaka_models::script::options;

use super::MockRetriever;

/// The retriever that `spec` describes.
///
/// # Errors
/// [`ErrorKind::Configuration`](sifaka_core::ErrorKind::Configuration) with every problem.
pub(crate) fn from_spec(spec: &Spec) -> Result<MockRetriever> {
    let component = "retriever mock";
    let mut reader = spec.reader();
    let path = reader.text("path").or_else(|| options::positional(spec));
    let mut texts: Vec<String> = reader.text("text").into_iter().collect();
    texts.extend(options::texts(spec, &mut reader, "texts").into_iter().flatten());
    let (name, all) = (reader.text("name"), reader.flag("all").unwrap_or(false));
    let delay = options::seconds(&mut reader, "delay");
    let fault = options::fault(&mut reader);
    let times = reader.count("times");
    if times.is_some() && !spec.options().contains_key("error") {
        reader.complain("times", "it belongs to an error, and there is none");
    }
    if path.is_some() && !texts.is_empty() {
        reader.complain("path", "a file and texts exclude each other; give one");
    }
    reader.finish().map_err(|error| error.in_component(component))?;

    let mut retriever = match path {
        Some(path) => MockRetriever::from_file(Path::new(&path))?,
        None if texts.is_empty() && fault.is_none() => {
            return Err(Error::configuration(component, "it has no documents")
                .suggest("write mock:text=…, or a file's path: mock:docs.jsonl"));
        }
        None => MockRetriever::texts(texts),
    };
    if let Some(name) = name {
        retriever = retriever.named(name);
    }
    if all {
        retriever = retriever.all();
    }
    if let Some(delay) = delay {
        retriever = retriever.with_delay(delay);
    }
    if let Some(fault) = fault {
        retriever = match times {
            Some(times) => retriever.failing(fault, times),
            None => retriever.with_error(fault),
        };
    }
    Ok(retriever)
}
