//! What scripted components share: files, faults on demand, replies in sequence, and options.

pub mod options;

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use sifaka_core::{Error, ErrorKind, Result, names};

/// The largest script that is read, in bytes.
pub const MAX_SCRIPT_BYTES: u64 = 64 * 1024 * 1024;

/// An error that a scripted component gives because the script says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Which kind.
    pub kind: ErrorKind,
    /// What it says; a sentence of ours if not given.
    pub message: Option<Arc<str>>,
    /// How long it asks to wait.
    pub retry_after: Option<Duration>,
}

impl Fault {
    /// An error of this kind.
    #[must_use]
    pub const fn new(kind: ErrorKind) -> Self {
        Self { kind, message: None, retry_after: None }
    }

    /// The kind that `label` names, as in `rate_limited`.
    ///
    /// # Errors
    /// A sentence with the nearest labels.
    pub fn parse(label: &str) -> Result<Self, String> {
        let label = label.trim();
        if let Some(kind) = ErrorKind::ALL.iter().find(|kind| kind.label() == label) {
            return Ok(Self::new(*kind));
        }
        let labels = || ErrorKind::ALL.iter().map(|kind| kind.label());
        let near = names::nearest(label, labels());
        let hint = match near.as_slice() {
            [] => format!("kinds are: {}", labels().collect::<Vec<_>>().join(", ")),
            near => format!("did you mean {}?", near.join(" or ")),
        };
        Err(format!("{label:?} is not a kind of error; {hint}"))
    }

    /// Sets what it says.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<Arc<str>>) -> Self {
        self.message = Some(message.into());
        self
    }

    /// Sets how long it asks to wait.
    #[must_use]
    pub fn with_retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// The error itself, as one of `component` in `operation`.
    #[must_use]
    pub fn error(&self, component: &str, operation: &'static str) -> Error {
        let message = match &self.message {
            Some(message) => String::from(&**message),
            None => format!("the script says {}", self.kind),
        };
        let error = Error::new(self.kind, component, operation, message)
            .suggest("the script asks for this error; take it out to go on");
        match self.retry_after {
            Some(wait) => error.with_retry_after(wait),
            None => error,
        }
    }
}

impl From<ErrorKind> for Fault {
    fn from(kind: ErrorKind) -> Self {
        Self::new(kind)
    }
}

/// A duration that is written as seconds: `0.2`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seconds(pub Duration);

impl Seconds {
    /// From a number of seconds.
    ///
    /// # Errors
    /// A sentence when it is negative, not a number or beyond all measure.
    pub fn new(seconds: f64) -> Result<Self, String> {
        Duration::try_from_secs_f64(seconds)
            .map(Self)
            .map_err(|error| format!("{seconds} is not a number of seconds: {error}"))
    }
}

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(f64::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

/// What happens when a sequence has come to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exhausted {
    /// The last one is given again and again.
    #[default]
    Repeat,
    /// There is nothing more, which is an error.
    Error,
}

impl Exhausted {
    /// Reads `repeat` or `error`.
    ///
    /// # Errors
    /// A sentence for anything else.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.trim() {
            "repeat" => Ok(Self::Repeat),
            "error" => Ok(Self::Error),
            other => Err(format!("{other:?} is neither repeat nor error")),
        }
    }
}

/// Things that are given one after the other, each a number of times. Safe to share.
pub struct Sequence<T> {
    items: Vec<T>,
    /// For each item, how many were given once its turn is over.
    ends: Vec<u64>,
    given: AtomicU64,
    exhausted: Exhausted,
}

impl<T> Sequence<T> {
    /// These, each as often as it says.
    pub fn new(items: impl IntoIterator<Item = (T, u64)>) -> Self {
        let (mut all, mut ends, mut end) = (Vec::new(), Vec::new(), 0_u64);
        for (item, times) in items {
            end = end.saturating_add(times);
            all.push(item);
            ends.push(end);
        }
        Self { items: all, ends, given: AtomicU64::new(0), exhausted: Exhausted::default() }
    }

    /// Sets what happens at the end.
    pub fn when_exhausted(&mut self, exhausted: Exhausted) {
        self.exhausted = exhausted;
    }

