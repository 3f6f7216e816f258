//! Options that scripted components have in common.

use std::time::Duration;

use serde_json::Value;
use sifaka_core::Spec;
use sifaka_core::spec::OptionReader;

use super::{Exhausted, Fault, Seconds};

/// What stands after the colon before the first option: the path of `mock:script.toml,delay=1`.
#[must_use]
pub fn positional(spec: &Spec) -> Option<String> {
    let argument = spec.argument()?;
    let lead = match spec.options().keys().next() {
        None => argument.to_owned(),
        Some(key) => {
            let begins = |part: &str| {
                part.split_once('=').is_some_and(|(name, _)| name.trim() == key.as_str())
            };
            argument.split(',').take_while(|part| !begins(part)).collect::<Vec<_>>().join(",")
        }
    };
    let lead = lead.trim();
    (!lead.is_empty()).then(|| lead.to_owned())
}

/// Texts under a key: a list in a file; on the command line one text with `|` between them, since
/// sentences have commas.
pub fn texts(spec: &Spec, reader: &mut OptionReader<'_>, key: &'static str) -> Option<Vec<String>> {
    match spec.options().get(key) {
        Some(Value::Array(_)) => reader.texts(key),
        _ => reader.text(key).map(|text| text.split('|').map(str::to_owned).collect()),
    }
}

/// A number of seconds.
pub fn seconds(reader: &mut OptionReader<'_>, key: &'static str) -> Option<Duration> {
    let number = reader.number(key)?;
    or_complain(reader, key, Seconds::new(number)).map(|seconds| seconds.0)
}

/// A kind of error under `error`, and how long to wait under `retry_after`, which needs one.
pub fn fault(reader: &mut OptionReader<'_>) -> Option<Fault> {
    let (label, retry_after) = (reader.text("error"), seconds(reader, "retry_after"));
    let Some(label) = label else {
        if retry_after.is_some() {
            reader.complain("retry_after", "it belongs to an error, and there is none");
        }
        return None;
    };
    let fault = or_complain(reader, "error", Fault::parse(&label))?;
    Some(Fault { retry_after, ..fault })
}

/// What happens at a sequence's end, under `exhausted`.
pub fn exhausted(reader: &mut OptionReader<'_>) -> Option<Exhausted> {
    let text = reader.text("exhausted")?;
    or_complain(reader, "exhausted", Exhausted::parse(&text))
}

fn or_complain<T>(reader: &mut OptionReader<'_>, key: &str, read: Result<T, String>) -> Option<T> {
    read.map_err(|problem| reader.complain(key, problem)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_before_the_first_option_is_the_argument() {
        let lead = |text| positional(&Spec::parse(text).unwrap());
        assert_eq!(lead("mock"), None);
        assert_eq!(lead("mock:reply=a,b"), None);
        assert_eq!(lead("mock:a.toml"), Some("a.toml".into()));
        assert_eq!(lead("mock:a,b.toml,delay=1,x=2"), Some("a,b.toml".into()));
    }

    #[test]
    fn a_wait_needs_an_error() {
        let spec = Spec::parse("x:retry_after=1").unwrap();
        let mut reader = spec.reader();
        assert_eq!(fault(&mut reader), None);
        assert!(reader.finish().unwrap_err().message().contains("belongs to an error"));
    }
}
