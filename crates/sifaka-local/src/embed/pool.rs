//! Threads that compute vectors, so that the async ones do not wait for it.
//!
//! A batch is cut into pieces of a few milliseconds each. The pieces of all callers go through one
//! short queue, so that a small batch gets in between those of a large one, and a batch that nobody
//! waits for any more is given up before its next piece.

use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use sifaka_core::{Context, Error, ErrorKind, Result};
use tokio::sync::{mpsc, oneshot};

/// What the threads do.
pub(super) trait Compute: Send + Sync + 'static {
    /// Memory that a thread keeps from one piece to the next.
    type Scratch: Default;

    /// One vector for each text.
    fn vectors(&self, texts: &[String], scratch: &mut Self::Scratch) -> Result<Vec<Vec<f32>>>;
}

/// Bounds of a piece: as many texts as have so many bytes, unless one has more by itself.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    pub least: usize,
    pub most: usize,
}

struct Job {
    ctx: Context,
    texts: Vec<String>,
    reply: oneshot::Sender<Result<Vec<Vec<f32>>>>,
}

/// The threads. They end when it is dropped.
pub(super) struct Pool {
    name: &'static str,
    queue: mpsc::Sender<Job>,
    threads: usize,
    piece: Piece,
}

impl Pool {
    pub(super) fn start<C: Compute>(
        name: &'static str,
        threads: Option<NonZeroUsize>,
        piece: Piece,
        compute: &Arc<C>,
    ) -> Result<Self> {
        let threads = threads.or(thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
        let (queue, jobs) = mpsc::channel(threads);
        let jobs = Arc::new(Mutex::new(jobs));
        for n in 0..threads {
            let (jobs, compute) = (Arc::clone(&jobs), Arc::clone(compute));
            thread::Builder::new()
                .name(format!("{name}-{n}"))
                .spawn(move || work(&jobs, &*compute))
                .map_err(|error| {
                    Error::new(ErrorKind::Internal, name, "open", "a thread could not be started")
                        .with_source(error)
                        .suggest("use fewer threads")
                })?;
        }
        Ok(Self { name, queue, threads, piece })
    }

    /// One vector for each text, in order.
    pub(super) async fn run(&self, ctx: &Context, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
        let ctx = &ctx.for_component(self.name);
        let total: usize = texts.iter().map(|text| text.len()).sum();
        let size = (total / self.threads).clamp(self.piece.least, self.piece.most);
        ctx.run(async {
            let mut replies = Vec::new();
            for texts in pieces(texts, size) {
                let texts = texts.iter().map(|text| (*text).to_owned()).collect();
                let (reply, answer) = oneshot::channel();
                let job = Job { ctx: ctx.clone(), texts, reply };
                self.queue.send(job).await.map_err(|_| self.gone())?;
                replies.push(answer);
            }
            let mut vectors = Vec::with_capacity(texts.len());
            for reply in replies {
                vectors.append(&mut reply.await.map_err(|_| self.gone())??);
            }
            Ok(vectors)
        })
        .await
    }

    fn gone(&self) -> Error {
        Error::new(ErrorKind::Internal, self.name, "embed", "the computing thread ended early")
            .suggest("open the embedder again")
    }
}

/// Cuts a batch into runs of about `size` bytes.
fn pieces<'a>(texts: &'a [&'a str], size: usize) -> impl Iterator<Item = &'a [&'a str]> {
    let mut rest = texts;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = rest.iter().take_while(|text| {
            // An empty text costs something, too.
            bytes += text.len() + 8;
            bytes <= size
        });
        let count = fits.count().max(1).min(rest.len());
        let (piece, after) = rest.split_at(count);
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

fn work<C: Compute>(jobs: &Mutex<mpsc::Receiver<Job>>, compute: &C) {
    let mut scratch = C::Scratch::default();
    loop {
        // Whoever waits for a job holds the lock; the others wait for the lock.
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).blocking_recv();
        let Some(Job { ctx, texts, reply }) = job else { return };
        if reply.is_closed() {
            continue;
        }
        // A defect must not cost the thread, or all later callers would wait in vain.
        let compute = || ctx.check().and_then(|()| compute.vectors(&texts, &mut scratch));
        let result = catch_unwind(AssertUnwindSafe(compute)).unwrap_or_else(|_| {
            scratch = C::Scratch::default();
            Err(Error::new(ErrorKind::Internal, ctx.component(), "embed", "computing panicked")
                .suggest("report this, with the text"))
        });
        // Nobody waits for it any more when this fails.
        drop(reply.send(result));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use proptest::prelude::*;

    use super::*;

    /// Gives the length of a text; waits for a permit first when there is a gate.
    #[derive(Default)]
    struct Lengths {
        done: AtomicUsize,
        gate: Option<Mutex<std::sync::mpsc::Receiver<()>>>,
    }

    impl Compute for Lengths {
        type Scratch = ();
        fn vectors(&self, texts: &[String], (): &mut ()) -> Result<Vec<Vec<f32>>> {
            if let Some(gate) = &self.gate {
                gate.lock().unwrap().recv().unwrap();
            }
            self.done.fetch_add(1, Ordering::SeqCst);
            assert!(!texts.iter().any(|text| text == "panic"), "a text nobody expected");
            Ok(texts.iter().map(|text| vec![text.len() as f32]).collect())
        }
    }

    fn start(compute: &Arc<Lengths>, threads: usize) -> Pool {
        let piece = Piece { least: 16, most: 64 };
        Pool::start("test", NonZeroUsize::new(threads), piece, compute).unwrap()
    }

    #[tokio::test]
    async fn vectors_come_in_the_order_of_the_texts() {
        let compute = Arc::new(Lengths::default());
        let pool = start(&compute, 3);
        let texts: Vec<String> = (0..200).map(|n| "x".repeat(n * 7 % 90)).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let vectors = pool.run(&Context::new(), &texts).await.unwrap();
        let want: Vec<_> = texts.iter().map(|text| vec![text.len() as f32]).collect();
        assert_eq!(vectors, want);
        assert_eq!(pool.run(&Context::new(), &[]).await.unwrap(), Vec::<Vec<f32>>::new());
        assert!(compute.done.load(Ordering::SeqCst) > 20, "it came in pieces");
    }

    #[tokio::test]
    async fn a_cancelled_batch_is_given_up() {
        let (open, gate) = std::sync::mpsc::sync_channel(100);
        let compute = Arc::new(Lengths { gate: Some(Mutex::new(gate)), ..Lengths::default() });
        let pool = start(&compute, 1);
        let ctx = Context::new();
        let texts = ["0123456789012345"; 50];
        let (batch, ()) = tokio::join!(pool.run(&ctx, &texts), async {
            tokio::task::yield_now().await;
            ctx.cancellation().cancel();
        });
        assert_eq!(batch.unwrap_err().kind(), ErrorKind::Cancelled);
        for _ in 0..100 {
            open.send(()).unwrap();
        }
        // The next batch is served, and of the one before no more than the piece under way.
        let later = pool.run(&Context::new(), &["abc"]).await.unwrap();
        assert_eq!(later, [[3.0]]);
        assert!(compute.done.load(Ordering::SeqCst) <= 2);
    }

    #[tokio::test]
    async fn a_panic_is_an_error_and_the_threads_live_on() {
        let pool = start(&Arc::new(Lengths::default()), 1);
        let error = pool.run(&Context::new(), &["panic"]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal);
        assert_eq!(pool.run(&Context::new(), &["abc"]).await.unwrap(), [[3.0]]);
    }

    proptest! {
        #[test]
        fn pieces_are_the_batch(lengths in prop::collection::vec(0_usize..60, 0..40), size in 1_usize..100) {
            let texts: Vec<String> = lengths.iter().map(|n| "x".repeat(*n)).collect();
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let cut: Vec<&[&str]> = pieces(&texts, size).collect();
            prop_assert!(cut.iter().all(|piece| !piece.is_empty()));
            prop_assert!(cut.iter().all(|piece| piece.len() == 1
                || piece.iter().map(|text| text.len() + 8).sum::<usize>() <= size));
            let joined = cut.concat();
            prop_assert_eq!(&joined, &texts);
        }
    }
}
