//! What a user wrote to name a component: `length:words=50..200`, `openai:gpt-4o-mini`.

use std::fmt;

use serde_json::{Map, Value};

use crate::constraint::Range;
use crate::{Error, Problem, Result};

/// A component's name with what follows it.
///
/// After the colon stands either a plain argument (`openai:gpt-4o-mini`) or options
/// (`length:words=50..200,soft=true`). A comma begins a new option only where `key=` follows it,
/// and a value may stand in double quotes, so patterns and sentences need no escaping.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    name: String,
    argument: Option<String>,
    options: Map<String, Value>,
}

impl Spec {
    /// Reads one.
    ///
    /// # Errors
    /// When it is empty or begins with a colon.
    pub fn parse(text: &str) -> Result<Self> {
        let text = text.trim();
        let (name, argument) = match text.split_once(':') {
            Some((name, rest)) => (name, Some(rest)),
            None => (text, None),
        };
        if name.is_empty() {
            return Err(Error::configuration("name", format!("{text:?} does not name anything"))
                .suggest("write a name, or a name and options: length:words=50..200"));
        }
        let options = argument.map(options).unwrap_or_default();
        Ok(Self { name: name.to_owned(), argument: argument.map(str::to_owned), options })
    }

    /// From a name and options that were read elsewhere, as from a table of a configuration file.
    pub fn from_parts(name: impl Into<String>, options: Map<String, Value>) -> Self {
        Self { name: name.into(), argument: None, options }
    }

    /// The name, before the colon.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What follows the colon, as it was written.
    #[must_use]
    pub fn argument(&self) -> Option<&str> {
        self.argument.as_deref()
    }

    /// The options, whichever way they were written.
    #[must_use]
    pub fn options(&self) -> &Map<String, Value> {
        &self.options
    }

    /// Reads the options one by one, collecting every problem with them.
    #[must_use]
    pub fn reader(&self) -> OptionReader<'_> {
        OptionReader { spec: self, asked: Vec::new(), problems: Vec::new() }
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if let Some(argument) = &self.argument {
            return write!(f, ":{argument}");
        }
        for (n, (key, value)) in self.options.iter().enumerate() {
            let separator = if n == 0 { ':' } else { ',' };
            match value {
                Value::String(text) => write!(f, "{separator}{key}={text}")?,
                other => write!(f, "{separator}{key}={other}")?,
            }
        }
        Ok(())
    }
}

fn is_key(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

/// `key=value` pairs; a part without one belongs to the value before it.
fn options(text: &str) -> Map<String, Value> {
    let mut found: Vec<(String, String)> = Vec::new();
    for part in text.split(',') {
        match part.split_once('=') {
            Some((key, value)) if is_key(key.trim()) && !open_quote(&found) => {
                found.push((key.trim().to_owned(), value.to_owned()));
            }
            _ => {
                if let Some((_, value)) = found.last_mut() {
                    value.push(',');
                    value.push_str(part);
                }
            }
        }
    }
    found.into_iter().map(|(key, value)| (key, Value::String(unquote(&value)))).collect()
}

fn open_quote(found: &[(String, String)]) -> bool {
    found.last().is_some_and(|(_, value)| {
        value.starts_with('"') && (value.len() == 1 || !value.ends_with('"'))
    })
}

fn unquote(value: &str) -> String {
    match value.strip_prefix('"').and_then(|v| v.strip_suffix('"')) {
        Some(inner) => inner.replace("\\\"", "\""),
        None => value.to_owned(),
    }
}

/// Reads the options of a [`Spec`]; see [`Spec::reader`].
#[derive(Debug)]
pub struct OptionReader<'a> {
    spec: &'a Spec,
    asked: Vec<&'static str>,
    problems: Vec<Problem>,
}

