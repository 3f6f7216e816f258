//! The alphabet in which byte-level vocabularies are written: a printable character for each byte.

/// The character that stands for `byte`: itself where it can be seen, else one from U+0100 on.
fn letter(byte: u8) -> char {
    let hidden = |byte: u8| matches!(byte, 0..=32 | 127..=160 | 173);
    if !hidden(byte) {
        return char::from(byte);
    }
    let before = (0..byte).filter(|byte| hidden(*byte)).count();
    char::from_u32(256 + before as u32).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// Reads such a vocabulary.
#[derive(Debug)]
pub(super) struct Alphabet {
    /// The byte of each character below U+0144.
    bytes: [Option<u8>; 324],
}

impl Alphabet {
    pub(super) fn new() -> Self {
        let mut bytes = [None; 324];
        for byte in 0..=255 {
            bytes[letter(byte) as usize] = Some(byte);
        }
        Self { bytes }
    }

    /// The bytes that a token stands for; `None` when it is not written in this alphabet.
    pub(super) fn decode(&self, token: &str) -> Option<Vec<u8>> {
        token.chars().map(|c| self.bytes.get(c as usize).copied().flatten()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_a_letter_of_its_own() {
        let alphabet = Alphabet::new();
        for byte in 0..=255 {
            assert_eq!(alphabet.decode(&letter(byte).to_string()), Some(vec![byte]));
        }
        assert_eq!((letter(b' '), letter(b'\n'), letter(0xad)), ('Ġ', 'Ċ', 'Ń'));
        assert_eq!(alphabet.decode("Ġworld"), Some(b" world".to_vec()));
        assert_eq!(alphabet.decode("a｜b"), None);
        assert_eq!(alphabet.decode(" "), None);
    }
}
