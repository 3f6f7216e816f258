//! Results under unique names: an object in declared order, read from an object or a list.

use std::fmt;
use std::sync::Arc;

use serde::de::{self, Deserializer};
use serde::ser::{SerializeMap, Serializer};
use serde_json::Value;

use super::node::Results;
use crate::validation::ValidationResult;

/// `name`, or `name-2`, `name-3` … where it is taken.
pub(crate) fn unique(taken: &[(Arc<str>, ValidationResult)], name: &str) -> Arc<str> {
    let free = |candidate: &str| taken.iter().all(|(n, _)| &**n != candidate);
    let name = if name.is_empty() { "validator" } else { name };
    if free(name) {
        return Arc::from(name);
    }
    // One more than there are results is always free.
    let numbered = (2..=taken.len() + 2).map(|n| format!("{name}-{n}"));
    Arc::from(numbered.filter(|n| free(n)).take(1).collect::<String>())
}

pub(crate) fn serialize<S: Serializer>(
    results: &[(Arc<str>, ValidationResult)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(results.len()))?;
    for (name, result) in results {
        map.serialize_entry(&**name, result)?;
    }
    map.end()
}

#[derive(serde::Deserialize)]
#[serde(transparent)]
struct Name(#[serde(deserialize_with = "crate::text::arc_str")] Arc<str>);

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Results, D::Error> {
    struct Visitor;
    impl<'de> de::Visitor<'de> for Visitor {
        type Value = Results;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("validation results as an object by name, or as a list")
        }
        fn visit_unit<E>(self) -> Result<Results, E> {
            Ok(Vec::new())
        }
        fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Results, A::Error> {
            let mut results = Vec::with_capacity(map.size_hint().unwrap_or(0).min(64));
            while let Some(Name(mut name)) = map.next_key()? {
                if name.is_empty() || results.iter().any(|(taken, _)| *taken == name) {
                    name = unique(&results, &name);
                }
                results.push((name, map.next_value()?));
            }
            Ok(results)
        }
        fn visit_seq<A: de::SeqAccess<'de>>(self, mut seq: A) -> Result<Results, A::Error> {
            let mut results = Vec::new();
            while let Some(mut result) = seq.next_element::<ValidationResult>()? {
                let given = ["validator_name", "validator", "name"]
                    .into_iter()
                    .find(|key| result.extra.get(*key).is_some_and(Value::is_string));
                let given = given.and_then(|key| result.extra.shift_remove(key));
                let name = given.as_ref().and_then(Value::as_str).unwrap_or("validator");
                let name = unique(&results, name);
                results.push((name, result));
            }
            Ok(results)
        }
    }
    deserializer.deserialize_any(Visitor)
}

/// The same for results that are shared.
pub(crate) mod shared {
    use super::{Arc, Deserializer, Results, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        results: &Arc<Results>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        super::serialize(results, serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Arc<Results>, D::Error> {
        super::deserialize(deserializer).map(Arc::new)
    }
}
