use std::sync::LazyLock;

use proptest::prelude::*;

use super::*;
use crate::gguf::{Array, Strings, Value, Writer};

const NORMAL: i32 = 1;
const UNKNOWN: i32 = 2;
const CONTROL: i32 = 3;
const DEFINED: i32 = 4;
const BYTE: i32 = 6;

fn strings<S: AsRef<[u8]>>(items: &[S]) -> Value {
    Value::Array(Array::Strings(items.iter().collect::<Strings>()))
}

pub(crate) fn open(writer: &Writer) -> Result<Tokenizer> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokenizer.gguf");
    writer.write(&path, |_, _| Ok(())).unwrap();
    Tokenizer::from_gguf(&Gguf::open(&path).unwrap())
}

/// All bytes, a few merges, two control tokens and one that is always a token.
pub(crate) fn bpe_file(pre: &str) -> Writer {
    let hidden = |byte: u8| matches!(byte, 0..=32 | 127..=160 | 173);
    let mut next = 255;
    let mut tokens: Vec<String> = (0..=255u8)
        .map(|byte| {
            next += u32::from(hidden(byte));
            if hidden(byte) { char::from_u32(next).unwrap() } else { char::from(byte) }.to_string()
        })
        .collect();
    let merges = ["h e", "l l", "Ġ w", "he ll", "a a", "aa aa", "o r", "Ġw or", "Ã ©"];
    tokens.extend(merges.iter().map(|merge| merge.replace(' ', "")));
    let mut types = vec![NORMAL; tokens.len()];
    for (token, kind) in
        [("<|im_start|>", CONTROL), ("<|im_end|>", NORMAL), ("<<", DEFINED), ("Ġwor!", NORMAL)]
    {
        tokens.push(token.to_owned());
        types.push(kind);
    }
    let mut writer = Writer::new();
    writer
        .value("tokenizer.ggml.model", Value::String("gpt2".to_owned()))
        .value("tokenizer.ggml.pre", Value::String(pre.to_owned()))
        .value("tokenizer.ggml.tokens", strings(&tokens))
        .value("tokenizer.ggml.merges", strings(&merges))
        .value("tokenizer.ggml.token_type", Value::Array(Array::I32s(types)))
        .value("tokenizer.ggml.bos_token_id", Value::U32(265))
        .value("tokenizer.ggml.eos_token_id", Value::U32(0));
    writer
}

pub(crate) fn pieces_file() -> Writer {
    let mut tokens = vec!["<unk>".to_owned(), "<s>".to_owned(), "</s>".to_owned()];
    let mut types = vec![UNKNOWN, CONTROL, CONTROL];
    let mut scores = vec![0.0; 3];
    for byte in 0..256 {
        tokens.push(format!("<0x{byte:02X}>"));
        types.push(BYTE);
        scores.push(0.0);
    }
    for (rank, token) in
        ["▁", "a", "b", "c", "<", "/", "s", ">", "ab", "▁a", "bc", "▁ab", "</", "s>", "é"]
            .into_iter()
            .enumerate()
    {
        tokens.push(token.to_owned());
        types.push(NORMAL);
        scores.push(-(rank as f32));
    }
    let mut writer = Writer::new();
    writer
        .value("tokenizer.ggml.model", Value::String("llama".to_owned()))
        .value("tokenizer.ggml.tokens", strings(&tokens))
        .value("tokenizer.ggml.token_type", Value::Array(Array::I32s(types)))
        .value("tokenizer.ggml.scores", Value::Array(Array::F32s(scores)));
    writer
}

fn texts(tokenizer: &Tokenizer, ids: &[TokenId]) -> Vec<String> {
    ids.iter().map(|id| String::from_utf8_lossy(tokenizer.bytes(*id)).into_owned()).collect()
}

#[test]
fn pairs_are_merged_in_the_order_of_the_file() {
    let tokenizer = open(&bpe_file("gpt-2")).unwrap();
    let ids = tokenizer.encode("hello world", Special::AsText);
    assert_eq!(texts(&tokenizer, &ids), ["hell", "o", " wor", "l", "d"]);
    let ids = tokenizer.encode("aaaaaaa", Special::AsText);
    assert_eq!(texts(&tokenizer, &ids), ["aaaa", "aa", "a"]);
    assert!(tokenizer.encode("", Special::Parse).is_empty());
}

#[test]
fn names_are_tokens_only_when_the_text_is_trusted() {
    let tokenizer = open(&bpe_file("gpt-2")).unwrap();
    let text = "<|im_start|>h<<<|im_end|>";
    let trusted = tokenizer.encode(text, Special::Parse);
    assert_eq!(trusted, [265, 104, 267, 266]);
    let plain = tokenizer.encode(text, Special::AsText);
    assert!(plain.iter().all(|id| !tokenizer.is_control(*id)));
    assert!(plain.contains(&267), "a defined token is text, and always a token");
    assert_eq!(tokenizer.decode(&plain), text);
    assert_eq!(tokenizer.decode(&trusted), "h<<", "control tokens are no text");
    assert_eq!(tokenizer.bytes(265), b"<|im_start|>");
}

