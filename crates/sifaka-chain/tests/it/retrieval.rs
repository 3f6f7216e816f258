//! What retrievers find, and who sees it.
#![expect(clippy::unwrap_used, reason = "a test")]

use std::sync::{Arc, Mutex};

use sifaka_core::{Critic, CriticFeedback, Document, critic_fn, retriever_fn};

use crate::kit::{Script, wants_good};

type Queries = Arc<Mutex<Vec<String>>>;

fn notes(name: &'static str, queries: &Queries) -> impl sifaka_core::Retriever + 'static {
    let queries = Arc::clone(queries);
    retriever_fn(name, move |query: String| {
        queries.lock().unwrap().push(query);
        async move { Ok(vec![Document::new(format!("{name} says so")).with_score(0.5)]) }
    })
}

fn sees_context() -> (impl Critic + 'static, Arc<Mutex<Vec<usize>>>) {
    let seen: Arc<Mutex<Vec<usize>>> = Arc::default();
    let into = Arc::clone(&seen);
    let critic = critic_fn("sees", move |thought| {
        into.lock().unwrap().push(thought.post_generation_context().len());
        async { Ok(CriticFeedback::new("sees")) }
    });
    (critic, seen)
}

#[tokio::test]
async fn model_and_critics_share_a_retriever() {
    let queries = Queries::default();
    let model = Script::says(["bad", "good"]);
    let (critic, seen) = sees_context();
    let chain = wants_good(model.clone())
        .retriever(notes("notes", &queries))
        .critic(critic)
        .build()
        .unwrap();
    let outcome = chain.run("Write about the sea.").await.unwrap();
    assert!(model.prompts()[0].contains("notes says so"), "{}", model.prompts()[0]);
    assert!(model.prompts()[1].contains("notes says so"));
    assert_eq!(*seen.lock().unwrap(), [1]);
    assert_eq!(outcome.thought().pre_generation_context().len(), 1);
    let queries = queries.lock().unwrap();
    assert_eq!(queries[0], "Write about the sea.");
    assert_eq!(queries[1], "Write about the sea.\n\nbad");
}

#[tokio::test]
async fn sets_for_model_and_critics_can_be_separate() {
    let (before, after) = (Queries::default(), Queries::default());
    let model = Script::says(["good"]);
    let chain = wants_good(model.clone())
        .model_retriever(notes("before", &before))
        .critic_retriever(notes("after", &after))
        .build()
        .unwrap();
    let outcome = chain.run("Write.").await.unwrap();
    assert!(model.prompts()[0].contains("before says so"));
    assert!(!model.prompts()[0].contains("after says so"));
    assert_eq!((before.lock().unwrap().len(), after.lock().unwrap().len()), (1, 1));
    assert_eq!(outcome.thought().post_generation_context()[0].text(), Some("after says so"));
}

#[tokio::test]
async fn retrieval_for_generation_can_be_off() {
    let queries = Queries::default();
    let model = Script::says(["good"]);
    let chain = wants_good(model.clone())
        .retriever(notes("notes", &queries))
        .use_retrieval_for_generation(false)
        .build()
        .unwrap();
    chain.run("Write.").await.unwrap();
    assert_eq!(model.prompts(), ["Write."]);
    assert_eq!(queries.lock().unwrap().len(), 1, "critics still have theirs");
}

#[tokio::test]
async fn retrieval_is_once_a_run_or_every_iteration_with_the_feedback() {
    for (every, expected) in [(false, 1), (true, 2)] {
        let queries = Queries::default();
        let model = Script::says(["bad", "good"]);
        let chain = wants_good(model)
            .model_retriever(notes("notes", &queries))
            .retrieve_every_iteration(every)
            .build()
            .unwrap();
        let outcome = chain.run("Write.").await.unwrap();
        let queries = queries.lock().unwrap();
        assert_eq!(queries.len(), expected);
        assert_eq!(outcome.thought().pre_generation_context().len(), 1);
        if every {
            assert!(queries[1].contains("does not pass"), "{}", queries[1]);
        }
    }
}

#[tokio::test]
async fn several_retrievers_are_merged_without_repeats_and_the_limit_holds() {
    let same = || {
        retriever_fn("same", |_| async {
            Ok((0..4).map(|n| Document::new(format!("document {n}"))).collect())
        })
    };
    let chain = wants_good(Script::says(["good"]))
        .model_retriever(same())
        .model_retriever(same())
        .retrieve_limit(3)
        .build()
        .unwrap();
    let outcome = chain.run("Write.").await.unwrap();
    assert_eq!(outcome.thought().pre_generation_context().len(), 3);
}

#[tokio::test]
async fn what_does_not_fit_the_window_is_cut_and_the_cut_is_on_record() {
    let big = retriever_fn("big", |_| async {
        Ok(vec![
            Document::new("word ".repeat(2_000)).with_score(0.1).with_source("big.md"),
            Document::new("short").with_score(0.9),
        ])
    });
    let mut model = Script::says(["good"]);
    model.window = Some(500);
    let journal = Arc::new(sifaka_store::MemoryJournal::new());
    let chain = wants_good(model.clone())
        .model_retriever(big)
        .journal(Arc::clone(&journal) as Arc<dyn sifaka_core::Journal>)
        .build()
        .unwrap();
    let outcome = chain.run("Write.").await.unwrap();
    assert!(model.prompts()[0].contains("short") && !model.prompts()[0].contains("word word"));
    let ctx = sifaka_core::Context::new();
    let events = sifaka_core::Journal::events(&*journal, &ctx, outcome.run_id()).await.unwrap();
    let cut = events.iter().find_map(|event| match &event.kind {
        sifaka_core::EventKind::Prompted(prompt) => prompt.cut.first().cloned(),
        _ => None,
    });
    assert!(cut.unwrap().what.contains("big.md"));
}

#[tokio::test]
async fn what_is_retrieved_anew_replaces_the_old_even_if_another_retriever_fails() {
    let broken = retriever_fn("broken", |_| async {
        Err(sifaka_core::Error::new(
            sifaka_core::ErrorKind::NotFound,
            "broken",
            "retrieve",
            "no index",
        ))
    });
    let count = std::sync::atomic::AtomicUsize::new(0);
    let fresh = retriever_fn("fresh", move |_| {
        let n = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        async move { Ok(vec![Document::new(format!("finding {n}"))]) }
    });
    let chain = wants_good(Script::says(["bad", "good"]))
        .model_retriever(broken)
        .model_retriever(fresh)
        .retrieve_every_iteration(true)
        .build()
        .unwrap();
    let outcome = chain.run("Write.").await.unwrap();
    let texts: Vec<_> =
        outcome.thought().pre_generation_context().iter().map(|d| d.text().unwrap()).collect();
    assert_eq!(texts, ["finding 1"]);
}
