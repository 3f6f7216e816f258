//! Figures that are not times of a loop: memory of a long Thought, and what starting the program
//! costs. Prints the machine's own speeds of the same run beside them.
//!
//! `cargo build --release -p sifaka-cli && cargo run --release -p sifaka-benches --bin figures -- PROGRAM`

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program that reports")]
#![expect(
    unsafe_code,
    reason = "counting memory means standing in for the allocator and asking the system"
)]

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
    // First, while this program is small itself: see `wait`.
    if let Some(program) = std::env::args().nth(1) {
        let (time, memory) = start(&program)?;
        let memory =
            memory.map_or("memory not measured".to_owned(), |kb| format!("{kb} kB resident"));
        println!("{program} --version: {:.2} ms, {memory}", time.as_secs_f64() * 1e3);
    }
    println!("1,000 iterations of a 500-byte text: {} bytes", long_thought());
    println!("machine: {}", Machine::measure()?);
    Ok(())
}

/// Bytes held by a Thought of a thousand iterations, each with a text of its own.
fn long_thought() -> usize {
    let ctx = Context::new();
    // Plain letters, so that it can be cut anywhere.
    let text = TEXTS[0].repeat(8);
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

/// The median time of `--version`, and the most memory any of the starts took, in kB.
fn start(program: &str) -> std::io::Result<(Duration, Option<u64>)> {
    let mut times = Vec::new();
    let mut most = None;
    for _ in 0..21 {
        let started = Instant::now();
        let mut child = Command::new(program).arg("--version").stdout(Stdio::null()).spawn()?;
        let peak = wait(&mut child, program)?;
        times.push(started.elapsed());
        most = most.max(peak);
    }
    times.sort_unstable();
    Ok((times[times.len() / 2], most))
}

/// Waits for a program to end well; gives the most memory it had, in kB.
#[cfg(target_os = "linux")]
fn wait(child: &mut std::process::Child, program: &str) -> std::io::Result<Option<u64>> {
    use std::os::unix::process::ExitStatusExt;

    // The handle does not know that it was waited for; nobody asks it again.
    let id = i32::try_from(child.id()).map_err(std::io::Error::other)?;
    let (mut status, mut usage) = (0, std::mem::MaybeUninit::<libc::rusage>::zeroed());
    // SAFETY: the child is ours and was not waited for; both places are valid to write to.
    if unsafe { libc::wait4(id, &raw mut status, 0, usage.as_mut_ptr()) } != id {
        return Err(std::io::Error::last_os_error());
    }
    ended_well(std::process::ExitStatus::from_raw(status), program)?;
    // SAFETY: all zeros is a value of it, and the call succeeded.
    let peak = unsafe { usage.assume_init() }.ru_maxrss;
    let mut own = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the place is valid to write to, and all zeros is a value of it.
    let own = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, own.as_mut_ptr());
        own.assume_init().ru_maxrss
    };
    // A child's peak begins with that of whoever started it. What is not above ours says nothing.
    Ok(u64::try_from(peak).ok().filter(|_| peak > own))
}

/// Waits for a program to end well. How much memory it had is counted differently everywhere.
#[cfg(not(target_os = "linux"))]
fn wait(child: &mut std::process::Child, program: &str) -> std::io::Result<Option<u64>> {
    ended_well(child.wait()?, program).map(|()| None)
}

fn ended_well(status: std::process::ExitStatus, program: &str) -> std::io::Result<()> {
    if status.success() {
        return Ok(());
    }
    Err(std::io::Error::other(format!("{program} --version: {status}")))
}