#[test]
fn ends_are_known_by_number_and_by_name() {
    let tokenizer = open(&bpe_file("gpt-2")).unwrap();
    assert_eq!(tokenizer.ends().collect::<Vec<_>>(), [0, 266]);
    assert!(tokenizer.is_end(266) && tokenizer.is_control(266) && !tokenizer.is_end(265));
    assert_eq!((tokenizer.bos(), tokenizer.eos()), (Some(265), Some(0)));
    assert_eq!(tokenizer.control("<|im_end|>"), Some(266));
    assert_eq!(tokenizer.control("<<"), None);
    assert_eq!(tokenizer.len(), 269);
    assert_eq!(tokenizer.vocabulary().len(), 269);
    assert!(tokenizer.bytes(269).is_empty());
}

#[test]
fn a_beginning_is_added_once_and_only_where_the_file_asks() {
    let mut writer = bpe_file("gpt-2");
    let mut ids = vec![104];
    open(&writer).unwrap().add_bos(&mut ids);
    assert_eq!(ids, [104]);
    writer.value("tokenizer.ggml.add_bos_token", Value::Bool(true));
    let asks = open(&writer).unwrap();
    asks.add_bos(&mut ids);
    asks.add_bos(&mut ids);
    assert_eq!(ids, [265, 104]);
}

#[test]
fn a_word_that_is_a_token_is_not_merged_where_the_model_says_so() {
    let ids = |pre| open(&bpe_file(pre)).unwrap().encode("hell wor", Special::AsText);
    assert_eq!(ids("llama-bpe"), ids("qwen2"));
    // No merge makes this one.
    let mut writer = bpe_file("llama-bpe");
    writer.value("tokenizer.ggml.merges", strings::<&str>(&[]));
    let tokenizer = open(&writer).unwrap();
    let ids = tokenizer.encode("hell wor", Special::AsText);
    assert_eq!(texts(&tokenizer, &ids), ["hell", " wor"]);
}

#[test]
fn a_byte_without_a_token_is_left_out_and_keeps_its_neighbours_apart() {
    let mut writer = Writer::new();
    writer
        .value("tokenizer.ggml.model", Value::String("gpt2".to_owned()))
        .value("tokenizer.ggml.pre", Value::String("gpt-2".to_owned()))
        .value("tokenizer.ggml.tokens", strings(&["a", "b", "ab"]))
        .value("tokenizer.ggml.merges", strings(&["a b"]));
    let tokenizer = open(&writer).unwrap();
    assert_eq!(tokenizer.encode("abaxb", Special::AsText), [2, 0, 1]);
}

#[test]
fn no_merge_makes_a_control_token() {
    let mut writer = Writer::new();
    writer
        .value("tokenizer.ggml.model", Value::String("gpt2".to_owned()))
        .value("tokenizer.ggml.tokens", strings(&["a", "b", "ab"]))
        .value("tokenizer.ggml.token_type", Value::Array(Array::I32s(vec![1, 1, CONTROL])))
        .value("tokenizer.ggml.merges", strings(&["a b"]));
    let tokenizer = open(&writer).unwrap();
    assert_eq!(tokenizer.encode("ab", Special::AsText), [0, 1]);
    assert_eq!(tokenizer.encode("ab", Special::Parse), [2]);
}

#[test]
fn scores_decide_and_unknown_characters_are_spelt() {
    let tokenizer = open(&pieces_file()).unwrap();
    let ids = tokenizer.encode("abc ab", Special::AsText);
    // "ab" has a better score than "bc" and is made before "▁a".
    assert_eq!(texts(&tokenizer, &ids), [" ab", "c", " ab"]);
    let ids = tokenizer.encode("aü", Special::AsText);
    assert_eq!(ids[ids.len() - 2..], [3 + 0xc3, 3 + 0xbc]);
    assert_eq!(tokenizer.decode(&ids), " aü");
    let (plain, parsed) = ("</s>", [2]);
    assert_eq!(tokenizer.encode(plain, Special::Parse), parsed);
    let ids = tokenizer.encode(plain, Special::AsText);
    assert_eq!(texts(&tokenizer, &ids), [" ", "</", "s>"]);
    let mut ids = tokenizer.encode("<s>a</s>b", Special::Parse);
    assert_eq!(texts(&tokenizer, &ids), ["<s>", " a", "</s>", " ", "b"]);
    tokenizer.add_bos(&mut ids);
    assert_eq!(ids.iter().filter(|id| **id == 1).count(), 1);
    assert!(tokenizer.is_end(2));
}

#[test]
fn without_the_first_space_the_text_comes_back_as_it_was() {
    let mut writer = pieces_file();
    writer.value("tokenizer.ggml.add_space_prefix", Value::Bool(false));
    let tokenizer = open(&writer).unwrap();
    for text in ["abc", " a  b ", "日本 ab\n", "", "é"] {
        assert_eq!(tokenizer.decode(&tokenizer.encode(text, Special::AsText)), text);
    }
}

