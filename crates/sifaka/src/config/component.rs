//! A component as it is written in the file: a name with options, in one of two ways.

use std::fmt;

use schemars::JsonSchema;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value};
use sifaka_core::{Error, Result, Spec};

/// A component's name and options: `"length:words=50..200"`, or a table with the same keys.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[schemars(untagged)]
pub enum Component {
    /// As on the command line.
    Text(String),
    /// A table: the name under `name`, `check`, `critic` or `retriever`, and the options.
    Table(Map<String, Value>),
}

impl Component {
    /// What it names; in a table the name stands under `key`.
    ///
    /// # Errors
    /// When the name is missing or malformed.
    pub fn spec(&self, key: &str) -> Result<Spec> {
        let fields = match self {
            Self::Text(text) => return Spec::parse(text),
            Self::Table(fields) => fields,
        };
        let mut options = fields.clone();
        let name = match options.shift_remove(key) {
            Some(Value::String(name)) => name,
            Some(other) => {
                return Err(Error::configuration(key, format!("{other} is not a name"))
                    .suggest(format!("write {key} = \"NAME\"")));
            }
            None => {
                return Err(Error::configuration(key, format!("the table has no `{key}`"))
                    .suggest(format!("write {{ {key} = \"NAME\", … }}")));
            }
        };
        if options.is_empty() {
            return Spec::parse(&name);
        }
        if let Some((plain, _)) = name.split_once(':') {
            let message = format!("{name:?} has options of its own besides those of the table");
            return Err(Error::configuration(key, message)
                .suggest(format!("write {key} = \"{plain}\" and all options as keys")));
        }
        Ok(Spec::from_parts(name, options))
    }
}

impl From<&str> for Component {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Component {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl<'de> Deserialize<'de> for Component {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Component;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name with options, as on the command line, or a table")
            }
            fn visit_str<E>(self, text: &str) -> Result<Component, E> {
                Ok(Component::Text(text.to_owned()))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Component, A::Error> {
                let mut fields = Map::new();
                while let Some((key, value)) = map.next_entry()? {
                    fields.insert(key, value);
                }
                Ok(Component::Table(fields))
            }
        }
        deserializer.deserialize_any(Either)
    }
}
