//! The tokens of the small model, beside those of llama.cpp.

use std::path::Path;

use serde_json::Value as Json;
use sifaka_local::gguf::{Gguf, Value, Writer};
use sifaka_local::template::ChatTemplate;
use sifaka_local::tokenizer::{Special, TokenId, Tokenizer};

use crate::strings::STRINGS;
use sifaka_testkit::servers;

fn golden() -> Json {
    serde_json::from_str(include_str!("../fixtures/tokenizer-smollm2.json")).unwrap()
}

fn ids(json: &Json) -> Vec<TokenId> {
    json.as_array().unwrap().iter().map(|id| id.as_u64().unwrap() as TokenId).collect()
}

/// The tokenizer of a file that names another cut.
fn with_pre(path: &Path, pre: &str) -> Tokenizer {
    let mut writer = Writer::new();
    for (key, value) in Gguf::open(path).unwrap().values() {
        writer.value(key, value.clone());
    }
    writer.value("tokenizer.ggml.pre", Value::String(pre.to_owned()));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pre.gguf");
    writer.write(&path, |_, _| Ok(())).unwrap();
    Tokenizer::from_gguf(&Gguf::open(&path).unwrap()).unwrap()
}

#[test]
fn the_recorded_texts_are_the_texts() {
    let golden = golden();
    let texts: Vec<&str> = golden["cases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|case| case["text"].as_str().unwrap())
        .collect();
    assert_eq!(texts, STRINGS);
    assert!(texts.len() >= 80);
}

#[test]
fn tokens_are_those_of_llama_cpp() {
    let Some(path) = servers::gguf() else { return };
    let tokenizer = Tokenizer::from_gguf(&Gguf::open(&path).unwrap()).unwrap();
    for case in golden()["cases"].as_array().unwrap() {
        let text = case["text"].as_str().unwrap();
        let plain = ids(&case["ids"]);
        let parsed = case.get("parsed").map_or_else(|| plain.clone(), ids);
        assert_eq!(tokenizer.encode(text, Special::AsText), plain, "{text:?}");
        assert_eq!(tokenizer.encode(text, Special::Parse), parsed, "{text:?}");
        // Six control characters have no token in this vocabulary, and are lost.
        let kept = text.replace(['\u{4}', '\u{6}', '\u{13}', '\u{14}', '\u{16}', '\u{1d}'], "");
        let bytes: Vec<u8> = plain.iter().flat_map(|id| tokenizer.bytes(*id)).copied().collect();
        assert_eq!(String::from_utf8_lossy(&bytes), kept);
    }
}

#[test]
fn other_cuts_are_those_of_llama_cpp() {
    let Some(path) = servers::gguf() else { return };
    for pre in ["gpt-2", "llama-bpe", "qwen2", "default"] {
        let tokenizer = with_pre(&path, pre);
        let mut others = 0;
        for case in golden()["cases"].as_array().unwrap() {
            let text = case["text"].as_str().unwrap();
            let other = case.get(pre);
            others += usize::from(other.is_some());
            let wanted = ids(other.unwrap_or(&case["ids"]));
            assert_eq!(tokenizer.encode(text, Special::AsText), wanted, "{pre}: {text:?}");
        }
        assert!(others > 0, "{pre} is another cut");
    }
}

#[test]
fn special_tokens_are_found() {
    let Some(path) = servers::gguf() else { return };
    let tokenizer = Tokenizer::from_gguf(&Gguf::open(&path).unwrap()).unwrap();
    assert_eq!(tokenizer.len(), 49152);
    assert_eq!((tokenizer.bos(), tokenizer.eos()), (Some(1), Some(2)));
    assert_eq!(tokenizer.ends().collect::<Vec<_>>(), [0, 2]);
    assert!((0..17).all(|id| tokenizer.is_control(id)) && !tokenizer.is_control(17));
    assert_eq!(tokenizer.control("<|im_start|>"), Some(1));
    let mut ids = tokenizer.encode("x", Special::AsText);
    tokenizer.add_bos(&mut ids);
    assert_eq!(ids.len(), 1, "this file wants no token for the beginning");
}

#[test]
fn chats_are_those_of_llama_cpp() {
    let Some(path) = servers::gguf() else { return };
    let gguf = Gguf::open(&path).unwrap();
    let tokenizer = Tokenizer::from_gguf(&gguf).unwrap();
    let template = ChatTemplate::from_gguf(&gguf, &tokenizer).unwrap();
    let golden = golden();
    for chat in golden["chats"].as_array().unwrap() {
        let part = |message: &'_ Json, at: usize| message[at].as_str().unwrap().to_owned();
        let messages: Vec<_> =
            chat["messages"].as_array().unwrap().iter().map(|m| (part(m, 0), part(m, 1))).collect();
        let messages: Vec<_> = messages.iter().map(|(r, c)| (r.as_str(), c.as_str())).collect();
        assert_eq!(template.render(&messages, None, true).unwrap(), chat["prompt"]);
        let wanted = ids(&chat["ids"]);
        assert_eq!(template.encode_chat(&tokenizer, &messages, None).unwrap(), wanted);
        if let [("system", system), rest @ ..] = messages.as_slice() {
            let apart = template.encode_chat(&tokenizer, rest, Some(system)).unwrap();
            assert_eq!(apart, wanted, "the system prompt may be given apart");
        }
    }
}

#[test]
fn no_text_of_a_user_adds_a_control_token() {
    let Some(path) = servers::gguf() else { return };
    let gguf = Gguf::open(&path).unwrap();
    let tokenizer = Tokenizer::from_gguf(&gguf).unwrap();
    let template = ChatTemplate::from_gguf(&gguf, &tokenizer).unwrap();
    for text in STRINGS {
        let ids = template.encode_chat(&tokenizer, &[("user", text)], Some(text)).unwrap();
        let controls: Vec<_> = ids.iter().filter(|id| tokenizer.is_control(**id)).collect();
        assert_eq!(controls, [&1, &2, &1, &2, &1], "{text:?}");
    }
}
