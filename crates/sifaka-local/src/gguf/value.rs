//! The values of a file's metadata.

/// A value of the metadata, in the type the file gives it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the types speak for themselves")]
pub enum Value {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    U64(u64),
    I64(i64),
    F32(f32),
    F64(f64),
    Bool(bool),
    String(String),
    Array(Array),
}

/// A list of the metadata; all its items have one type.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the types speak for themselves")]
pub enum Array {
    U8s(Vec<u8>),
    I8s(Vec<i8>),
    U16s(Vec<u16>),
    I16s(Vec<i16>),
    U32s(Vec<u32>),
    I32s(Vec<i32>),
    U64s(Vec<u64>),
    I64s(Vec<i64>),
    F32s(Vec<f32>),
    F64s(Vec<f64>),
    Bools(Vec<bool>),
    Strings(Strings),
    /// Lists of lists.
    Arrays(Vec<Array>),
}

impl Value {
    /// What its type is called, for messages.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::U8(_)
            | Self::I8(_)
            | Self::U16(_)
            | Self::I16(_)
            | Self::U32(_)
            | Self::I32(_)
            | Self::U64(_)
            | Self::I64(_) => "a whole number",
            Self::F32(_) | Self::F64(_) => "a float",
            Self::Bool(_) => "a truth value",
            Self::String(_) => "a string",
            Self::Array(_) => "a list",
        }
    }

    /// The number, if it is a whole one and not negative.
    #[must_use]
    pub fn as_u64(&self) -> Option<u64> {
        match *self {
            Self::U8(value) => Some(value.into()),
            Self::U16(value) => Some(value.into()),
            Self::U32(value) => Some(value.into()),
            Self::U64(value) => Some(value),
            Self::I8(value) => value.try_into().ok(),
            Self::I16(value) => value.try_into().ok(),
            Self::I32(value) => value.try_into().ok(),
            Self::I64(value) => value.try_into().ok(),
            _ => None,
        }
    }

    /// The number, if it is a float.
    #[must_use]
    pub fn as_f32(&self) -> Option<f32> {
        match *self {
            Self::F32(value) => Some(value),
            Self::F64(value) => Some(value as f32),
            _ => None,
        }
    }

    /// The truth value, if it is one.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        match *self {
            Self::Bool(value) => Some(value),
            _ => None,
        }
    }

    /// The string, if it is one.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(value) => Some(value),
            _ => None,
        }
    }

    /// The list, if it is one.
    #[must_use]
    pub fn as_array(&self) -> Option<&Array> {
        match self {
            Self::Array(value) => Some(value),
            _ => None,
        }
    }
}

impl Array {
    /// How many items it has.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::U8s(items) => items.len(),
            Self::I8s(items) => items.len(),
            Self::U16s(items) => items.len(),
            Self::I16s(items) => items.len(),
            Self::U32s(items) => items.len(),
            Self::I32s(items) => items.len(),
            Self::U64s(items) => items.len(),
            Self::I64s(items) => items.len(),
            Self::F32s(items) => items.len(),
            Self::F64s(items) => items.len(),
            Self::Bools(items) => items.len(),
            Self::Strings(items) => items.len(),
            Self::Arrays(items) => items.len(),
        }
    }

    /// Whether it has no items.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Many strings in one piece of memory: a vocabulary has a hundred thousand of them.
///
/// They are bytes, as a file may hold tokens that are no text on their own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Strings {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Strings {
    /// No strings yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one at the end.
    pub fn push(&mut self, string: &[u8]) {
        self.bytes.extend_from_slice(string);
        self.ends.push(self.bytes.len());
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The one at `index`.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let end = *self.ends.get(index)?;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some(&self.bytes[start..end])
    }

    /// All of them in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| &self.bytes[std::mem::replace(&mut start, end)..end])
    }
}

impl<S: AsRef<[u8]>> FromIterator<S> for Strings {
    fn from_iter<I: IntoIterator<Item = S>>(strings: I) -> Self {
        let mut all = Self::new();
        strings.into_iter().for_each(|string| all.push(string.as_ref()));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_come_back_in_order() {
        let strings: Strings = ["a", "", "bc"].into_iter().collect();
        assert_eq!(strings.iter().collect::<Vec<_>>(), [&b"a"[..], b"", b"bc"]);
        assert_eq!(strings.get(0), Some(&b"a"[..]));
        assert_eq!(strings.get(2), Some(&b"bc"[..]));
        assert_eq!(strings.get(3), None);
    }

    #[test]
    fn numbers_are_read_in_any_width_but_never_negative() {
        assert_eq!(Value::U8(3).as_u64(), Some(3));
        assert_eq!(Value::I64(7).as_u64(), Some(7));
        assert_eq!(Value::I32(-1).as_u64(), None);
        assert_eq!(Value::F32(1.0).as_u64(), None);
    }
}
