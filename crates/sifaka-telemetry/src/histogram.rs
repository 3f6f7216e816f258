//! Durations of one component, in a space that does not grow.

/// Up to so many durations are kept as they are, so that short runs are exact and cost no table.
const FEW: usize = 32;

/// Each power of two is split into so many buckets, which bounds the error.
const SPLIT_BITS: u32 = 4;
const SPLIT: u64 = 1 << SPLIT_BITS;

/// Durations from this one on share the last bucket: 2^44 ns, almost five hours.
const TOP_BITS: u32 = 44;
const BUCKETS: usize = ((TOP_BITS - SPLIT_BITS + 1) as usize) << SPLIT_BITS;

/// Count, sum, extremes and percentiles of durations in nanoseconds.
///
/// Up to [`FEW`] percentiles are exact. Beyond that they are read off a table whose buckets are a
/// sixteenth of their value wide; the middle of a bucket is given, which is off by at most 1/32,
/// or 3.2 %. Which of the two it is depends on the number of durations alone, so that merging
/// gives just what recording all of them would have.
#[derive(Clone, Debug, Default)]
pub(crate) struct Histogram {
    count: u64,
    sum: u64,
    min: u64,
    max: u64,
    durations: Durations,
}

#[derive(Clone, Debug)]
enum Durations {
    Few(Vec<u64>),
    Many(Box<[u32; BUCKETS]>),
}

impl Default for Durations {
    fn default() -> Self {
        Self::Few(Vec::new())
    }
}

/// Which bucket a duration belongs to. Below [`SPLIT`] each has its own; from there on the leading
/// bit chooses a group of [`SPLIT`] and the bits after it one within.
#[expect(clippy::cast_possible_truncation, reason = "at most BUCKETS - 1")]
fn bucket(nanos: u64) -> usize {
    if nanos < SPLIT {
        return nanos as usize;
    }
    let shift = nanos.ilog2() - SPLIT_BITS;
    let index = (u64::from(shift) << SPLIT_BITS) + (nanos >> shift);
    (index as usize).min(BUCKETS - 1)
}

/// The middle of a bucket.
fn middle(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < SPLIT {
        return bucket;
    }
    let shift = (bucket >> SPLIT_BITS) - 1;
    let low = (SPLIT + (bucket & (SPLIT - 1))) << shift;
    low + ((1 << shift) >> 1)
}

fn table(durations: &[u64]) -> Box<[u32; BUCKETS]> {
    let mut table = Box::new([0; BUCKETS]);
    for nanos in durations {
        table[bucket(*nanos)] += 1;
    }
    table
}

