//! Copying while counting and summing.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use sha2::{Digest, Sha256};

/// How much is read at a time.
const STEP: usize = 256 * 1024;

/// What was copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) size: u64,
    pub(super) sha256: String,
}

/// Copies everything, at most `limit` bytes and one more, and says what it was. `step` is told of
/// every piece.
pub(super) fn copy(
    from: &mut dyn Read,
    to: &mut dyn Write,
    limit: u64,
    step: &mut dyn FnMut(u64),
) -> io::Result<Sum> {
    // One more shows that there is too much, without taking all of it.
    let mut from = from.take(limit.saturating_add(1));
    let (mut hash, mut size, mut buffer) = (Sha256::new(), 0, vec![0; STEP]);
    loop {
        let count = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let piece = buffer.get(..count).unwrap_or_default();
        hash.update(piece);
        to.write_all(piece)?;
        size += count as u64;
        step(count as u64);
    }
    let sha256 = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(Sum { size, sha256 })
}

/// The sum of a file, up to `limit` bytes and one more.
pub(super) fn of_file(path: &Path, limit: u64) -> io::Result<Sum> {
    copy(&mut File::open(path)?, &mut io::sink(), limit, &mut |_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_sha256_and_too_much_shows() {
        let mut copied = Vec::new();
        let mut told = 0;
        let sum = copy(&mut &b"abc"[..], &mut copied, 3, &mut |count| told += count).unwrap();
        assert_eq!(sum.size, 3);
        assert_eq!((copied.as_slice(), told), (&b"abc"[..], 3));
        let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sum.sha256, known);
        let more = copy(&mut io::repeat(1), &mut io::sink(), 9, &mut |_| ()).unwrap();
        assert_eq!(more.size, 10);
    }
}
