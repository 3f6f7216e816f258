//! The embedders against their originals. How the fixtures were made stands in them.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde::Deserialize;
use sifaka_core::{Context, Embedder, ErrorKind};
use sifaka_local::embed::{MiniLm, StaticEmbedder};

use sifaka_testkit::servers::weights as folder;

const MINILM: &str = "all-minilm-l6-v2";
const STATIC: &str = "wordllama-256";

#[derive(Deserialize)]
struct Fixture {
    /// By the first of 8192 characters: a hash of the tokens that each has between two letters.
    every_character: BTreeMap<String, String>,
    texts: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    text: String,
    tokens: Vec<u32>,
    /// Absent where only the tokens are known, null where the original gives no numbers.
    #[serde(default)]
    vector: Option<String>,
}

fn fixture(name: &str) -> Fixture {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Components out of base64: numbers of 16 bits, to be divided by 32767.
fn components(written: &str) -> Vec<f64> {
    let digit = |c: u8| match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let mut bytes = Vec::new();
    for four in written.trim_end_matches('=').as_bytes().chunks(4) {
        let bits = four.iter().fold(0_u32, |bits, c| bits << 6 | u32::from(digit(*c)));
        let bits = bits << (6 * (4 - four.len()));
        bytes.extend_from_slice(&bits.to_be_bytes()[1..four.len()]);
    }
    let numbers = bytes.as_chunks::<2>().0.iter();
    numbers.map(|two| f64::from(i16::from_le_bytes(*two)) / 32767.0).collect()
}

fn cosine(a: &[f32], b: &[f64]) -> f64 {
    let dot: f64 = a.iter().zip(b).map(|(a, b)| f64::from(*a) * b).sum();
    let length = |sum: f64| sum.sqrt();
    let a = length(a.iter().map(|x| f64::from(*x).powi(2)).sum());
    dot / a / length(b.iter().map(|x| x * x).sum())
}

async fn compare(embedder: &dyn Embedder, fixture: &Fixture, at_least: usize) {
    let texts: Vec<&str> = fixture.texts.iter().map(|entry| entry.text.as_str()).collect();
    let vectors = embedder.embed(&Context::new(), &texts).await.unwrap();
    assert_eq!(vectors.len(), texts.len());
    let mut compared = 0;
    for (entry, vector) in fixture.texts.iter().zip(&vectors) {
        assert_eq!(vector.len(), embedder.dimension());
        let length: f64 = vector.iter().map(|x| f64::from(*x).powi(2)).sum();
        assert!((length - 1.0).abs() < 1e-6, "{:?}: length {length}", entry.text);
        let Some(want) = &entry.vector else { continue };
        let want = components(want);
        let cosine = cosine(vector, &want);
        assert!(cosine >= 0.99999, "{:?}: cosine {cosine}", entry.text);
        // The fixture is rounded to 1/65534.
        let furthest = vector.iter().zip(&want).map(|(a, b)| (f64::from(*a) - b).abs());
        let furthest = furthest.fold(0.0, f64::max);
        assert!(furthest < 2e-5, "{:?}: a component is off by {furthest}", entry.text);
        compared += 1;
    }
    assert!(compared >= at_least, "only {compared} compared");
}

#[tokio::test]
async fn minilm_gives_the_vectors_of_the_original() {
    let Some(folder) = folder(MINILM) else { return };
    let minilm = MiniLm::open(&folder).unwrap();
    assert_eq!((minilm.name(), minilm.dimension()), ("local:minilm", 384));
    assert!(minilm.space().starts_with("all-MiniLM-L6-v2@"), "{}", minilm.space());
    compare(&minilm, &fixture("embed-minilm.json"), 60).await;
}

#[tokio::test]
async fn minilm_reads_a_plain_vocabulary_as_well() {
    let Some(folder) = folder(MINILM) else { return };
    let other = tempfile::tempdir().unwrap();
    for name in ["model.safetensors", "config.json"] {
        std::fs::copy(folder.join(name), other.path().join(name)).unwrap();
    }
    let json: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(folder.join("tokenizer.json")).unwrap())
            .unwrap();
    let mut pieces: Vec<(u64, &str)> = json["model"]["vocab"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(piece, id)| (id.as_u64().unwrap(), piece.as_str()))
        .collect();
    pieces.sort_unstable();
    let lines: Vec<&str> = pieces.iter().map(|(_, piece)| *piece).collect();
    std::fs::write(other.path().join("vocab.txt"), lines.join("\n")).unwrap();
    compare(&MiniLm::open(other.path()).unwrap(), &fixture("embed-minilm.json"), 60).await;
}

/// Holds tokens against the original's: those of many texts, and those of every character.
fn compare_tokens(fixture: &Fixture, tokens: impl Fn(&str) -> Vec<u32>) {
    assert!(fixture.texts.len() >= 100);
    for entry in &fixture.texts {
        assert_eq!(tokens(&entry.text), entry.tokens, "{:?}", entry.text);
    }
    assert!(fixture.every_character.len() >= 28);
    for (first, want) in &fixture.every_character {
        let first = u32::from_str_radix(first, 16).unwrap();
        let mut hash = 0xCBF2_9CE4_8422_2325_u64;
        for c in (first..first + 0x2000).filter_map(char::from_u32) {
            for token in tokens(&format!("a{c}b")).into_iter().chain([u32::MAX]) {
                hash = (hash ^ u64::from(token)).wrapping_mul(0x100_0000_01B3);
            }
        }
        assert_eq!(format!("{hash:016x}"), *want, "a character from {first:x} on");
    }
}

