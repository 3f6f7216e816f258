//! A few threads that work on one thing together, with little time lost between things.
//!
//! A forward pass is some hundred short parallel steps a token. Handing each to a general pool costs
//! more than the step; so these threads wait for the next one awake for a moment, and sleep only
//! when none comes.

#![expect(unsafe_code, reason = "workers borrow from the caller's stack while the caller waits")]

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

/// How often a worker looks before it goes to sleep: some fifty microseconds.
const PATIENCE: u32 = 20_000;

type Job = dyn Fn(usize) + Sync;

struct Shared {
    /// Counts the jobs; a worker has done as many as it has seen.
    round: AtomicU64,
    job: Mutex<Option<JobPointer>>,
    /// Workers that have not finished the current job.
    busy: AtomicUsize,
    sleeping: Mutex<usize>,
    wake: Condvar,
    failed: AtomicBool,
    over: AtomicBool,
}

#[derive(Clone, Copy)]
struct JobPointer(*const Job);

// SAFETY: the job behind it is `Sync`, and `Team::run` does not return while anyone uses it.
unsafe impl Send for JobPointer {}

/// The threads. The one that calls [`run`](Self::run) is one of them.
pub(crate) struct Team {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
}

impl Team {
    /// So many threads, the caller's among them.
    pub(crate) fn new(threads: usize) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            round: AtomicU64::new(0),
            job: Mutex::new(None),
            busy: AtomicUsize::new(0),
            sleeping: Mutex::new(0),
            wake: Condvar::new(),
            failed: AtomicBool::new(false),
            over: AtomicBool::new(false),
        });
        let mut team = Self { shared, workers: Vec::new() };
        for rank in 1..threads.max(1) {
            let shared = Arc::clone(&team.shared);
            let thread = std::thread::Builder::new().name(format!("sifaka-local-{rank}"));
            team.workers.push(thread.spawn(move || work(&shared, rank))?);
        }
        Ok(team)
    }

    /// How many threads it has.
    pub(crate) fn size(&self) -> usize {
        self.workers.len() + 1
    }

    /// Has every thread do `job` with its number, and waits for all of them. A panic in one comes
    /// out here.
    pub(crate) fn run(&mut self, job: &(dyn Fn(usize) + Sync)) {
        if self.workers.is_empty() {
            job(0);
            return;
        }
        let shared = &*self.shared;
        // SAFETY: only the lifetime is forgotten; below, this function waits until no worker is
        // busy with the job, whatever happens on this thread.
        let pointer = JobPointer(unsafe {
            std::mem::transmute::<*const (dyn Fn(usize) + Sync + '_), *const Job>(job)
        });
        *shared.job.lock().unwrap_or_else(PoisonError::into_inner) = Some(pointer);
        shared.busy.store(self.workers.len(), Ordering::Relaxed);
        shared.round.fetch_add(1, Ordering::SeqCst);
        if *shared.sleeping.lock().unwrap_or_else(PoisonError::into_inner) > 0 {
            shared.wake.notify_all();
        }
        let own = catch_unwind(AssertUnwindSafe(|| job(0)));
        let mut looked = 0_u32;
        while shared.busy.load(Ordering::Acquire) > 0 {
            looked += 1;
            // Where there are fewer processors than threads, the one we wait for needs ours.
            if looked.is_multiple_of(1000) { std::thread::yield_now() } else { std::hint::spin_loop() }
        }
        if let Err(panic) = own {
            resume_unwind(panic);
        }
        assert!(!shared.failed.swap(false, Ordering::Relaxed), "a worker of the embedded model panicked");
    }

    /// Has each thread do `job` with a part of its own; there are at most as many parts as threads.
    pub(crate) fn share<P: Send>(&mut self, parts: Vec<P>, job: impl Fn(P) + Sync) {
        debug_assert!(parts.len() <= self.size());
        let parts: Vec<Mutex<Option<P>>> = parts.into_iter().map(|p| Mutex::new(Some(p))).collect();
        self.run(&|rank| {
            let part = parts.get(rank).and_then(|part| {
                part.lock().unwrap_or_else(PoisonError::into_inner).take()
            });
            if let Some(part) = part {
                job(part);
            }
        });
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::SeqCst);
        self.shared.round.fetch_add(1, Ordering::SeqCst);
        // The lock orders this after a worker that is about to sleep has looked a last time.
        drop(self.shared.sleeping.lock().unwrap_or_else(PoisonError::into_inner));
        self.shared.wake.notify_all();
        for worker in self.workers.drain(..) {
            // A worker catches every panic of a job; there is nothing it could fail with.
            let _ = worker.join();
        }
    }
}

fn work(shared: &Shared, rank: usize) {
    let mut seen = 0;
    loop {
        let mut looked = 0;
        while shared.round.load(Ordering::SeqCst) == seen {
            looked += 1;
            if looked < PATIENCE {
                std::hint::spin_loop();
                continue;
            }
            let mut sleeping = shared.sleeping.lock().unwrap_or_else(PoisonError::into_inner);
            *sleeping += 1;
            while shared.round.load(Ordering::SeqCst) == seen {
                sleeping = shared.wake.wait(sleeping).unwrap_or_else(PoisonError::into_inner);
            }
            *sleeping -= 1;
        }
        seen += 1;
        if shared.over.load(Ordering::SeqCst) {
            return;
        }
        let job = *shared.job.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(JobPointer(job)) = job {
            // SAFETY: `run` keeps the job alive until `busy` is back at zero.
            let outcome = catch_unwind(AssertUnwindSafe(|| unsafe { (*job)(rank) }));
            if outcome.is_err() {
                shared.failed.store(true, Ordering::Relaxed);
            }
        }
        shared.busy.fetch_sub(1, Ordering::Release);
    }
}

/// Splits `count` things into at most `parts` parts of nearly the same size.
pub(crate) fn split(count: usize, parts: usize) -> Vec<std::ops::Range<usize>> {
    let parts = parts.clamp(1, count.max(1));
    (0..parts).map(|p| p * count / parts..(p + 1) * count / parts).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_does_its_part_and_a_panic_comes_out() {
        let mut team = Team::new(3).unwrap();
        for round in 0..2000 {
            let mut out = vec![0; 300];
            let parts = out.chunks_mut(100).enumerate().collect();
            team.share(parts, |(n, part): (usize, &mut [usize])| part.fill(n + round));
            assert!(out.chunks(100).enumerate().all(|(n, p)| p.iter().all(|&x| x == n + round)));
        }
        for rank in 0..3 {
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                team.run(&|r| assert_ne!(r, rank, "on purpose"));
            }));
            assert!(outcome.is_err());
        }
        let count = AtomicUsize::new(0);
        team.run(&|_| {
            count.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(count.into_inner(), 3);
    }

    #[test]
    fn a_team_that_slept_wakes_up() {
        let mut team = Team::new(2).unwrap();
        for _ in 0..3 {
            // Long enough that the worker sleeps, if it ever does.
            for _ in 0..PATIENCE * 20 {
                std::hint::spin_loop();
            }
            let count = AtomicUsize::new(0);
            team.run(&|_| {
                count.fetch_add(1, Ordering::Relaxed);
            });
            assert_eq!(count.into_inner(), 2);
        }
    }

    #[test]
    fn splitting_leaves_nothing_out() {
        for count in 0..40 {
            for parts in 1..7 {
                let ranges = split(count, parts);
                assert_eq!(ranges.iter().map(ExactSizeIterator::len).sum::<usize>(), count);
                assert!(ranges.len() <= parts);
            }
        }
    }
}
