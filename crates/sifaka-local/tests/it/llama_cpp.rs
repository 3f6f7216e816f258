//! Beside llama.cpp's own server, on the same file.
//!
//! With weights in single precision both compute nearly the same, and the likeliest text must be the
//! same to the last token, but where two tokens are as good as equal. With quantised weights both round every activation to
//! eight bits; a last bit that differs then tips a rounding, which tips others, and after thirty
//! layers the two disagree by as much as the rounding itself is worth. There each of llama.cpp's
//! choices must be ours or nearly so.

use std::net::SocketAddr;

use serde_json::{Value, json};
use sifaka_core::model::Request;
use sifaka_local::LocalModel;
use sifaka_local::engine::{Engine, Options, Sequence};
use sifaka_local::gguf::TensorKind;
use sifaka_local::tokenizer::{Special, TokenId};
use sifaka_testkit::servers::{self, LlamaCpp, post_json};

use crate::common::{PROMPTS, copy_in, greedy_tokens, likeliest};
use crate::strings::STRINGS;

/// How many tokens of each text are compared.
const TOKENS: usize = 40;

fn ids(value: &Value) -> Vec<TokenId> {
    let ids = value.as_array().unwrap();
    ids.iter().map(|id| u32::try_from(id.as_u64().unwrap()).unwrap()).collect()
}

/// The likeliest text by llama.cpp.
fn theirs(server: SocketAddr, prompt: &[TokenId]) -> Vec<TokenId> {
    let asked = json!({
        "prompt": prompt, "n_predict": TOKENS, "temperature": 0.0, "samplers": ["temperature"],
        "repeat_penalty": 1.0, "return_tokens": true, "ignore_eos": false, "cache_prompt": false,
    });
    let (status, answer) = post_json(server, "/completion", &asked).unwrap();
    assert_eq!(status, 200, "{answer}");
    ids(&answer["tokens"])
}

#[tokio::test]
async fn tokens_and_the_likeliest_texts_are_those_of_llama_cpp() {
    let Some(path) = copy_in(TensorKind::F32) else { return };
    let Some(server) = servers::llama_cpp(&path, &LlamaCpp::default()) else { return };
    let model = LocalModel::open(&path, Options::default()).unwrap();
    assert!(STRINGS.len() >= 50);
    for text in STRINGS {
        let asked = json!({"content": text, "add_special": false, "parse_special": false});
        let (status, answer) = post_json(server.address, "/tokenize", &asked).unwrap();
        assert_eq!(status, 200, "{answer}");
        let own = model.tokenizer().encode(text, Special::AsText);
        assert_eq!(own, ids(&answer["tokens"]), "{text:?}");
    }
    let engine = model.engine().await.unwrap();
    let mut equal = 0;
    for prompt in PROMPTS {
        let tokens = model.prompt_tokens(&Request::text(*prompt)).unwrap();
        let theirs = theirs(server.address, &tokens);
        let to_the_end = |tokens: &[TokenId]| -> Vec<TokenId> {
            let ends = |token: &&TokenId| !model.tokenizer().is_end(**token);
            tokens.iter().take_while(ends).copied().collect()
        };
        let ours = greedy_tokens(engine, tokens.clone(), TOKENS).await;
        if to_the_end(&ours) == to_the_end(&theirs) {
            equal += 1;
        }
        let worst = gaps(engine, tokens, theirs).await.into_iter().fold(0.0, f32::max);
        assert!(worst < 0.02, "{prompt}: {worst}");
    }
    assert!(equal >= 10, "{equal} of {}", PROMPTS.len());
}

/// How much better our likeliest token is than each of theirs, along their text.
async fn gaps(engine: &Engine, prompt: Vec<TokenId>, theirs: Vec<TokenId>) -> Vec<f32> {
    let compare = move |mut sequence: Sequence| async move {
        sequence.push(&prompt).await?;
        let mut gaps = Vec::new();
        for token in theirs {
            let scores = sequence.scores();
            gaps.push(scores[likeliest(scores) as usize] - scores[token as usize]);
            sequence.push(&[token]).await?;
        }
        Ok(gaps)
    };
    engine.run(compare).await.unwrap()
}

#[tokio::test]
async fn with_quantised_weights_each_choice_of_llama_cpp_is_ours_or_nearly_so() {
    for kind in [TensorKind::Q4_1, TensorKind::Q8_0, TensorKind::Q4_0, TensorKind::F16] {
        let Some(path) = copy_in(kind) else { return };
        let Some(server) = servers::llama_cpp(&path, &LlamaCpp::default()) else { return };
        let model = LocalModel::open(&path, Options::default()).unwrap();
        let engine = model.engine().await.unwrap();
        let (mut same, mut all) = (0, 0);
        for prompt in &PROMPTS[..6] {
            let tokens = model.prompt_tokens(&Request::text(*prompt)).unwrap();
            let theirs = theirs(server.address, &tokens);
            let gaps = gaps(engine, tokens, theirs).await;
            let worst = gaps.iter().copied().fold(0.0, f32::max);
            assert!(worst < 0.6, "{kind}: {prompt}: {worst}");
            same += gaps.iter().filter(|gap| **gap == 0.0).count();
            all += gaps.len();
        }
        assert!(same * 100 >= all * 94, "{kind}: {same} of {all}");
    }
}
