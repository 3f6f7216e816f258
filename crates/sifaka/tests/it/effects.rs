//! Lesson 11: every option of the file changes what the chain is or does.

use std::collections::BTreeSet;
use std::sync::Arc;

use sifaka::config::{Config, schema};
use sifaka::prelude::*;
use sifaka::registry::About;
use sifaka::{
    Registry,
    event::{EndReason, Prompted},
};

/// A chain with a price, a check that fails, a critic and a retriever.
const BASE: &str = r#"
model = { name = "mock", replies = ["one", "two", "three", "four", "five", "six"], price_in = 1, price_out = 2 }
checks = ["never"]
critics = ["tone"]
retrievers = ["docs"]
"#;

/// Each option with a value that is not its default; what takes the place of a line of the base
/// is written after `|`.
const CHANGES: &[(&str, &str)] = &[
    ("model", "model = { name = \"mock\", reply = \"other\", price_in = 1, price_out = 2 }"),
    ("fallbacks", "fallbacks = [\"mock:reply=spare\"]"),
    ("system", "system = \"Be brief.\""),
    ("checks", "checks = [\"never\", \"length:words=3..\"]"),
    ("critics", "critics = [\"tone\", \"tone\"]"),
    ("critics_when", "critics_when = \"never\""),
    ("retrievers", "retrievers = []"),
    ("model_retrievers", "model_retrievers = [\"docs\"]"),
    ("critic_retrievers", "critic_retrievers = [\"docs\"]"),
    ("use_retrieval_for_generation", "use_retrieval_for_generation = false"),
    ("retrieve_every_iteration", "retrieve_every_iteration = true"),
    ("retrieve_limit", "retrieve_limit = 1"),
    ("max_iterations", "max_iterations = 1"),
    ("samples", "samples = 2"),
    ("policy", "policy = \"fresh:2\""),
    ("guide", "guide = \"off\""),
    ("templates", "templates = \"prompts\""),
    ("redact", "redact = [\"o\"]"),
    ("seed", "seed = 7"),
    ("timings", "timings = false"),
    ("stop_texts", "stop_texts = [\"e\"]"),
    ("sampling.temperature", "sampling.temperature = 0.5"),
    ("sampling.top_p", "sampling.top_p = 0.5"),
    ("sampling.top_k", "sampling.top_k = 5"),
    ("sampling.min_p", "sampling.min_p = 0.5"),
    ("sampling.repetition_penalty", "sampling.repetition_penalty = 1.5"),
    ("sampling.max_tokens", "sampling.max_tokens = 500"),
    ("budget.calls", "budget.calls = 2"),
    ("budget.tokens", "budget.tokens = 300"),
    ("budget.cost", "budget.cost = 0.0002"),
    ("budget.time", "budget.time = 0.0"),
    ("stop.plateau", "stop.plateau = 1"),
    ("stop.plateau_epsilon", "stop.plateau_epsilon = 0.5"),
    ("stop.oscillation", "stop.oscillation = false"),
    ("stop.deadline", "stop.deadline = 0.0"),
    ("resilience.retry", "resilience.retry = false"),
    ("resilience.breaker", "resilience.breaker = { failures = 1 }"),
    ("resilience.rate_limit", "resilience.rate_limit = { requests = 1, per = 60.0 }"),
    ("resilience.timeout", "resilience.timeout = 0.5"),
    ("resilience.idle_timeout", "resilience.idle_timeout = 0.5"),
];

fn registry() -> Registry {
    let registry = sifaka::registry();
    let about = |name: &str| About::new(name, "", name);
    registry.validators.register(about("never"), |_, _| {
        Ok(Arc::new(check("never", |text: &str| Err::<(), _>(format!("{text} will not do")))))
    });
    registry.validators.register(about("longer"), |_, _| {
        Ok(Arc::new(check("longer", |text: &str| {
            ValidationResult::failed("not long enough").with_score(text.len() as f64 / 100.0)
        })))
    });
    registry.critics.register(about("tone"), |_, _| {
        Ok(Arc::new(critic_fn("tone", |_| async {
            Ok(CriticFeedback::new("tone").with_issue("too dry"))
        })))
    });
    registry.retrievers.register(about("docs"), |_, _| {
        Ok(Arc::new(retriever_fn("docs", |query: String| async move {
            Ok(vec![Document::new(format!("on {query}")), Document::new("and more")])
        })))
    });
    registry
}

