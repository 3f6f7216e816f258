//! A scripted critic from what the user wrote: `scripted:issue=too curt`.

use std::path::Path;
use std::sync::Arc;

use sifaka_core::{Error, Result, Spec};
use sifaka_models::script::{Seconds, options};

use super::ScriptedCritic;
use super::file::Entry;

/// The critic that `spec` describes.
///
/// # Errors
/// [`ErrorKind::Configuration`](sifaka_core::ErrorKind::Configuration) with every problem.
pub(crate) fn from_spec(spec: &Spec) -> Result<ScriptedCritic> {
    let component = "critic scripted";
    let mut reader = spec.reader();
    let script = reader.text("script").or_else(|| options::positional(spec));
    let name: Option<Arc<str>> = reader.text("name").map(Arc::from);
    let exhausted = options::exhausted(&mut reader);
    let delay = options::seconds(&mut reader, "delay");
    let fault = options::fault(&mut reader);
    let mut both = |one, many| -> Vec<String> {
        let one = reader.text(one).into_iter();
        one.chain(options::texts(spec, &mut reader, many).into_iter().flatten()).collect()
    };
    let entry = Entry {
        issues: both("issue", "issues"),
        suggestions: both("suggestion", "suggestions"),
        confidence: reader.number("confidence"),
        feedback: reader.text("feedback").map(Arc::from),
        proposed_text: reader.text("proposed_text").map(Arc::from),
        error: fault.as_ref().map(|fault| fault.kind),
        retry_after: fault.and_then(|fault| fault.retry_after).map(Seconds),
        ..Entry::default()
    };
    reader.finish().map_err(|error| error.in_component(component))?;

    let problem = |message: String| {
        Error::configuration(component, message)
            .suggest("write what it says, as in scripted:issue=too curt, or a script's path")
    };
    let known = ["script", "name", "exhausted", "delay"];
    let speaks = spec.options().keys().any(|key| !known.contains(&key.as_str()));
    let mut critic = match script {
        Some(path) if speaks => {
            return Err(problem(format!(
                "it is to say what {path} says and something else as well"
            )));
        }
        Some(path) => ScriptedCritic::from_file(Path::new(&path))?,
        None => ScriptedCritic::new([entry.advice().map_err(|why| problem(why.to_owned()))?]),
    };
    if let Some(name) = name {
        critic = critic.named(name);
    }
    if let Some(delay) = delay {
        critic = critic.with_delay(delay);
    }
    if let Some(exhausted) = exhausted {
        critic = critic.when_exhausted(exhausted);
    }
    Ok(critic)
}
