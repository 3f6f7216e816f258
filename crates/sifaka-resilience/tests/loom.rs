//! The circuit under every interleaving of a few threads.
//!
//! Empty unless built for loom:
//! `RUSTFLAGS="--cfg loom" cargo test -p sifaka-resilience --test loom --release`
#![cfg(loom)]
#![expect(clippy::unwrap_used, reason = "a helper that panics fails its test")]

use std::time::Duration;

use loom::sync::Arc;
use loom::thread;
use sifaka_resilience::Breaker;
use sifaka_resilience::circuit::{Change, Circuit};

const LATER: Duration = Duration::from_secs(60);

fn circuit(failures: u32, half_open_probes: u32) -> Arc<Circuit> {
    Arc::new(Circuit::new(&Breaker { failures, half_open_probes, ..Breaker::default() }))
}

/// A circuit whose pause is over at [`LATER`].
fn opened(half_open_probes: u32) -> Arc<Circuit> {
    let circuit = circuit(1, half_open_probes);
    let (permit, _) = circuit.admit(Duration::ZERO).unwrap();
    assert_eq!(permit.fail(Duration::ZERO), Some(Change::Opened));
    circuit
}

/// Runs `work` in so many threads and gives what each of them gave.
fn together<T: 'static>(threads: usize, circuit: &Arc<Circuit>, work: fn(&Circuit) -> T) -> Vec<T> {
    let others: Vec<_> = (1..threads)
        .map(|_| {
            let circuit = Arc::clone(circuit);
            thread::spawn(move || work(&circuit))
        })
        .collect();
    let mut all = vec![work(circuit)];
    all.extend(others.into_iter().map(|other| other.join().unwrap()));
    all
}

fn count(changes: &[Option<Change>], change: Change) -> usize {
    changes.iter().filter(|seen| **seen == Some(change)).count()
}

#[test]
fn only_one_probe_gets_through() {
    loom::model(|| {
        let circuit = opened(1);
        let admitted = together(3, &circuit, |circuit| match circuit.admit(LATER) {
            Ok((probe, change)) => {
                // It stays out for the whole test.
                std::mem::forget(probe);
                Some(change)
            }
            Err(_) => None,
        });
        let admitted: Vec<_> = admitted.into_iter().flatten().collect();
        assert_eq!(admitted, [Some(Change::HalfOpened)]);
    });
}

#[test]
fn successes_close_it_exactly_once() {
    loom::model(|| {
        let circuit = opened(2);
        let changes = together(2, &circuit, |circuit| {
            let (probe, _) = circuit.admit(LATER).unwrap();
            probe.succeed()
        });
        assert_eq!(count(&changes, Change::Closed), 1);
        assert!(circuit.is_closed());
    });
}

#[test]
fn failures_open_it_exactly_once() {
    loom::model(|| {
        let circuit = circuit(2, 1);
        let changes = together(3, &circuit, |circuit| {
            let (permit, _) = circuit.admit(Duration::ZERO).ok()?;
            permit.fail(Duration::ZERO)
        });
        assert_eq!(count(&changes, Change::Opened), 1);
        assert!(!circuit.is_closed());
    });
}

#[test]
fn a_failed_probe_wins_over_a_good_one() {
    loom::model(|| {
        let circuit = opened(2);
        let good = circuit.admit(LATER).unwrap().0;
        std::mem::forget(good);
        let other = Arc::clone(&circuit);
        let failing = thread::spawn(move || other.admit(LATER).ok()?.0.fail(LATER));
        let racing = circuit.admit(LATER).ok().and_then(|(probe, _)| probe.succeed());
        let failed = failing.join().unwrap();
        assert_ne!(racing, Some(Change::Closed));
        assert!(!circuit.is_closed());
        // The place of the failing probe may have been taken by the good one.
        assert!(matches!(failed, Some(Change::Opened) | None));
    });
}

#[test]
fn a_dropped_probe_never_loses_its_place() {
    loom::model(|| {
        let circuit = opened(1);
        let _ = together(2, &circuit, |circuit| drop(circuit.admit(LATER)));
        assert!(circuit.admit(LATER).is_ok());
    });
}
