//! Words.
//!
//! A word is a run of characters between white space with at least one letter or digit in it:
//! `well-known` and `v0.9` are one, a dash that stands alone is none. Chinese characters and
//! Japanese kana stand without spaces, so each counts as one.

const SPACE: u8 = 1;
const LETTER: u8 = 2;

/// What each ASCII byte is; most texts are nothing else, and a table is the quickest.
const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        // Vertical tab is white space to Unicode but not to `is_ascii_whitespace`.
        if byte.is_ascii_whitespace() || byte == 0x0B {
            classes[byte as usize] = SPACE;
        } else if byte.is_ascii_alphanumeric() {
            classes[byte as usize] = LETTER;
        }
        byte += 1;
    }
    classes
};

/// How many words a text has.
///
/// ```
/// use sifaka_validators::text::words;
///
/// assert_eq!(words::count("A well-known fact – v0.9 can't wait."), 6);
/// assert_eq!(words::count("東京 is big"), 4);
/// ```
#[must_use]
pub fn count(text: &str) -> u64 {
    let mut counter = Counter::default();
    counter.push(text);
    counter.count()
}

/// Counts words of a text that comes in pieces, however it is cut. The count never falls: a last
/// word that grows is still one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counter {
    count: u64,
    inside: bool,
}

impl Counter {
    /// Takes the next piece.
    pub fn push(&mut self, text: &str) {
        if text.is_ascii() {
            for byte in text.bytes() {
                let class = CLASSES[usize::from(byte)];
                self.step(class == SPACE, class == LETTER);
            }
            return;
        }
        for c in text.chars() {
            if stands_alone(c) {
                self.count += 1;
                self.inside = false;
            } else {
                self.step(c.is_whitespace(), c.is_alphanumeric());
            }
        }
    }

    fn step(&mut self, space: bool, letter: bool) {
        let begins = letter && !self.inside;
        self.count += u64::from(begins);
        self.inside = (self.inside || begins) && !space;
    }

    /// How many so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }
}

/// Whether a character is a word by itself.
fn stands_alone(c: char) -> bool {
    matches!(c,
        '\u{3040}'..='\u{30FF}' | '\u{31F0}'..='\u{31FF}'
        | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}'
        | '\u{20000}'..='\u{3FFFD}')
        && c.is_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_runs_with_a_letter_or_digit() {
        for (text, expected) in [
            ("", 0),
            (" \t\n", 0),
            ("one", 1),
            ("  one\ttwo\u{A0}three\u{B}four ", 4),
            ("- a -- b —", 2),
            ("\"quoted\" (and) 3.14!", 3),
            ("naïve café", 2),
            ("日本go、語", 4),
            ("・。", 0),
            ("привет мир", 2),
        ] {
            assert_eq!(count(text), expected, "{text:?}");
        }
    }
}
