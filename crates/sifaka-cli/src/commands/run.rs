//! `sifaka run`.

use std::io::{IsTerminal, Read};

use sifaka::{Error, ErrorKind, Plan, Result};

use super::drive::Course;
use super::setup::Setup;
use super::{DONE, drive};
use crate::app::App;
use crate::args::RunArgs;
use crate::output::clean;

/// The longest prompt that is read, in bytes.
const MAX_PROMPT: u64 = 256 * 1024 * 1024;

pub(super) fn run(app: &App, args: &RunArgs) -> Result<u8> {
    let config = app.config()?;
    let mut flags = args.chain.clone();
    if config.is_none() && flags.model.is_none() && flags.chain.is_none() {
        // Nothing describes a chain, so nobody has left a model out by mistake.
        app.talk.say("no model is named: the embedded one writes, as with --model local");
        flags.model = Some("local".to_owned());
    }
    let setup = Setup::new(config, &flags, None)?;
    if args.dry_run {
        let (recorded, _) = setup.journals(app, false)?;
        let plan = setup.build(recorded, None)?.plan(prompt(args)?)?;
        return if args.shape.json { app.out.json(&plan) } else { show(app, &plan) }.map(|()| DONE);
    }
    let prompt = prompt(args)?;
    setup.fetch_weights(app)?;
    let (recorded, journal) = setup.journals(app, !args.no_journal)?;
    let chain = setup.build(recorded, journal)?;
    let mut run = chain.run(prompt);
    for (key, value) in &args.tag {
        run = run.tag(key, value);
    }
    let flags = setup.resume_with(app);
    let course = Course { begun: 0, recorded: !args.no_journal, flags };
    drive::drive(app, run, args.shape, &course)
}

/// The prompt: the argument, the file, or stdin.
fn prompt(args: &RunArgs) -> Result<String> {
    let text = match (&args.prompt, &args.file) {
        (_, Some(path)) => {
            let unreadable = |error: &std::io::Error| {
                let kind = match error.kind() {
                    std::io::ErrorKind::NotFound => ErrorKind::NotFound,
                    _ => ErrorKind::InvalidInput,
                };
                let hint = match error.kind() {
                    std::io::ErrorKind::InvalidData => "a prompt is UTF-8 text; convert the file",
                    _ => "check the path",
                };
                Error::new(kind, "prompt", "read", format!("{}: {error}", path.display()))
                    .suggest(hint)
            };
            let file = std::fs::File::open(path).map_err(|error| unreadable(&error))?;
            read(file).map_err(|error| unreadable(&error))?
        }
        (Some(text), None) if text != "-" => text.clone(),
        (given, None) => {
            if given.is_none() && std::io::stdin().is_terminal() {
                return Err(empty());
            }
            read(std::io::stdin().lock()).map_err(|error| {
                Error::invalid_input("prompt", format!("stdin: {error}"))
                    .suggest("a prompt is UTF-8 text")
            })?
        }
    };
    if text.trim().is_empty() {
        return Err(empty());
    }
    Ok(text)
}

/// A text without the line break that ends files.
fn read(source: impl Read) -> std::io::Result<String> {
    let mut text = String::new();
    source.take(MAX_PROMPT + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_PROMPT {
        return Err(std::io::Error::other(format!("it has more than {MAX_PROMPT} bytes")));
    }
    text.truncate(text.trim_end_matches(['\r', '\n']).len());
    Ok(text)
}

fn empty() -> Error {
    Error::invalid_input("prompt", "there is nothing to write about: the prompt is empty")
        .suggest("say what should be written: sifaka run \"Explain what a lemur is.\"")
        .suggest("or read it from a file with --file, or from stdin with -")
}

fn show(app: &App, plan: &Plan) -> Result<()> {
    let out = &app.out;
    out.line(format!("chain  {}", plan.chain_id))?;
    out.line(format!("model  {}", plan.model))?;
    if let Some(system) = &plan.system {
        out.line(format!("system {}", clean(system)))?;
    }
    let about = if plan.exact { "" } else { "about " };
    out.line(format!(
        "\nfirst prompt, {about}{} tokens with the system prompt:",
        plan.prompt_tokens
    ))?;
    for line in clean(&plan.prompt).lines() {
        out.line(format!("    {line}"))?;
    }
    out.line("\nsteps:")?;
    for (n, step) in plan.steps.iter().enumerate() {
        out.line(format!("{:3}. {}", n + 1, clean(step)))?;
    }
    out.line(format!("\nat most {} generations", plan.max_generations))?;
    if let Some(cost) = &plan.max_cost {
        out.line(format!("at most {cost}"))?;
    }
    let note = clean(plan.cost_note.as_deref().unwrap_or("no price is known"));
    match plan.estimated_cost {
        Some(_) => out.line(note),
        None => out.line(format!("cost not known: {note}")),
    }
}
