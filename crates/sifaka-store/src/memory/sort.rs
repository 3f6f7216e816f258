//! The order of records in a page, and where a page went on from.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sifaka_core::store::{Record, Sort};
use sifaka_core::{Error, Result};

/// Where a record stands in the order of a query: what it is sorted by, then its key.
///
/// It says everything about the place, so a page goes on rightly after the record it ended with
/// was changed or deleted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Place {
    value: Option<Value>,
    key: String,
}

impl Place {
    pub(super) fn of(record: &Record, sort: Option<&Sort>) -> Self {
        let value = sort.and_then(|sort| match sort.field.as_str() {
            // Nanoseconds, so that times far from now sort rightly; as text they would not.
            "created" => Some(time(record.created)),
            "updated" => Some(time(record.updated)),
            field => record.metadata.get(field).cloned(),
        });
        Self { value, key: record.key.clone() }
    }

    pub(super) fn parse(cursor: &str) -> Result<Self> {
        serde_json::from_str(cursor).map_err(|error| {
            Error::invalid_input("memory", format!("{cursor:?} is not a cursor: {error}"))
                .suggest("go on with `next` of the page before, as it is")
        })
    }

    pub(super) fn cursor(&self) -> Result<String> {
        serde_json::to_string(self)
            .map_err(|error| Error::invalid_input("memory", error.to_string()))
    }

    /// Records without the field come last either way; equal ones in the order of their keys.
    pub(super) fn compare(&self, other: &Self, is_descending: bool) -> Ordering {
        let by_value = match (&self.value, &other.value) {
            (Some(a), Some(b)) if is_descending => compare(b, a),
            (Some(a), Some(b)) => compare(a, b),
            (a, b) => b.is_some().cmp(&a.is_some()),
        };
        by_value.then_with(|| self.key.cmp(&other.key))
    }
}

fn time(time: jiff::Timestamp) -> Value {
    i64::try_from(time.as_nanosecond())
        .map_or_else(|_| Value::from(time.as_second().saturating_mul(1_000_000_000)), Value::from)
}

/// A total order over JSON: null, booleans, numbers, texts, then lists and maps as they are
/// written.
fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Number(a), Value::Number(b)) => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => {
                let number = |n: &serde_json::Number| n.as_f64().unwrap_or(f64::INFINITY);
                number(a).total_cmp(&number(b))
            }
        },
        (Value::String(a), Value::String(b)) => a.cmp(b),
        _ => rank(a).cmp(&rank(b)).then_with(|| a.to_string().cmp(&b.to_string())),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Number(_) => 2,
        Value::String(_) => 3,
        Value::Array(_) => 4,
        Value::Object(_) => 5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_has_a_total_order() {
        let sorted = [
            json!(null),
            json!(false),
            json!(true),
            json!(-1),
            json!(2.5),
            json!(10),
            json!("a"),
            json!("b"),
            json!([1]),
            json!({"a": 1}),
        ];
        for (i, a) in sorted.iter().enumerate() {
            for (j, b) in sorted.iter().enumerate() {
                assert_eq!(compare(a, b), i.cmp(&j), "{a} and {b}");
            }
        }
    }

    #[test]
    fn a_record_without_the_field_comes_last_either_way() {
        let with = Place { value: Some(json!(1)), key: "b".into() };
        let without = Place { value: None, key: "a".into() };
        for is_descending in [false, true] {
            assert_eq!(with.compare(&without, is_descending), Ordering::Less);
        }
    }
}
