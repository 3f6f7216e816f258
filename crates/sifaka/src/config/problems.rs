//! Mistakes in the file, with their place.

use sifaka_core::names::nearest;
use sifaka_core::{Error, Problem};

/// What TOML or serde found wrong, with line, column and, for a key, the nearest known ones.
pub(super) fn of_toml(place: &str, text: &str, error: &toml::de::Error) -> Error {
    let message = error.message();
    let at = error.span().map(|span| {
        let before = text.get(..span.start).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        format!("line {line}, column {column}: ")
    });
    let mut words = message.split('`').skip(1).step_by(2);
    let found =
        Error::configuration(place, format!("{}{message}", at.as_deref().unwrap_or_default()));
    let (Some(unknown), true) = (words.next(), message.starts_with("unknown ")) else {
        return found.suggest("`sifaka schema` prints what the file may hold");
    };
    match nearest(unknown, words).as_slice() {
        [] => found.suggest("`sifaka schema` prints what the file may hold"),
        near => {
            // The list of everything that was expected would hide what is near.
            let short = message.split(", expected").next().unwrap_or(message);
            Error::configuration(place, format!("{}{short}", at.unwrap_or_default()))
                .suggest(format!("did you mean {}?", near.join(" or ")))
        }
    }
}

/// An error of one component as problems of the place where it was written.
pub(super) fn of_part(place: &str, error: &Error) -> Vec<Problem> {
    if error.all_problems().is_empty() {
        let hint = match error.suggestions() {
            // What is near is enough; the list of all that is known comes only without it.
            [near, ..] if near.starts_with("did you mean") => near.clone(),
            all => all.join("; "),
        };
        return vec![Problem::new(place, error.message(), hint)];
    }
    let inside = |problem: &Problem| {
        let message = format!("{}: {}", problem.place, problem.message);
        Problem::new(place, message, &*problem.suggestion)
    };
    error.all_problems().iter().map(inside).collect()
}
