//! `sifaka show`.

use sifaka::thought::Entry;
use sifaka::{Candidate, CriticFeedback, Origin, Result, Thought, ValidationResult, Verdict};

use super::{DONE, count, diff, perf};
use crate::app::App;
use crate::args::ShowArgs;
use crate::output::clean;
use crate::record::Record;

pub(super) fn run(app: &App, args: &ShowArgs) -> Result<u8> {
    let record =
        app.with_journal(async |ctx, journal| Record::load(ctx, journal, &args.id).await)?;
    if args.json {
        return app.out.json(&record.to_write()).map(|()| DONE);
    }
    if args.events {
        for event in &record.events {
            app.out.json_line(event)?;
        }
        return Ok(DONE);
    }
    let page = Page { app, args, best: record.answer() };
    page.head(&record)?;
    let mut before: Option<Thought> = None;
    for entry in
        record.thought.history().into_iter().chain([Entry::Thought(record.thought.clone())])
    {
        app.out.line("")?;
        match entry {
            Entry::Thought(thought) => {
                page.iteration(&thought, before.as_ref())?;
                before = Some(thought);
            }
            Entry::Reference(reference) => {
                let summary = clean(&reference.summary).into_owned();
                app.out.line(format!("{} is not on record here: {summary}", reference.id))?;
            }
        }
    }
    if args.timings {
        app.out.line("")?;
        perf::print(app, &perf::of_events(&record.events))?;
    }
    Ok(DONE)
}

struct Page<'a> {
    app: &'a App,
    args: &'a ShowArgs,
    best: Thought,
}

