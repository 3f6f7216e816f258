//! The hash chain shows any change, and needs no payloads.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::Index;
use sifaka_core::event::{Event, Sealed};
use sifaka_core::{Hash, Id};
use sifaka_testkit::runs::{RandomRun, run};

fn seal(events: &[Event]) -> Vec<Sealed> {
    let mut previous = Hash::ZERO;
    let stored = events.iter().filter(|event| !event.kind.is_transient());
    stored
        .map(|event| {
            let sealed = event.seal(previous).unwrap();
            previous = sealed.hash;
            sealed
        })
        .collect()
}

/// What is wrong with a run that should end in `head`.
fn problem(sealed: &[Sealed], head: Hash) -> Option<&'static str> {
    let mut previous = Hash::ZERO;
    for (event, seq) in sealed.iter().zip(0..) {
        if let Some(problem) = event.problem(previous, seq) {
            return Some(problem);
        }
        previous = event.hash;
    }
    (previous != head).then_some("its end is missing")
}

fn flip(hash: Hash, bit: u8) -> Hash {
    let mut bytes = *hash.as_bytes();
    bytes[usize::from(bit) / 8] ^= 1 << (bit % 8);
    Hash::from_bytes(bytes)
}

/// A single change to a stored run.
#[derive(Clone, Debug)]
enum Tampering {
    Payload(Index, u8),
    RunId,
    Seq(u64),
    Time(i32),
    Kind,
    Previous(u8),
    PayloadHash(u8),
    Hash(u8),
    Swap(Index),
    Drop,
    Repeat,
}

fn tampering() -> impl Strategy<Value = Tampering> {
    prop_oneof![
        4 => (any::<Index>(), 1_u8..=255).prop_map(|(at, mask)| Tampering::Payload(at, mask)),
        1 => Just(Tampering::RunId),
        1 => (1_u64..=u64::MAX).prop_map(Tampering::Seq),
        1 => (1..=i32::MAX).prop_map(Tampering::Time),
        1 => Just(Tampering::Kind),
        1 => any::<u8>().prop_map(Tampering::Previous),
        1 => any::<u8>().prop_map(Tampering::PayloadHash),
        1 => any::<u8>().prop_map(Tampering::Hash),
        1 => any::<Index>().prop_map(Tampering::Swap),
        1 => Just(Tampering::Drop),
        1 => Just(Tampering::Repeat),
    ]
}

impl Tampering {
    fn apply(self, sealed: &mut Vec<Sealed>, at: usize) {
        let header = &mut sealed[at].header;
        match self {
            Self::Payload(byte, mask) => {
                let payload = sealed[at].payload.as_mut().unwrap();
                let byte = byte.index(payload.len());
                payload[byte] ^= mask;
            }
            Self::RunId => header.run_id = Id::derived(header.run_id.as_str().as_bytes()),
            Self::Seq(by) => header.seq = header.seq.wrapping_add(by),
            Self::Time(by) => {
                let by = jiff::SignedDuration::from_nanos(by.into());
                header.time = header.time.checked_add(by).unwrap();
            }
            Self::Kind => header.kind = Arc::from(format!("{}x", header.kind)),
            Self::Previous(bit) => header.previous = flip(header.previous, bit),
            Self::PayloadHash(bit) => header.payload_hash = flip(header.payload_hash, bit),
            Self::Hash(bit) => sealed[at].hash = flip(sealed[at].hash, bit),
            Self::Swap(other) => {
                // The next one round, never the same.
                let step = 1 + other.index(sealed.len() - 1);
                let other = (at + step) % sealed.len();
                sealed.swap(at, other);
            }
            Self::Drop => drop(sealed.remove(at)),
            Self::Repeat => sealed.insert(at, sealed[at].clone()),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn any_single_change_shows(
        RandomRun { events, .. } in run(),
        at in any::<Index>(),
        tampering in tampering(),
    ) {
        let mut sealed = seal(&events);
        let head = sealed.last().unwrap().hash;
        prop_assert_eq!(problem(&sealed, head), None);
        let at = at.index(sealed.len());
        tampering.apply(&mut sealed, at);
        prop_assert!(problem(&sealed, head).is_some());
    }

    #[test]
    fn erased_payloads_leave_the_chain_whole(
        RandomRun { events, .. } in run(),
        erased in prop::collection::vec(any::<bool>(), 64),
        at in any::<Index>(),
    ) {
        let mut sealed = seal(&events);
        let head = sealed.last().unwrap().hash;
        for (event, erase) in sealed.iter_mut().zip(erased.into_iter().cycle()) {
            if erase {
                event.payload = None;
                prop_assert_eq!(event.open().unwrap(), None);
            }
        }
        prop_assert_eq!(problem(&sealed, head), None);
        let at = at.index(sealed.len());
        sealed[at].header.payload_hash = flip(sealed[at].header.payload_hash, 0);
        prop_assert!(problem(&sealed, head).is_some(), "what was erased cannot be replaced");
    }

    #[test]
    fn sealing_is_a_function_of_the_event(RandomRun { events, .. } in run()) {
        prop_assert_eq!(seal(&events), seal(&events));
        let stored: Vec<Event> =
            seal(&events).iter().map(|sealed| sealed.open().unwrap().unwrap()).collect();
        prop_assert_eq!(seal(&stored), seal(&events), "what was read seals to the same");
    }
}