    /// The next one; `None` when there is no more.
    pub fn take(&self) -> Option<&T> {
        let given = self.given.fetch_add(1, Ordering::Relaxed);
        let at = self.ends.partition_point(|end| *end <= given);
        match self.exhausted {
            Exhausted::Error => self.items.get(at),
            Exhausted::Repeat => self.items.get(at).or(self.items.last()),
        }
    }

    /// All of them.
    #[must_use]
    pub fn items(&self) -> &[T] {
        &self.items
    }
}

impl<T> fmt::Debug for Sequence<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sequence")
            .field("items", &self.items.len())
            .field("given", &self.given)
            .field("exhausted", &self.exhausted)
            .finish()
    }
}

/// Reads a file as text.
///
/// Blocks; meant for building a chain.
///
/// # Errors
/// [`ErrorKind::Configuration`] with the path when it cannot be read, is not UTF-8 or is larger
/// than [`MAX_SCRIPT_BYTES`].
pub fn read(path: &Path, component: &str) -> Result<String> {
    let problem = |message: String| {
        Error::configuration(component, format!("{}: {message}", path.display()))
            .suggest("check the path; it is taken from the folder the program runs in")
    };
    let size = std::fs::metadata(path).map_err(|error| problem(error.to_string()))?.len();
    if size > MAX_SCRIPT_BYTES {
        return Err(problem(format!("has {size} bytes; at most {MAX_SCRIPT_BYTES} are read")));
    }
    std::fs::read_to_string(path).map_err(|error| problem(error.to_string()))
}

/// Reads a script: TOML or a JSON object as a whole `S`, a JSON array or lines of JSON as its
/// entries.
///
/// Blocks; meant for building a chain.
///
/// # Errors
/// [`ErrorKind::Configuration`] with the path and the line of what is wrong.
pub fn load<S, E>(path: &Path, component: &str) -> Result<S>
where
    S: DeserializeOwned + From<Vec<E>>,
    E: DeserializeOwned,
{
    let extension = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    if !["toml", "json", "jsonl"].contains(&extension.as_str()) {
        let message = format!("{} is not a script", path.display());
        return Err(Error::configuration(component, message)
            .suggest("scripts are files ending in .toml, .json or .jsonl"));
    }
    let text = read(path, component)?;
    let problem = |message: String| {
        Error::configuration(component, format!("{}: {}", path.display(), message.trim_end()))
            .suggest("mend the script")
    };
    match extension.as_str() {
        "toml" => toml::from_str(&text).map_err(|error| problem(error.to_string())),
        "json" if text.trim_start().starts_with('[') => serde_json::from_str::<Vec<E>>(&text)
            .map(S::from)
            .map_err(|error| problem(error.to_string())),
        "json" => serde_json::from_str(&text).map_err(|error| problem(error.to_string())),
        _ => json_lines(&text).map(S::from).map_err(problem),
    }
}

/// Reads one value from each line that is not blank.
///
/// # Errors
/// A sentence with the number of the first line that cannot be read.
pub fn json_lines<E: DeserializeOwned>(text: &str) -> Result<Vec<E>, String> {
    let lines = text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
    lines
        .map(|(line, number)| {
            serde_json::from_str(line).map_err(|error| format!("line {number}: {error}"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_gives_each_its_times_and_then_the_last_or_none() {
        let mut sequence = Sequence::new([("a", 2), ("b", 1)]);
        let taken: Vec<_> = (0..5).filter_map(|_| sequence.take().copied()).collect();
        assert_eq!(taken, ["a", "a", "b", "b", "b"]);
        sequence = Sequence::new([("a", 1)]);
        sequence.when_exhausted(Exhausted::Error);
        assert_eq!(sequence.take(), Some(&"a"));
        assert_eq!(sequence.take(), None);
        assert_eq!(Sequence::<u8>::new([]).take(), None);
    }

    #[test]
    fn every_kind_of_error_can_be_asked_for_and_unknown_ones_say_the_nearest() {
        for kind in ErrorKind::ALL {
            assert_eq!(Fault::parse(kind.label()), Ok(Fault::new(*kind)));
        }
        assert!(Fault::parse("rate_limit").unwrap_err().contains("rate_limited"));
    }

    #[test]
    fn odd_seconds_are_refused() {
        assert_eq!(Seconds::new(0.5), Ok(Seconds(Duration::from_millis(500))));
        for odd in [-1.0, f64::NAN, f64::INFINITY, 1e300] {
            assert!(Seconds::new(odd).is_err(), "{odd}");
        }
    }
}
