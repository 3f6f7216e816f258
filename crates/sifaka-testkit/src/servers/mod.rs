//! Real servers for tests, started by them and ended with them.
//!
//! `./test` puts what they need below the user's cache folder. Where something could not be had,
//! the trials that need it are not run and [`unavailable`] says so; under `SIFAKA_REQUIRE_ALL`,
//! which CI sets, that is a failure.

mod http;
mod llama_cpp;

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sifaka_core::folders;

pub use http::{get_json, post_json};
pub use llama_cpp::{LlamaCpp, llama_cpp};

/// How long a server may take to come up.
const PATIENCE: Duration = Duration::from_secs(120);

/// How much of what a server says is kept.
const KEPT: usize = 64 * 1024;

/// A server that runs until this is dropped.
#[derive(Debug)]
pub struct Server {
    /// Where it can be asked.
    pub address: SocketAddr,
    child: Child,
    said: Arc<Mutex<Vec<u8>>>,
}

/// How the address of a server is known.
#[derive(Clone, Copy, Debug)]
pub enum Address {
    /// It was told to listen there.
    Given(SocketAddr),
    /// It says `listening ADDRESS` on its standard output.
    Told,
}

impl Server {
    /// Starts a server and waits until `ready` says that it can be asked.
    ///
    /// Its standard input stays open as long as this lives, so one that ends with its input does
    /// not outlive a test that is killed. What it says is kept for [`Server::said`].
    ///
    /// # Errors
    /// When it cannot be started, ends, or does not come up; with what it said.
    pub fn start(
        mut command: Command,
        address: Address,
        ready: impl Fn(SocketAddr) -> bool,
    ) -> io::Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let said = Arc::new(Mutex::new(Vec::new()));
        if let Some(errors) = child.stderr.take() {
            let said = Arc::clone(&said);
            std::thread::spawn(move || keep(errors, &said));
        }
        let output = child.stdout.take();
        let unknown = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut server = Self { address: unknown, child, said };
        let mut output = BufReader::new(output.ok_or_else(|| io::Error::other("no output"))?);
        server.address = match address {
            Address::Given(address) => address,
            Address::Told => {
                told(&mut output).ok_or_else(|| server.failed("it told no address"))?
            }
        };
        let rest = Arc::clone(&server.said);
        std::thread::spawn(move || keep(output, &rest));
        let began = Instant::now();
        while !ready(server.address) {
            if let Some(status) = server.child.try_wait()? {
                return Err(server.failed(&format!("it ended with {status}")));
            }
            if began.elapsed() > PATIENCE {
                return Err(server.failed("it did not come up"));
            }
            #[expect(clippy::disallowed_methods, reason = "a server comes up in real time")]
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(server)
    }

    /// The last of what it said.
    #[must_use]
    pub fn said(&self) -> String {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&said).into_owned()
    }

    fn failed(&self, what: &str) -> io::Error {
        io::Error::other(format!("{what}\n{}", self.said()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The address out of a line `listening ADDRESS`, with or without `http://`.
fn told(output: &mut impl BufRead) -> Option<SocketAddr> {
    let mut line = String::new();
    while output.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
        if let Some(address) = line.trim().strip_prefix("listening ") {
            return address.trim_start_matches("http://").parse().ok();
        }
        line.clear();
    }
    None
}

fn keep(mut output: impl Read, said: &Mutex<Vec<u8>>) {
    let mut buffer = [0; 4096];
    // What was heard until it broke is worth showing.
    while let Ok(count @ 1..) = output.read(&mut buffer) {
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        said.extend(buffer.iter().take(count));
        let surplus = said.len().saturating_sub(KEPT);
        said.drain(..surplus);
    }
}

/// Says that trials of `what` are not run, and why.
///
/// # Panics
/// Under `SIFAKA_REQUIRE_ALL`.
#[expect(clippy::panic, reason = "a test that cannot be run where it must be has failed")]
pub fn unavailable(what: &str, why: &str) {
    let message = format!("NOT RUN: {what}: {}", why.trim_end());
    if folders::variable("SIFAKA_REQUIRE_ALL").is_some() {
        panic!("{message}");
    }
    // Not by a macro: what tests that pass print by those is not shown. Nothing is left to do
    // when even this fails.
    let _ = writeln!(io::stderr(), "{message}");
}

/// The folder of servers that `./test` filled: `SIFAKA_SERVERS`, or below the user's cache folder.
fn servers_folder() -> Option<PathBuf> {
    let below = |cache: PathBuf| cache.join("sifaka").join("servers");
    folders::variable("SIFAKA_SERVERS").or_else(|| folders::cache().map(below))
}

/// Weights that `./test` pulled, by their place in the folder of weights; `None`, after
/// [`unavailable`], when they are not there.
///
/// This is `sifaka_local::weights` in small, so that the kit need not be built on an engine.
#[must_use]
pub fn weights(place: &str) -> Option<PathBuf> {
    let below = |cache: PathBuf| cache.join("sifaka").join("weights");
    let folder = folders::variable("SIFAKA_WEIGHTS").or_else(|| folders::cache().map(below));
    let path = folder.map(|folder| folder.join(place));
    let found = path.filter(|path| path.exists());
    if found.is_none() {
        unavailable(place, "the weights are not here; ./test without arguments fetches them");
    }
    found
}

/// The language model for tests: the file `SIFAKA_TEST_GGUF`, or SmolLM2 as `./test` pulled it;
/// `None`, after [`unavailable`], when there is neither.
#[must_use]
pub fn gguf() -> Option<PathBuf> {
    folders::variable("SIFAKA_TEST_GGUF").or_else(|| weights("smollm2-135m-instruct-q4_1.gguf"))
}
