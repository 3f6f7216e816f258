//! `sifaka export`.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use sifaka::journal::{RunQuery, RunStatus};
use sifaka::{Context, Error, ErrorKind, Journal, Result, Thought};

use super::{DONE, count};
use crate::app::App;
use crate::args::{ExportArgs, Format};
use crate::record::Record;

pub(super) fn run(app: &App, args: &ExportArgs) -> Result<u8> {
    app.with_journal(async |ctx, journal| {
        let ids = if args.all { every_run(app, ctx, journal).await? } else { args.ids.clone() };
        let usual = if args.all || ids.len() > 1 { Format::Jsonl } else { Format::Json };
        let format = args.format.unwrap_or(usual);
        let list = format == Format::Json && (args.all || ids.len() > 1);
        match &args.output {
            None => {
                let mut pieces = Pieces { format, list, written: 0 };
                for id in &ids {
                    let thought = Record::load(ctx, journal, id).await?.thought;
                    app.out.raw(&pieces.next(&thought)?)?;
                    if app.out.is_closed() {
                        return Ok(DONE);
                    }
                }
                app.out.raw(&pieces.end())?;
            }
            Some(path) => {
                let mut file = NewFile::create(path)?;
                let mut pieces = Pieces { format, list, written: 0 };
                for id in &ids {
                    let thought = Record::load(ctx, journal, id).await?.thought;
                    file.write(&pieces.next(&thought)?)?;
                }
                file.write(&pieces.end())?;
                file.finish()?;
            }
        }
        app.talk.say(format!("{} exported", count(ids.len() as u64, "Thought")));
        Ok(DONE)
    })
}

async fn every_run(app: &App, ctx: &Context, journal: &dyn Journal) -> Result<Vec<String>> {
    let mut runs = journal.runs(ctx, &RunQuery::default()).await?;
    let all = runs.len();
    runs.retain(|run| run.status != RunStatus::Erased);
    let erased = (all - runs.len()) as u64;
    if erased > 0 {
        app.talk.say(format!("{} had been erased", count(erased, "run")));
    }
    // Oldest first: a file that is appended to later stays in order.
    Ok(runs.iter().rev().map(|run| run.run_id.to_string()).collect())
}

/// Thoughts in one of the two formats, piece by piece.
struct Pieces {
    format: Format,
    list: bool,
    written: usize,
}

impl Pieces {
    fn next(&mut self, thought: &Thought) -> Result<String> {
        let lead = match (self.list, self.written) {
            (false, _) => "",
            (true, 0) => "[\n",
            (true, _) => ",\n",
        };
        self.written += 1;
        let json = match self.format {
            Format::Json => thought.to_json()?,
            Format::Jsonl => serde_json::to_string(thought).map_err(|error| {
                Error::new(ErrorKind::Internal, "export", "write", error.to_string())
            })?,
        };
        let end = if self.list { "" } else { "\n" };
        Ok(format!("{lead}{json}{end}"))
    }

    fn end(&self) -> String {
        match (self.list, self.written) {
            (false, _) => String::new(),
            (true, 0) => "[]\n".to_owned(),
            (true, _) => "\n]\n".to_owned(),
        }
    }
}

/// A file that takes its place only once it is whole.
struct NewFile<'a> {
    path: &'a Path,
    temporary: PathBuf,
    writer: Option<BufWriter<File>>,
}

impl<'a> NewFile<'a> {
    fn create(path: &'a Path) -> Result<Self> {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.tmp", std::process::id()));
        let temporary = path.with_file_name(name);
        let mut options = File::options();
        options.write(true).create(true).truncate(true);
        // Prompts and texts are nobody else's business.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&temporary).map_err(|error| unwritable(path, &error))?;
        Ok(Self { path, temporary, writer: Some(BufWriter::new(file)) })
    }

    fn write(&mut self, text: &str) -> Result<()> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        writer.write_all(text.as_bytes()).map_err(|error| unwritable(self.path, &error))
    }

    fn finish(mut self) -> Result<()> {
        let done = || -> io::Result<()> {
            if let Some(writer) = self.writer.take() {
                writer.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
            }
            fs::rename(&self.temporary, self.path)
        };
        let mut done = done;
        done().map_err(|error| unwritable(self.path, &error))
    }
}

impl Drop for NewFile<'_> {
    fn drop(&mut self) {
        // After a rename it is gone already; after a failure half a file is of no use to anybody.
        let _ = fs::remove_file(&self.temporary);
    }
}

fn unwritable(path: &Path, error: &io::Error) -> Error {
    Error::new(ErrorKind::Storage, "export", "write", format!("{}: {error}", path.display()))
        .suggest("check the folder, its permissions and the space on the disk")
}
