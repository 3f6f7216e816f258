//! Text out of bytes that come in bits.

/// Makes text of tokens as they come: a character whose bytes are spread over several tokens is
/// held back until it is whole.
///
/// Bytes that can be no text become U+FFFD, exactly as [`String::from_utf8_lossy`] would have it for
/// all bytes together.
///
/// ```
/// use sifaka_local::tokenizer::Utf8;
///
/// let mut text = Utf8::new();
/// assert_eq!(text.push(b"h\xc3"), "h");
/// assert_eq!(text.push(b"\xa9!"), "é!");
/// assert_eq!(text.finish(), "");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Utf8 {
    /// The beginning of a character: three bytes at most.
    tail: Vec<u8>,
}

impl Utf8 {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds bytes and takes the text that is whole.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        let mut all = std::mem::take(&mut self.tail);
        all.extend_from_slice(bytes);
        let mut text = String::with_capacity(all.len());
        let mut rest = all.as_slice();
        loop {
            match str::from_utf8(rest) {
                Ok(valid) => {
                    text.push_str(valid);
                    return text;
                }
                Err(error) => {
                    let (valid, after) = rest.split_at(error.valid_up_to());
                    text.push_str(&String::from_utf8_lossy(valid));
                    let Some(bad) = error.error_len() else {
                        self.tail = after.to_vec();
                        return text;
                    };
                    text.push(char::REPLACEMENT_CHARACTER);
                    rest = &after[bad..];
                }
            }
        }
    }

    /// Whether the beginning of a character is held back.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        !self.tail.is_empty()
    }

    /// What is left at the end: U+FFFD if a character never became whole.
    #[must_use]
    pub fn finish(self) -> String {
        String::from_utf8_lossy(&self.tail).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_cuts_make_no_difference(
            parts in prop::collection::vec(
                prop_oneof![
                    prop::collection::vec(any::<u8>(), 0..5),
                    "[é語😀a]{0,3}".prop_map(String::into_bytes),
                ],
                0..12,
            ),
            cut in 1usize..4,
        ) {
            let all = parts.concat();
            let mut stream = Utf8::new();
            let mut text = String::new();
            for chunk in all.chunks(cut) {
                text.push_str(&stream.push(chunk));
            }
            text.push_str(&stream.finish());
            prop_assert_eq!(text, String::from_utf8_lossy(&all));
        }
    }

    #[test]
    fn half_a_character_is_held_back() {
        let mut stream = Utf8::new();
        assert_eq!(stream.push("😀".as_bytes().split_at(3).0), "");
        assert!(stream.is_pending());
        assert_eq!(stream.clone().finish(), "\u{fffd}");
        assert_eq!(stream.push(&[0x80]), "😀");
        assert!(!stream.is_pending());
    }
}
