//! What holds for any texts, verdicts and faults.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Once};

use proptest::prelude::*;
use sifaka_chain::{Chain, CriticsWhen};
use sifaka_core::event::Fold;
use sifaka_core::policy::{Decision, Policy, Progress};
use sifaka_core::{
    Context, CriticFeedback, Error, ErrorKind, Journal, Result, Score, Thought, ValidationResult,
    check, critic_fn, model_fn,
};
use sifaka_resilience::Resilience;
use sifaka_store::MemoryJournal;

/// What a component says that panics on purpose.
const PLANNED: &str = "broken, as planned";

/// What a validator answers about the n-th text it sees.
#[derive(Clone, Debug)]
enum Answer {
    Pass(f64),
    Fail(f64),
    Unknown,
    Break,
}

#[derive(Clone, Debug)]
struct World {
    texts: Vec<Option<u8>>,
    answers: Vec<Vec<Answer>>,
    proposals: Vec<Option<u8>>,
    choices: Vec<u8>,
    samples: u32,
    always: bool,
    iterations: u32,
}

fn world() -> impl Strategy<Value = World> {
    let answer = prop_oneof![
        3 => (0.0..=1.0_f64).prop_map(Answer::Pass),
        3 => (0.0..=1.0_f64).prop_map(Answer::Fail),
        1 => Just(Answer::Unknown),
        1 => Just(Answer::Break),
    ];
    (
        prop::collection::vec(prop::option::weighted(0.9, any::<u8>()), 1..12),
        prop::collection::vec(prop::collection::vec(answer, 1..12), 0..4),
        prop::collection::vec(prop::option::weighted(0.3, any::<u8>()), 1..6),
        prop::collection::vec(any::<u8>(), 1..6),
        1_u32..4,
        any::<bool>(),
        0_u32..5,
    )
        .prop_map(|(texts, answers, proposals, choices, samples, always, iterations)| World {
            texts,
            answers,
            proposals,
            choices,
            samples,
            always,
            iterations,
        })
}

fn nth<T: Clone>(list: &[T], counter: &AtomicUsize) -> T {
    list[counter.fetch_add(1, Ordering::SeqCst) % list.len()].clone()
}

struct Whim(Vec<u8>);

impl Policy for Whim {
    fn name(&self) -> &'static str {
        "whim"
    }
    fn decide(&self, _: &Context, progress: &Progress<'_>) -> Result<Decision> {
        let n = self.0[progress.attempts.len() % self.0.len()];
        Ok(match n % 4 {
            0 => Decision::Repair,
            1 => Decision::Fresh { samples: u32::from(n % 3) },
            2 => Decision::Constrained { samples: 1 },
            _ if n > 250 => Decision::Stop { reason: Arc::from("whim") },
            _ => Decision::Repair,
        })
    }
}

fn chain(world: &World, journal: &Arc<MemoryJournal>) -> Chain {
    let (texts, written) = (world.texts.clone(), AtomicUsize::new(0));
    let model = model_fn("model", move |_| {
        let text = nth(&texts, &written);
        async move {
            text.map(|n| format!("text {n}"))
                .ok_or_else(|| Error::new(ErrorKind::Unavailable, "model", "generate", "down"))
        }
    });
    let mut builder = Chain::builder(model)
        .samples(world.samples)
        .max_iterations(world.iterations)
        .policy(Whim(world.choices.clone()))
        .resilience(Resilience::none())
        .journal(Arc::clone(journal) as Arc<dyn Journal>);
    for answers in world.answers.clone() {
        let asked = AtomicUsize::new(0);
        builder = builder.validate(check("v", move |_| match nth(&answers, &asked) {
            Answer::Pass(score) => ValidationResult::passed("ok").with_score(score),
            Answer::Fail(score) => ValidationResult::failed("no").with_score(score),
            Answer::Unknown => ValidationResult::unknown("?"),
            Answer::Break => panic!("{PLANNED}"),
        }));
    }
    // Critics whose advice nobody could follow are a mistake of the configuration.
    if world.always && world.iterations > 0 {
        let (proposals, asked) = (world.proposals.clone(), AtomicUsize::new(0));
        let critic = critic_fn("c", move |_: Thought| {
            let proposal = nth(&proposals, &asked);
            async move {
                let feedback = CriticFeedback::new("c").with_issue("hm");
                Ok(match proposal {
                    Some(n) => feedback.with_proposed_text(format!("proposal {n}")),
                    None => feedback,
                })
            }
        });
        builder = builder.critic(critic).critics_when(CriticsWhen::Always);
    }
    builder.build().unwrap()
}

/// Panics of these components are part of the test; their messages are not. Those of all other
/// tests are, so that the hook stays in place for them.
fn hush() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if panic.payload_as_str() != Some(PLANNED) {
                usual(panic);
            }
        }));
    });
}

fn score_of(thought: &Thought) -> Score {
    Score::of(thought.validation_results().iter().map(|(_, result)| result))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn a_run_never_ends_worse_than_it_began(world in world()) {
        hush();
        let journal = Arc::new(MemoryJournal::new());
        let chain = chain(&world, &journal);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let ctx = Context::new();
            match chain.run("Write.").await {
                Ok(outcome) => {
                    let events = journal.events(&ctx, outcome.run_id()).await.unwrap();
                    let fold = Fold::of(&events).unwrap();
                    prop_assert_eq!(fold.thought(), Some(outcome.newest()));
                    prop_assert_eq!(fold.best().unwrap().0, outcome.thought());
                    prop_assert_eq!(fold.best().unwrap().1, outcome.score());
                    for entry in outcome.newest().iterations() {
                        let thought = entry.thought().unwrap().clone();
                        if !thought.validation_results().is_empty() {
                            prop_assert!(!score_of(&thought).beats(&outcome.score()), "{thought:?}");
                        }
                    }
                    prop_assert_eq!(score_of(outcome.thought()), outcome.score());
                    prop_assert_eq!(outcome.passed(), outcome.thought().validation_passed());
                }
                Err(error) => prop_assert!(error.thought().is_some(), "{error}"),
            }
            prop_assert!(journal.verify(&ctx, &Default::default()).await.unwrap().is_clean());
            Ok(())
        })?;
    }
}
