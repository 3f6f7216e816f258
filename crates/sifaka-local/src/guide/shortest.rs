//! How far a text is from matching a pattern.

use std::collections::HashMap;

use regex_automata::dfa::{Automaton, dense};
use regex_automata::util::primitives::StateID;
use regex_automata::util::start;
use regex_automata::{Anchored, MatchKind};

/// Patterns whose automaton would be larger are left to be ended by other means.
const MOST_BYTES: usize = 4 << 20;

/// Follows a text through a pattern's automaton, and knows from every state how many bytes are
/// needed at least before it matches.
pub(super) struct Shortest {
    automaton: dense::DFA<Vec<u32>>,
    distances: HashMap<StateID, u32>,
    /// Where the text stood after each step.
    path: Vec<StateID>,
}

impl Shortest {
    /// `None` for a pattern that this cannot be told of.
    pub(super) fn new(pattern: &str) -> Option<Self> {
        let config = dense::Config::new()
            .match_kind(MatchKind::All)
            .dfa_size_limit(Some(MOST_BYTES))
            .determinize_size_limit(Some(MOST_BYTES));
        let automaton = dense::Builder::new().configure(config).build(pattern).ok()?;
        let begin = start::Config::new().anchored(Anchored::Yes);
        let begin = automaton.start_state(&begin).ok()?;
        let mut into: HashMap<StateID, Vec<StateID>> = HashMap::new();
        let mut reached = vec![begin];
        let mut next = 0;
        into.entry(begin).or_default();
        while let Some(&state) = reached.get(next) {
            next += 1;
            for byte in 0..=u8::MAX {
                let to = automaton.next_state(state, byte);
                if automaton.is_dead_state(to) || automaton.is_quit_state(to) {
                    continue;
                }
                let from = into.entry(to).or_insert_with(|| {
                    reached.push(to);
                    Vec::new()
                });
                if from.last() != Some(&state) {
                    from.push(state);
                }
            }
        }
        let mut distances: HashMap<StateID, u32> = HashMap::new();
        let ends = |state: &StateID| automaton.is_match_state(automaton.next_eoi_state(*state));
        let mut edge: Vec<StateID> = reached.into_iter().filter(ends).collect();
        let mut distance = 0;
        while !edge.is_empty() {
            edge.retain(|state| {
                let new = !distances.contains_key(state);
                distances.entry(*state).or_insert(distance);
                new
            });
            edge = edge.iter().filter_map(|state| into.get(state)).flatten().copied().collect();
            distance += 1;
        }
        Some(Self { automaton, distances, path: vec![begin] })
    }

    fn now(&self) -> Option<StateID> {
        self.path.last().copied()
    }

    fn after(&self, bytes: &[u8]) -> Option<StateID> {
        let step = |state, byte: &u8| self.automaton.next_state(state, *byte);
        Some(bytes.iter().fold(self.now()?, step))
    }

    /// How many bytes are needed at least from here.
    pub(super) fn distance(&self) -> Option<u32> {
        self.distances.get(&self.now()?).copied()
    }

    /// How many are needed after these; `None` if it can never match then.
    pub(super) fn distance_after(&self, bytes: &[u8]) -> Option<u32> {
        self.distances.get(&self.after(bytes)?).copied()
    }

    /// Takes the bytes of one token.
    pub(super) fn took(&mut self, bytes: &[u8]) {
        if let Some(state) = self.after(bytes) {
            self.path.push(state);
        }
    }

    /// Goes back to so many tokens.
    pub(super) fn rewind(&mut self, length: usize) {
        self.path.truncate(length + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_is_the_shortest_way_to_a_match_of_the_whole() {
        let mut way = Shortest::new("[a-z ]*(?:yes|no|maybe)[0-9]+").unwrap();
        assert_eq!(way.distance(), Some(3));
        way.took(b"well may");
        assert_eq!(way.distance(), Some(3), "be and a digit");
        assert_eq!(way.distance_after(b"b"), Some(2));
        assert_eq!(way.distance_after(b"!"), None);
        way.took(b"be1");
        assert_eq!(way.distance(), Some(0));
        way.rewind(0);
        assert_eq!(way.distance(), Some(3));
    }

    #[test]
    fn a_pattern_that_is_too_large_or_wrong_has_none() {
        assert!(Shortest::new("a(b").is_none());
        assert!(Shortest::new(r"\w{200}\w{200}").is_none());
    }
}
