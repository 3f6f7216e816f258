//! Where talk goes.

use std::io::{self, IsTerminal, Write};

use sifaka::{Error, Problem};

use super::style::{Style, clean};
use crate::args::Global;

/// stderr.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Talk {
    level: Level,
    terminal: bool,
    pub(crate) style: Style,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Quiet,
    Normal,
    Verbose,
}

impl Talk {
    pub(crate) fn new(global: &Global) -> Self {
        let level = match (global.quiet, global.verbose) {
            (true, _) => Level::Quiet,
            (_, true) => Level::Verbose,
            _ => Level::Normal,
        };
        let stderr = io::stderr();
        Self { level, terminal: stderr.is_terminal(), style: Style::new(global.color, &stderr) }
    }

    pub(crate) fn is_terminal(self) -> bool {
        self.terminal
    }

    pub(crate) fn is_quiet(self) -> bool {
        self.level == Level::Quiet
    }

    pub(crate) fn is_verbose(self) -> bool {
        self.level == Level::Verbose
    }

    fn write(line: &str) {
        // There is nowhere left to say that stderr is gone.
        let _ = writeln!(io::stderr().lock(), "{line}");
    }

    /// Something to know.
    pub(crate) fn say(self, line: impl AsRef<str>) {
        if self.level >= Level::Normal {
            Self::write(line.as_ref());
        }
    }

    /// Something that should be known in any case.
    pub(crate) fn warn(self, message: &str) {
        Self::write(&format!("{}: {}", self.style.doubtful("warning"), clean(message)));
    }

    /// What went wrong, and what to do about it.
    pub(crate) fn error(self, error: &Error) {
        let (word, place) = (self.style.bad("error"), clean(error.component()));
        let try_ = |indent: &str, what: &str| {
            if !what.is_empty() {
                Self::write(&format!("{indent}{}: {}", self.style.strong("try"), clean(what)));
            }
        };
        match error.all_problems() {
            [] => Self::write(&format!("{word}: {place}: {}", clean(error.message()))),
            [Problem { place: option, message, suggestion }] => {
                Self::write(&format!("{word}: {place}: {}: {}", clean(option), clean(message)));
                try_("  ", suggestion);
            }
            many => {
                Self::write(&format!("{word}: {place}: {} problems", many.len()));
                for Problem { place: option, message, suggestion } in many {
                    Self::write(&format!("  {}: {}", clean(option), clean(message)));
                    try_("    ", suggestion);
                }
            }
        }
        error.suggestions().iter().for_each(|suggestion| try_("  ", suggestion));
    }

    /// Asks a question that is answered yes or no; `None` when there is nobody to ask.
    pub(crate) fn ask(self, question: &str) -> Option<bool> {
        if !self.terminal || !io::stdin().is_terminal() {
            return None;
        }
        // A question that cannot be shown gets no answer, which counts as no.
        let _ = write!(io::stderr().lock(), "{question} [y/N] ");
        let mut answer = String::new();
        let read = io::stdin().read_line(&mut answer);
        Some(read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes"))
    }
}