/// The base with one line changed.
fn chain_with(change: &str, folder: &std::path::Path, journal: Option<Arc<dyn Journal>>) -> Chain {
    let key = change.split(" = ").next().unwrap();
    let start = |line: &&str| key.is_empty() || !line.starts_with(&format!("{key} ="));
    let kept: Vec<&str> = BASE.lines().filter(start).collect();
    let text = format!("[chains.a]\n{change}\n{}", kept.join("\n"));
    let path = folder.join("sifaka.toml");
    std::fs::write(&path, text).unwrap();
    Config::load(&path).unwrap().chain("a", &registry(), journal).unwrap()
}

/// Everything a run leaves behind that does not change from run to run by itself.
async fn trace(change: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("prompts")).unwrap();
    std::fs::write(folder.path().join("prompts/generate.md"), "MINE {{ prompt }}").unwrap();
    let journal: Arc<dyn Journal> = Arc::new(MemoryJournal::new());
    let chain = chain_with(change, folder.path(), Some(Arc::clone(&journal)));
    let mut lines = Vec::new();
    match chain.run("Go on.").await {
        Ok(outcome) => {
            lines.push(outcome.text().to_owned());
            lines.push(outcome.reason().to_string());
            let parts = &outcome.performance().components;
            lines.push(parts.iter().map(|c| c.component.as_str()).collect::<Vec<_>>().join(" "));
        }
        Err(error) => lines.push(error.to_string()),
    }
    let ctx = Context::new();
    for run in journal.runs(&ctx, &Default::default()).await.unwrap() {
        for event in journal.events(&ctx, &run.run_id).await.unwrap() {
            lines.push(describe(&event.kind));
        }
    }
    lines
}

fn describe(kind: &EventKind) -> String {
    match kind {
        EventKind::Prompted(prompted) => {
            let prompted: &Prompted = prompted;
            format!("prompted {}", serde_json::to_string(prompted).unwrap())
        }
        EventKind::Generated { completions, .. } => format!("generated {completions:?}"),
        EventKind::Retrieved { stage, documents, query, .. } => {
            format!("retrieved {stage:?} {query:?} {documents:?}")
        }
        EventKind::RunFinished { reason, .. } => format!("finished {reason}"),
        EventKind::Resilience { transition, .. } => format!("resilience {transition:?}"),
        other => other.name().to_owned(),
    }
}

fn in_schema() -> BTreeSet<String> {
    let schema = schema();
    let chain = &schema["$defs"]["ChainConfig"]["properties"];
    let mut names = BTreeSet::new();
    for (name, value) in chain.as_object().unwrap() {
        let target = value["$ref"].as_str().map(|r| r.trim_start_matches("#/$defs/"));
        match target.and_then(|target| schema["$defs"][target]["properties"].as_object()) {
            Some(inner) => names.extend(inner.keys().map(|key| format!("{name}.{key}"))),
            None => {
                names.insert(name.clone());
            }
        }
    }
    names
}

#[test]
fn every_option_has_a_change_here() {
    let here: BTreeSet<String> = CHANGES.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(in_schema(), here);
}

/// Options whose effect needs conditions of its own, each with a test below or, for those that
/// only matter to models that can be driven, in what the chain is handed.
const APART: &[&str] = &[
    "fallbacks",
    "guide",
    "stop.plateau_epsilon",
    "stop.oscillation",
    "resilience.retry",
    "resilience.breaker",
    "resilience.timeout",
    "resilience.idle_timeout",
];