#[test]
fn a_million_equal_letters_take_no_square_of_time() {
    let text = "a".repeat(1 << 20);
    for writer in [bpe_file("gpt-2"), pieces_file()] {
        let tokenizer = open(&writer).unwrap();
        let ids = tokenizer.encode(&text, Special::AsText);
        assert_eq!(tokenizer.decode(&ids).trim_start(), text);
        let spaces = " ".repeat(1 << 16);
        assert!(tokenizer.decode(&tokenizer.encode(&spaces, Special::AsText)).ends_with(&spaces));
    }
}

#[test]
fn other_families_and_cuts_are_named() {
    let mut writer = bpe_file("gpt-2");
    writer.value("tokenizer.ggml.model", Value::String("bert".to_owned()));
    let error = open(&writer).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.message().contains("bert") && error.suggestions()[0].contains("gpt2 or llama"));
    let error = open(&bpe_file("tekken")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.message().contains("tekken") && error.suggestions()[0].contains("smollm"));
}

#[test]
fn metadata_that_contradict_themselves_are_refused() {
    let with = |mut writer: Writer, key: &str, value: Value| {
        writer.value(format!("tokenizer.ggml.{key}"), value);
        open(&writer).unwrap_err()
    };
    let numbers = |items: &[i32]| Value::Array(Array::I32s(items.to_vec()));
    for error in [
        with(bpe_file("gpt-2"), "tokens", strings::<&str>(&[])),
        with(bpe_file("gpt-2"), "tokens", strings(&[b"\xff"])),
        with(bpe_file("gpt-2"), "tokens", numbers(&[1])),
        with(bpe_file("gpt-2"), "token_type", numbers(&[1])),
        with(bpe_file("gpt-2"), "token_type", Value::Bool(true)),
        with(bpe_file("gpt-2"), "eos_token_id", Value::U32(269)),
        with(bpe_file("gpt-2"), "bos_token_id", Value::I32(-1)),
        with(bpe_file("gpt-2"), "merges", strings(&["h e", "he"])),
        with(bpe_file("gpt-2"), "merges", strings(&["h z"])),
        with(bpe_file("gpt-2"), "merges", strings(&["xx h"])),
        with(pieces_file(), "scores", Value::Array(Array::F32s(vec![0.0]))),
        with(pieces_file(), "scores", Value::Array(Array::F32s(vec![f32::NAN; 274]))),
        with(pieces_file(), "tokens", strings(&vec!["same"; 274])),
    ] {
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        assert!(!error.suggestions().is_empty());
    }
}

/// Merges pair after pair in the file's order, which is the definition where no merge makes parts of
/// an earlier one.
fn slowly(word: &str) -> Vec<String> {
    let merges = ["h e", "l l", "he ll", "a a", "aa aa", "o r"];
    let mut parts: Vec<String> = word.chars().map(String::from).collect();
    for merge in merges {
        let (left, right) = merge.split_once(' ').unwrap();
        let mut at = 0;
        while at + 1 < parts.len() {
            if parts[at] == left && parts[at + 1] == right {
                let right = parts.remove(at + 1);
                parts[at].push_str(&right);
            }
            at += 1;
        }
    }
    parts
}

/// One of each cut, made once: writing a file for every case would take long.
static CUTS: LazyLock<Vec<Tokenizer>> = LazyLock::new(|| {
    let pres = ["gpt-2", "default", "smollm", "llama-bpe", "qwen2"];
    pres.iter().map(|pre| open(&bpe_file(pre)).unwrap()).collect()
});
static PIECES: LazyLock<Tokenizer> = LazyLock::new(|| open(&pieces_file()).unwrap());

proptest! {
    #[test]
    fn any_text_comes_back(text in any::<String>(), spaced in "[a-e<|>im_end '0-9\n\u{300}é語]{0,40}") {
        for tokenizer in CUTS.iter() {
            for text in [&text, &spaced] {
                let ids = tokenizer.encode(text, Special::AsText);
                let bytes: Vec<u8> = ids.iter().flat_map(|id| tokenizer.bytes(*id)).copied().collect();
                prop_assert_eq!(&bytes, text.as_bytes());
                prop_assert_eq!(&tokenizer.decode(&ids), text);
                prop_assert!(ids.iter().all(|id| !tokenizer.is_control(*id)));
            }
        }
    }

    #[test]
    fn any_text_survives_pieces(text in "[abc <s>/é日\u{0}-\u{20}]{0,30}") {
        let tokenizer = &*PIECES;
        let ids = tokenizer.encode(&text, Special::AsText);
        let wanted = if text.is_empty() { String::new() } else { format!(" {text}") };
        prop_assert_eq!(tokenizer.decode(&ids), wanted);
    }

    #[test]
    fn the_heap_merges_as_the_definition_does(word in "[aehlor]{1,24}") {
        let tokenizer = &CUTS[0];
        let ids = tokenizer.encode(&word, Special::AsText);
        prop_assert_eq!(texts(tokenizer, &ids), slowly(&word));
    }
}
