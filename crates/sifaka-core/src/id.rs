//! Identifiers of Thoughts and runs.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::{Context, Error, Result};

/// The longest identifier that is accepted, in bytes.
pub const MAX_ID_BYTES: usize = 256;

/// Names a Thought or a run.
///
/// New ones are UUIDs of version 7, so they sort by the time they were made; ones that came from
/// elsewhere are kept as they are, as long as they are printable and of a sane length. Cloning is
/// a reference count.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(Arc<str>);

impl Id {
    /// A new identifier from the context's clock and randomness.
    #[must_use]
    pub fn new(ctx: &Context) -> Self {
        let millis = u64::try_from(ctx.now().as_millisecond()).unwrap_or(0);
        let (a, b) = (ctx.random().to_be_bytes(), ctx.random().to_be_bytes());
        let random = [a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], b[0], b[1]];
        Self::from_uuid(uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid())
    }

    /// An identifier that is a function of `content`, for Thoughts that came without one.
    #[must_use]
    pub fn derived(content: &[u8]) -> Self {
        let hash = blake3::hash(content);
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hash.as_bytes()[..16]);
        Self::from_uuid(uuid::Builder::from_custom_bytes(bytes).into_uuid())
    }

    /// Takes an identifier from outside.
    ///
    /// # Errors
    /// When it is empty, longer than [`MAX_ID_BYTES`] or holds a control character.
    pub fn parse(text: &str) -> Result<Self> {
        let problem = if text.is_empty() {
            "is empty"
        } else if text.len() > MAX_ID_BYTES {
            "is longer than 256 bytes"
        } else if text.chars().any(char::is_control) {
            "holds a control character"
        } else {
            return Ok(Self(Arc::from(text)));
        };
        Err(Error::invalid_input("id", format!("the identifier {problem}"))
            .suggest("use the identifier that `sifaka list` prints"))
    }

    fn from_uuid(uuid: uuid::Uuid) -> Self {
        let mut buffer = uuid::Uuid::encode_buffer();
        Self(Arc::from(&*uuid.hyphenated().encode_lower(&mut buffer)))
    }

    /// The identifier as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Id({})", self.0)
    }
}

impl AsRef<str> for Id {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Id {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl std::str::FromStr for Id {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text)
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Id;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an identifier")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Id, E> {
                Id::parse(text).map_err(|error| E::custom(error.message()))
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_ids_sort_by_time_and_differ() {
        let ctx = Context::new();
        let ids: Vec<Id> = (0..100).map(|_| Id::new(&ctx)).collect();
        let mut unique = ids.clone();
        unique.sort();
        unique.dedup();
        assert_eq!(unique.len(), ids.len());
        assert_eq!(ids[0].as_str().len(), 36);
        assert_eq!(&ids[0].as_str()[14..15], "7");
    }

    #[test]
    fn derived_ids_are_a_function_of_the_content() {
        assert_eq!(Id::derived(b"a"), Id::derived(b"a"));
        assert_ne!(Id::derived(b"a"), Id::derived(b"b"));
    }

    #[test]
    fn hostile_ids_are_refused() {
        for bad in ["", "a\nb", "a\0", &"x".repeat(257)] {
            assert!(Id::parse(bad).is_err(), "{bad:?}");
        }
        assert!(Id::parse("run-7 ünïcode").is_ok());
    }
}
