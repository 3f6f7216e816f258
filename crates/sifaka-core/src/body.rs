//! Texts and raw bytes that may be too large to carry around.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize, Serializer};

use crate::{Context, Error, ErrorKind, Result};

/// Bodies above this many bytes are stored apart, once, under their hash.
pub const BLOB_THRESHOLD: usize = 16 * 1024;

/// The blake3 hash of some bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hash([u8; 32]);

impl Hash {
    /// All zeros: what comes before the first hash of a chain.
    pub const ZERO: Self = Self([0; 32]);

    /// The hash of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// From the 32 bytes of a hash.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Its 32 bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// From 64 hexadecimal digits.
    ///
    /// # Errors
    /// When it is anything else.
    pub fn parse(text: &str) -> Result<Self> {
        blake3::Hash::from_hex(text).map(|hash| Self(*hash.as_bytes())).map_err(|error| {
            let length = text.chars().count();
            Error::invalid_input("hash", format!("{text:?} has {length} characters"))
                .with_source(error)
                .suggest("a hash is 64 hexadecimal digits, as `sifaka run` prints it")
        })
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&text).map_err(|error| de::Error::custom(error.message()))
    }
}

/// Points at bytes stored apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlobRef {
    /// Their hash.
    pub blob: Hash,
    /// How many they are.
    pub bytes: u64,
}

/// A text, or bytes, or a pointer to either where it was stored apart.
///
/// In JSON a text is a string and a pointer is `{"blob": "<hash>", "bytes": n}`.
#[derive(Clone, PartialEq, Eq)]
pub enum Body {
    /// The text itself.
    Text(Arc<str>),
    /// Bytes that are not UTF-8.
    Bytes(Arc<[u8]>),
    /// Stored apart; [`Body::load`] fetches it.
    Blob(BlobRef),
}

impl Body {
    /// From bytes that are usually, but not certainly, text.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        std::str::from_utf8(bytes)
            .map_or_else(|_| Self::Bytes(Arc::from(bytes)), |text| Self::Text(Arc::from(text)))
    }

    /// The text, if it is one and at hand.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Bytes(_) | Self::Blob(_) => None,
        }
    }

    /// The bytes, if they are at hand.
    #[must_use]
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Text(text) => Some(text.as_bytes()),
            Self::Bytes(bytes) => Some(bytes),
            Self::Blob(_) => None,
        }
    }

    /// How many bytes it has, at hand or not.
    #[must_use]
    pub fn len(&self) -> u64 {
        match self {
            Self::Text(text) => text.len() as u64,
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Blob(blob) => blob.bytes,
        }
    }

    /// Whether it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The same body with its bytes at hand.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when the bytes were erased, or what the store says.
    pub async fn load(&self, ctx: &Context, blobs: &dyn Blobs) -> Result<Self> {
        let Self::Blob(blob) = self else { return Ok(self.clone()) };
        match blobs.blob(ctx, &blob.blob).await? {
            Some(bytes) => Ok(Self::from_bytes(&bytes)),
            None => Err(Error::new(
                ErrorKind::NotFound,
                "blobs",
                "load",
                format!("the {} bytes under {} are not stored any more", blob.bytes, blob.blob),
            )
            .suggest("they were erased, or belong to another journal")),
        }
    }
}

/// Where bodies that are stored apart are found again.
#[async_trait]
pub trait Blobs: Send + Sync {
    /// The bytes under `hash`; `None` when there are none.
    async fn blob(&self, ctx: &Context, hash: &Hash) -> Result<Option<Arc<[u8]>>>;
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => fmt::Debug::fmt(text, f),
            Self::Bytes(bytes) => write!(f, "<{} bytes>", bytes.len()),
            Self::Blob(blob) => write!(f, "<{} bytes as {}>", blob.bytes, blob.blob),
        }
    }
}

impl Default for Body {
    fn default() -> Self {
        Self::Text(Arc::default())
    }
}

impl From<&str> for Body {
    fn from(text: &str) -> Self {
        Self::Text(Arc::from(text))
    }
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        Self::Text(Arc::from(text))
    }
}

impl From<Arc<str>> for Body {
    fn from(text: Arc<str>) -> Self {
        Self::Text(text)
    }
}

#[derive(Serialize)]
struct Hex<'a> {
    hex: &'a str,
}

impl Serialize for Body {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Blob(blob) => blob.serialize(serializer),
            Self::Bytes(bytes) => {
                use fmt::Write;
                let mut hex = String::with_capacity(bytes.len() * 2);
                for byte in bytes.iter() {
                    // Writing to a String cannot fail.
                    let _ = write!(hex, "{byte:02x}");
                }
                Hex { hex: &hex }.serialize(serializer)
            }
        }
    }
}

impl<'de> Deserialize<'de> for Body {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Body;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, or {\"blob\": hash, \"bytes\": count}")
            }
            fn visit_str<E>(self, text: &str) -> Result<Body, E> {
                Ok(Body::from(text))
            }
            fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Body, A::Error> {
                let (mut blob, mut bytes) = (None, None);
                while let Some(key) = map.next_key::<std::borrow::Cow<'de, str>>()? {
                    match &*key {
                        "blob" => blob = Some(map.next_value()?),
                        "bytes" => bytes = Some(map.next_value()?),
                        "hex" => {
                            let hex: std::borrow::Cow<'de, str> = map.next_value()?;
                            let raw = unhex(&hex).ok_or_else(|| de::Error::custom("odd hex"))?;
                            return Ok(Body::Bytes(Arc::from(raw)));
                        }
                        other => return Err(de::Error::unknown_field(other, &["blob", "bytes"])),
                    }
                }
                Ok(Body::Blob(BlobRef {
                    blob: blob.ok_or_else(|| de::Error::missing_field("blob"))?,
                    bytes: bytes.ok_or_else(|| de::Error::missing_field("bytes"))?,
                }))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    digits
        .chunks(2)
        .map(|pair| match pair {
            [a, b] => {
                let value = char::from(*a).to_digit(16)? * 16 + char::from(*b).to_digit(16)?;
                u8::try_from(value).ok()
            }
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_round_trip() {
        let blob = BlobRef { blob: Hash::of(b"x"), bytes: 1 };
        for body in [Body::from("tëxt"), Body::Blob(blob), Body::from_bytes(&[0xff, 0, 1])] {
            let json = serde_json::to_string(&body).unwrap();
            assert_eq!(serde_json::from_str::<Body>(&json).unwrap(), body, "{json}");
        }
    }
}
