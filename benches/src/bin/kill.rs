//! Kills the real program at random moments, a thousand times unless told otherwise, and checks
//! that nothing it acknowledged is lost.
//!
//! `cargo build --release -p sifaka-cli && cargo run --release -p sifaka-benches --bin kill -- PROGRAM [ROUNDS] [SEED]`

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program that reports")]

use std::process::ExitCode;

use sifaka_testkit::kill::Campaign;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(program) = arguments.next() else {
        eprintln!("usage: kill PROGRAM [ROUNDS] [SEED]");
        return ExitCode::from(2);
    };
    let mut number =
        |default: u64| arguments.next().and_then(|n| n.parse().ok()).unwrap_or(default);
    let (rounds, seed) = (number(1_000), number(1));
    let report = tempfile::tempdir().map_err(|error| error.to_string()).and_then(|folder| {
        let program = std::fs::canonicalize(&program).map_err(|error| error.to_string())?;
        let rounds = u32::try_from(rounds).unwrap_or(u32::MAX);
        Campaign { program, folder: folder.path().to_owned(), rounds, seed }.run()
    });
    match report {
        Ok(report) => {
            println!("{report}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
