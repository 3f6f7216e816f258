//! The embedded model beside llama.cpp's own server, on the same weights and threads, turn by turn
//! in one run; and what sharing prompts, working in company and keeping rules cost or save.
//!
//! `./test` once, for the server and the weights; then
//! `cargo run --release -p sifaka-benches --bin local > docs/reference/results/local.json`

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program that reports")]

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use sifaka_benches::Machine;
use sifaka_core::constraint::Constraint;
use sifaka_core::model::Request;
use sifaka_core::{Context, Error, ErrorKind, Model, Result};
use sifaka_local::LocalModel;
use sifaka_local::engine::{Engine, Options};
use sifaka_local::gguf::{Gguf, TensorKind, requantize};
use sifaka_local::tokenizer::{Special, TokenId};
use sifaka_testkit::servers::{self, LlamaCpp, post_json};

/// Turns of each; the median counts.
const TURNS: usize = 7;
const THREADS: usize = 2;
const PROMPT: usize = 512;
const WRITTEN: usize = 128;

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let outcome = runtime.map_err(|error| failed(&error)).and_then(|runtime| {
        match std::env::args().nth(1).as_deref() {
            // A process of its own, so that nothing else is in its memory.
            Some("memory") => runtime.block_on(memory(&copy()?)),
            _ => runtime.block_on(figures()),
        }
    });
    match outcome {
        Ok(figures) => {
            println!("{figures:#}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn failed(error: &dyn std::fmt::Display) -> Error {
    Error::new(ErrorKind::Internal, "bench", "measure", error.to_string())
}

/// The weights in Q8_0, which both know best.
fn copy() -> Result<PathBuf> {
    let from = servers::gguf().ok_or_else(|| failed(&"the weights are not here"))?;
    let to = std::env::temp_dir().join("sifaka-bench-smollm2-q8_0.gguf");
    if !to.exists() {
        requantize(&Gguf::open(from)?, TensorKind::Q8_0, &to)?;
    }
    Ok(to)
}

fn options(cache_bytes: usize) -> Options {
    let mut options = Options::default();
    options.threads = Some(THREADS);
    options.cache_bytes = cache_bytes;
    options
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Some text of so many tokens; another seed gives another.
fn words(engine: &Engine, tokens: usize, seed: usize) -> Vec<TokenId> {
    let text = "The lemurs of the island live in groups, and every morning they sit in the sun. ";
    let mut all = engine.tokenizer().encode(&text.repeat(tokens / 8), Special::AsText);
    all.truncate(tokens);
    if let Some(first) = all.first_mut() {
        *first = 1000 + u32::try_from(seed).unwrap_or_default();
    }
    all
}

/// Seconds to read a prompt, and to write so many tokens after it, always the likeliest.
async fn ours(engine: &Engine, prompt: Vec<TokenId>, written: usize) -> Result<(f64, f64)> {
    engine
        .run(move |mut sequence| async move {
            let began = Instant::now();
            sequence.push(&prompt).await?;
            let read = began.elapsed().as_secs_f64();
            let began = Instant::now();
            for _ in 0..written {
                let scores = sequence.scores();
                let best = scores.iter().zip(0..).max_by(|a, b| a.0.total_cmp(b.0));
                let next = best.map_or(0, |(_, token)| token);
                sequence.push(&[next]).await?;
            }
            Ok((read, began.elapsed().as_secs_f64()))
        })
        .await
}

/// Tokens a second that llama.cpp itself says it read and wrote.
fn theirs(server: SocketAddr, prompt: &[TokenId], written: usize) -> Result<(f64, f64)> {
    let asked = json!({
        "prompt": prompt, "n_predict": written, "temperature": 0.0, "samplers": ["temperature"],
        "repeat_penalty": 1.0, "ignore_eos": true, "cache_prompt": false,
    });
    let (_, answer) = post_json(server, "/completion", &asked).map_err(|error| failed(&error))?;
    let speed = |key: &str| answer["timings"][key].as_f64().unwrap_or(f64::NAN);
    Ok((speed("prompt_per_second"), speed("predicted_per_second")))
}

async fn figures() -> Result<Value> {
    let path = copy()?;
    let began = Instant::now();
    let engine = Engine::load(&path, options(0))?;
    let load = began.elapsed().as_secs_f64();
    eprintln!("loaded in {load:.2} s, {} instructions", engine.isa().name());

    let server = servers::llama_cpp(&path, &LlamaCpp { threads: 2, context: 4096, slots: 1 })
        .ok_or_else(|| failed(&"llama.cpp's server is not here"))?;
    let (mut our_read, mut our_write) = (Vec::new(), Vec::new());
    let (mut their_read, mut their_write) = (Vec::new(), Vec::new());
    for turn in 0..TURNS {
        let prompt = words(&engine, PROMPT, turn);
        let (read, _) = ours(&engine, prompt.clone(), 0).await?;
        our_read.push(PROMPT as f64 / read);
        their_read.push(theirs(server.address, &prompt, 1)?.0);
        let (_, write) = ours(&engine, prompt[..32].to_vec(), WRITTEN).await?;
        our_write.push(WRITTEN as f64 / write);
        their_write.push(theirs(server.address, &prompt[..32], WRITTEN)?.1);
        eprintln!("turn {turn}: read {:?} {:?}", our_read.last(), their_read.last());
        eprintln!("turn {turn}: wrote {:?} {:?}", our_write.last(), their_write.last());
    }
    drop(server);
    let (our_read, our_write) = (median(our_read), median(our_write));
    let (their_read, their_write) = (median(their_read), median(their_write));
    let machine = Machine::measure().map_err(|error| failed(&error))?;
    Ok(json!({
        "command": "cargo run --release -p sifaka-benches --bin local",
        "machine": machine.to_string(),
        "weights": "SmolLM2-135M-Instruct, Q8_0",
        "threads": THREADS,
        "instructions": engine.isa().name(),
        "load_seconds": load,
        "read_tokens_per_second": {"ours": our_read, "llama_cpp": their_read, "ratio": our_read / their_read},
        "write_tokens_per_second": {"ours": our_write, "llama_cpp": their_write, "ratio": our_write / their_write},
        "prefix_reuse": rounds(&path).await?,
        "four_candidates": company(&path).await?,
        "rules": rules(&path).await?,
        "memory": child_memory()?,
    }))
}

/// Four rounds over a context of 1,500 tokens, 64 tokens written in each, with and without
/// remembering.
async fn rounds(path: &Path) -> Result<Value> {
    let mut seconds = Vec::new();
    for cache in [0, Options::default().cache_bytes] {
        let engine = Engine::load(path, options(cache))?;
        let mut turns = Vec::new();
        for turn in 0..3 {
            let began = Instant::now();
            for round in 0..4 {
                let mut prompt = words(&engine, 1500, turn);
                prompt.extend(words(&engine, 40, round));
                ours(&engine, prompt, 64).await?;
            }
            turns.push(began.elapsed().as_secs_f64());
        }
        seconds.push(median(turns));
    }
    Ok(
        json!({"seconds_without": seconds[0], "seconds_with": seconds[1], "times_faster": seconds[0] / seconds[1]}),
    )
}

/// Four candidates in one request, and one after the other.
async fn company(path: &Path) -> Result<Value> {
    let model = LocalModel::open(path, options(0))?;
    let ctx = Context::new();
    let mut request = Request::text("Tell me a long story about a fox and a lemur.");
    request.sampling.max_tokens = Some(96);
    request.sampling.temperature = Some(1.0);
    let (mut together, mut alone) = (Vec::new(), Vec::new());
    for turn in 0..5 {
        request.seed = Some(turn);
        request.candidates = 4;
        let began = Instant::now();
        let usage = model.generate(&ctx, &request).await?.usage;
        together.push(usage.output_tokens as f64 / began.elapsed().as_secs_f64());
        request.candidates = 1;
        let (began, mut tokens) = (Instant::now(), 0);
        for n in 0..4 {
            request.seed = Some(turn ^ (n << 32));
            tokens += model.generate(&ctx, &request).await?.usage.output_tokens;
        }
        alone.push(tokens as f64 / began.elapsed().as_secs_f64());
    }
    let (together, alone) = (median(together), median(alone));
    Ok(
        json!({"together_tokens_per_second": together, "alone_tokens_per_second": alone, "times_faster": together / alone}),
    )
}

/// A token's time with and without a rule to keep.
async fn rules(path: &Path) -> Result<Value> {
    let model = LocalModel::open(path, options(0))?;
    let engine = model.engine().await?.clone();
    let ctx = Context::new();
    let mut request = Request::text("Tell me a long story about a fox and a lemur.");
    request.sampling.max_tokens = Some(128);
    let schema = json!({"type": "array", "items": {"type": "string"}, "minItems": 40});
    let rule: Arc<[(Arc<str>, Constraint)]> =
        Arc::from([("array".into(), Constraint::JsonSchema(Arc::new(schema)))]);
    let (mut free, mut kept) = (Vec::new(), Vec::new());
    for turn in 0..7 {
        request.seed = Some(turn);
        for (rules, into) in [(Arc::from([]), &mut free), (Arc::clone(&rule), &mut kept)] {
            request.constraints = rules;
            let before = engine.statistics().passes;
            let began = Instant::now();
            model.generate(&ctx, &request).await?;
            let passes = engine.statistics().passes - before;
            into.push(began.elapsed().as_secs_f64() * 1e3 / passes as f64);
        }
    }
    let (free, kept) = (median(free), median(kept));
    Ok(
        json!({"milliseconds_a_pass_free": free, "milliseconds_a_pass_guided": kept, "overhead": kept / free - 1.0}),
    )
}

fn child_memory() -> Result<Value> {
    let program = std::env::current_exe().map_err(|error| failed(&error))?;
    let output = Command::new(program).arg("memory").output().map_err(|error| failed(&error))?;
    serde_json::from_slice(&output.stdout).map_err(|error| failed(&error))
}

/// The most memory a process took that read 2,048 tokens.
async fn memory(path: &Path) -> Result<Value> {
    let engine = Engine::load(path, options(Options::default().cache_bytes))?;
    ours(&engine, words(&engine, 2000, 0), 48).await?;
    let status = std::fs::read_to_string("/proc/self/status").map_err(|error| failed(&error))?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak: f64 = peak
        .and_then(|line| line.trim().split(' ').next()?.parse().ok())
        .ok_or_else(|| failed(&"the system does not tell"))?;
    let weights = engine.weight_bytes() as f64 / 1e6;
    let peak = peak * 1024.0 / 1e6;
    Ok(json!({"weights_mb": weights, "peak_mb": peak, "above_weights_mb": peak - weights}))
}
