//! The hash chain: each event is bound to all that came before it.

use std::sync::Arc;

use jiff::Timestamp;

use super::Event;
use crate::body::Hash;
use crate::{Error, ErrorKind, Id, Result};

/// What stays of an event even when its payload was erased.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Which run.
    pub run_id: Id,
    /// Its place in the run.
    pub seq: u64,
    /// When.
    pub time: Timestamp,
    /// The name of its kind.
    pub kind: Arc<str>,
    /// Hash of the event before it; all zeros for the first.
    pub previous: Hash,
    /// Hash of its payload.
    pub payload_hash: Hash,
}

/// An event as it is stored: its header, its payload if it was not erased, and its hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sealed {
    /// What stays.
    pub header: Header,
    /// The event's kind as JSON; `None` when it was erased.
    pub payload: Option<Vec<u8>>,
    /// Hash over the header, and so over the payload's hash and everything before.
    pub hash: Hash,
}

/// The hash of a header: over the hash before it, its fields and the hash of its payload. The
/// payload itself is not needed, so erasing it leaves the chain whole.
#[must_use]
pub fn header_hash(header: &Header) -> Hash {
    // Length-prefixed, so that no two headers have the same bytes.
    let mut bytes = Vec::with_capacity(192);
    bytes.extend_from_slice(b"sifaka-event-1");
    bytes.extend_from_slice(header.previous.as_bytes());
    for text in [header.run_id.as_str(), &header.kind] {
        bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
        bytes.extend_from_slice(text.as_bytes());
    }
    bytes.extend_from_slice(&header.seq.to_le_bytes());
    bytes.extend_from_slice(&header.time.as_nanosecond().to_le_bytes());
    bytes.extend_from_slice(header.payload_hash.as_bytes());
    Hash::of(&bytes)
}

impl Event {
    /// Binds the event to the one before it.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] when it cannot be written as JSON; none is known to occur.
    pub fn seal(&self, previous: Hash) -> Result<Sealed> {
        let payload = serde_json::to_vec(&self.kind).map_err(|error| {
            Error::new(ErrorKind::Internal, "journal", "seal", error.to_string())
        })?;
        let header = Header {
            run_id: self.run_id.clone(),
            seq: self.seq,
            time: self.time,
            kind: Arc::from(self.kind.name()),
            previous,
            payload_hash: Hash::of(&payload),
        };
        let hash = header_hash(&header);
        Ok(Sealed { header, payload: Some(payload), hash })
    }
}

impl Sealed {
    /// The event, or `None` when its payload was erased.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] when the payload is not what an event looks like.
    pub fn open(&self) -> Result<Option<Event>> {
        let Some(payload) = &self.payload else { return Ok(None) };
        let kind = serde_json::from_slice(payload).map_err(|error| {
            Error::new(
                ErrorKind::Corrupt,
                "journal",
                "read",
                format!(
                    "event {} ({}) of run {}: {error}",
                    self.header.seq, self.header.kind, self.header.run_id
                ),
            )
            .suggest("run `sifaka verify` to see what else is damaged")
        })?;
        Ok(Some(Event {
            run_id: self.header.run_id.clone(),
            seq: self.header.seq,
            time: self.header.time,
            kind,
        }))
    }

    /// What is wrong with this event, given the one before it: the hash that came before and the
    /// number that must come now.
    #[must_use]
    pub fn problem(&self, previous: Hash, seq: u64) -> Option<&'static str> {
        if self.header.seq != seq {
            Some("an event is missing or out of order")
        } else if self.header.previous != previous {
            Some("it does not follow the event before it")
        } else if header_hash(&self.header) != self.hash {
            Some("its header was changed")
        } else if self.payload.as_ref().is_some_and(|p| Hash::of(p) != self.header.payload_hash) {
            Some("its content was changed")
        } else {
            None
        }
    }
}