#[test]
fn minilm_cuts_texts_as_the_original() {
    let Some(folder) = folder(MINILM) else { return };
    let minilm = MiniLm::open(&folder).unwrap();
    compare_tokens(&fixture("embed-minilm.json"), |text| minilm.pieces(text));
}

#[test]
fn the_static_embedder_cuts_texts_as_the_original() {
    let Some(folder) = folder(STATIC) else { return };
    let embedder = StaticEmbedder::open(&folder).unwrap();
    compare_tokens(&fixture("embed-static.json"), |text| embedder.tokens(text));
}

#[tokio::test]
async fn minilm_counts_pieces_as_the_original() {
    let Some(folder) = folder(MINILM) else { return };
    let minilm = MiniLm::open(&folder).unwrap();
    let fixture = fixture("embed-minilm.json");
    for Entry { text, tokens, .. } in &fixture.texts {
        let pieces = minilm.count_pieces(text);
        assert_eq!(pieces.min(minilm.max_pieces()) + 2, tokens.len(), "{text:?}");
    }
    // What is behind the last piece is not seen, so that the count is worth asking for.
    let long = "word ".repeat(254);
    assert_eq!(minilm.count_pieces(&long), minilm.max_pieces());
    let both = [long.as_str(), &format!("{long} more")];
    let vectors = minilm.embed(&Context::new(), &both).await.unwrap();
    assert_eq!(vectors[0], vectors[1]);
}

#[tokio::test]
async fn the_static_embedder_gives_the_vectors_of_the_original() {
    let Some(folder) = folder(STATIC) else { return };
    let embedder = StaticEmbedder::open(&folder).unwrap();
    assert_eq!((embedder.name(), embedder.dimension()), ("local:static", 256));
    assert!(embedder.space().starts_with("wordllama-l2-supercat-256@"), "{}", embedder.space());
    // The original has no numbers for the empty text.
    compare(&embedder, &fixture("embed-static.json"), 59).await;
}

#[tokio::test]
async fn an_empty_text_has_a_static_vector() {
    let Some(folder) = folder(STATIC) else { return };
    let embedder = StaticEmbedder::open(&folder).unwrap();
    let vectors = embedder.embed(&Context::new(), &["", "word", ""]).await.unwrap();
    assert_eq!(vectors[0], vectors[2]);
    assert_eq!(vectors[0], embedder.vector("<s>"), "that of the token every text begins with");
    assert_ne!(vectors[0], vectors[1]);
}

/// Whether the texts of a batch get the same bits as alone.
fn alone_and_together(embedder: &dyn Embedder, cases: u32) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let ctx = Context::new();
    let text = "[a-zA-Z,. ]{0,80}|\\PC{0,20}|(lemur|leaps|far|x)( and [a-z]{1,9}){0,90}";
    let batch = prop::collection::vec(text, 1..12);
    let mut runner =
        TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let trial = |texts: Vec<String>| {
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let together = runtime.block_on(embedder.embed(&ctx, &texts)).unwrap();
        for (text, vector) in texts.iter().zip(&together) {
            let alone = runtime.block_on(embedder.embed(&ctx, &[text])).unwrap();
            prop_assert_eq!(&alone[0], vector, "{:?}", text);
        }
        Ok(())
    };
    runner.run(&batch, trial).unwrap();
}

#[test]
fn minilm_does_not_mind_the_batch() {
    let Some(folder) = folder(MINILM) else { return };
    alone_and_together(&MiniLm::open(&folder).unwrap(), 12);
}

#[test]
fn the_static_embedder_does_not_mind_the_batch() {
    let Some(folder) = folder(STATIC) else { return };
    alone_and_together(&StaticEmbedder::open(&folder).unwrap(), 50);
}

#[tokio::test]
async fn a_cancelled_call_ends() {
    let Some(minilm) = folder(MINILM) else { return };
    let Some(table) = folder(STATIC) else { return };
    let embedders: [Box<dyn Embedder>; 2] =
        [Box::new(MiniLm::open(&minilm).unwrap()), Box::new(StaticEmbedder::open(&table).unwrap())];
    let long = "many words ".repeat(1_000);
    let texts = vec![long.as_str(); 200];
    for embedder in embedders {
        let ctx = Context::new();
        let (result, ()) = tokio::join!(embedder.embed(&ctx, &texts), async {
            tokio::task::yield_now().await;
            ctx.cancellation().cancel();
        });
        assert_eq!(result.unwrap_err().kind(), ErrorKind::Cancelled);
        let result = embedder.embed(&ctx, &["short"]).await;
        assert_eq!(result.unwrap_err().kind(), ErrorKind::Cancelled);
        assert_eq!(embedder.embed(&Context::new(), &["short"]).await.unwrap().len(), 1);
    }
}

#[test]
fn a_folder_without_weights_says_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let minilm = MiniLm::open(folder.path()).unwrap_err();
    let table = StaticEmbedder::open(folder.path()).unwrap_err();
    for (error, file) in [(minilm, "model.safetensors"), (table, "l2_supercat_256.safetensors")] {
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.message().contains(file), "{}", error.message());
        assert!(!error.suggestions().is_empty());
    }
}
