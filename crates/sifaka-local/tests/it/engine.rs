//! Sequences: pushing, rewinding, forking, scoring; and that company changes nothing.

use std::sync::Arc;

use futures_util::future::join_all;
use proptest::prelude::*;
use sifaka_core::{Error, ErrorKind};
use sifaka_local::engine::{Engine, Options};
use sifaka_local::tokenizer::TokenId;
use sifaka_testkit::servers;

use crate::common::{PROMPTS, block_on, encode, engine, greedy_tokens, likeliest};

#[tokio::test]
async fn rewinding_and_forking_lead_to_the_same_tokens() {
    let Some((_, engine)) = engine().await else { return };
    let prompt = encode(&engine, "The three laws of robotics are");
    let plain = greedy_tokens(&engine, prompt.clone(), 24).await;
    let expected = plain.clone();
    engine
        .run(move |mut sequence| async move {
            sequence.push(&prompt).await?;
            let begin = sequence.mark();
            // Astray, and back by a mark.
            sequence.push(&[11, 42, 7]).await?;
            sequence.return_to(&begin);
            for &token in &expected[..10] {
                assert_eq!(likeliest(sequence.scores()), token);
                sequence.push(&[token]).await?;
            }
            // Astray again, and back by computing; a fork that goes on meanwhile is not disturbed.
            let mut fork = sequence.fork();
            let length = sequence.len();
            sequence.push(&[900, 901, 902, 903, 904, 905, 906, 907, 908]).await?;
            fork.push(&expected[10..12]).await?;
            sequence.rewind(length).await?;
            assert_eq!(sequence.len(), length);
            for &token in &expected[10..] {
                assert_eq!(likeliest(sequence.scores()), token);
                sequence.push(&[token]).await?;
            }
            for &token in &expected[12..] {
                assert_eq!(likeliest(fork.scores()), token);
                fork.push(&[token]).await?;
            }
            assert_eq!(fork.tokens(), sequence.tokens());
            assert_eq!(fork.scores(), sequence.scores(), "to the last bit");
            sequence.rewind(0).await?;
            assert!(sequence.is_empty() && sequence.scores().is_empty());
            Ok(())
        })
        .await
        .unwrap();
    assert_eq!(plain.len(), 24);
}

#[tokio::test]
async fn scores_of_a_continuation_are_those_of_pushing_it() {
    let Some((_, engine)) = engine().await else { return };
    let prompt = encode(&engine, "Paris is the capital of");
    let continuation = encode(&engine, " France, and Rome is the capital of Italy.");
    let words = continuation.clone();
    let (scored, pushed) = engine
        .run(move |mut sequence| async move {
            sequence.push(&prompt).await?;
            let scored = sequence.score(&continuation).await?;
            let mut pushed = Vec::new();
            for &token in &continuation {
                let scores = sequence.scores();
                let most = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                let sum: f64 = scores.iter().map(|s| f64::from(s - most).exp()).sum();
                pushed.push(f64::from(scores[token as usize] - most) - sum.ln());
                sequence.push(&[token]).await?;
            }
            assert!(sequence.score(&[]).await?.is_empty());
            Ok((scored, pushed))
        })
        .await
        .unwrap();
    assert_eq!(scored.len(), words.len());
    for (a, b) in scored.iter().zip(pushed) {
        assert!((f64::from(*a) - b).abs() < 1e-4, "{a} {b}");
    }
    // The model knows what is likely there.
    assert!(scored[0] > -6.0, "{}", scored[0]);
}

#[tokio::test]
async fn a_sequence_that_is_too_long_is_an_error_with_the_numbers() {
    let Some(path) = servers::gguf() else { return };
    let mut options = Options::default();
    options.context = Some(64);
    options.threads = Some(1);
    let engine = Engine::load(path, options).unwrap();
    let outcome: Result<(), Error> = engine
        .run(|mut sequence| async move {
            sequence.push(&[5; 40]).await?;
            assert_eq!(sequence.room(), 24);
            let error = sequence.push(&[6; 25]).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ContextTooLong);
            assert!(error.message().contains("65") && error.message().contains("64"), "{error}");
            // Nothing was lost by the attempt.
            assert_eq!(sequence.len(), 40);
            sequence.push(&[6; 24]).await
        })
        .await;
    outcome.unwrap();
    options.context = Some(1 << 20);
    let error = Engine::load(servers::gguf().unwrap(), options).unwrap_err();
    assert!(error.to_string().contains("8192"), "{error}");
}

