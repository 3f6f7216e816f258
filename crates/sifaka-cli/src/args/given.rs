//! The flags of a chain as they were given, for messages.

use clap::ValueEnum;
use sifaka::config::ChainConfig;

use super::chain::ChainArgs;

/// A flag with its value, and where the value went in the description of the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Given {
    pub(crate) place: String,
    flag: &'static str,
    value: String,
}

impl Given {
    /// As it is typed into a shell.
    pub(crate) fn typed(&self) -> String {
        format!("{} {}", self.flag, quoted(&self.value))
    }
}

impl ChainArgs {
    /// Every flag that was given. `own` is the chain before they are applied: what they add to its
    /// lists comes after what is there.
    pub(crate) fn given(&self, own: &ChainConfig) -> Vec<Given> {
        let lists = [
            ("fallbacks", "--fallback", &self.fallback, own.fallbacks.len()),
            ("checks", "--check", &self.check, own.checks.len()),
            ("critics", "--critic", &self.critic, own.critics.len()),
            ("retrievers", "--retriever", &self.retriever, own.retrievers.len()),
        ];
        let text = |number: Option<u64>| number.map(|number| number.to_string());
        let float = |number: Option<f64>| number.map(|number| number.to_string());
        let when = self.critics_when.and_then(|when| when.to_possible_value());
        let single = [
            ("model", "--model", self.model.clone()),
            ("system", "--system", self.system.clone()),
            ("max_iterations", "--max-iterations", text(self.max_iterations.map(u64::from))),
            ("samples", "--samples", text(self.samples.map(u64::from))),
            ("critics_when", "--critics-when", when.map(|when| when.get_name().to_owned())),
            ("sampling.temperature", "--temperature", float(self.temperature)),
            ("sampling.max_tokens", "--max-tokens", text(self.max_tokens)),
            ("seed", "--seed", text(self.seed)),
            ("budget.calls", "--budget-calls", text(self.budget_calls)),
            ("budget.tokens", "--budget-tokens", text(self.budget_tokens)),
            ("budget.cost", "--budget-cost", float(self.budget_cost)),
            ("budget.time", "--budget-time", float(self.budget_time)),
        ];
        let single = single.into_iter().filter_map(|(place, flag, value)| {
            Some(Given { place: place.to_owned(), flag, value: value? })
        });
        let many = lists.into_iter().flat_map(|(list, flag, values, there)| {
            values.iter().enumerate().map(move |(n, value)| Given {
                place: format!("{list}[{}]", there + n),
                flag,
                value: value.clone(),
            })
        });
        single.chain(many).collect()
    }
}

/// A word as a shell takes it for one.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=:.,/@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use sifaka::config::Component;

    use super::*;

    #[test]
    fn flags_are_typed_again_and_know_their_place() {
        let args = ChainArgs {
            model: Some("mock:replies=a b|it's".to_owned()),
            check: vec!["length:words=4..8".to_owned()],
            ..ChainArgs::default()
        };
        let own = ChainConfig {
            checks: vec![Component::Text("json".to_owned())],
            ..ChainConfig::default()
        };
        let given = args.given(&own);
        let typed: Vec<String> = given.iter().map(Given::typed).collect();
        assert_eq!(typed, ["--model 'mock:replies=a b|it'\\''s'", "--check length:words=4..8"]);
        assert_eq!(given[1].place, "checks[1]");
    }
}
