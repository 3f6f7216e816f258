//! The chain over a whole journal: which runs it has, from which hash to which.

use sifaka_core::Hash;

/// What a link of the journal's own chain says about a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkKind {
    /// It has a first event.
    Opened,
    /// It has so many events, and this is the last one's hash.
    Closed,
    /// Its content was erased.
    Erased,
}

impl LinkKind {
    pub(crate) const fn code(self) -> i64 {
        match self {
            Self::Opened => 1,
            Self::Closed => 2,
            Self::Erased => 3,
        }
    }

    pub(crate) const fn from_code(code: i64) -> Option<Self> {
        match code {
            1 => Some(Self::Opened),
            2 => Some(Self::Closed),
            3 => Some(Self::Erased),
            _ => None,
        }
    }
}

/// One link of the journal's own chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    /// Its place in the chain, from 1 and without gaps.
    pub(crate) n: i64,
    pub(crate) kind: LinkKind,
    pub(crate) run_id: String,
    /// How many events the run had then.
    pub(crate) events: i64,
    /// Hash of the last of them.
    pub(crate) event: Hash,
    /// When, in nanoseconds since 1970.
    pub(crate) time: i64,
    /// Why it was erased; empty for the others.
    pub(crate) reason: String,
}

impl Link {
    /// Its hash, over the hash of the link before and everything it says.
    pub(crate) fn hash(&self, previous: Hash) -> Hash {
        // Length-prefixed, so that no two links have the same bytes.
        let mut bytes = Vec::with_capacity(192);
        bytes.extend_from_slice(b"sifaka-link-1");
        bytes.extend_from_slice(previous.as_bytes());
        for number in [self.n, self.kind.code(), self.events, self.time] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        for text in [&self.run_id, &self.reason] {
            bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
            bytes.extend_from_slice(text.as_bytes());
        }
        bytes.extend_from_slice(self.event.as_bytes());
        Hash::of(&bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_counts() {
        let link = Link {
            n: 1,
            kind: LinkKind::Opened,
            run_id: "ab".into(),
            events: 1,
            event: Hash::of(b"e"),
            time: 7,
            reason: "c".into(),
        };
        let others = [
            Link { n: 2, ..link.clone() },
            Link { kind: LinkKind::Closed, ..link.clone() },
            Link { run_id: "a".into(), reason: "bc".into(), ..link.clone() },
            Link { events: 2, ..link.clone() },
            Link { event: Hash::of(b"f"), ..link.clone() },
            Link { time: 8, ..link.clone() },
            Link { reason: String::new(), ..link.clone() },
        ];
        for other in &others {
            assert_ne!(other.hash(Hash::ZERO), link.hash(Hash::ZERO), "{other:?}");
        }
        assert_ne!(link.hash(Hash::of(b"x")), link.hash(Hash::ZERO));
    }
}
