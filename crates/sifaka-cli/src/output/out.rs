//! Where data goes.

use std::cell::{Cell, RefCell};
use std::io::{self, BufWriter, IsTerminal, Stdout, Write};

use serde::Serialize;
use sifaka::{Error, ErrorKind, Result};

use super::style::{Style, clean};
use crate::args::Color;

/// stdout. A reader that goes away, as `head` does, is no error: what follows is let go of.
pub(crate) struct Out {
    writer: RefCell<BufWriter<Stdout>>,
    closed: Cell<bool>,
    terminal: bool,
    pub(crate) style: Style,
}

impl Out {
    pub(crate) fn new(color: Color) -> Self {
        let stdout = io::stdout();
        let (terminal, style) = (stdout.is_terminal(), Style::new(color, &stdout));
        let writer = RefCell::new(BufWriter::new(stdout));
        Self { writer, closed: Cell::new(false), terminal, style }
    }

    /// Whether the reader has gone away.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.get()
    }

    fn attempt(&self, write: impl FnOnce(&mut BufWriter<Stdout>) -> io::Result<()>) -> Result<()> {
        if self.closed.get() {
            return Ok(());
        }
        match write(&mut self.writer.borrow_mut()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.closed.set(true),
            Err(error) => {
                // Said once; what follows would fail the same way.
                self.closed.set(true);
                let message = format!("stdout cannot be written to: {error}");
                return Err(Error::new(ErrorKind::Storage, "output", "write", message)
                    .suggest("check the space on the disk"));
            }
            Ok(()) => {}
        }
        Ok(())
    }

    /// A line of ours; texts from elsewhere in it must be clean.
    pub(crate) fn line(&self, line: impl AsRef<str>) -> Result<()> {
        self.attempt(|writer| writeln!(writer, "{}", line.as_ref()))
    }

    /// A text from elsewhere: to a program as it is, to a terminal without what would steer it.
    pub(crate) fn text(&self, text: &str) -> Result<()> {
        let text = if self.terminal { clean(text) } else { text.into() };
        let end = if text.ends_with('\n') { "" } else { "\n" };
        self.attempt(|writer| write!(writer, "{text}{end}"))
    }

    /// A piece of a format that has its own line breaks and no control characters.
    pub(crate) fn raw(&self, piece: &str) -> Result<()> {
        self.attempt(|writer| writer.write_all(piece.as_bytes()))
    }

    /// A value as readable JSON.
    pub(crate) fn json(&self, value: &impl Serialize) -> Result<()> {
        self.attempt(|writer| {
            serde_json::to_writer_pretty(&mut *writer, value)?;
            writer.write_all(b"\n")
        })
    }

    /// A value as a line of JSON, at once.
    pub(crate) fn json_line(&self, value: &impl Serialize) -> Result<()> {
        self.attempt(|writer| {
            serde_json::to_writer(&mut *writer, value)?;
            writer.write_all(b"\n")
        })?;
        self.flush()
    }

    /// Hands over what is buffered. Until then nothing is known to have arrived.
    pub(crate) fn flush(&self) -> Result<()> {
        self.attempt(Write::flush)
    }
}
