//! Lines and paragraphs.

/// How many lines a text has, blank ones among them. A line end at the very end begins no line.
#[must_use]
pub fn lines(text: &str) -> u64 {
    text.lines().count() as u64
}

/// How many paragraphs a text has: runs of lines with something on them, between lines with
/// nothing but white space.
///
/// ```
/// use sifaka_validators::text::blocks;
///
/// assert_eq!(blocks::paragraphs("One\nstill one\n \n\nTwo\n"), 2);
/// assert_eq!(blocks::lines("One\nstill one\n \n\nTwo\n"), 5);
/// ```
#[must_use]
pub fn paragraphs(text: &str) -> u64 {
    let (mut count, mut inside) = (0, false);
    for line in text.lines() {
        let blank = line.trim().is_empty();
        count += u64::from(!blank && !inside);
        inside = !blank;
    }
    count
}
