//! The model's thread: it runs the tasks, and computes what they wait for.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use futures_util::stream::{FuturesUnordered, StreamExt};
use futures_util::{FutureExt, future::BoxFuture};
use sifaka_core::{Error, ErrorKind, Result};

use super::Statistics;
use super::batch::{Work, pass};
use crate::llama::{Llama, Scratch};
use crate::pages::{Prefixes, Table};
use crate::team::Team;

/// Where tasks and sequences leave what is to be done.
pub(super) struct Desk {
    context: usize,
    cache_pages: usize,
    tray: Mutex<Tray>,
    /// Set by whoever brings something, cleared before it is looked for.
    rung: AtomicBool,
}

#[derive(Default)]
struct Tray {
    tasks: Vec<BoxFuture<'static, ()>>,
    works: Vec<Work>,
    finished: Vec<Table>,
    thread: Option<Thread>,
    closed: bool,
    statistics: Statistics,
}

impl Desk {
    pub(super) fn new(context: usize, cache_pages: usize) -> Self {
        Self { context, cache_pages, tray: Mutex::default(), rung: AtomicBool::new(false) }
    }

    pub(super) fn context(&self) -> usize {
        self.context
    }

    pub(super) fn statistics(&self) -> Statistics {
        self.tray().statistics
    }

    pub(super) fn begin(&self, task: BoxFuture<'static, ()>) {
        self.put(|tray| tray.tasks.push(task));
    }

    /// Work that comes after the thread has ended is dropped, which whoever asked takes as an error.
    pub(super) fn add(&self, work: Work) {
        let mut tray = self.tray();
        if tray.thread.is_some() {
            tray.works.push(work);
            drop(tray);
            self.ring();
        } else {
            // Whoever waits is woken by the drop, and must not find the tray locked.
            drop(tray);
            drop(work);
        }
    }

    /// Keeps what a finished sequence knows, for prompts that begin like it.
    pub(super) fn keep(&self, table: Table) {
        let mut tray = self.tray();
        // Only what is left of the last few; nobody is woken for it.
        if self.cache_pages > 0 && tray.finished.len() < 64 {
            tray.finished.push(table);
        }
    }

    pub(super) fn close(&self) {
        self.put(|tray| tray.closed = true);
    }

    fn put(&self, change: impl FnOnce(&mut Tray)) {
        change(&mut self.tray());
        self.ring();
    }

    fn ring(&self) {
        if !self.rung.swap(true, Ordering::AcqRel)
            && let Some(thread) = &self.tray().thread
        {
            thread.unpark();
        }
    }

    fn tray(&self) -> MutexGuard<'_, Tray> {
        self.tray.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Desk {
    fn wake(self: Arc<Self>) {
        self.ring();
    }
    fn wake_by_ref(self: &Arc<Self>) {
        self.ring();
    }
}

impl fmt::Debug for Desk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Desk").field("context", &self.context).finish_non_exhaustive()
    }
}

pub(super) struct Worker {
    desk: Arc<Desk>,
    model: Llama,
    team: Team,
    scratch: Scratch,
    prefixes: Prefixes,
    tasks: FuturesUnordered<BoxFuture<'static, ()>>,
    works: Vec<Work>,
}

impl Worker {
    /// Starts the thread.
    pub(super) fn start(desk: &Arc<Desk>, model: Llama, threads: usize) -> Result<()> {
        let cannot = |error: std::io::Error| {
            Error::new(ErrorKind::Internal, "local", "load", "no thread could be started")
                .suggest("give fewer threads, or end other programs")
                .with_source(error)
        };
        let team = Team::new(threads).map_err(cannot)?;
        let prefixes = Prefixes::new(desk.cache_pages);
        let worker = Self {
            desk: Arc::clone(desk),
            model,
            team,
            scratch: Scratch::default(),
            prefixes,
            tasks: FuturesUnordered::new(),
            works: Vec::new(),
        };
        let thread = std::thread::Builder::new()
            .name("sifaka-local".into())
            .spawn(move || worker.work())
            .map_err(cannot)?;
        desk.tray().thread = Some(thread.thread().clone());
        Ok(())
    }

    fn work(mut self) {
        let waker = Waker::from(Arc::clone(&self.desk));
        while self.go_on(&mut Context::from_waker(&waker)) {}
        self.desk.tray().thread = None;
    }

    /// One round; whether there is to be another.
    fn go_on(&mut self, cx: &mut Context<'_>) -> bool {
        self.desk.rung.store(false, Ordering::Release);
        let (tasks, closed) = {
            let mut tray = self.desk.tray();
            self.works.append(&mut tray.works);
            for table in tray.finished.drain(..) {
                self.prefixes.keep(&table);
            }
            tray.statistics.kept_pages = self.prefixes.len();
            (std::mem::take(&mut tray.tasks), tray.closed)
        };
        let came = !tasks.is_empty();
        for task in tasks {
            // A task that panics drops its reply, which its caller takes as an error.
            self.tasks.push(Box::pin(AssertUnwindSafe(task).catch_unwind().map(drop)));
        }
        let mut moved = came;
        while let Poll::Ready(Some(())) = Pin::new(&mut self.tasks).poll_next_unpin(cx) {
            moved = true;
        }
        // Tasks that were just run have left their work; it belongs to the same pass.
        let asked = {
            let mut tray = self.desk.tray();
            self.works.append(&mut tray.works);
            !tray.tasks.is_empty()
        };
        if asked {
            return true;
        }
        if !self.works.is_empty() {
            self.compute();
            return true;
        }
        if closed && self.tasks.is_empty() {
            return false;
        }
        if !moved {
            self.rest();
        }
        true
    }

    /// Sleeps until something comes. What came since this round began has rung.
    fn rest(&self) {
        if !self.desk.rung.load(Ordering::Acquire) {
            std::thread::park();
        }
    }

    fn compute(&mut self) {
        let Self { model, team, scratch, prefixes, works, desk, .. } = self;
        let done = catch_unwind(AssertUnwindSafe(|| pass(model, team, scratch, prefixes, works)));
        match done {
            Ok(done) => {
                let statistics = &mut desk.tray().statistics;
                statistics.passes += 1;
                statistics.tokens += done.tokens as u64;
                statistics.reused += done.reused as u64;
            }
            // Whoever waited for any of it sees its reply dropped; the next ones start afresh.
            Err(_) => {
                works.clear();
                *scratch = Scratch::default();
            }
        }
    }
}