impl Page<'_> {
    fn head(&self, record: &Record) -> Result<()> {
        let (out, thought) = (&self.app.out, &record.thought);
        out.line(format!("{} {}", out.style.strong("run"), record.run_id))?;
        if let Some(chain) = thought.chain_id() {
            out.line(format!("chain {}", clean(chain)))?;
        }
        let state = match (record.fold.ended(), record.fold.failed()) {
            (_, Some(failure)) => format!("failed: {failure}; {}", record.how_to_go_on()),
            (Some(reason), None) => format!("ended: {reason}"),
            (None, None) if record.fold.usage().is_empty() => {
                "on record as it was imported".to_owned()
            }
            (None, None) => format!("open: {}", record.how_to_go_on()),
        };
        out.line(clean(&state))?;
        let usage = record.fold.usage();
        if !usage.is_empty() {
            let about = if usage.estimated { "about " } else { "" };
            let cost = usage.cost.map_or_else(String::new, |cost| format!(", {cost}"));
            out.line(format!(
                "{}, {about}{} tokens in, {} out{cost}",
                count(usage.calls, "call"),
                usage.input_tokens,
                usage.output_tokens
            ))?;
        }
        for (key, value) in thought.tags() {
            out.line(format!("tag {}={}", clean(key), clean(value)))?;
        }
        self.block("prompt", thought.prompt())?;
        match thought.system_prompt() {
            Some(system) => self.block("system", system),
            None => Ok(()),
        }
    }

    fn block(&self, title: &str, text: &str) -> Result<()> {
        self.app.out.line(format!("  {title}:"))?;
        self.lines(text)
    }

    fn lines(&self, text: &str) -> Result<()> {
        clean(text).lines().try_for_each(|line| self.app.out.line(format!("    {line}").trim_end()))
    }

    fn iteration(&self, thought: &Thought, before: Option<&Thought>) -> Result<()> {
        let out = &self.app.out;
        let score = thought.score();
        let title = format!("iteration {}", thought.iteration());
        let title = out.style.strong(&title);
        if thought.text().is_some() {
            let state = match score.passed {
                true => out.style.good("passes"),
                false => out.style.bad("does not pass"),
            };
            let best = if thought.id() == self.best.id() { ", the best" } else { "" };
            out.line(format!("{title}: {state}, score {:.2}{best}", score.value))?;
        } else {
            out.line(format!("{title}: no text"))?;
        }
        out.line(format!("  id {}", thought.id()))?;
        self.documents("retrieved before writing", thought.pre_generation_context())?;
        if self.args.prompts
            && let Some(prompt) = thought.model_prompt()
        {
            match prompt.as_str() {
                Some(text) => self.block("prompt sent", text)?,
                None => out.line(format!("  prompt sent: {} bytes, not at hand", prompt.len()))?,
            }
        }
        match (before, thought.text()) {
            (Some(before), Some(_)) if self.args.diff => {
                out.line(format!("  text, against iteration {}:", before.iteration()))?;
                diff::lines(self.app, &before.diff(thought), "    ")?;
            }
            (_, Some(text)) => self.block("text", text)?,
            (_, None) => {}
        }
        self.documents("retrieved about the text", thought.post_generation_context())?;
        self.candidates(thought.candidates())?;
        self.checks(thought)?;
        thought.critic_feedback().iter().try_for_each(|feedback| self.feedback(feedback))?;
        for failure in thought.failures() {
            out.line(format!("  failed: {}", clean(&failure.to_string())))?;
        }
        Ok(())
    }

    fn documents(&self, title: &str, documents: &[sifaka::Document]) -> Result<()> {
        if documents.is_empty() {
            return Ok(());
        }
        self.app.out.line(format!("  {title}:"))?;
        for document in documents {
            let origin = document.origin().unwrap_or("a document");
            let score = document.score.map_or_else(String::new, |score| format!(" ({score:.2})"));
            let text = sifaka::text::summarise(document.text().unwrap_or("not at hand"), 80);
            self.app.out.line(format!("    {}{score}: {}", clean(origin), clean(&text)))?;
        }
        Ok(())
    }

    fn candidates(&self, candidates: &[Candidate]) -> Result<()> {
        for (n, candidate) in candidates.iter().enumerate() {
            let origin = match &candidate.origin {
                Origin::Sample => "sample".to_owned(),
                Origin::Proposal(critic) => format!("proposed by {critic}"),
            };
            let score =
                candidate.score.map_or("-".to_owned(), |score| format!("{:.2}", score.value));
            let chosen = if candidate.chosen { ", chosen" } else { "" };
            let text = sifaka::text::summarise(&candidate.text, 80);
            self.app.out.line(format!(
                "  candidate {n}, {}, score {score}{chosen}: {}",
                clean(&origin),
                clean(&text)
            ))?;
        }
        Ok(())
    }

    fn checks(&self, thought: &Thought) -> Result<()> {
        for (name, result) in thought.validation_results() {
            let ValidationResult { passed, message, issues, suggestions, .. } = result;
            let style = self.app.out.style;
            let word = match passed {
                Verdict::Passed => style.good("passed"),
                Verdict::Failed => style.bad("failed"),
                Verdict::Unknown => style.doubtful("could not tell"),
            };
            self.app.out.line(format!("  check {}: {word}: {}", clean(name), clean(message)))?;
            // The first issue is usually the message again.
            for issue in issues.iter().filter(|issue| ***issue != **message) {
                self.app.out.line(format!("    issue: {}", clean(issue)))?;
            }
            for suggestion in suggestions {
                self.app.out.line(format!("    to do: {}", clean(suggestion)))?;
            }
        }
        Ok(())
    }

    fn feedback(&self, feedback: &CriticFeedback) -> Result<()> {
        let sure = feedback.confidence.map_or_else(String::new, |c| format!(", sure to {c:.2}"));
        self.app.out.line(format!("  critic {}{sure}:", clean(&feedback.critic_name)))?;
        if let Some(text) = &feedback.feedback {
            self.lines(text)?;
        }
        for issue in &feedback.issues {
            self.app.out.line(format!("    issue: {}", clean(issue)))?;
        }
        for suggestion in &feedback.suggestions {
            self.app.out.line(format!("    to do: {}", clean(suggestion)))?;
        }
        match &feedback.proposed_text {
            Some(text) => self.block("  proposes", text),
            None => Ok(()),
        }
    }
}
