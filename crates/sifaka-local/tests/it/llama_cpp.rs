//! Beside llama.cpp's own server, on the same file.

use serde_json::{Value, json};
use sifaka_local::LocalModel;
use sifaka_local::engine::Options;
use sifaka_local::gguf::TensorKind;
use sifaka_local::tokenizer::{Special, TokenId};
use sifaka_core::model::Request;
use sifaka_testkit::servers::{self, LlamaCpp, post_json};

use crate::common::{PROMPTS, copy_in, greedy_tokens};
use crate::strings::STRINGS;

/// How many tokens of each text are compared.
const TOKENS: usize = 40;

fn ids(value: &Value) -> Vec<TokenId> {
    let ids = value.as_array().unwrap();
    ids.iter().map(|id| u32::try_from(id.as_u64().unwrap()).unwrap()).collect()
}

#[tokio::test]
async fn tokens_and_the_likeliest_texts_are_those_of_llama_cpp() {
    for kind in [TensorKind::Q4_1, TensorKind::Q8_0] {
        let Some(path) = copy_in(kind) else { return };
        let Some(server) = servers::llama_cpp(&path, &LlamaCpp::default()) else { return };
        let model = LocalModel::open(&path, Options::default()).unwrap();
        for text in STRINGS {
            let asked = json!({"content": text, "add_special": false, "parse_special": false});
            let (status, answer) = post_json(server.address, "/tokenize", &asked).unwrap();
            assert_eq!(status, 200, "{answer}");
            let own = model.tokenizer().encode(text, Special::AsText);
            assert_eq!(own, ids(&answer["tokens"]), "{text:?}");
        }
        assert!(STRINGS.len() >= 50);
        let engine = model.engine().await.unwrap();
        let mut compared = 0;
        for prompt in PROMPTS {
            let tokens = model.prompt_tokens(&Request::text(*prompt)).unwrap();
            let own = greedy_tokens(engine, tokens.clone(), TOKENS).await;
            let asked = json!({
                "prompt": tokens, "n_predict": TOKENS, "temperature": 0.0, "top_k": 1,
                "samplers": ["temperature"], "repeat_penalty": 1.0, "return_tokens": true,
                "ignore_eos": false, "cache_prompt": false,
            });
            let (status, answer) = post_json(server.address, "/completion", &asked).unwrap();
            assert_eq!(status, 200, "{answer}");
            let theirs = ids(&answer["tokens"]);
            // A text that ends is compared to its end.
            let ours: Vec<TokenId> =
                own.into_iter().take_while(|token| !model.tokenizer().is_end(*token)).collect();
            let theirs: Vec<TokenId> =
                theirs.into_iter().take_while(|token| !model.tokenizer().is_end(*token)).collect();
            assert_eq!(
                model.tokenizer().decode(&ours),
                model.tokenizer().decode(&theirs),
                "{kind}: {prompt}"
            );
            assert_eq!(ours, theirs, "{kind}: {prompt}");
            compared += 1;
        }
        assert!(compared >= 10);
    }
}
