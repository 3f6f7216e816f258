//! What is computed together.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::sequence::log_probability;
use crate::kernels::TILE;
use crate::llama::{Entry, Llama, Scratch, Wanted};
use crate::pages::{Prefixes, Table};
use crate::team::Team;
use crate::tokenizer::TokenId;

/// What is wanted of some tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Want {
    /// The scores after the last.
    Scores,
    /// The log-probability of each but the first.
    LogProbabilities,
}

/// Tokens of one sequence that wait to be computed.
#[derive(Debug)]
pub(super) struct Work {
    table: Table,
    tokens: Vec<TokenId>,
    /// How many of them are done.
    done: usize,
    want: Want,
    started: bool,
    reply: Reply,
    to: oneshot::Sender<Reply>,
}

/// What came of them.
#[derive(Debug, Default)]
pub(super) struct Reply {
    pub(super) table: Table,
    pub(super) scores: Arc<[f32]>,
    pub(super) log_probabilities: Vec<f32>,
    /// Tokens that were known from before.
    pub(super) reused: usize,
}

impl Work {
    pub(super) fn new(
        table: Table,
        tokens: Vec<TokenId>,
        want: Want,
        to: oneshot::Sender<Reply>,
    ) -> Self {
        Self { table, tokens, done: 0, want, started: false, reply: Reply::default(), to }
    }

    fn left(&self) -> usize {
        self.tokens.len() - self.done
    }

    /// Whether it reads a text from the beginning, and has not begun.
    fn is_fresh(&self) -> bool {
        !self.started && self.table.tokens().is_empty()
    }

    /// Takes what is known of its beginning, and says how many tokens that was.
    fn recall(&mut self, prefixes: &mut Prefixes) -> usize {
        let table = prefixes.find(&self.tokens);
        let known = table.tokens().len();
        if self.want == Want::Scores && known > 0 {
            self.table = table;
            self.done = known;
            self.reply.reused = known;
            return known;
        }
        0
    }

    /// Whole pages that it and another have in common at the beginning.
    fn common_pages(&self, other: &Self) -> usize {
        let theirs = other.table.tokens().iter().chain(&other.tokens[other.done..]);
        self.tokens.iter().zip(theirs).take_while(|(a, b)| a == b).count() / TILE
    }
}

/// At most so many tokens are computed in one pass, and fewer when somebody waits for the next
/// token of a text.
const MOST: usize = 256;
const MOST_BESIDE_WRITERS: usize = 96;
/// Work with no more tokens left than this is somebody writing, not reading a prompt.
const WRITING: usize = 16;

/// What a pass did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Done {
    /// Tokens that were computed.
    pub(super) tokens: usize,
    /// Tokens that were known from before.
    pub(super) reused: usize,
}

/// Does one pass over as much of the work as is good to do together, and answers what is done.
pub(super) fn pass(
    model: &Llama,
    team: &mut Team,
    scratch: &mut Scratch,
    prefixes: &mut Prefixes,
    works: &mut Vec<Work>,
) -> Done {
    works.retain(|work| !work.to.is_closed());
    let reused = works.iter_mut().filter(|w| w.is_fresh()).map(|w| w.recall(prefixes)).sum();
    let counts = choose(works);
    let mut entries = Vec::new();
    let mut replies = Vec::new();
    for (work, &count) in works.iter_mut().zip(&counts).filter(|(_, count)| **count > 0) {
        let Work { table, tokens, done, want, started, reply, .. } = work;
        *started = true;
        let position = table.tokens().len();
        let now = &tokens[*done..*done + count];
        // What each of them is to be followed by, where that is asked.
        let next = &tokens[*done + 1..];
        *done += count;
        table.extend(&model.shape, now);
        let wanted = match want {
            Want::LogProbabilities => Wanted::All,
            Want::Scores if *done == tokens.len() => Wanted::Last,
            Want::Scores => Wanted::Nothing,
        };
        entries.push(Entry { table, position, tokens: now, wanted });
        replies.push((*want, next, reply));
    }
    model.forward(team, scratch, &mut entries, |entry, row, scores| {
        let Some((want, next, reply)) = replies.get_mut(entry) else { return };
        match want {
            Want::Scores => reply.scores = Arc::from(scores),
            Want::LogProbabilities => {
                if let Some(&token) = next.get(row) {
                    reply.log_probabilities.push(log_probability(scores, token));
                }
            }
        }
    });
    for (work, &count) in works.iter().zip(&counts) {
        // Whoever waits for this very beginning can go on from it.
        if count > WRITING {
            prefixes.keep(&work.table);
        }
    }
    for work in works.extract_if(.., |work| work.left() == 0) {
        let reply = Reply { table: work.table, ..work.reply };
        // Whoever asked has gone; there is no one to tell.
        let _ = work.to.send(reply);
    }
    // Those who read share a pass; whoever came first is not always served first.
    if works.len() > 1 {
        works.rotate_left(1);
    }
    Done { tokens: counts.iter().sum(), reused }
}

/// How many tokens of each work are computed now.
fn choose(works: &[Work]) -> Vec<usize> {
    let writers = works.iter().filter(|w| w.left() <= WRITING).count();
    let mut room = if writers > 0 { MOST_BESIDE_WRITERS } else { MOST };
    let mut counts: Vec<usize> =
        works.iter().map(|work| if work.left() <= WRITING { work.left() } else { 0 }).collect();
    let waits = |n: usize| {
        // Somebody is reading the same beginning: soon it will be known.
        let work = &works[n];
        work.is_fresh()
            && works.iter().enumerate().any(|(m, other)| {
                let first = other.started || m < n;
                m != n && first && other.left() > 0 && work.common_pages(other) > 0
            })
    };
    let mut readers: Vec<usize> =
        (0..works.len()).filter(|&n| works[n].left() > WRITING && !waits(n)).collect();
    // Who needs less than a share leaves the rest to the others.
    readers.sort_by_key(|&n| works[n].left());
    for (n, &reader) in readers.iter().enumerate() {
        let share = (room / (readers.len() - n)).max(TILE);
        counts[reader] = works[reader].left().min(share);
        room = room.saturating_sub(counts[reader]);
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(tokens: impl IntoIterator<Item = TokenId>) -> Work {
        let (to, answer) = oneshot::channel();
        std::mem::forget(answer);
        Work::new(Table::default(), tokens.into_iter().collect(), Want::Scores, to)
    }

    #[test]
    fn readers_share_a_pass_and_writers_are_always_in_it() {
        let works = [work(0..4000), work(1000..5000), work([7])];
        assert_eq!(choose(&works), [48, 48, 1]);
        assert_eq!(choose(&works[..2]), [128, 128]);
        assert_eq!(choose(&works[..1]), [256]);
        assert_eq!(choose(&[work(100..4000), work(0..20)]), [236, 20]);
    }

    #[test]
    fn whoever_begins_the_same_waits_for_the_first() {
        let mut works = vec![work(0..400), work((0..200).chain(900..1000)), work(500..600)];
        assert_eq!(choose(&works), [156, 0, 100]);
        works[0].started = true;
        assert_eq!(choose(&works), [156, 0, 100]);
    }
}
