//! How a run goes, while it goes: a spinner on a terminal, lines elsewhere.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sifaka::event::Transition;
use sifaka::model::{Delta, FinishReason};
use sifaka::{Event, EventKind};

use super::style::clean;
use super::talk::Talk;

/// Follows a run's events.
pub(crate) struct Progress {
    talk: Talk,
    recorded: bool,
    bar: Option<ProgressBar>,
    iteration: u32,
    streamed: usize,
    failing: Vec<Vec<String>>,
}

impl Progress {
    /// Follows a run from this iteration on.
    pub(crate) fn new(talk: Talk, recorded: bool, iteration: u32) -> Self {
        let bar = (talk.is_terminal() && !talk.is_quiet()).then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(100));
            bar
        });
        Self { talk, recorded, bar, iteration, streamed: 0, failing: Vec::new() }
    }

    /// Says what is going on just now; on a terminal only.
    fn phase(&self, what: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(format!("iteration {}: {what}", self.iteration));
        }
    }

    /// Says what has happened.
    fn line(&self, line: &str) {
        let line = clean(line);
        match &self.bar {
            Some(bar) => bar.suspend(|| self.talk.say(&line)),
            None => self.talk.say(&line),
        }
    }

    fn detail(&self, line: &str) {
        if self.talk.is_verbose() {
            self.line(line);
        }
    }

    /// Takes the next event.
    pub(crate) fn event(&mut self, event: &Event) {
        let n = self.iteration;
        match &event.kind {
            // Whoever loses the program needs the id to go on.
            EventKind::RunStarted { .. } if self.recorded => {
                self.line(&format!("run {} begins", event.run_id));
            }
            EventKind::RunStarted { .. } => self.detail(&format!("run {} begins", event.run_id)),
            EventKind::RunResumed { .. } => self.line(&format!("run {} goes on", event.run_id)),
            EventKind::IterationStarted { decision, .. } => {
                self.iteration += 1;
                self.streamed = 0;
                self.failing.clear();
                self.phase("beginning");
                self.detail(&format!("iteration {}: {decision:?}", self.iteration));
            }
            EventKind::Retrieved { retriever, documents, .. } => {
                let count = count(documents.len(), "document");
                self.detail(&format!("iteration {n}: {retriever} found {count}"));
            }
            EventKind::Prompted(prompted) => {
                self.phase("writing");
                for cut in &prompted.cut {
                    self.line(&format!("iteration {n}: left out of the prompt: {}", cut.what));
                }
            }
            EventKind::Delta(delta) => self.delta(delta),
            EventKind::Generated { completions, .. } => {
                let words = completions
                    .iter()
                    .map(|c| c.text.split_whitespace().count())
                    .max()
                    .unwrap_or(0);
                let words = count(words, "word");
                self.phase("checking");
                self.detail(&format!("iteration {n}: {words} written"));
                for completion in completions {
                    if let FinishReason::StoppedBy(check) = &completion.finish_reason {
                        self.line(&format!(
                            "iteration {n}: stopped by {check}: the text could no longer pass"
                        ));
                    }
                }
            }
            EventKind::Validated { candidate, results } => {
                let at = *candidate as usize;
                if self.failing.len() <= at {
                    self.failing.resize(at + 1, Vec::new());
                }
                let failing = results.iter().filter(|checked| !checked.result.allows());
                let names: Vec<String> = failing.map(|checked| checked.name.to_string()).collect();
                if let Some(list) = self.failing.get_mut(at) {
                    list.extend(names);
                }
            }
            EventKind::Chosen { candidate, score } => {
                let failing = self.failing.get(*candidate as usize).map_or(&[][..], Vec::as_slice);
                let state = match failing {
                    [] => "passes".to_owned(),
                    names => format!("does not pass {}", names.join(", ")),
                };
                self.line(&format!("iteration {n}: {state}; score {:.2}", score.value));
                self.phase("deciding");
            }
            EventKind::Critiqued { feedback, .. } => {
                let issues = count(feedback.issues.len(), "issue");
                self.detail(&format!("iteration {n}: {} names {issues}", feedback.critic_name));
            }
            EventKind::Failed { failure, .. } => {
                self.line(&format!("iteration {n}: {failure}"));
            }
            EventKind::Resilience { component, transition } => {
                self.transition(component, transition);
            }
            _ => {}
        }
    }

    fn delta(&mut self, delta: &Delta) {
        match delta {
            Delta::Text { text, .. } => self.streamed += text.chars().count(),
            Delta::Restart { .. } => self.streamed = 0,
            _ => return,
        }
        self.phase(&format!("writing, {}", count(self.streamed, "character")));
    }

    fn transition(&self, component: &str, transition: &Transition) {
        match transition {
            Transition::Retrying { attempt, delay, failure } => self.line(&format!(
                "{component}: try {attempt} failed ({}), the next in {:.1} s",
                failure.message,
                delay.seconds()
            )),
            Transition::CircuitOpened { for_ } => self.line(&format!(
                "{component}: too many failures, no calls for {:.0} s",
                for_.seconds()
            )),
            Transition::FellBack { to, failure } => {
                self.line(&format!("{component}: {} takes over ({})", to, failure.message));
            }
            other => self.detail(&format!("{component}: {other:?}")),
        }
    }

    /// Takes the spinner away.
    pub(crate) fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}

fn count(number: usize, what: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{number} {what}{s}")
}
