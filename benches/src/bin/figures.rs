//! Figures that are not times of a loop: memory of a long Thought, and what starting the program
//! costs. Prints the machine's own speeds of the same run beside them.
//!
//! `cargo build --release -p sifaka-cli && cargo run --release -p sifaka-benches --bin figures -- PROGRAM`

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program that reports")]
#![expect(unsafe_code, reason = "counting memory means standing in for the allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use sifaka_benches::{Machine, TEXTS};
use sifaka_core::{Context, Thought};

/// Counts the bytes that are in use.
struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        IN_USE.fetch_add(layout.size(), Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() -> ExitCode {
    match figures() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn figures() -> std::io::Result<()> {
    println!("machine: {}", Machine::measure()?);
    println!("1,000 iterations of a 500-byte text: {} bytes", long_thought());
    if let Some(program) = std::env::args().nth(1) {
        let (time, memory) = start(&program)?;
        println!("{program} --version: {:.2} ms, {memory} kB resident", time.as_secs_f64() * 1e3);
    }
    Ok(())
}

/// Bytes held by a Thought of a thousand iterations, each with a text of its own.
fn long_thought() -> usize {
    let ctx = Context::new();
    let text = &TEXTS[0];
    let before = IN_USE.load(Ordering::Relaxed);
    let own = |n: usize| format!("{n:04} {}", &text[..495]);
    let mut thought = Thought::new(&ctx, "Explain what a sifaka is.").with_text(own(0));
    for n in 1..1_000 {
        thought = thought.next_iteration(&ctx).with_text(own(n));
    }
    let held = IN_USE.load(Ordering::Relaxed) - before;
    assert_eq!(thought.iterations().count(), 1_000);
    held
}

/// The median time of `--version`, and the most memory any of the starts took.
fn start(program: &str) -> std::io::Result<(Duration, u64)> {
    let mut times = Vec::new();
    let mut most = 0;
    for _ in 0..21 {
        let started = Instant::now();
        let status = Command::new(program).arg("--version").stdout(Stdio::null()).status()?;
        times.push(started.elapsed());
        if !status.success() {
            return Err(std::io::Error::other(format!("{program} --version: {status}")));
        }
    }
    // The shell's `ulimit` has no view of memory in use; GNU time has, and says so on stderr.
    let output = Command::new("/usr/bin/time").args(["-f", "%M", program, "--version"]).output();
    if let Ok(output) = output {
        let said = String::from_utf8_lossy(&output.stderr);
        most = said.trim().parse().unwrap_or(0);
    }
    times.sort_unstable();
    Ok((times[times.len() / 2], most))
}
