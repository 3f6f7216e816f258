//! The journal's contract, kept by the file.

use std::sync::Arc;

use async_trait::async_trait;
use sifaka_core::clock::SystemClock;
use sifaka_core::event::Sealed;
use sifaka_core::journal::{
    Resolved, Retention, RunLog, RunQuery, RunSummary, Verification, Verify,
};
use sifaka_core::{Blobs, Clock, Context, Error, ErrorKind, Hash, Id, Journal, Result};
use tokio::sync::oneshot;

use super::failure::writer_gone;
use super::lease::Holders;
use super::log::SqliteLog;
use super::request::{Reply, Request};
use super::row::{StoredLease, near_nanos, newest_link};
use super::{SqliteJournal, read, verify};
use crate::summary::check_prefix;

/// How many runs are erased in one transaction, so that others get their turn between.
const ERASED_AT_ONCE: usize = 64;

#[async_trait]
impl Blobs for SqliteJournal {
    async fn blob(&self, ctx: &Context, hash: &Hash) -> Result<Option<Arc<[u8]>>> {
        let hash = *hash;
        self.handle.readers.read(ctx, move |connection| read::blob(connection, &hash)).await
    }
}

#[async_trait]
impl Journal for SqliteJournal {
    fn name(&self) -> &str {
        &self.handle.name
    }

    async fn open_run(&self, ctx: &Context, run: &Id) -> Result<Box<dyn RunLog>> {
        let queue = &self.handle.queue;
        let grant = ctx
            .run(async {
                let room = queue.room(0).await?;
                let (reply, grant) = oneshot::channel();
                queue.push(Some(room), [Request::Acquire { run: run.clone(), reply }])?;
                grant.await.unwrap_or_else(|_| Err(writer_gone()))
            })
            .await?;
        Ok(Box::new(SqliteLog::new(
            Arc::clone(&self.handle),
            run.clone(),
            Arc::clone(ctx.clock()),
            grant,
        )))
    }

    async fn sealed(&self, ctx: &Context, run: &Id) -> Result<Vec<Sealed>> {
        let run = run.clone();
        self.handle.readers.read(ctx, move |connection| read::sealed(connection, &run)).await
    }

    async fn runs(&self, ctx: &Context, query: &RunQuery) -> Result<Vec<RunSummary>> {
        let query = query.clone();
        self.handle.readers.read(ctx, move |connection| read::runs(connection, &query)).await
    }

    async fn resolve(&self, ctx: &Context, prefix: &str) -> Result<Resolved> {
        check_prefix(prefix)?;
        let prefix = prefix.to_owned();
        self.handle.readers.read(ctx, move |connection| read::resolve(connection, &prefix)).await
    }

    async fn head(&self, ctx: &Context) -> Result<Hash> {
        let newest = |connection: &rusqlite::Connection| Ok(newest_link(connection)?.1);
        self.handle.readers.read(ctx, newest).await
    }

    async fn verify(&self, ctx: &Context, what: &Verify) -> Result<Verification> {
        let what = what.clone();
        let inner = ctx.clone();
        self.handle
            .readers
            .read(ctx, move |connection| verify::verify(&inner, connection, &what))
            .await
    }

    async fn erase(&self, ctx: &Context, run: &Id, reason: &str) -> Result<bool> {
        let erased = self.erase_all(ctx, std::slice::from_ref(run), reason).await?;
        erased.into_iter().next().unwrap_or(Ok(false))
    }

    async fn prune(&self, ctx: &Context, keep: &Retention) -> Result<Vec<Id>> {
        // A log that was just dropped has given its run back by then.
        self.ask(|reply| Request::Settle { reply }).await?;
        // Leases are between processes, whatever clock this one works by.
        let (path, now) = (self.handle.path.clone(), near_nanos(SystemClock::new().now()));
        let retention = keep.clone();
        let select = move |connection: &rusqlite::Connection| {
            let holders = Holders::new(&path);
            let mut idle = Vec::new();
            for run in read::beyond(connection, &retention)? {
                let lease = StoredLease::find(connection, &run)?;
                let is_held = lease.is_some_and(|l| l.expires > now && holders.is_alive(&l.holder));
                if !is_held {
                    idle.push(run);
                }
            }
            Ok(idle)
        };
        let victims = self.handle.readers.read(ctx, select).await?;
        if keep.dry_run || victims.is_empty() {
            return Ok(victims);
        }
        let mut gone = Vec::with_capacity(victims.len());
        for some in victims.chunks(ERASED_AT_ONCE) {
            let results = self.erase_all(ctx, some, "pruned").await?;
            for (run, result) in some.iter().zip(results) {
                match result {
                    Ok(true) => gone.push(run.clone()),
                    Ok(false) => {}
                    // Somebody began to write to it meanwhile: it is not left any more.
                    Err(error) if error.kind() == ErrorKind::Conflict => {}
                    Err(error) => return Err(error),
                }
            }
        }
        self.ask(|reply| Request::Compact { reply }).await?;
        Ok(gone)
    }
}

impl SqliteJournal {
    /// Asks the writer for something, and waits until it is done.
    async fn ask(&self, request: impl FnOnce(Reply<()>) -> Request) -> Result<()> {
        let room = self.handle.queue.room(0).await?;
        let (reply, done) = oneshot::channel();
        self.handle.queue.push(Some(room), [request(reply)])?;
        done.await.unwrap_or_else(|_| Err(writer_gone()))
    }

    /// Erases runs in one transaction; says of each what came of it.
    async fn erase_all(
        &self,
        ctx: &Context,
        runs: &[Id],
        reason: &str,
    ) -> Result<Vec<Result<bool, Error>>> {
        ctx.check()?;
        let queue = &self.handle.queue;
        let mut requests = Vec::with_capacity(runs.len());
        let mut answers = Vec::with_capacity(runs.len());
        let time = ctx.now();
        let room = queue.room(runs.len() * reason.len()).await?;
        for run in runs {
            let (reply, answer) = oneshot::channel();
            let (run, reason) = (run.clone(), reason.to_owned());
            requests.push(Request::Erase { run, time, reason, reply });
            answers.push(answer);
        }
        queue.push(Some(room), requests)?;
        let mut results = Vec::with_capacity(runs.len());
        for answer in answers {
            results.push(answer.await.unwrap_or_else(|_| Err(writer_gone())));
        }
        Ok(results)
    }
}