#[tokio::test(start_paused = true)]
async fn lesson_11_every_option_changes_what_a_run_does() {
    let usual = trace("").await;
    assert_eq!(usual, trace("").await, "a run of the base is the same each time");
    for (name, change) in CHANGES.iter().filter(|(name, _)| !APART.contains(name)) {
        assert_ne!(trace(change).await, usual, "{name} does nothing");
    }
}

#[test]
fn options_for_special_models_and_texts_reach_the_chain() {
    let folder = tempfile::tempdir().unwrap();
    let usual = chain_with("", folder.path(), None);
    for name in ["guide", "stop.oscillation"] {
        let (_, change) = CHANGES.iter().find(|(n, _)| *n == name).unwrap();
        assert_ne!(chain_with(change, folder.path(), None).id(), usual.id(), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_same_text_again_ends_a_run_unless_oscillation_is_off() {
    let run = |stop: &str| {
        let text = format!(
            "[chains.a]\nmodel = \"mock:reply=same\"\nchecks = [\"never\"]\nstop.oscillation = {stop}"
        );
        let chain = Config::parse(&text).unwrap().chain("a", &registry(), None).unwrap();
        async move { chain.run("Go on.").await.unwrap().reason().to_string() }
    };
    assert_eq!(run("true").await, "the model came back to an earlier text");
    assert_eq!(run("false").await, "the allowed improvements are used up");
}

#[tokio::test(start_paused = true)]
async fn lesson_11_small_gains_are_a_plateau_only_within_its_epsilon() {
    let run = |options: &str| {
        let text = format!(
            "[chains.a]\nmodel = \"mock:replies=a|bb|ccc|dddd|eeeee\"\nchecks = [\"longer\"]\n\
             stop.plateau = 1\n{options}"
        );
        let chain = Config::parse(&text).unwrap().chain("a", &registry(), None).unwrap();
        async move {
            let outcome = chain.run("Go on.").await.unwrap();
            (outcome.text().to_owned(), outcome.reason().clone())
        }
    };
    // Every text scores 0.01 more than the one before it.
    let all = ("dddd".to_owned(), EndReason::MaxIterations);
    assert_eq!(run("").await, all);
    assert_eq!(run("stop.plateau_epsilon = 0.005").await, all);
    let flat = ("bb".to_owned(), EndReason::Plateau { rounds: 1 });
    assert_eq!(run("stop.plateau_epsilon = 0.05").await, flat);
}

/// A model that fails once and then writes, or takes its time, by its name.
fn unreliable() -> Registry {
    let registry = registry();
    registry.models.register(About::new("flaky", "", ""), |_, _| {
        let calls = Arc::new(std::sync::atomic::AtomicU32::new(0));
        Ok(Arc::new(model_fn("flaky", move |_| {
            let first = calls.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0;
            async move {
                if first {
                    return Err(Error::new(ErrorKind::Unavailable, "flaky", "call", "not now"));
                }
                Ok("there it is")
            }
        })))
    });
    registry
}

async fn unreliable_run(options: &str) -> std::result::Result<String, ErrorKind> {
    let text = format!("[chains.a]\n{options}");
    let chain = Config::parse(&text).unwrap().chain("a", &unreliable(), None).unwrap();
    chain.run("Go on.").await.map(|outcome| outcome.text().to_owned()).map_err(|e| e.kind())
}

#[tokio::test(start_paused = true)]
async fn retries_and_breaker_do_what_the_file_says() {
    let flaky = "model = \"flaky\"\n";
    assert_eq!(unreliable_run(flaky).await.as_deref(), Ok("there it is"));
    let off = format!("{flaky}resilience.retry = false");
    assert_eq!(unreliable_run(&off).await, Err(ErrorKind::Unavailable));
    let open = format!("{flaky}resilience.breaker = {{ failures = 1, open_for = 600.0 }}");
    let error = unreliable_run(&open).await.unwrap_err();
    assert!(matches!(error, ErrorKind::CircuitOpen | ErrorKind::RetriesExhausted), "{error}");
}

/// How a run ends whose model takes 5 seconds: awaited, and followed as a stream.
async fn slow(options: &str) -> [std::result::Result<String, ErrorKind>; 2] {
    let text = format!(
        "[chains.a]\nmodel = {{ name = \"mock\", reply = \"slow\", delay = 5 }}\n\
         resilience.retry = false\n{options}"
    );
    let chain = Config::parse(&text).unwrap().chain("a", &registry(), None).unwrap();
    let ends = [chain.run("Go on.").await, chain.run("Go on.").stream().outcome().await];
    ends.map(|end| end.map(|outcome| outcome.text().to_owned()).map_err(|error| error.kind()))
}

#[tokio::test(start_paused = true)]
async fn timeouts_do_what_the_file_says() {
    let (text, late) = (Ok("slow".to_owned()), Err(ErrorKind::Timeout));
    assert_eq!(slow("").await, [text.clone(), text.clone()]);
    let short = "resilience.timeout = 0.5\nresilience.idle_timeout = false";
    assert_eq!(slow(short).await, [late.clone(), text.clone()], "only what is not streamed");
    let short = "resilience.timeout = false\nresilience.idle_timeout = 0.5";
    assert_eq!(slow(short).await, [text, late], "only pauses of a stream");
}

#[tokio::test]
async fn the_files_journal_default_and_chains_are_used() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sifaka.toml");
    let text = "journal = \"runs.db\"\ndefault_chain = \"b\"\n\
        [chains.a]\nmodel = \"mock:reply=A\"\n[chains.b]\nmodel = \"mock:reply=B\"";
    std::fs::write(&path, text).unwrap();
    let config = Config::load(&path).unwrap();
    let place = config.journal_path().unwrap();
    assert_eq!(place, folder.path().join("runs.db"));
    let journal = SqliteJournal::open(&place, SqliteOptions::default()).unwrap();
    let (name, _) = config.pick(None).unwrap();
    let chain = config.chain(name, &registry(), Some(Arc::new(journal.clone()))).unwrap();
    let outcome = chain.run("Go on.").await.unwrap();
    assert_eq!(outcome.text(), "B");
    let runs = journal.runs(&Context::new(), &Default::default()).await.unwrap();
    assert_eq!(runs[0].run_id, *outcome.run_id());
}

#[tokio::test]
async fn what_is_redacted_is_in_the_answer_and_not_in_the_record() {
    let journal: Arc<dyn Journal> = Arc::new(MemoryJournal::new());
    let text = "[chains.a]\nmodel = \"mock:reply=card 1234567812345678\"\nredact = [\"[0-9]{16}\"]";
    let chain =
        Config::parse(text).unwrap().chain("a", &registry(), Some(Arc::clone(&journal))).unwrap();
    let outcome = chain.run("My card is 8765432187654321.").await.unwrap();
    assert_eq!(outcome.text(), "card 1234567812345678");
    let events = journal.events(&Context::new(), outcome.run_id()).await.unwrap();
    let kept = serde_json::to_string(&events).unwrap();
    assert!(kept.contains("card [redacted]"), "{kept}");
    assert!(!kept.contains("1234567812345678") && !kept.contains("8765432187654321"), "{kept}");
}

#[tokio::test]
async fn a_fallback_of_the_file_takes_over() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("down.toml"), "[[reply]]\nerror = \"auth\"\n").unwrap();
    let script = folder.path().join("down.toml");
    let text = format!(
        "[chains.a]\nmodel = {{ name = \"mock\", script = {:?} }}\nfallbacks = [\"mock:reply=spare\"]",
        script.display().to_string()
    );
    let path = folder.path().join("sifaka.toml");
    std::fs::write(&path, text).unwrap();
    let chain = Config::load(&path).unwrap().chain("a", &registry(), None).unwrap();
    assert_eq!(chain.run("Go on.").await.unwrap().text(), "spare");
}
