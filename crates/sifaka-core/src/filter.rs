//! Conditions on metadata, the same for stores and retrievers.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A condition on a record's or document's metadata. A field that is not there matches nothing
/// but [`Filter::All`] and negations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Filter {
    /// Everything.
    #[default]
    All,
    /// The field has this value.
    Eq(String, Value),
    /// The field has one of these values.
    In(String, Vec<Value>),
    /// The field lies between, both ends included; either may be open.
    Between(String, Option<Value>, Option<Value>),
    /// The field is a text with this in it, case as it stands, or a list with this value in it.
    Contains(String, String),
    /// The field is there.
    Exists(String),
    /// All of these hold.
    And(Vec<Filter>),
    /// At least one of these holds.
    Or(Vec<Filter>),
    /// This does not hold.
    Not(Box<Filter>),
}

impl Filter {
    /// The field has this value.
    pub fn eq(field: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::Eq(field.into(), value.into())
    }

    /// Both hold.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::All, filter) | (filter, Self::All) => filter,
            (Self::And(mut all), other) => {
                all.push(other);
                Self::And(all)
            }
            (a, b) => Self::And(vec![a, b]),
        }
    }

    /// Whether metadata fits. Numbers compare as numbers, texts as texts; two kinds never fit.
    #[must_use]
    pub fn matches(&self, metadata: Option<&Map<String, Value>>) -> bool {
        let get = |field: &str| metadata.and_then(|map| map.get(field));
        match self {
            Self::All => true,
            Self::Eq(field, value) => get(field).is_some_and(|v| same(v, value)),
            Self::In(field, values) => {
                get(field).is_some_and(|v| values.iter().any(|value| same(v, value)))
            }
            Self::Between(field, low, high) => get(field).is_some_and(|v| {
                let above = |low| compare(v, low).is_some_and(Ordering::is_ge);
                let below = |high| compare(v, high).is_some_and(Ordering::is_le);
                low.as_ref().is_none_or(above) && high.as_ref().is_none_or(below)
            }),
            Self::Contains(field, part) => match get(field) {
                Some(Value::String(text)) => text.contains(part.as_str()),
                Some(Value::Array(items)) => items.iter().any(|i| i.as_str() == Some(part)),
                _ => false,
            },
            Self::Exists(field) => get(field).is_some(),
            Self::And(all) => all.iter().all(|filter| filter.matches(metadata)),
            Self::Or(any) => any.iter().any(|filter| filter.matches(metadata)),
            Self::Not(filter) => !filter.matches(metadata),
        }
    }
}

fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(_), Value::Number(_)) => compare(a, b).is_some_and(Ordering::is_eq),
        _ => a == b,
    }
}

fn compare(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => Some(a.cmp(&b)),
            _ => a.as_f64()?.partial_cmp(&b.as_f64()?),
        },
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn conditions_combine() {
        let metadata = json!({"n": 3, "f": 2.5, "s": "a'b", "l": ["x", "y"]});
        let metadata = metadata.as_object();
        for (filter, fits) in [
            (Filter::All, true),
            (Filter::eq("n", 3.0), true),
            (Filter::eq("n", "3"), false),
            (Filter::eq("s", "a'b"), true),
            (Filter::eq("missing", Value::Null), false),
            (Filter::Between("n".into(), Some(1.into()), Some(3.into())), true),
            (Filter::Between("n".into(), Some(4.into()), None), false),
            (Filter::Between("s".into(), Some(1.into()), None), false),
            (Filter::Contains("l".into(), "y".into()), true),
            (Filter::eq("n", 3).and(Filter::Exists("f".into())), true),
            (Filter::Not(Box::new(Filter::Exists("n".into()))), false),
            (Filter::Or(vec![]), false),
        ] {
            assert_eq!(filter.matches(metadata), fits, "{filter:?}");
        }
    }
}
