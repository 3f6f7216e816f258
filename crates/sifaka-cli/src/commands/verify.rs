//! `sifaka verify`.

use sifaka::journal::Verify;
use sifaka::{Error, ErrorKind, Hash, Result};

use super::{DONE, count};
use crate::app::App;
use crate::args::VerifyArgs;
use crate::output::clean;

pub(super) fn run(app: &App, args: &VerifyArgs) -> Result<u8> {
    let head = args.head.as_deref().map(head).transpose()?;
    let found = app.with_journal(async |ctx, journal| {
        let run = match &args.id {
            Some(id) => Some(journal.resolve(ctx, id).await?.run_id),
            None => None,
        };
        journal.verify(ctx, &Verify { run, head }).await
    });
    let found = found.map_err(unreadable)?;
    let code = if found.is_clean() { DONE } else { ErrorKind::Corrupt.exit_code() };
    if args.json {
        return app.out.json(&found).map(|()| code);
    }
    let style = app.out.style;
    for problem in &found.problems {
        app.out.line(format!("{}: {}", style.bad("damaged"), clean(problem)))?;
    }
    let verdict = if found.is_clean() { style.good("intact") } else { style.bad("damaged") };
    let erased = match found.erased {
        0 => String::new(),
        erased => format!(", {} erased", count(erased, "event")),
    };
    app.out.line(format!(
        "{verdict}: {}, {}, {}{erased}",
        count(found.runs, "run"),
        count(found.events, "event"),
        count(found.blobs, "stored body").replace("bodys", "bodies"),
    ))?;
    if let Some(head) = found.head {
        app.out.line(format!("head {head}"))?;
    }
    Ok(code)
}

fn head(text: &str) -> Result<Hash> {
    Hash::parse(text).map_err(|_| {
        let message = format!("{text:?} is not a head");
        Error::invalid_input("--head", message)
            .suggest("give the 64 digits and letters that `sifaka run` printed after \"head\"")
    })
}

/// A record too damaged to be gone through. That `verify` would tell more is no help here.
fn unreadable(error: Error) -> Error {
    if error.kind() != ErrorKind::Corrupt {
        return error;
    }
    Error::new(ErrorKind::Corrupt, error.component(), "verify", error.message())
        .suggest("restore the file from a copy; what is left cannot be read as a record")
}
