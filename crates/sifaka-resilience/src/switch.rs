//! Serde forms: seconds as floats, and `false` for a layer that is off.
//!
//! TOML has no null, so absence means the default and `false` means off. JSON's null is taken as
//! off, too.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde::{Serialize, Serializer};

fn duration<E: Error>(seconds: f64) -> Result<Duration, E> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| E::custom(format_args!("{seconds} is not a time; give seconds, such as 60.0")))
}

#[expect(clippy::cast_precision_loss, reason = "whole seconds in a file are small numbers")]
fn whole<E: Error>(seconds: i64) -> Result<Duration, E> {
    duration(seconds as f64)
}

/// A time in seconds.
pub(crate) mod seconds {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(time.as_secs_f64())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        duration(f64::deserialize(from)?)
    }
}

/// A time in seconds, or `false`.
pub(crate) mod seconds_or_off {
    use super::*;

    #[expect(clippy::ref_option, reason = "the signature serde asks for")]
    pub(crate) fn serialize<S: Serializer>(
        time: &Option<Duration>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match time {
            Some(time) => seconds::serialize(time, to),
            None => to.serialize_bool(false),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Duration>, D::Error> {
        from.deserialize_any(SecondsOrOff)
    }

    struct SecondsOrOff;

    impl Visitor<'_> for SecondsOrOff {
        type Value = Option<Duration>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a number of seconds, or false to switch it off")
        }
        fn visit_bool<E: Error>(self, on: bool) -> Result<Self::Value, E> {
            if on { Err(E::invalid_type(serde::de::Unexpected::Bool(on), &self)) } else { Ok(None) }
        }
        fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }
        fn visit_f64<E: Error>(self, seconds: f64) -> Result<Self::Value, E> {
            duration(seconds).map(Some)
        }
        fn visit_i64<E: Error>(self, seconds: i64) -> Result<Self::Value, E> {
            whole(seconds).map(Some)
        }
        fn visit_u64<E: Error>(self, seconds: u64) -> Result<Self::Value, E> {
            Ok(Some(Duration::from_secs(seconds)))
        }
    }
}

/// A table of options, `true` for its defaults, or `false`.
pub(crate) mod option {
    use super::*;

    #[expect(clippy::ref_option, reason = "the signature serde asks for")]
    pub(crate) fn serialize<T: Serialize, S: Serializer>(
        value: &Option<T>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => value.serialize(to),
            None => to.serialize_bool(false),
        }
    }

    pub(crate) fn deserialize<'de, T, D>(from: D) -> Result<Option<T>, D::Error>
    where
        T: Deserialize<'de> + Default,
        D: Deserializer<'de>,
    {
        from.deserialize_any(TableOrSwitch(PhantomData))
    }

    struct TableOrSwitch<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de> + Default> Visitor<'de> for TableOrSwitch<T> {
        type Value = Option<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a table of options, true for the defaults, or false to switch it off")
        }
        fn visit_bool<E: Error>(self, on: bool) -> Result<Self::Value, E> {
            Ok(on.then(T::default))
        }
        fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }
        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
            T::deserialize(MapAccessDeserializer::new(map)).map(Some)
        }
    }
}
