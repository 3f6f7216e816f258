//! Characters as a reader sees them: an accented letter, a flag or a family emoji is one. So is
//! the line end of Windows.

use unicode_segmentation::UnicodeSegmentation;

/// How many characters a text has.
///
/// ```
/// use sifaka_validators::text::characters;
///
/// assert_eq!(characters::count("e\u{301}🇲🇬👩‍👩‍👧"), 3);
/// ```
#[must_use]
pub fn count(text: &str) -> u64 {
    let count = if text.is_ascii() {
        // Looking for one byte first is much quicker than looking for two.
        let pairs = if text.contains('\r') { text.matches("\r\n").count() } else { 0 };
        text.len() - pairs
    } else {
        text.graphemes(true).count()
    };
    count as u64
}

/// A last character longer than this, in bytes, is no writing; counting stops there.
const LONGEST: usize = 4096;

/// Counts characters of a text that comes in pieces, however it is cut. The count never falls: a
/// last character that grows, as by an accent, is still one.
#[derive(Clone, Debug, Default)]
pub struct Counter {
    /// Characters that cannot grow any more.
    done: u64,
    /// The last one, which can.
    last: String,
    stopped: bool,
}

impl Counter {
    /// Takes the next piece.
    pub fn push(&mut self, text: &str) {
        if self.stopped || text.is_empty() {
            return;
        }
        self.last.push_str(text);
        // Where a character ends depends on what is in it and on the one next to it, so
        // beginning again at the last one gives the same ends as the whole text.
        let (at, count) = if self.last.is_ascii() {
            let at = self.last.len() - if self.last.ends_with("\r\n") { 2 } else { 1 };
            (at, count(&self.last))
        } else {
            let mut count = 0;
            let ends = self.last.grapheme_indices(true).inspect(|_| count += 1);
            (ends.last().map_or(0, |(at, _)| at), count)
        };
        self.done += count.saturating_sub(1);
        self.last.drain(..at);
        self.stopped = self.last.len() > LONGEST;
    }

    /// How many so far; fewer than there are once a character was beyond all measure.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.done + u64::from(!self.last.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_count_as_the_whole_does() {
        let text = "a\r\nb🇲🇬🇲🇬👩‍👩‍👧e\u{301}\u{302} कि \r\n\r\n한글";
        for size in 1..5 {
            let mut counter = Counter::default();
            let letters: Vec<char> = text.chars().collect();
            for piece in letters.chunks(size) {
                counter.push(&piece.iter().collect::<String>());
            }
            assert_eq!(counter.count(), count(text), "{size}");
        }
        assert_eq!(count("ab\r\ncd"), 5);
    }

    #[test]
    fn an_endless_character_stops_the_count_and_nothing_else() {
        let mut counter = Counter::default();
        for _ in 0..LONGEST {
            counter.push("\u{301}");
        }
        counter.push("abc");
        assert_eq!(counter.count(), 1);
    }
}
