//! A quick hash for pairs of tokens.

use std::hash::{BuildHasher, Hasher, RandomState};

/// Makes hashers that share a seed nobody knows, so that no file can be written whose pairs all
/// collide.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seeded(u64, u64);

impl Default for Seeded {
    fn default() -> Self {
        let random = RandomState::new();
        // An odd factor loses no bit.
        Self(random.hash_one(0), random.hash_one(1) | 1)
    }
}

impl BuildHasher for Seeded {
    type Hasher = Mixer;

    fn build_hasher(&self) -> Mixer {
        Mixer(self.0, self.1)
    }
}

#[derive(Debug)]
pub(super) struct Mixer(u64, u64);

impl Hasher for Mixer {
    fn write_u64(&mut self, value: u64) {
        let product = u128::from(self.0 ^ value) * u128::from(self.1);
        self.0 = (product as u64) ^ (product >> 64) as u64;
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
