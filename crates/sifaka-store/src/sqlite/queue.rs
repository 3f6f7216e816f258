//! The bounded queue between those who write and the one thread that does.

use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sifaka_core::Result;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::failure::writer_gone;
use super::request::Request;

/// Room is counted in so many bytes.
const UNIT: usize = 1024;

/// Everything that waits to be written.
///
/// Room is asked for before something is pushed, by its size, so that the queue is bounded in
/// bytes. The thread that writes takes all there is at once: that is what makes a group commit.
pub(super) struct Queue {
    state: Mutex<State>,
    ready: Condvar,
    room: Arc<Semaphore>,
    units: u32,
}

#[derive(Default)]
struct State {
    waiting: Vec<Request>,
    /// The room that those take.
    rooms: Vec<Room>,
    is_closed: bool,
    /// The writer is not woken for fewer than so many.
    wanted: usize,
}

/// What the writer finds.
pub(super) enum Taken {
    /// Something to do, and the room to give back when it is done.
    Requests(Vec<Request>, Vec<Room>),
    /// Nothing for a while.
    Tick,
    /// Nothing, and nothing will come.
    End,
}

/// A place in the queue, given back when it is dropped.
pub(super) type Room = OwnedSemaphorePermit;

impl Queue {
    pub(super) fn new(bytes: usize) -> Self {
        let units = u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX).max(1);
        let units = units.min(u32::try_from(Semaphore::MAX_PERMITS).unwrap_or(u32::MAX));
        Self {
            state: Mutex::new(State::default()),
            ready: Condvar::new(),
            room: Arc::new(Semaphore::new(units as usize)),
            units,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is room for so many bytes. Something larger than the whole queue gets
    /// all of it.
    pub(super) async fn room(&self, bytes: usize) -> Result<Room> {
        let units = u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX).clamp(1, self.units);
        Arc::clone(&self.room).acquire_many_owned(units).await.map_err(|_| writer_gone())
    }

    /// Adds requests, all in the same group. Only what there can be but few of needs no room.
    pub(super) fn push(
        &self,
        room: Option<Room>,
        requests: impl IntoIterator<Item = Request>,
    ) -> Result<()> {
        let mut state = self.lock();
        if state.is_closed {
            return Err(writer_gone());
        }
        state.waiting.extend(requests);
        state.rooms.extend(room);
        let is_enough = state.waiting.len() >= state.wanted;
        drop(state);
        if is_enough {
            self.ready.notify_one();
        }
        Ok(())
    }

    /// Takes all that waits; waits for something to come, no longer than `limit`.
    pub(super) fn take(&self, limit: Option<Duration>) -> Taken {
        self.take_at_least(1, limit)
    }

    /// Takes all that waits, as soon as there are `wanted` or after `limit`.
    pub(super) fn take_at_least(&self, wanted: usize, limit: Option<Duration>) -> Taken {
        let idle = |state: &mut State| state.waiting.len() < wanted && !state.is_closed;
        let mut state = self.lock();
        state.wanted = wanted;
        let mut state = match limit {
            None => self.ready.wait_while(state, idle).unwrap_or_else(PoisonError::into_inner),
            Some(limit) => {
                self.ready
                    .wait_timeout_while(state, limit, idle)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0
            }
        };
        if !state.waiting.is_empty() {
            Taken::Requests(mem::take(&mut state.waiting), mem::take(&mut state.rooms))
        } else if state.is_closed {
            Taken::End
        } else {
            Taken::Tick
        }
    }

    /// Refuses what comes from now on.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.room.close();
        self.ready.notify_one();
    }
}
