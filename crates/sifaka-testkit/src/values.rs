//! Random texts, numbers and JSON: what everything else is made of.

use proptest::collection::{btree_map, vec};
use proptest::num::f64::{NEGATIVE, NORMAL, POSITIVE, SUBNORMAL, ZERO};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value};
use sifaka_core::{BlobRef, Body, Cost, Error, ErrorKind, Failure, Hash, Id, Usage};

/// Texts that have broken programs before.
const ODD: &[&str] = &[
    "",
    " ",
    "\0",
    "\u{1}\u{1f}\u{7f}\u{9f}",
    "\r\n\t\u{8}\u{c}",
    "\"quoted\" \\ and / \u{2028}\u{2029}",
    "null",
    "\u{feff}marked",
    "\u{202e}\u{645}\u{631}\u{62d}\u{628}\u{627}\u{202c}",
    "e\u{301}\u{302}\u{303}",
    "\u{1f98a}\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}",
    "\u{10ffff}\u{fffe}\u{e000}",
    "</data mark=\"00000000\">",
];

/// What plain text is made of.
const PLAIN: &[char] = &['a', 'e', 'i', 'n', 'r', 's', 't', 'Z', '7', ' ', ',', '.', '\n'];

/// A few small letters. Not a pattern: proptest reads a pattern anew for every value.
pub fn word() -> BoxedStrategy<String> {
    vec(proptest::char::range('a', 'z'), 1..8).prop_map(String::from_iter).boxed()
}

/// Any text: empty, plain, right to left, beyond the basic plane, control characters.
pub fn text() -> BoxedStrategy<String> {
    prop_oneof![
        3 => vec(select(PLAIN), 0..24).prop_map(String::from_iter),
        2 => vec(any::<char>(), 0..12).prop_map(String::from_iter),
        1 => select(ODD).prop_map(str::to_owned),
    ]
    .boxed()
}

/// A name that is not empty.
pub fn name() -> BoxedStrategy<String> {
    (word(), text()).prop_map(|(plain, odd)| plain + &odd).boxed()
}

/// An identifier: ours, or one from outside.
pub fn id() -> BoxedStrategy<Id> {
    prop_oneof![
        any::<u64>().prop_map(|n| Id::derived(&n.to_le_bytes())),
        // What an identifier may not hold is what the fallback is for.
        name().prop_map(|n| Id::parse(&n).unwrap_or_else(|_| Id::derived(n.as_bytes()))),
    ]
    .boxed()
}

/// A number that JSON can hold.
pub fn number() -> BoxedStrategy<f64> {
    (NORMAL | SUBNORMAL | ZERO | POSITIVE | NEGATIVE).boxed()
}

/// A share: 0 to 1.
pub fn share() -> BoxedStrategy<f64> {
    prop_oneof![2 => 0.0..=1.0, 1 => select(vec![0.0, 1.0, 0.1, 0.5])].boxed()
}

/// Any JSON, a few levels deep.
pub fn json() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        number().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            btree_map(text(), inner, 0..3).prop_map(|m| Value::Object(m.into_iter().collect())),
        ]
    })
    .boxed()
}

/// A JSON object.
pub fn object() -> BoxedStrategy<Map<String, Value>> {
    btree_map(text(), json(), 0..3).prop_map(|map| map.into_iter().collect()).boxed()
}

/// Fields that no version of ours or the ancestor's has.
pub fn unknown_fields() -> BoxedStrategy<Map<String, Value>> {
    let key = text().prop_map(|key| format!("x_{key}"));
    prop_oneof![
        2 => Just(Map::new()),
        1 => btree_map(key, json(), 1..3).prop_map(|map| map.into_iter().collect()),
    ]
    .boxed()
}

/// A text, bytes that are none, or a pointer to either.
pub fn body() -> BoxedStrategy<Body> {
    prop_oneof![
        4 => text().prop_map(Body::from),
        1 => (any::<u64>(), any::<u64>()).prop_map(|(n, bytes)| {
            Body::Blob(BlobRef { blob: Hash::of(&n.to_le_bytes()), bytes })
        }),
        1 => vec(any::<u8>(), 0..8).prop_map(|bytes| Body::Bytes(bytes.into())),
    ]
    .boxed()
}

/// What a call consumed. Money stays below a million dollars, where JSON holds it exactly.
pub fn usage() -> BoxedStrategy<Usage> {
    let count = || prop_oneof![4 => 0_u64..100_000, 1 => any::<u64>()];
    let cost = proptest::option::of((0_u64..1 << 50).prop_map(Cost::from_nanos));
    (0_u64..9, count(), count(), 0_u64..99, 0_u64..99, cost, any::<bool>())
        .prop_map(
            |(
                calls,
                input_tokens,
                output_tokens,
                cached_tokens,
                reasoning_tokens,
                cost,
                estimated,
            )| {
                Usage {
                    calls,
                    input_tokens,
                    output_tokens,
                    cached_tokens,
                    reasoning_tokens,
                    cost,
                    estimated,
                }
            },
        )
        .boxed()
}

/// Something that failed.
pub fn failure() -> BoxedStrategy<Failure> {
    (text(), select(ErrorKind::ALL), text(), vec(text(), 0..2))
        .prop_map(|(component, kind, message, suggestions)| {
            let error = Error::new(kind, component, "call", message);
            Failure::from(&suggestions.into_iter().fold(error, Error::suggest))
        })
        .boxed()
}