impl<'a> OptionReader<'a> {
    fn get(&mut self, key: &'static str) -> Option<&'a Value> {
        self.asked.push(key);
        self.spec.options.get(key)
    }

    fn problem(&mut self, key: &str, message: String) {
        let place = format!("{}: {key}", self.spec.name);
        self.problems.push(Problem::new(place, message, format!("it was written {}", self.spec)));
    }

    /// A text.
    pub fn text(&mut self, key: &'static str) -> Option<String> {
        match self.get(key)? {
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        }
    }

    /// A list of texts: an array, or one text with commas.
    pub fn texts(&mut self, key: &'static str) -> Option<Vec<String>> {
        match self.get(key)? {
            Value::Array(items) => Some(
                items
                    .iter()
                    .map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned))
                    .collect(),
            ),
            Value::String(text) => Some(text.split(',').map(|t| t.trim().to_owned()).collect()),
            other => Some(vec![other.to_string()]),
        }
    }

    /// A range of counts.
    pub fn range(&mut self, key: &'static str) -> Option<Range> {
        let value = self.get(key)?;
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        match Range::parse(&text) {
            Ok(range) => Some(range),
            Err(message) => {
                self.problem(key, message);
                None
            }
        }
    }

    /// A number.
    pub fn number(&mut self, key: &'static str) -> Option<f64> {
        let value = self.get(key)?;
        let number = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok());
        match number.filter(|n| n.is_finite()) {
            Some(number) => Some(number),
            None => {
                self.problem(key, format!("{value} is not a number"));
                None
            }
        }
    }

    /// A whole number.
    pub fn count(&mut self, key: &'static str) -> Option<u64> {
        let value = self.get(key)?;
        match value.as_u64().or_else(|| value.as_str()?.trim().parse().ok()) {
            Some(count) => Some(count),
            None => {
                self.problem(key, format!("{value} is not a whole number"));
                None
            }
        }
    }

    /// Yes or no.
    pub fn flag(&mut self, key: &'static str) -> Option<bool> {
        let value = self.get(key)?;
        let flag = value.as_bool().or_else(|| match value.as_str()?.trim() {
            "true" | "yes" | "on" => Some(true),
            "false" | "no" | "off" => Some(false),
            _ => None,
        });
        if flag.is_none() {
            self.problem(key, format!("{value} is neither true nor false"));
        }
        flag
    }

    /// Adds a problem of the caller's own.
    pub fn complain(&mut self, key: &str, message: impl Into<String>) {
        self.problem(key, message.into());
    }

    /// Fails if any option had a problem or was never asked for.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](crate::ErrorKind::Configuration) with all problems at once.
    pub fn finish(mut self) -> Result<()> {
        let unknown: Vec<&String> =
            self.spec.options.keys().filter(|key| !self.asked.contains(&key.as_str())).collect();
        for key in unknown {
            let near = crate::names::nearest(key, self.asked.iter().copied());
            let hint = match near.as_slice() {
                [] => format!("known are: {}", self.asked.join(", ")),
                near => format!("did you mean {}?", near.join(" or ")),
            };
            let place = format!("{}: {key}", self.spec.name);
            self.problems.push(Problem::new(place, "there is no such option", hint));
        }
        if self.problems.is_empty() {
            return Ok(());
        }
        Err(Error::problems(format!("check {}", self.spec.name), self.problems))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_and_options() {
        let model = Spec::parse("openai-compatible:http://h:1/v1#name").unwrap();
        assert_eq!(model.name(), "openai-compatible");
        assert_eq!(model.argument(), Some("http://h:1/v1#name"));

        let check = Spec::parse("regex:forbid=a{1,3}=b,c,name=\"x, y=1\"").unwrap();
        assert_eq!(check.options()["forbid"], "a{1,3}=b,c");
        assert_eq!(check.options()["name"], "x, y=1");
        assert!(Spec::parse(":x").is_err());
    }

    #[test]
    fn every_problem_is_reported_at_once() {
        let spec = Spec::parse("length:words=many,max=x,wrods=3").unwrap();
        let mut reader = spec.reader();
        reader.range("words");
        reader.count("max");
        let error = reader.finish().unwrap_err();
        assert_eq!(error.all_problems().len(), 3, "{error}");
        assert!(error.to_string().contains("did you mean words?"), "{error}");
    }
}
