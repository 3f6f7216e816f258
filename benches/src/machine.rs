//! The speed of the machine in this very run, to hold absolute figures against.

use std::fmt;
use std::io::Write;
use std::time::{Duration, Instant};

/// Medians of three things every other figure depends on.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// Copying memory, in gigabytes a second.
    pub copy: f64,
    /// Hashing with blake3 on one core, in gigabytes a second.
    pub blake3: f64,
    /// Writing 4 kB and syncing it to disk, in microseconds.
    pub sync: f64,
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64()
}

impl Machine {
    /// Measures.
    ///
    /// # Errors
    /// When the temporary folder cannot be written to.
    pub fn measure() -> std::io::Result<Self> {
        const SIZE: usize = 64 << 20;
        let source = vec![7_u8; SIZE];
        let mut target = vec![0_u8; SIZE];
        let time = |mut work: Box<dyn FnMut() + '_>, times: usize| {
            let runs = (0..times).map(|_| {
                let start = Instant::now();
                work();
                start.elapsed()
            });
            median(runs.collect())
        };
        let size = SIZE as f64 / 1e9;
        let copy = size / time(Box::new(|| target.copy_from_slice(&source)), 9);
        let hash = size
            / time(
                Box::new(|| {
                    std::hint::black_box(blake3::hash(&source));
                }),
                5,
            );
        let folder = tempfile::tempdir()?;
        let mut file = std::fs::File::create(folder.path().join("sync"))?;
        let mut times = Vec::new();
        for _ in 0..50 {
            let start = Instant::now();
            file.write_all(&source[..4096])?;
            file.sync_data()?;
            times.push(start.elapsed());
        }
        Ok(Self { copy, blake3: hash, sync: median(times) * 1e6 })
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "memory copy {:.1} GB/s, blake3 {:.2} GB/s, 4 kB sync {:.0} µs",
            self.copy, self.blake3, self.sync
        )
    }
}
