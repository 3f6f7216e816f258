//! Upper and lower case.

/// A text with case taken away, a character at a time, so that pieces fold as the whole does.
pub(crate) fn fold(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            'A'..='Z' => out.push(c.to_ascii_lowercase()),
            '\0'..='\x7F' => out.push(c),
            // The sigma at a word's end is the same letter.
            'ς' => out.push('σ'),
            _ => out.extend(c.to_lowercase()),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_goes_and_nothing_else() {
        assert_eq!(fold("ÄÖÜ Straße ΣΟΦΟΣ σοφος 日本"), "äöü straße σοφοσ σοφοσ 日本");
    }
}
