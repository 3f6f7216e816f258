//! The circuit breaker: a state machine over given times, without a clock of its own.
//!
//! **Closed**, every call is let through, and failures are counted over a sliding window.
//! **Open**, no call is. **Half-open**, a few probes are: when all of them succeed the circuit
//! closes, when one fails it opens again.
//!
//! A call that began before the circuit last changed says nothing about it now, so its result is
//! ignored: every change begins a new *epoch*, and a [`Permit`] counts only in its own.

use std::collections::VecDeque;
use std::sync::PoisonError;
use std::time::Duration;

use crate::options::Breaker;
use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering};

/// A circuit breaker for one component. All its clients share it by reference.
#[derive(Debug)]
pub struct Circuit {
    settings: Breaker,
    /// Counts changes. Even exactly while the circuit is closed, so that a closed circuit costs
    /// its callers one load.
    epoch: AtomicU64,
    phase: Mutex<Phase>,
}

#[derive(Debug)]
enum Phase {
    /// The times of the newest failures, oldest first, never more than open the circuit.
    Closed(VecDeque<Duration>),
    Open {
        until: Duration,
    },
    HalfOpen {
        out: u32,
        succeeded: u32,
    },
}

/// How a circuit changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Too many failures, or a failed probe: calls are kept away.
    Opened,
    /// The pause is over: probes are let through.
    HalfOpened,
    /// The probes succeeded: calls go through again.
    Closed,
}

/// A call that was turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// How long until a probe is let through; `None` while probes are under way.
    pub retry_in: Option<Duration>,
}

/// Leave to make one call. Say how it went with [`succeed`](Self::succeed) or
/// [`fail`](Self::fail); dropping it says nothing, and gives a probe's place back.
#[derive(Debug)]
#[must_use = "a permit that is dropped at once tells the circuit nothing"]
pub struct Permit<'a> {
    circuit: &'a Circuit,
    epoch: u64,
    told: bool,
}

const fn is_closed(epoch: u64) -> bool {
    epoch.is_multiple_of(2)
}

impl Circuit {
    /// A closed circuit. Zero failures or probes mean one.
    #[must_use]
    pub fn new(settings: &Breaker) -> Self {
        let settings = Breaker {
            failures: settings.failures.max(1),
            half_open_probes: settings.half_open_probes.max(1),
            ..*settings
        };
        Self {
            settings,
            epoch: AtomicU64::new(0),
            phase: Mutex::new(Phase::Closed(VecDeque::new())),
        }
    }

    /// Leave to call without asking the time: given whenever the circuit is closed.
    #[must_use]
    pub fn admit_closed(&self) -> Option<Permit<'_>> {
        let epoch = self.epoch.load(Ordering::Acquire);
        // Not `then_some`: a permit that is made only to be dropped would give a place back.
        is_closed(epoch).then(|| Permit { circuit: self, epoch, told: false })
    }

    /// Asks for leave to call at `now`; says as well whether that half-opened the circuit.
    ///
    /// # Errors
    /// [`Rejected`] while the circuit is open, or half-open with all its probes out.
    pub fn admit(&self, now: Duration) -> Result<(Permit<'_>, Option<Change>), Rejected> {
        if let Some(permit) = self.admit_closed() {
            return Ok((permit, None));
        }
        let mut phase = self.lock();
        let mut change = None;
        if let Phase::Open { until } = *phase {
            if now < until {
                return Err(Rejected { retry_in: Some(until.saturating_sub(now)) });
            }
            self.enter(&mut phase, Phase::HalfOpen { out: 0, succeeded: 0 });
            change = Some(Change::HalfOpened);
        }
        if let Phase::HalfOpen { out, succeeded } = &mut *phase {
            if out.saturating_add(*succeeded) >= self.settings.half_open_probes {
                return Err(Rejected { retry_in: None });
            }
            *out += 1;
        }
        // Under the lock, so that it is the epoch of the phase just seen.
        let epoch = self.epoch.load(Ordering::Acquire);
        Ok((Permit { circuit: self, epoch, told: false }, change))
    }

    /// Whether calls go through.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        is_closed(self.epoch.load(Ordering::Acquire))
    }

    fn lock(&self) -> MutexGuard<'_, Phase> {
        // Every update leaves the phase whole, so a poisoned lock is still good.
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Goes over to `next` and begins a new epoch, with the parity that `next` needs.
    fn enter(&self, phase: &mut Phase, next: Phase) {
        let old = self.epoch.load(Ordering::Acquire);
        let same = is_closed(old) == matches!(next, Phase::Closed(_));
        self.epoch.store(old + if same { 2 } else { 1 }, Ordering::Release);
        *phase = next;
    }

    fn open(&self, phase: &mut Phase, now: Duration) -> Option<Change> {
        let until = now.saturating_add(self.settings.open_for);
        self.enter(phase, Phase::Open { until });
        Some(Change::Opened)
    }
}

