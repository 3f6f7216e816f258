//! Reading one member of a zip file, which is what a wheel is.
//!
//! Only what wheels use: one disk, no encryption, below 4 GB, stored or deflated. Every length and
//! offset is checked against the file, and nothing is allocated on the word of the file alone.

use std::io::{self, Read, Seek, SeekFrom};

use miniz_oxide::inflate::stream::{InflateState, inflate};
use miniz_oxide::{DataFormat, MZError, MZFlush, MZStatus};

/// The record that ends a zip file, without the comment that may follow it.
const END: usize = 22;
/// An entry of the list of members, without its name and the like.
const LISTED: usize = 46;
/// What stands before the data of a member, without its name and the like.
const HEAD: usize = 30;
/// No wheel has a list of members longer than this.
const LONGEST_LIST: u64 = 16 * 1024 * 1024;

const STORED: u16 = 0;
const DEFLATED: u16 = 8;

/// A zip file that is open.
pub(super) struct Zip<R> {
    file: R,
    length: u64,
    list: Vec<u8>,
}

impl<R: Read + Seek> Zip<R> {
    /// Reads the list of members.
    pub(super) fn open(mut file: R) -> io::Result<Self> {
        let length = file.seek(SeekFrom::End(0))?;
        let tail = length.min(END as u64 + u64::from(u16::MAX));
        file.seek(SeekFrom::Start(length - tail))?;
        let mut end = Vec::new();
        file.by_ref().take(tail).read_to_end(&mut end)?;
        let at = (0..=end.len().saturating_sub(END))
            .rev()
            .find(|&at| {
                end[at..].starts_with(b"PK\x05\x06")
                    // The comment reaches to the end, or this is no end but a part of something.
                    && u16_at(&end, at + 20).is_some_and(|c| at + END + usize::from(c) == end.len())
            })
            .ok_or_else(|| broken("it has no end record"))?;
        let (Some(size), Some(offset)) = (u32_at(&end, at + 12), u32_at(&end, at + 16)) else {
            return Err(broken("its end record is cut off"));
        };
        let (size, offset) = (u64::from(size), u64::from(offset));
        if size > LONGEST_LIST || offset.checked_add(size).is_none_or(|last| last > length) {
            return Err(broken("its list of members is out of bounds"));
        }
        file.seek(SeekFrom::Start(offset))?;
        let mut list = Vec::new();
        file.by_ref().take(size).read_to_end(&mut list)?;
        Ok(Self { file, length, list })
    }

    /// The content of a member.
    pub(super) fn member(&mut self, name: &str) -> io::Result<Box<dyn Read + '_>> {
        let found = self.find(name)?.ok_or_else(|| broken(&format!("it has no {name}")))?;
        if found.encrypted || u64::from(found.packed) >= u64::from(u32::MAX) {
            return Err(broken(&format!("{name} is encrypted or too large")));
        }
        self.file.seek(SeekFrom::Start(found.offset.into()))?;
        let mut head = [0; HEAD];
        self.file.read_exact(&mut head)?;
        let (Some(name_length), Some(extra)) = (u16_at(&head, 26), u16_at(&head, 28)) else {
            return Err(broken("a member's head is cut off"));
        };
        let start =
            u64::from(found.offset) + HEAD as u64 + u64::from(name_length) + u64::from(extra);
        let packed = u64::from(found.packed);
        if !head.starts_with(b"PK\x03\x04") || start + packed > self.length {
            return Err(broken(&format!("{name} is not where it should be")));
        }
        self.file.seek(SeekFrom::Start(start))?;
        let data = self.file.by_ref().take(packed);
        match found.method {
            STORED => Ok(Box::new(data)),
            DEFLATED => Ok(Box::new(Inflate::new(data))),
            other => Err(broken(&format!("{name} is packed in way {other}, which is not known"))),
        }
    }

    fn find(&self, name: &str) -> io::Result<Option<Listed>> {
        let mut rest = self.list.as_slice();
        while !rest.is_empty() {
            let cut = || broken("its list of members is cut off");
            if rest.len() < LISTED || !rest.starts_with(b"PK\x01\x02") {
                return Err(cut());
            }
            let short = |at| u16_at(rest, at).ok_or_else(cut);
            let long = |at| u32_at(rest, at).ok_or_else(cut);
            let length = usize::from(short(28)?);
            let next = LISTED + length + usize::from(short(30)?) + usize::from(short(32)?);
            let own = rest.get(LISTED..LISTED + length).ok_or_else(cut)?;
            if own == name.as_bytes() {
                return Ok(Some(Listed {
                    encrypted: short(8)? & 1 != 0,
                    method: short(10)?,
                    packed: long(20)?,
                    offset: long(42)?,
                }));
            }
            rest = rest.get(next..).ok_or_else(cut)?;
        }
        Ok(None)
    }
}

/// What the list says of a member. Its size is not taken: the catalogue knows it.
struct Listed {
    encrypted: bool,
    method: u16,
    packed: u32,
    offset: u32,
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the zip file is damaged: {what}"))
}

