//! `sifaka export`.

use std::io::{self, Write};
use std::path::Path;

use sifaka::journal::{RunQuery, RunStatus};
use sifaka::thought::NewFile;
use sifaka::{Context, Error, ErrorKind, Journal, Result};

use super::{DONE, count};
use crate::app::App;
use crate::args::{ExportArgs, Format};
use crate::record::{Record, Written};

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
                    let record = Record::load(ctx, journal, id).await?;
                    app.out.raw(&pieces.next(&record.to_write())?)?;
                    if app.out.is_closed() {
                        return Ok(DONE);
                    }
                }
                app.out.raw(&pieces.end())?;
            }
            Some(path) => {
                let failed = |error: io::Error| unwritable(path, &error);
                let mut file = NewFile::create(path).map_err(failed)?;
                let mut pieces = Pieces { format, list, written: 0 };
                for id in &ids {
                    let record = Record::load(ctx, journal, id).await?;
                    file.write_all(pieces.next(&record.to_write())?.as_bytes()).map_err(failed)?;
                }
                file.write_all(pieces.end().as_bytes()).map_err(failed)?;
                file.finish().map_err(failed)?;
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
    fn next(&mut self, thought: &Written<'_>) -> Result<String> {
        let lead = match (self.list, self.written) {
            (false, _) => "",
            (true, 0) => "[\n",
            (true, _) => ",\n",
        };
        self.written += 1;
        let json = match self.format {
            Format::Json => serde_json::to_string_pretty(thought),
            Format::Jsonl => serde_json::to_string(thought),
        };
        let json = json.map_err(|error| {
            Error::new(ErrorKind::Internal, "export", "write", error.to_string())
        })?;
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

fn unwritable(path: &Path, error: &io::Error) -> Error {
    Error::new(ErrorKind::Storage, "export", "write", format!("{}: {error}", path.display()))
        .suggest("check the folder, its permissions and the space on the disk")
}