impl Histogram {
    pub(crate) fn record(&mut self, nanos: u64) {
        self.min = if self.count == 0 { nanos } else { self.min.min(nanos) };
        self.max = self.max.max(nanos);
        self.sum = self.sum.saturating_add(nanos);
        self.count = self.count.saturating_add(1);
        match &mut self.durations {
            Durations::Few(few) if few.len() < FEW => few.push(nanos),
            Durations::Few(few) => {
                let mut table = table(few);
                table[bucket(nanos)] += 1;
                self.durations = Durations::Many(table);
            }
            Durations::Many(table) => {
                let slot = &mut table[bucket(nanos)];
                *slot = slot.saturating_add(1);
            }
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        let Durations::Many(theirs) = &other.durations else {
            if let Durations::Few(few) = &other.durations {
                few.iter().for_each(|nanos| self.record(*nanos));
            }
            return;
        };
        self.min = if self.count == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.sum = self.sum.saturating_add(other.sum);
        self.count = self.count.saturating_add(other.count);
        if let Durations::Few(few) = &self.durations {
            self.durations = Durations::Many(table(few));
        }
        if let Durations::Many(ours) = &mut self.durations {
            for (ours, theirs) in ours.iter_mut().zip(theirs.iter()) {
                *ours = ours.saturating_add(*theirs);
            }
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    pub(crate) fn sum(&self) -> u64 {
        self.sum
    }

    pub(crate) fn max(&self) -> u64 {
        self.max
    }

    pub(crate) fn mean(&self) -> u64 {
        self.sum.checked_div(self.count).unwrap_or(0)
    }

    /// The duration that `percent` of a hundred do not exceed; zero without any.
    pub(crate) fn percentile(&self, percent: u64) -> u64 {
        match &self.durations {
            Durations::Few(few) => {
                let mut sorted = few.clone();
                sorted.sort_unstable();
                let rank = rank(sorted.len() as u64, percent);
                usize::try_from(rank).ok().and_then(|rank| sorted.get(rank)).copied().unwrap_or(0)
            }
            Durations::Many(table) => {
                // The counters may have saturated, so their own sum is what ranks are taken from.
                let total = table.iter().map(|count| u64::from(*count)).sum();
                let mut left = rank(total, percent);
                for (bucket, count) in table.iter().enumerate() {
                    let count = u64::from(*count);
                    if left < count {
                        return middle(bucket).clamp(self.min, self.max);
                    }
                    left -= count;
                }
                self.max
            }
        }
    }

    /// How many bytes it holds beyond its own.
    #[cfg(test)]
    fn held(&self) -> usize {
        match &self.durations {
            Durations::Few(few) => few.capacity() * size_of::<u64>(),
            Durations::Many(_) => BUCKETS * size_of::<u32>(),
        }
    }
}

/// The place, from 0, of the percentile among `total` in order (nearest rank).
fn rank(total: u64, percent: u64) -> u64 {
    (u128::from(total) * u128::from(percent)).div_ceil(100).saturating_sub(1) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(durations: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        durations.iter().for_each(|nanos| histogram.record(*nanos));
        histogram
    }

    fn figures(histogram: &Histogram) -> [u64; 6] {
        let percentile = |percent| histogram.percentile(percent);
        let (count, sum, max) = (histogram.count(), histogram.sum(), histogram.max());
        [count, sum, max, percentile(50), percentile(99), histogram.mean()]
    }

    #[test]
    fn few_durations_are_exact() {
        assert_eq!(figures(&of(&[])), [0, 0, 0, 0, 0, 0]);
        assert_eq!(figures(&of(&[7])), [1, 7, 7, 7, 7, 7]);
        assert_eq!(figures(&of(&[1_003, 5, 30, 2])), [4, 1_040, 1_003, 5, 1_003, 260]);
    }

    #[test]
    fn buckets_are_in_order_and_hold_their_middle() {
        let mut last = 0;
        for shift in 0..63 {
            for offset in 0..64_u64 {
                let nanos = (1_u64 << shift) + ((offset << shift) >> 6);
                let index = bucket(nanos);
                assert!(index >= last && index < BUCKETS);
                last = index;
                if index < BUCKETS - 1 {
                    assert_eq!(bucket(middle(index)), index);
                }
            }
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn it_stops_growing() {
        let mut histogram = Histogram::default();
        (0..100).for_each(|n| histogram.record(n * n * n));
        let held = histogram.held();
        (0..1_000_000).for_each(|n| histogram.record(n * 1_000));
        assert_eq!(histogram.held(), held);
        assert!(held < 3_000, "{held} bytes");
    }

    proptest! {
        #[test]
        fn percentiles_are_within_their_error(
            mut durations in prop::collection::vec((0_u32..43, any::<u64>()), 1..400),
            percent in 0_u64..=100,
        ) {
            // Spread over all orders of magnitude below the last bucket.
            let mut durations: Vec<u64> = durations
                .drain(..)
                .map(|(bits, random)| (1 << bits) + random % (1 << bits))
                .collect();
            let got = of(&durations).percentile(percent);
            durations.sort_unstable();
            let place = (durations.len() * percent as usize).div_ceil(100).saturating_sub(1);
            let exact = durations[place];
            let error = got.abs_diff(exact) as f64 / exact as f64;
            prop_assert!(error <= 1.0 / 32.0, "{got} for {exact}");
        }

        #[test]
        fn merging_is_recording_all(
            a in prop::collection::vec(0_u64..1 << 40, 0..80),
            b in prop::collection::vec(0_u64..1 << 40, 0..80),
        ) {
            let mut merged = of(&a);
            merged.merge(&of(&b));
            let all: Vec<u64> = a.iter().chain(&b).copied().collect();
            prop_assert_eq!(figures(&merged), figures(&of(&all)));
        }
    }
}