/// Inflates as it is read.
struct Inflate<R> {
    packed: R,
    buffer: Vec<u8>,
    /// What of the buffer is still to be taken.
    waiting: std::ops::Range<usize>,
    state: Box<InflateState>,
    ended: bool,
}

impl<R: Read> Inflate<R> {
    fn new(packed: R) -> Self {
        Self {
            packed,
            buffer: vec![0; 64 * 1024],
            waiting: 0..0,
            state: InflateState::new_boxed(DataFormat::Raw),
            ended: false,
        }
    }
}

impl<R: Read> Read for Inflate<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while !self.ended && !out.is_empty() {
            if self.waiting.is_empty() {
                self.waiting = 0..self.packed.read(&mut self.buffer)?;
            }
            let dry = self.waiting.is_empty();
            let waiting = self.buffer.get(self.waiting.clone()).unwrap_or_default();
            let done = inflate(&mut self.state, waiting, out, MZFlush::None);
            self.waiting.start += done.bytes_consumed;
            match done.status {
                Ok(MZStatus::StreamEnd) => self.ended = true,
                Ok(_) | Err(MZError::Buf) => {}
                Err(_) => return Err(broken("a member cannot be inflated")),
            }
            if done.bytes_written > 0 {
                return Ok(done.bytes_written);
            }
            if dry && !self.ended {
                return Err(io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    "the zip file is damaged: a member is cut off",
                ));
            }
        }
        Ok(0)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;

    /// A zip file of these members, every second one stored as it is.
    pub(in super::super) fn pack(members: &[(&str, &[u8])]) -> Vec<u8> {
        let (mut file, mut list) = (Vec::new(), Vec::new());
        for (n, (name, content)) in members.iter().enumerate() {
            let (method, data) = if n % 2 == 0 {
                (DEFLATED, miniz_oxide::deflate::compress_to_vec(content, 6))
            } else {
                (STORED, content.to_vec())
            };
            let mut shared = vec![20, 0, 0, 0];
            shared.extend(method.to_le_bytes());
            shared.extend([0; 8]); // time and checksum, which nobody reads
            shared.extend(u32::try_from(data.len()).unwrap().to_le_bytes());
            shared.extend(u32::try_from(content.len()).unwrap().to_le_bytes());
            shared.extend(u16::try_from(name.len()).unwrap().to_le_bytes());
            let at = u32::try_from(file.len()).unwrap();
            list.extend(b"PK\x01\x02\x14\x00");
            list.extend(&shared);
            list.extend([0; 12]);
            list.extend(at.to_le_bytes());
            list.extend(name.as_bytes());
            file.extend(b"PK\x03\x04");
            file.extend(&shared);
            file.extend(3_u16.to_le_bytes());
            file.extend(name.as_bytes());
            file.extend(b"ext");
            file.extend(&data);
        }
        let (at, size) = (file.len(), list.len());
        file.extend(list);
        file.extend(b"PK\x05\x06\0\0\0\0");
        let count = u16::try_from(members.len()).unwrap().to_le_bytes();
        file.extend([count, count].concat());
        file.extend(u32::try_from(size).unwrap().to_le_bytes());
        file.extend(u32::try_from(at).unwrap().to_le_bytes());
        file.extend([2, 0, b'h', b'i']);
        file
    }

    fn unpack(zip: &[u8], name: &str) -> io::Result<Vec<u8>> {
        let mut zip = Zip::open(Cursor::new(zip))?;
        let mut content = Vec::new();
        zip.member(name)?.take(1 << 20).read_to_end(&mut content)?;
        Ok(content)
    }

    #[test]
    fn what_was_packed_comes_out_again() {
        let long: Vec<u8> =
            (0..300_000_u32).flat_map(|n| n.wrapping_mul(n).to_le_bytes()).collect();
        let long = &long[..1_000_000];
        let zip = pack(&[("a/long", long), ("stored", b"as it is"), ("empty", b"")]);
        assert_eq!(unpack(&zip, "a/long").unwrap(), long);
        assert_eq!(unpack(&zip, "stored").unwrap(), b"as it is");
        assert_eq!(unpack(&zip, "empty").unwrap(), b"");
        assert!(unpack(&zip, "a").unwrap_err().to_string().contains("has no a"));
    }

    #[test]
    fn a_file_that_is_cut_off_says_so() {
        let zip = pack(&[("a", b"some content"), ("b", b"more")]);
        for cut in 0..zip.len() {
            let error = unpack(&zip[..cut], "a").unwrap_err();
            assert!(error.to_string().contains("no end record"), "{cut}: {error}");
        }
    }

    proptest! {
        /// Damage anywhere is an error or goes unseen here; the sums of the catalogue see the rest.
        #[test]
        fn no_damage_panics(at in 0_usize..400, to: u8, more in 0_usize..400, and: u8) {
            let mut zip = pack(&[("a", &[7; 500]), ("b", b"more"), ("c", &[1, 2, 3])]);
            let length = zip.len();
            zip[at % length] = to;
            zip[more % length] = and;
            for name in ["a", "b", "c"] {
                if let Ok(content) = unpack(&zip, name) {
                    prop_assert!(content.len() <= 1 << 20);
                }
            }
        }
    }
}
