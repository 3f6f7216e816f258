//! Running a chain and telling of it, for `run` and `resume`.

use futures_util::StreamExt;
use sifaka::event::EndReason;
use sifaka::{CancellationToken, Context, Error, ErrorKind, Id, Journal, Outcome, Result, Run};

use super::{DONE, NOT_PASSED};
use crate::app::App;
use crate::args::Shape;
use crate::output::{Progress, clean};
use crate::signals;

/// Runs to the end and prints what came of it. A run that was cancelled exits as such, unless its
/// best text had passed already.
///
pub(super) fn drive(app: &App, run: Run, shape: Shape, course: &Course) -> Result<u8> {
    let outcome = App::block_on_watched(follow(app, run, shape, course))
        .map_err(|error| if course.recorded { resumable(app, error, course) } else { error })?;
    let printed = print(app, &outcome, shape);
    // The run is worth knowing of even when its text could not be printed.
    conclude(app, &outcome);
    printed?;
    Ok(match (outcome.passed(), outcome.reason()) {
        (true, _) => DONE,
        (false, EndReason::Cancelled) => ErrorKind::Cancelled.exit_code(),
        (false, _) => NOT_PASSED,
    })
}

/// What is known of a run before it goes.
pub(super) struct Course {
    /// The iteration it is at.
    pub(super) begun: u32,
    /// Whether it is kept.
    pub(super) recorded: bool,
    /// The flags that go on with it, each with a space before it.
    pub(super) flags: String,
}

fn print(app: &App, outcome: &Outcome, shape: Shape) -> Result<()> {
    if shape.json {
        app.out.json(outcome)?;
    } else if !shape.events {
        app.out.text(outcome.text())?;
    }
    app.out.flush()
}

async fn follow(app: &App, run: Run, shape: Shape, course: &Course) -> Result<Outcome> {
    let token = CancellationToken::new();
    let talk = app.talk;
    if let Err(error) = signals::watch(token.clone(), move |line| talk.say(line)) {
        talk.warn(&format!("Ctrl-C will end the program at once: {error}"));
    }
    let mut stream = run.cancel_on(token.clone()).stream();
    let mut progress = Progress::new(app.talk, course.recorded, course.begun);
    let mut unwritten = None;
    let failed = loop {
        match stream.next().await {
            Some(Ok(event)) => {
                progress.event(&event);
                if shape.events {
                    if let Err(error) = app.out.json_line(&*event) {
                        unwritten = Some(error);
                    }
                    if app.out.is_closed() {
                        // Nobody reads on, so nothing more should be paid for.
                        token.cancel();
                    }
                }
            }
            Some(Err(error)) => break Some(error),
            None => break None,
        }
    };
    progress.finish();
    match unwritten.or(failed) {
        Some(error) => Err(error),
        None => stream.outcome().await,
    }
}

/// Says how a run that failed can go on, if it is on record.
fn resumable(app: &App, error: Error, course: &Course) -> Error {
    let run = error.thought().and_then(|thought| thought.run_id().cloned());
    let Some(run) = run else { return error };
    // Without a record that can be read there is no going on, and the first error counts.
    let Ok(Some(journal)) = app.journal_if_there() else { return error };
    match App::block_on(is_on_record(&*journal, &run)) {
        Ok(true) => {
            let command = format!("sifaka resume {run}{}", course.flags);
            error.suggest(format!("go on where it ended with `{command}`"))
        }
        Ok(false) | Err(_) => error,
    }
}

async fn is_on_record(journal: &dyn Journal, run: &Id) -> Result<bool> {
    Ok(!journal.sealed(&Context::new(), run).await?.is_empty())
}

fn conclude(app: &App, outcome: &Outcome) {
    let talk = app.talk;
    if talk.is_verbose() {
        talk.say(clean(outcome.explain().trim_end()));
    } else {
        let (thought, score) = (outcome.thought(), outcome.score());
        let verdict = if outcome.passed() {
            talk.style.good("passed")
        } else {
            talk.style.bad("did not pass")
        };
        talk.say(format!(
            "{verdict}: {}; iteration {} of {}, score {:.2}",
            clean(&outcome.reason().to_string()),
            thought.iteration(),
            last_written(outcome),
            score.value
        ));
        for (name, result) in thought.validation_results() {
            if !result.allows() {
                talk.say(format!("  {name}: {}", clean(&result.message)));
            }
        }
    }
    for warning in outcome.warnings() {
        talk.warn(warning);
    }
    if let Some(head) = outcome.head() {
        if !talk.is_verbose() {
            talk.say(format!("run {}", outcome.run_id()));
        }
        talk.say(format!("head {head}"));
    }
}

/// The number of the last iteration that has a text.
fn last_written(outcome: &Outcome) -> u32 {
    let mut all = outcome.newest().iterations();
    let written = all.find_map(|entry| entry.thought().filter(|t| t.text().is_some()).cloned());
    written.map_or(0, |thought| thought.iteration())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sifaka::{Chain, MemoryJournal, model_fn};

    use super::*;

    #[tokio::test]
    async fn only_a_run_that_was_recorded_is_on_record() {
        let journal = Arc::new(MemoryJournal::new());
        let chain = |recorded: bool| {
            let builder = Chain::builder(model_fn("m", |_| async { "text" }));
            let journal = Arc::clone(&journal) as Arc<dyn Journal>;
            if recorded { builder.journal(journal) } else { builder }.build().unwrap()
        };
        for recorded in [true, false] {
            let outcome = chain(recorded).run("Go.").await.unwrap();
            assert_eq!(is_on_record(&*journal, outcome.run_id()).await.unwrap(), recorded);
        }
    }
}
