//! The nearest known names to one that is not known.

/// At most three of `known` that are near to `name`, nearest first.
#[must_use]
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let lower = name.to_lowercase();
    let mut near: Vec<(usize, &str)> = known
        .into_iter()
        .map(|k| (strsim::damerau_levenshtein(&lower, &k.to_lowercase()), k))
        .filter(|(distance, k)| {
            *distance <= (k.chars().count() / 2).max(1)
                || (lower.len() > 2 && k.starts_with(&lower))
        })
        .collect();
    near.sort_unstable();
    near.into_iter().take(3).map(|(_, k)| k).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        let known = ["length", "regex", "content"];
        assert_eq!(nearest("lenght", known), ["length"]);
        assert_eq!(nearest("REGEXP", known), ["regex"]);
        assert!(nearest("zzzzzzzzz", known).is_empty());
    }
}