#[tokio::test]
async fn a_task_that_panics_or_is_dropped_harms_nobody() {
    let Some((_, engine)) = engine().await else { return };
    let prompt = encode(&engine, "Once upon a time");
    let expected = greedy_tokens(&engine, prompt.clone(), 8).await;
    let failed: Result<(), Error> = engine
        .run(|mut sequence| async move {
            sequence.push(&[1, 2, 3]).await?;
            panic!("on purpose");
        })
        .await;
    assert_eq!(failed.unwrap_err().kind(), ErrorKind::Internal);
    // Dropped half way: the engine lets go of it.
    let alive = Arc::new(());
    let held = Arc::clone(&alive);
    let endless = engine.run(move |mut sequence| async move {
        let _held = held;
        loop {
            sequence.push(&[7]).await?;
            if sequence.room() < 2 {
                return Ok::<(), Error>(());
            }
        }
    });
    let late = tokio::time::timeout(std::time::Duration::from_millis(200), endless).await;
    assert!(late.is_err());
    assert_eq!(greedy_tokens(&engine, prompt, 8).await, expected);
    assert_eq!(Arc::strong_count(&alive), 1, "the task is gone");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, ..ProptestConfig::default() })]

    /// Whatever else runs, however prompts are shared and wherever they were read before, the
    /// likeliest text is the same to the last token.
    #[test]
    fn company_and_memory_change_no_token(
        picks in prop::collection::vec((0..PROMPTS.len(), 0..3_usize, 1..40_usize), 2..6),
        tail in "[a-z ]{0,40}",
    ) {
        let Some(path) = servers::gguf() else { return Ok(()) };
        block_on(async {
            let mut alone = Options::default();
            alone.cache_bytes = 0;
            // One that never remembers and is asked one thing at a time, and one that is asked all
            // at once, twice, and remembers.
            let (alone, together) =
                (Engine::load(&path, alone).unwrap(), Engine::load(&path, Options::default()).unwrap());
            let text = |&(prompt, repeat, _): &(usize, usize, usize)| {
                let long = [PROMPTS[prompt], " "].concat().repeat(1 + 8 * repeat);
                encode(&alone, &(long + &tail))
            };
            let prompts: Vec<Vec<TokenId>> = picks.iter().map(text).collect();
            let counts: Vec<usize> = picks.iter().map(|pick| pick.2).collect();
            let mut expected = Vec::new();
            for (prompt, &count) in prompts.iter().zip(&counts) {
                expected.push(greedy_tokens(&alone, prompt.clone(), count).await);
            }
            assert_eq!(alone.statistics().reused, 0);
            for round in 0..2 {
                let asked = prompts.iter().zip(&counts);
                let all = asked.map(|(p, &count)| greedy_tokens(&together, p.clone(), count));
                assert_eq!(join_all(all).await, expected, "round {round}");
            }
            if prompts.iter().any(|prompt| prompt.len() > 16) {
                assert!(together.statistics().reused > 0);
            }
            assert!(together.statistics().passes < alone.statistics().passes * 2);
        });
    }
}

#[tokio::test]
async fn what_is_kept_of_prompts_is_bounded_and_the_oldest_goes() {
    let Some(path) = servers::gguf() else { return };
    let mut options = Options::default();
    // Four pages of this model.
    options.cache_bytes = 4 * 16 * 23_040;
    let engine = Engine::load(path, options).unwrap();
    let prompt = |first: TokenId| (first..first + 40).collect::<Vec<_>>();
    let reused = async |first| {
        let before = engine.statistics().reused;
        greedy_tokens(&engine, prompt(first), 1).await;
        engine.statistics().reused - before
    };
    assert_eq!(reused(1000).await, 0);
    assert_eq!(reused(1000).await, 32);
    assert_eq!(reused(2000).await, 0);
    assert_eq!(reused(1000).await, 32, "two prompts of two pages fit");
    assert_eq!(reused(3000).await, 0);
    assert_eq!(engine.statistics().kept_pages, 4);
    assert_eq!(reused(2000).await, 0, "the least recently used is gone");
}
