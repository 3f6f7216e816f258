//! How many bytes are done: a bar on a terminal, a line for each step elsewhere.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::talk::Talk;

/// Follows steps that move bytes.
pub(crate) struct Bytes {
    talk: Talk,
    bar: Option<ProgressBar>,
    step: String,
}

impl Bytes {
    pub(crate) fn new(talk: Talk) -> Self {
        let bar = (talk.is_terminal() && !talk.is_quiet()).then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            let template = "{msg} [{bar:30}] {decimal_bytes} of {decimal_total_bytes} ({elapsed})";
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style.progress_chars("=> "));
            }
            bar
        });
        Self { talk, bar, step: String::new() }
    }

    /// So many bytes of this step are done. A step that has no bytes has a total of 0.
    pub(crate) fn at(&mut self, step: &str, bytes: u64, total: u64) {
        let begins = self.step != step;
        if begins {
            step.clone_into(&mut self.step);
        }
        match &self.bar {
            None if begins && total > 0 => self.talk.say(format!("{step}, {}", megabytes(total))),
            None if begins => self.talk.say(step),
            None => {}
            Some(bar) => {
                if begins {
                    bar.set_message(step.to_owned());
                    bar.set_length(total);
                    bar.reset_elapsed();
                }
                bar.set_position(bytes);
            }
        }
    }

    /// Takes the bar away.
    pub(crate) fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}

/// `98.4 MB`.
pub(crate) fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}
