//! `sifaka import`.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;
use sifaka::event::REDACTED;
use sifaka::thought::Limits;
use sifaka::{
    Context, Error, ErrorKind, Event, EventKind, Id, Journal, Redaction, Result, Thought,
};

use super::DONE;
use crate::app::App;
use crate::args::ImportArgs;
use crate::output::clean;
use crate::record::Record;

/// What became of a file.
#[derive(Debug, Serialize)]
struct Report {
    file: String,
    imported: Vec<Id>,
    already_there: Vec<Id>,
    refused: Vec<Refusal>,
}

/// What could not be taken in, and where it stood.
#[derive(Debug, Serialize)]
struct Refusal {
    place: String,
    message: String,
    /// Whether the record holds something else in its place.
    #[serde(skip)]
    conflict: bool,
}

/// A Thought's JSON and where it stood in its file.
type Item<'a> = (String, &'a [u8]);

pub(super) fn run(app: &App, args: &ImportArgs) -> Result<u8> {
    let config = app.config()?;
    let path = app.journal_path(config.as_ref())?;
    let redaction = match &config {
        Some(config) => config.redaction(None)?,
        None => None,
    };
    let journal = App::journal_for_writing(&path)?;
    let reports = App::block_on(async {
        let ctx = Context::new();
        let mut reports = Vec::new();
        for file in &args.files {
            reports.push(import_file(&ctx, &*journal, redaction.as_ref(), file).await?);
        }
        Ok(reports)
    })?;
    for report in &reports {
        for Refusal { place, message, .. } in &report.refused {
            app.talk.warn(&format!("{}{place}: {message}", report.file));
        }
    }
    if args.json {
        app.out.json(&reports)?;
    } else {
        for report in &reports {
            app.out.line(format!(
                "{}: {} imported, {} already there, {} refused",
                clean(&report.file),
                report.imported.len(),
                report.already_there.len(),
                report.refused.len()
            ))?;
        }
    }
    let refused: Vec<&Refusal> = reports.iter().flat_map(|report| &report.refused).collect();
    Ok(if refused.is_empty() {
        DONE
    } else if refused.iter().all(|refusal| refusal.conflict) {
        ErrorKind::Conflict.exit_code()
    } else {
        ErrorKind::InvalidInput.exit_code()
    })
}

async fn import_file(
    ctx: &Context,
    journal: &dyn Journal,
    redaction: Option<&Redaction>,
    path: &Path,
) -> Result<Report> {
    let file = if path == Path::new("-") { "stdin".to_owned() } else { path.display().to_string() };
    let mut report =
        Report { file, imported: Vec::new(), already_there: Vec::new(), refused: Vec::new() };
    let bytes = match read(path) {
        Ok(bytes) => bytes,
        Err(message) => {
            report.refused.push(Refusal { place: String::new(), message, conflict: false });
            return Ok(report);
        }
    };
    for (place, json) in items(&bytes, path) {
        match Thought::from_json(json, &Limits::default()) {
            Err(error) => {
                let message = error.message().to_owned();
                report.refused.push(Refusal { place, message, conflict: false });
            }
            Ok(thought) => match take_in(ctx, journal, redaction, &thought).await {
                Ok(Taken::New(run)) => report.imported.push(run),
                Ok(Taken::Known(run)) => report.already_there.push(run),
                // Only what concerns this one Thought lets the others go on.
                Err(error) if error.kind() == ErrorKind::Conflict => {
                    let message = error.message().to_owned();
                    report.refused.push(Refusal { place, message, conflict: true });
                }
                Err(error) => return Err(error),
            },
        }
    }
    Ok(report)
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let limit = Limits::default().bytes;
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        std::io::stdin().lock().take(limit + 1).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(limit + 1).read_to_end(&mut bytes))
    };
    read.map_err(|error| error.to_string())?;
    if bytes.len() as u64 > limit {
        return Err(format!("it has more than {limit} bytes"));
    }
    Ok(bytes)
}

/// The Thoughts in a file: one, a list of them, or one on each line.
fn items<'a>(bytes: &'a [u8], path: &Path) -> Vec<Item<'a>> {
    let by_lines = path.extension().is_some_and(|e| e == "jsonl" || e == "ndjson");
    if !by_lines {
        if let Ok(list) = serde_json::from_slice::<Vec<&RawValue>>(bytes) {
            let place = |n: usize| format!(", item {}", n + 1);
            return list
                .iter()
                .enumerate()
                .map(|(n, raw)| (place(n), raw.get().as_bytes()))
                .collect();
        }
        let parses = |json: &[u8]| serde_json::from_slice::<&RawValue>(json).is_ok();
        let lines =
            || bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
        // Lines of JSON are not one JSON; a damaged file is neither, and is reported as a whole.
        if parses(bytes) || lines().count() < 2 || !lines().any(parses) {
            return vec![(String::new(), bytes)];
        }
    }
    let lines = bytes.split(|byte| *byte == b'\n').enumerate();
    lines
        .filter(|(_, line)| !line.trim_ascii().is_empty())
        .map(|(n, line)| (format!(", line {}", n + 1), line))
        .collect()
}

enum Taken {
    New(Id),
    Known(Id),
}

