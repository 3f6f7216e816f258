//! Reading text and times the way files really spell them.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde::de::{self, Deserializer};

/// `deserialize_with` for a text that is copied once, straight into its `Arc`.
pub(crate) fn arc_str<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<str>, D::Error> {
    deserializer.deserialize_str(Text)
}

/// The same for a text that may be absent or null.
pub(crate) fn opt_arc_str<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Arc<str>>, D::Error> {
    struct Visitor;
    impl<'de> de::Visitor<'de> for Visitor {
        type Value = Option<Arc<str>>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a text or null")
        }
        fn visit_none<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }
        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }
        fn visit_some<D: Deserializer<'de>>(self, d: D) -> Result<Self::Value, D::Error> {
            arc_str(d).map(Some)
        }
    }
    deserializer.deserialize_option(Visitor)
}

struct Text;

impl de::Visitor<'_> for Text {
    type Value = Arc<str>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }
    fn visit_str<E>(self, text: &str) -> Result<Arc<str>, E> {
        Ok(Arc::from(text))
    }
}

/// A time as RFC 3339; one without a zone is UTC.
pub(crate) fn parse_time(text: &str) -> Result<Timestamp, jiff::Error> {
    text.parse::<Timestamp>().or_else(|error| {
        let civil: jiff::civil::DateTime = text.parse().map_err(|_| error)?;
        civil.to_zoned(jiff::tz::TimeZone::UTC).map(|zoned| zoned.timestamp())
    })
}

/// `deserialize_with` for a time that may be absent or null.
pub(crate) fn opt_time<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Timestamp>, D::Error> {
    struct Visitor;
    impl<'de> de::Visitor<'de> for Visitor {
        type Value = Option<Timestamp>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a time such as 2026-11-15T02:46:36Z")
        }
        fn visit_none<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }
        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }
        fn visit_some<D: Deserializer<'de>>(self, d: D) -> Result<Self::Value, D::Error> {
            d.deserialize_str(self)
        }
        fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
            parse_time(text).map(Some).map_err(E::custom)
        }
    }
    deserializer.deserialize_option(Visitor)
}

/// The first `limit` characters of a text on one line, with an ellipsis where it was cut.
#[must_use]
pub fn summarise(text: &str, limit: usize) -> String {
    let mut out = String::with_capacity(limit.min(text.len()) + 3);
    let mut taken = 0;
    let mut words = text.split_whitespace().peekable();
    while let Some(word) = words.next() {
        for c in word.chars() {
            if taken == limit {
                out.push('…');
                return out;
            }
            out.push(c);
            taken += 1;
        }
        if words.peek().is_some() && taken < limit {
            out.push(' ');
            taken += 1;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_without_a_zone_is_utc() {
        let zoned = parse_time("2025-05-20T10:00:01Z").unwrap();
        assert_eq!(parse_time("2025-05-20T10:00:01").unwrap(), zoned);
        assert_eq!(parse_time("2025-05-20T12:00:01+02:00").unwrap(), zoned);
        assert!(parse_time("yesterday").is_err());
    }

    #[test]
    fn summaries_count_characters() {
        assert_eq!(summarise("  ä b\n\nc ", 10), "ä b c");
        assert_eq!(summarise("abcdef", 3), "abc…");
        assert_eq!(summarise("", 3), "");
    }
}
