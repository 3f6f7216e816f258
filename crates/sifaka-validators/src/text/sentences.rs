//! Sentences, by rule.
//!
//! A sentence ends at `.`, `!`, `?` or `…`, with the quotation marks and brackets that close
//! after it, where white space or the text's end follows and the next word does not begin with a
//! small letter; at `。`, `！` and `？` whatever follows; and at a blank line. A full stop after
//! an initial (`J. Smith`), a title or such (`Dr.`, `e.g.`) or a list's number (`1.` at the
//! start of a line) ends nothing. A piece without a letter or digit is no sentence.

/// Words whose full stop ends no sentence.
const ABBREVIATIONS: [&str; 29] = [
    "approx", "capt", "cf", "col", "dr", "e.g", "ed", "eds", "eq", "fig", "figs", "gen", "hon",
    "i.e", "lt", "mr", "mrs", "ms", "no", "nos", "pp", "prof", "rev", "sec", "sgt", "st", "vol",
    "vs", "viz",
];

/// How many sentences a text has.
#[must_use]
pub fn count(text: &str) -> u64 {
    sentences(text).count() as u64
}

/// The sentences of a text, trimmed.
///
/// ```
/// use sifaka_validators::text::sentences::sentences;
///
/// let text = "Dr. J. Smith paid 3.50, e.g. in cash. \"Really?\" he asked. Yes!";
/// let found: Vec<&str> = sentences(text).collect();
/// assert_eq!(found.len(), 3);
/// assert_eq!(found[1], "\"Really?\" he asked.");
/// ```
pub fn sentences(text: &str) -> impl Iterator<Item = &str> {
    Sentences { rest: text, line_start: true }.filter(|s| s.contains(char::is_alphanumeric))
}

#[derive(Debug)]
struct Sentences<'a> {
    rest: &'a str,
    /// Whether `rest` begins at the start of a line.
    line_start: bool,
}

impl<'a> Iterator for Sentences<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let trimmed = self.rest.trim_start();
        if trimmed.is_empty() {
            return None;
        }
        let skipped = &self.rest[..self.rest.len() - trimmed.len()];
        let line_start = self.line_start || skipped.contains('\n');
        let end = end(trimmed, line_start);
        self.rest = &trimmed[end..];
        self.line_start = false;
        Some(trimmed[..end].trim_end())
    }
}

/// Where the first sentence of a text ends.
fn end(text: &str, line_start: bool) -> usize {
    let mut letters = text.char_indices().peekable();
    while let Some((at, c)) = letters.next() {
        let after = at + c.len_utf8();
        match c {
            '\n' if starts_with_blank_line(&text[after..]) => return after,
            '。' | '！' | '？' => return after + closers(&text[after..]),
            '.' | '!' | '?' | '…' => {
                let run = text[after..].find(|c| !is_stop(c)).unwrap_or(text.len() - after);
                let stop = after + run;
                let end = stop + closers(&text[stop..]);
                let rest = &text[end..];
                let next = rest.trim_start();
                let open = next.len() == rest.len() && !next.is_empty();
                let goes_on = next.starts_with(char::is_lowercase) && !is_new_block(rest, next);
                let shortens = c == '.' && run == 0 && abbreviates(&text[..at], line_start);
                if !(open || goes_on || shortens) {
                    return end;
                }
                while letters.next_if(|(at, _)| *at < stop).is_some() {}
            }
            _ => {}
        }
    }
    text.len()
}

fn is_stop(c: char) -> bool {
    matches!(c, '.' | '!' | '?' | '…')
}

/// How many bytes of closing quotation marks and brackets a text begins with.
fn closers(text: &str) -> usize {
    let is_closer =
        |c| matches!(c, '"' | '\'' | '”' | '’' | ')' | ']' | '»' | '」' | '』' | '*' | '_');
    text.find(|c| !is_closer(c)).unwrap_or(text.len())
}

/// Whether a text begins with a line that has nothing on it.
fn starts_with_blank_line(text: &str) -> bool {
    let line = text.find(|c: char| c == '\n' || !c.is_whitespace());
    line.is_some_and(|at| text[at..].starts_with('\n'))
}

/// Whether a blank line lies between a text's beginning and its first word.
fn is_new_block(rest: &str, next: &str) -> bool {
    rest[..rest.len() - next.len()].matches('\n').count() > 1
}

/// Whether the full stop after this text shortens a word instead of ending a sentence.
fn abbreviates(before: &str, line_start: bool) -> bool {
    let start = before
        .rfind(char::is_whitespace)
        .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
    let begins_line = if start == 0 { line_start } else { before[..start].ends_with('\n') };
    let word = before[start..].trim_start_matches(|c: char| !c.is_alphanumeric());
    let mut letters = word.chars();
    match (letters.next(), letters.next()) {
        (Some(only), None) if only.is_uppercase() => only != 'I',
        _ if begins_line && !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit()) => true,
        _ => ABBREVIATIONS.iter().any(|known| known.eq_ignore_ascii_case(word)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_end_where_a_reader_would_end_them() {
        for (text, expected) in [
            ("", 0),
            ("...", 0),
            ("One", 1),
            ("One. Two.", 2),
            ("Version 0.9 is out. See example.com for more.", 2),
            ("Mr. and Mrs. Smith met Prof. J. R. Jones. They ate, e.g. bread.", 2),
            ("Wait... what? No!! Yes.", 3),
            ("(It rained.) Then it stopped.", 2),
            ("So did I. Then we left.", 2),
            ("1. First item\n2. Second item", 1),
            ("Heading\n\nText without an end", 2),
            ("He said.\n\nthen left.", 2),
            ("こんにちは。元気ですか？はい", 3),
            ("We had apples, etc. Then we left.", 2),
            ("No space.Here", 1),
        ] {
            assert_eq!(count(text), expected, "{text:?}");
        }
    }
}
