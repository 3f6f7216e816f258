//! llama.cpp's own server, out of the Python package `xllamacpp`.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::{Address, Server, get_json, servers_folder, unavailable};

/// How llama.cpp's server runs.
#[derive(Clone, Copy, Debug)]
pub struct LlamaCpp {
    /// Threads that compute. They wait for each other by spinning, so on a machine that is busy
    /// with other tests one is quickest.
    pub threads: u32,
    /// Tokens of context for each slot.
    pub context: u32,
    /// Sequences that are worked on at once.
    pub slots: u32,
}

impl Default for LlamaCpp {
    fn default() -> Self {
        Self { threads: 1, context: 2048, slots: 1 }
    }
}

/// llama.cpp's server on these weights; `None`, after [`unavailable`], when `xllamacpp` is not
/// here.
///
/// # Panics
/// When it is here but does not come up: that is no lack but a failure.
#[must_use]
#[expect(clippy::panic, reason = "a helper that panics fails its test")]
pub fn llama_cpp(gguf: &Path, options: &LlamaCpp) -> Option<Server> {
    let python = if cfg!(windows) { "python/Scripts/python.exe" } else { "python/bin/python" };
    let python = servers_folder().map(|folder| folder.join(python));
    let Some(python) = python.filter(|python| has_package(python)) else {
        let why = "xllamacpp is not here; ./test without arguments installs it";
        unavailable("llama.cpp's server", why);
        return None;
    };
    let options = json!({
        "gguf": gguf,
        "threads": options.threads,
        "context": options.context,
        "slots": options.slots,
    });
    let mut command = Command::new(python);
    command.args(["-c", include_str!("llama_cpp.py"), &options.to_string()]);
    let ready = |address| get_json(address, "/health").is_ok_and(|(status, _)| status == 200);
    match Server::start(command, Address::Told, ready) {
        Ok(server) => Some(server),
        Err(error) => panic!("llama.cpp's server: {error}"),
    }
}

fn has_package(python: &Path) -> bool {
    let looks =
        "import importlib.util, sys; sys.exit(importlib.util.find_spec('xllamacpp') is None)";
    let output = Command::new(python).args(["-c", looks]).output();
    output.is_ok_and(|output| output.status.success())
}