/// Puts a Thought on record as a run of its own, unless it is there already.
async fn take_in(
    ctx: &Context,
    journal: &dyn Journal,
    redaction: Option<&Redaction>,
    thought: &Thought,
) -> Result<Taken> {
    let first = thought.history().first().map(|entry| entry.id().clone());
    let run = thought.run_id().cloned().or(first).unwrap_or_else(|| thought.id().clone());
    let mut place = run.clone();
    for beside in [run, thought.id().clone()] {
        place = beside;
        if journal.sealed(ctx, &place).await?.is_empty() {
            break;
        }
        if journal.events(ctx, &place).await?.is_empty() {
            return Err(erased(&place));
        }
        let record = Record::load(ctx, journal, place.as_str()).await?;
        match record.fold.find(thought.id()) {
            Some(known) => return same(ctx, redaction, &known, thought, place),
            // The run is there with another end: this one is kept beside it.
            None if place != *thought.id() => {}
            None => return Err(differs(&place)),
        }
    }
    let mut log = journal.open_run(ctx, &place).await?;
    let event = |seq, kind| Event { run_id: place.clone(), seq, time: ctx.now(), kind };
    let imported = event(0, EventKind::Imported { thought: Box::new(thought.clone()) });
    match redaction {
        None => log.append(&Arc::new(imported))?,
        Some(rule) => {
            log.append(&Arc::new(rule.apply(&imported)?))?;
            // Whoever goes on from it is told that it is not what it was.
            let note = EventKind::Noted { name: Arc::from(REDACTED), data: true.into() };
            log.append(&Arc::new(event(1, note)))?;
        }
    }
    log.commit().await?;
    log.close().await?;
    Ok(Taken::New(place))
}

/// Whether what is on record is what the file has, as it is or as it would be kept.
fn same(
    ctx: &Context,
    redaction: Option<&Redaction>,
    known: &Thought,
    thought: &Thought,
    run: Id,
) -> Result<Taken> {
    let known = content(known)?;
    if known == content(thought)? {
        return Ok(Taken::Known(run));
    }
    if let Some(rule) = redaction {
        let kind = EventKind::Imported { thought: Box::new(thought.clone()) };
        let event = Event { run_id: run.clone(), seq: 0, time: ctx.now(), kind };
        if let EventKind::Imported { thought } = rule.apply(&event)?.kind
            && known == content(&thought)?
        {
            return Ok(Taken::Known(run));
        }
    }
    Err(differs(&run))
}

/// What a Thought says, without what the record itself adds to it.
fn content(thought: &Thought) -> Result<serde_json::Value> {
    fn bare(value: &mut serde_json::Value) {
        if let Some(fields) = value.as_object_mut() {
            fields.remove("run_id");
            fields.remove("best");
        }
    }
    let mut value = serde_json::to_value(thought)
        .map_err(|error| Error::new(ErrorKind::Internal, "import", "compare", error.to_string()))?;
    bare(&mut value);
    if let Some(history) = value.get_mut("history").and_then(serde_json::Value::as_array_mut) {
        history.iter_mut().for_each(bare);
    }
    Ok(value)
}

fn differs(run: &Id) -> Error {
    let message = format!("run {run} is on record with other content");
    Error::new(ErrorKind::Conflict, "import", "write", message)
        .suggest("import it into another record with --journal")
}

fn erased(run: &Id) -> Error {
    let message = format!("run {run} was erased from this record");
    Error::new(ErrorKind::Conflict, "import", "write", message)
        .suggest("import it into another record with --journal")
}

#[cfg(test)]
mod tests {
    use sifaka::{Document, MemoryJournal, redact_with};

    use super::*;

    fn two_iterations(ctx: &Context, text: &str) -> Thought {
        Thought::new(ctx, format!("Greet {text}."))
            .add_pre_generation_context(Document::new(text))
            .with_model_prompt(format!("{text}: greet"))
            .with_text(text)
            .next_iteration(ctx)
            .with_text("Hello")
    }

    #[tokio::test]
    async fn rules_apply_before_an_imported_thought_is_journalled() {
        let (ctx, journal) = (Context::new(), MemoryJournal::new());
        let rule = redact_with(|text| text.replace("hunter2", "[redacted]").into());
        let thought = two_iterations(&ctx, "hunter2");
        let taken = take_in(&ctx, &journal, Some(&rule), &thought).await.unwrap();
        let Taken::New(run) = taken else { panic!("it is new") };
        let events = journal.events(&ctx, &run).await.unwrap();
        let json = serde_json::to_string(&events).unwrap();
        assert!(!json.contains("hunter2"), "{json}");
        assert!(json.contains("Greet [redacted]."), "{json}");
        let fold = journal.fold(&ctx, &run).await.unwrap().unwrap();
        assert!(fold.is_redacted(), "a run that goes on from it can say so");
        assert_eq!(fold.thought().unwrap().id(), thought.id());
        let again = take_in(&ctx, &journal, Some(&rule), &thought).await.unwrap();
        assert!(matches!(again, Taken::Known(known) if known == run));
    }

    #[tokio::test]
    async fn what_is_large_is_stored_apart_and_exported_whole() {
        let (ctx, journal) = (Context::new(), MemoryJournal::new());
        let thought = two_iterations(&ctx, &"long ".repeat(10_000));
        let Taken::New(run) = take_in(&ctx, &journal, None, &thought).await.unwrap() else {
            panic!("it is new")
        };
        let sealed = journal.sealed(&ctx, &run).await.unwrap();
        // The prompt and the text stay with the event, the document and the model's prompt do not.
        assert!(sealed[0].payload.as_ref().unwrap().len() < 250_000);
        let record = Record::load(&ctx, &journal, run.as_str()).await.unwrap();
        assert_eq!(record.thought, thought.with_run_id(run));
    }
}
