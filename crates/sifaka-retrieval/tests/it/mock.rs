use std::path::PathBuf;
use std::time::Duration;

use sifaka_core::retriever::Stage;
use sifaka_core::{Context, Document, ErrorKind, Filter, Retriever, Thought};
use sifaka_models::script::Fault;
use sifaka_retrieval::MockRetriever;

use crate::find;

fn animals() -> MockRetriever {
    MockRetriever::new([
        Document::new("The fossa hunts at night").with_metadata("diet", "meat"),
        Document::new("The LEMUR eats fruit at night").with_metadata("diet", "fruit"),
        Document::new("Bread").with_metadata("diet", "fruit"),
    ])
}

#[tokio::test]
async fn documents_that_share_words_are_found_best_first() {
    let ctx = Context::new();
    let found = animals().retrieve(&ctx, "Lemur, fruit? night!", 9, &Filter::All).await.unwrap();
    let scores: Vec<f64> = found.iter().filter_map(|document| document.score).collect();
    assert_eq!(scores, [1.0, 1.0 / 3.0]);
    assert_eq!(found[0].text(), Some("The LEMUR eats fruit at night"));
    assert_eq!(find(&animals(), "night", 9).await[0], "The fossa hunts at night");
    assert!(find(&animals(), "zebra", 9).await.is_empty());
}

#[tokio::test]
async fn limit_filter_and_empty_queries_are_honoured() {
    let ctx = Context::new();
    let animals = animals();
    assert_eq!(find(&animals, "night", 1).await.len(), 1);
    assert!(find(&animals, "night", 0).await.is_empty());
    for empty in ["", " \n"] {
        assert!(find(&animals, empty, 9).await.is_empty());
    }
    let fruit = Filter::eq("diet", "fruit");
    let found = animals.retrieve(&ctx, "night", 9, &fruit).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].text(), Some("The LEMUR eats fruit at night"));
    assert_eq!(animals.call_count(), 5);
}

#[tokio::test]
async fn all_documents_can_be_given_and_keep_their_scores() {
    let all = animals().all();
    assert_eq!(find(&all, "bread", 9).await[0], "Bread");
    assert_eq!(find(&all, "bread", 9).await.len(), 3);
    assert!(find(&all, "", 9).await.is_empty());
    assert_eq!(find(&all, "bread", 2).await.len(), 2);
    let scored = MockRetriever::new([
        Document::new("low").with_score(0.2),
        Document::new("high").with_score(0.9),
    ])
    .all();
    assert_eq!(find(&scored, "x", 9).await, ["high", "low"]);
}

#[tokio::test]
async fn a_thought_is_searched_for_with_its_prompt_and_then_its_text() {
    let ctx = Context::new();
    let thought = Thought::new(&ctx, "lemur").with_text("Bread");
    let search =
        async |stage| animals().retrieve_for_thought(&ctx, &thought, stage, 9).await.unwrap().len();
    assert_eq!(search(Stage::PreGeneration).await, 1);
    assert_eq!(search(Stage::PostGeneration).await, 2);
}

#[tokio::test(start_paused = true)]
async fn errors_and_delays_on_demand() {
    let ctx = Context::new();
    let fault = Fault::new(ErrorKind::Unavailable).with_retry_after(Duration::from_secs(2));
    let shaky = animals().failing(fault, 2).with_delay(Duration::from_secs(5)).named("shaky");
    let before = ctx.monotonic();
    for _ in 0..2 {
        let error = shaky.retrieve(&ctx, "night", 9, &Filter::All).await.unwrap_err();
        assert_eq!((error.kind(), error.component()), (ErrorKind::Unavailable, "shaky"));
        assert_eq!(error.retry_after(), Some(Duration::from_secs(2)));
    }
    assert_eq!(shaky.retrieve(&ctx, "night", 9, &Filter::All).await.unwrap().len(), 2);
    assert_eq!(ctx.monotonic() - before, Duration::from_secs(15));
    let broken = animals().with_error(ErrorKind::Timeout);
    for _ in 0..3 {
        assert!(broken.retrieve(&ctx, "night", 9, &Filter::All).await.is_err());
    }
    ctx.cancellation().cancel();
    let error = shaky.retrieve(&ctx, "night", 9, &Filter::All).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
}

fn file(folder: &tempfile::TempDir, name: &str, text: &str) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    path
}

#[tokio::test]
async fn documents_can_stand_in_files() {
    let folder = tempfile::tempdir().unwrap();
    let lines =
        "{\"text\": \"one fish\", \"metadata\": {\"n\": 1}, \"source\": \"a\"}\n\n\"two fish\"\n";
    let list = "[{\"text\": \"one fish\"}, \"two fish\"]";
    let text = "one fish\nstill one\n  \n\n\ntwo fish";
    for (name, content) in [("d.jsonl", lines), ("d.json", list), ("d.txt", text), ("d.md", text)] {
        let path = file(&folder, name, content);
        let docs = MockRetriever::from_file(&path).unwrap();
        let ctx = Context::new();
        let found = docs.retrieve(&ctx, "fish", 9, &Filter::All).await.unwrap();
        assert_eq!(found.len(), 2, "{name}");
        assert!(found[0].text().unwrap().starts_with("one fish"));
        assert_eq!(found[1].text(), Some("two fish"));
        assert!(found[1].origin().unwrap().ends_with(name), "{:?}", found[1].origin());
        if name == "d.jsonl" {
            assert_eq!(found[0].origin(), Some("a"));
            assert_eq!(found[0].metadata.as_ref().unwrap()["n"], 1);
        }
        if let Some(position) = found[1].position {
            let (start, end) = (position.start as usize, position.end as usize);
            assert_eq!((position.chunk, &content[start..end]), (1, "two fish"));
        }
    }
}

#[test]
fn mistakes_in_a_file_name_the_place() {
    let folder = tempfile::tempdir().unwrap();
    let error =
        |name: &str, text: &str| MockRetriever::from_file(&file(&folder, name, text)).unwrap_err();
    assert!(error("d.jsonl", "\"a\"\n{\"text\": 3}\n").message().contains("line 2"));
    assert!(error("d.jsonl", "\"a\"\n{\"txt\": \"b\"}\n").message().contains("document 2"));
    assert!(error("d.txt", " \n\n").message().contains("no documents"));
    assert!(error("d.pdf", "x").suggestions()[0].contains(".jsonl"));
    let missing = MockRetriever::from_file(&folder.path().join("none.txt")).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::Configuration);
}
