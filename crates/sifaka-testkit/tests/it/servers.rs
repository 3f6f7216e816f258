//! The real servers that tests talk to.

use serde_json::json;
use sifaka_local::weights::{DEFAULT, Folder, find};
use sifaka_testkit::servers::{self, LlamaCpp, get_json, post_json};

#[test]
fn weights_are_where_the_engine_looks_for_them() {
    let known = Folder::of_user().unwrap().path_of(find(DEFAULT).unwrap());
    assert_eq!(known.file_name().unwrap(), "smollm2-135m-instruct-q4_1.gguf");
    if let Some(found) = servers::weights("smollm2-135m-instruct-q4_1.gguf") {
        assert_eq!(found, known);
    }
}

#[test]
fn llama_cpp_answers_and_repeats_itself() {
    let Some(gguf) = servers::gguf() else { return };
    let options = LlamaCpp { context: 512, ..LlamaCpp::default() };
    let Some(server) = servers::llama_cpp(&gguf, &options) else { return };
    let address = server.address;
    assert!(address.ip().is_loopback());
    let (status, tokens) =
        post_json(address, "/tokenize", &json!({"content": "Hello world 123"})).unwrap();
    assert_eq!(status, 200);
    let tokens = tokens["tokens"].as_array().unwrap().len();
    assert!((3..=15).contains(&tokens), "{tokens}");
    let ask = json!({
        "prompt": "The capital of France is",
        "n_predict": 24,
        "temperature": 0,
        "cache_prompt": false,
    });
    let answers = [(); 2].map(|()| post_json(address, "/completion", &ask).unwrap());
    for (status, answer) in &answers {
        assert_eq!((*status, answer["tokens_predicted"].as_u64()), (200, Some(24)), "{answer}");
    }
    assert_eq!(answers[0].1["content"], answers[1].1["content"]);
    assert!(!answers[0].1["content"].as_str().unwrap().is_empty());
    let slots = get_json(address, "/props").unwrap().1;
    assert_eq!(slots["total_slots"], 1, "{slots}");
    assert_eq!(get_json(address, "/no-such-page").unwrap().0, 404);
    assert!(server.said().contains("model loaded"), "{}", server.said());
    drop(server);
    assert!(get_json(address, "/health").is_err(), "it ended with its owner");
}
