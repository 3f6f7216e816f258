//! What the trials share: one loaded model, and small helpers.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

use sifaka_core::Context;
use sifaka_core::model::Request;
use sifaka_local::engine::{Engine, Options};
use sifaka_local::tokenizer::{Special, TokenId};
use sifaka_local::{LocalModel, gguf};
use sifaka_testkit::servers;

/// The small model, loaded once for all trials of this program.
pub(crate) fn model() -> Option<LocalModel> {
    static MODEL: OnceLock<Option<LocalModel>> = OnceLock::new();
    let open = || {
        let options = Options::default();
        Some(LocalModel::open(servers::gguf()?, options).unwrap().named("local"))
    };
    MODEL.get_or_init(open).clone()
}

/// The engine of [`model`].
pub(crate) async fn engine() -> Option<(LocalModel, Engine)> {
    let model = model()?;
    let engine = model.engine().await.unwrap().clone();
    Some((model, engine))
}

/// The small model with weights of another kind, written once to the folder of this build.
pub(crate) fn copy_in(kind: gguf::TensorKind) -> Option<PathBuf> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let from = servers::gguf()?;
    let _guard = ONE_AT_A_TIME.lock().unwrap();
    let to = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("smollm2-{kind}.gguf"));
    let whole =
        || gguf::Gguf::open(&to).is_ok_and(|copy| copy.tensors().all(|t| copy.read(t).is_ok()));
    if !whole() {
        gguf::requantize(&gguf::Gguf::open(from).unwrap(), kind, &to).unwrap();
    }
    Some(to)
}

/// A request for the likeliest text.
pub(crate) fn greedy(prompt: &str, tokens: u64) -> Request {
    let mut request = Request::text(prompt);
    request.sampling.temperature = Some(0.0);
    request.sampling.repetition_penalty = Some(1.0);
    request.sampling.max_tokens = Some(tokens);
    request
}

/// The likeliest continuation of a text, token by token, alone on the engine.
pub(crate) async fn greedy_tokens(
    engine: &Engine,
    prompt: Vec<TokenId>,
    count: usize,
) -> Vec<TokenId> {
    engine
        .run(move |mut sequence| async move {
            let start = prompt.len();
            sequence.push(&prompt).await?;
            for _ in 0..count {
                let next = likeliest(sequence.scores());
                sequence.push(&[next]).await?;
            }
            Ok(sequence.tokens()[start..].to_vec())
        })
        .await
        .unwrap()
}

pub(crate) fn likeliest(scores: &[f32]) -> TokenId {
    let best =
        scores.iter().zip(0..).reduce(|best, next| if next.0 > best.0 { next } else { best });
    best.unwrap().1
}

pub(crate) fn encode(engine: &Engine, text: &str) -> Vec<TokenId> {
    engine.tokenizer().encode(text, Special::AsText)
}

/// A runtime for trials that are not async by themselves, as those of proptest.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

pub(crate) fn context() -> Arc<Context> {
    Arc::new(Context::new())
}

/// Prompts of several kinds, for trials that go through some.
pub(crate) const PROMPTS: &[&str] = &[
    "Write two sentences about lemurs.",
    "What is the capital of France?",
    "Explain in simple words why the sky is blue.",
    "List three uses of a paper clip.",
    "Translate to French: The cat sleeps on the mat.",
    "Write a short poem about the sea in winter.",
    "What is 12 times 12?",
    "Describe the taste of a lemon to somebody who never ate one.",
    "Give me a recipe for pancakes with few ingredients.",
    "Who was Ada Lovelace, and what is she known for?",
    "Write a polite e-mail that declines an invitation.",
    "Erkläre kurz, was ein Vulkan ist. 🌋",
];