impl Permit<'_> {
    /// The component is well.
    pub fn succeed(mut self) -> Option<Change> {
        self.told = true;
        if is_closed(self.epoch) {
            return None;
        }
        let mut phase = self.circuit.lock();
        if self.circuit.epoch.load(Ordering::Acquire) != self.epoch {
            return None;
        }
        let Phase::HalfOpen { out, succeeded } = &mut *phase else { return None };
        *out = out.saturating_sub(1);
        *succeeded += 1;
        if *succeeded < self.circuit.settings.half_open_probes {
            return None;
        }
        self.circuit.enter(&mut phase, Phase::Closed(VecDeque::new()));
        Some(Change::Closed)
    }

    /// The component is not well; `now` is when that was seen.
    pub fn fail(mut self, now: Duration) -> Option<Change> {
        self.told = true;
        let settings = &self.circuit.settings;
        let mut phase = self.circuit.lock();
        if self.circuit.epoch.load(Ordering::Acquire) != self.epoch {
            return None;
        }
        match &mut *phase {
            Phase::Closed(times) => {
                times.push_back(now);
                while times.front().is_some_and(|at| now.saturating_sub(*at) > settings.within) {
                    times.pop_front();
                }
                let many = times.len() >= settings.failures as usize;
                if many { self.circuit.open(&mut phase, now) } else { None }
            }
            Phase::HalfOpen { .. } => self.circuit.open(&mut phase, now),
            Phase::Open { .. } => None,
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if self.told || is_closed(self.epoch) {
            return;
        }
        let mut phase = self.circuit.lock();
        if self.circuit.epoch.load(Ordering::Acquire) == self.epoch
            && let Phase::HalfOpen { out, .. } = &mut *phase
        {
            *out = out.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn fail(circuit: &Circuit, now: u64) -> Option<Change> {
        circuit.admit(at(now)).unwrap().0.fail(at(now))
    }

    fn opened() -> Circuit {
        let circuit = Circuit::new(&Breaker { failures: 1, ..Breaker::default() });
        assert_eq!(fail(&circuit, 0), Some(Change::Opened));
        circuit
    }

    #[test]
    fn five_failures_within_the_window_open_it() {
        let circuit = Circuit::new(&Breaker::default());
        for now in 0..4 {
            assert_eq!(fail(&circuit, now), None);
        }
        assert_eq!(fail(&circuit, 30), Some(Change::Opened));
        let rejected = circuit.admit(at(40)).unwrap_err();
        assert_eq!(rejected.retry_in, Some(at(20)));
    }

    #[test]
    fn old_failures_do_not_count() {
        let circuit = Circuit::new(&Breaker::default());
        for now in [0, 10, 20, 29, 31, 41, 51] {
            assert_eq!(fail(&circuit, now), None, "at {now} s");
        }
        assert!(circuit.is_closed());
        assert_eq!(fail(&circuit, 52), Some(Change::Opened));
    }

    #[test]
    fn one_probe_decides() {
        let circuit = opened();
        let (probe, change) = circuit.admit(at(30)).unwrap();
        assert_eq!(change, Some(Change::HalfOpened));
        assert_eq!(circuit.admit(at(31)).unwrap_err().retry_in, None);
        assert_eq!(probe.fail(at(32)), Some(Change::Opened));
        assert_eq!(circuit.admit(at(33)).unwrap_err().retry_in, Some(at(29)));
        let (probe, _) = circuit.admit(at(62)).unwrap();
        assert_eq!(probe.succeed(), Some(Change::Closed));
        assert!(circuit.is_closed());
    }

    #[test]
    fn a_dropped_probe_gives_its_place_back() {
        let circuit = opened();
        drop(circuit.admit(at(30)).unwrap());
        let (probe, change) = circuit.admit(at(31)).unwrap();
        assert_eq!(change, None);
        assert_eq!(probe.succeed(), Some(Change::Closed));
    }

    #[test]
    fn results_from_before_a_change_are_ignored() {
        let circuit = Circuit::new(&Breaker { failures: 1, ..Breaker::default() });
        let (early, _) = circuit.admit(at(0)).unwrap();
        let (late, _) = circuit.admit(at(0)).unwrap();
        assert_eq!(early.fail(at(1)), Some(Change::Opened));
        assert_eq!(late.fail(at(2)), None);
        assert_eq!(circuit.admit(at(3)).unwrap_err().retry_in, Some(at(28)));
    }

    #[test]
    fn as_many_probes_as_asked_must_succeed() {
        let settings = Breaker { failures: 1, half_open_probes: 2, ..Breaker::default() };
        let circuit = Circuit::new(&settings);
        assert_eq!(fail(&circuit, 0), Some(Change::Opened));
        let (first, _) = circuit.admit(at(30)).unwrap();
        let (second, _) = circuit.admit(at(30)).unwrap();
        assert!(circuit.admit(at(30)).is_err());
        assert_eq!(first.succeed(), None);
        assert_eq!(second.succeed(), Some(Change::Closed));
    }
}
