//! A few threads that work on one thing together, with little time lost between things.
//!
//! A forward pass is some hundred short parallel steps a token. Handing each to a general pool costs
//! more than the step; so these threads wait for the next one awake for a moment, and sleep only
//! when none comes. Whoever is there takes the next part: on a busy machine a thread that was put
//! aside holds up nobody but with the part it has begun.

#![expect(unsafe_code, reason = "workers borrow from the caller's stack while the caller waits")]

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

/// How often a worker looks before it goes to sleep: less than a millisecond.
const PATIENCE: u32 = 10_000;

type Job = dyn Fn(usize, usize) + Sync;

struct Shared {
    /// The round, how many parts it has, and which is the next; see [`Ticket`].
    ticket: AtomicU64,
    job: Mutex<Option<JobPointer>>,
    /// Parts of this round that are done.
    done: AtomicUsize,
    sleeping: Mutex<usize>,
    wake: Condvar,
    failed: AtomicBool,
    over: AtomicBool,
}

/// Round, number of parts and next part in one word, so that nobody takes a part of a round that is
/// over.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Ticket(u64);

impl Ticket {
    const fn new(round: u64, parts: usize) -> Self {
        Self(round << 32 | (parts as u64) << 16)
    }
    const fn round(self) -> u64 {
        self.0 >> 32
    }
    const fn parts(self) -> usize {
        (self.0 >> 16 & 0xffff) as usize
    }
    const fn next(self) -> usize {
        (self.0 & 0xffff) as usize
    }
}

#[derive(Clone, Copy)]
struct JobPointer(*const Job);

// SAFETY: the job behind it is `Sync`, and `Team::run` does not return while anyone uses it.
unsafe impl Send for JobPointer {}

impl Shared {
    /// Takes the next part of the current round, if there is one.
    fn claim(&self) -> Option<usize> {
        let mut ticket = Ticket(self.ticket.load(Ordering::SeqCst));
        while ticket.next() < ticket.parts() {
            let taken = self.ticket.compare_exchange_weak(
                ticket.0,
                ticket.0 + 1,
                Ordering::SeqCst,
                Ordering::SeqCst,
            );
            match taken {
                Ok(_) => return Some(ticket.next()),
                Err(now) => ticket = Ticket(now),
            }
        }
        None
    }
}

/// The threads. The one that calls [`run`](Self::run) is one of them.
pub(crate) struct Team {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
}

impl Team {
    /// So many threads, the caller's among them.
    pub(crate) fn new(threads: usize) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            ticket: AtomicU64::new(0),
            job: Mutex::new(None),
            done: AtomicUsize::new(0),
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

    /// Has the threads do `job` for every part, with the number of the thread and of the part, and
    /// waits until all are done. A panic in one comes out here.
    fn run(&mut self, parts: usize, job: &(dyn Fn(usize, usize) + Sync)) {
        if self.workers.is_empty() || parts < 2 {
            (0..parts).for_each(|part| job(0, part));
            return;
        }
        let shared = &*self.shared;
        // SAFETY: only the lifetime is forgotten. A worker uses the job only after it has claimed a
        // part of this round, and below, this function waits until every part is done, whatever
        // happens on this thread.
        let pointer = JobPointer(unsafe {
            std::mem::transmute::<*const (dyn Fn(usize, usize) + Sync + '_), *const Job>(job)
        });
        *shared.job.lock().unwrap_or_else(PoisonError::into_inner) = Some(pointer);
        shared.done.store(0, Ordering::SeqCst);
        let round = Ticket(shared.ticket.load(Ordering::SeqCst)).round();
        shared.ticket.store(Ticket::new((round + 1) & 0xffff_ffff, parts).0, Ordering::SeqCst);
        if *shared.sleeping.lock().unwrap_or_else(PoisonError::into_inner) > 0 {
            shared.wake.notify_all();
        }
        let mut panic = None;
        while let Some(part) = shared.claim() {
            if let Err(caught) = catch_unwind(AssertUnwindSafe(|| job(0, part))) {
                panic = Some(caught);
            }
            shared.done.fetch_add(1, Ordering::Release);
        }
        let mut looked = 0_u32;
        while shared.done.load(Ordering::Acquire) < parts {
            looked += 1;
            // Where there are fewer processors than threads, the one we wait for needs ours.
            if looked.is_multiple_of(256) {
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
        let failed = shared.failed.swap(false, Ordering::Relaxed);
        assert!(!failed, "a worker of the embedded model panicked");
    }

    /// Has the threads do `job` for every part, with the number of the thread.
    pub(crate) fn share<P: Send>(&mut self, parts: Vec<P>, job: impl Fn(usize, P) + Sync) {
        let parts: Vec<Mutex<Option<P>>> = parts.into_iter().map(|p| Mutex::new(Some(p))).collect();
        debug_assert!(parts.len() < 1 << 16);
        self.run(parts.len(), &|rank, part| {
            let own = parts.get(part);
            let own = own.and_then(|p| p.lock().unwrap_or_else(PoisonError::into_inner).take());
            if let Some(own) = own {
                job(rank, own);
            }
        });
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::SeqCst);
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
    let mut looked = 0;
    while !shared.over.load(Ordering::SeqCst) {
        if let Some(part) = shared.claim() {
            looked = 0;
            let job = *shared.job.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(JobPointer(job)) = job {
                // SAFETY: the part that was claimed is not done, so `run` keeps the job alive.
                let outcome = catch_unwind(AssertUnwindSafe(|| unsafe { (*job)(rank, part) }));
                if outcome.is_err() {
                    shared.failed.store(true, Ordering::Relaxed);
                }
            }
            shared.done.fetch_add(1, Ordering::Release);
            continue;
        }
        looked += 1;
        if looked < PATIENCE {
            std::hint::spin_loop();
            continue;
        }
        looked = 0;
        let mut sleeping = shared.sleeping.lock().unwrap_or_else(PoisonError::into_inner);
        *sleeping += 1;
        let idle = || {
            let ticket = Ticket(shared.ticket.load(Ordering::SeqCst));
            ticket.next() >= ticket.parts() && !shared.over.load(Ordering::SeqCst)
        };
        while idle() {
            sleeping = shared.wake.wait(sleeping).unwrap_or_else(PoisonError::into_inner);
        }
        *sleeping -= 1;
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
    fn every_part_is_done_once_and_a_panic_comes_out() {
        let mut team = Team::new(3).unwrap();
        for round in 0..2000 {
            let mut out = vec![0; 700];
            let parts = out.chunks_mut(100).enumerate().collect();
            team.share(parts, |_, (n, part): (usize, &mut [usize])| {
                part.iter_mut().for_each(|x| *x += n + round);
            });
            assert!(out.chunks(100).enumerate().all(|(n, p)| p.iter().all(|&x| x == n + round)));
        }
        for wrong in 0..6 {
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                team.share((0..6).collect(), |_, part: i32| assert_ne!(part, wrong, "on purpose"));
            }));
            assert!(outcome.is_err());
        }
        let count = AtomicUsize::new(0);
        team.share(vec![(); 9], |rank, ()| {
            assert!(rank < 3);
            count.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(count.into_inner(), 9);
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
            team.share(vec![(); 2], |_, ()| {
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
