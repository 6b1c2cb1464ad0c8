//! Percentiles out of the log-linear buckets.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tbv_common::{Bucket, histogram::BUCKETS};

/// Largest relative error of a percentile, for latencies below 137 s (2^37 ns).
pub use tbv_common::histogram::RELATIVE_ERROR;

/// Latency of one row in nanoseconds. Percentiles are a bucket's middle, see [`RELATIVE_ERROR`]; they are absent if the
/// row got no histogram. min, mean and max of a total are exact; those of an interval are as near as its buckets tell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// Smallest.
    pub min: u64,
    /// Sum divided by count, rounded down.
    pub mean: u64,
    /// Largest.
    pub max: u64,
    /// Median.
    pub p50: Option<u64>,
    /// 90th percentile.
    pub p90: Option<u64>,
    /// 99th percentile.
    pub p99: Option<u64>,
    /// 99.9th percentile.
    pub p99_9: Option<u64>,
}

/// Counts per bucket, with the exact figures beside them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distribution {
    /// Values counted.
    pub count: u64,
    /// Their sum.
    pub sum: u64,
    /// The smallest; `u64::MAX` without values.
    pub min: u64,
    /// The largest.
    pub max: u64,
    /// Counts by bucket index; absent if there is no histogram.
    pub buckets: Option<Vec<u64>>,
}

impl Default for Distribution {
    fn default() -> Self {
        Distribution { count: 0, sum: 0, min: u64::MAX, max: 0, buckets: Some(vec![0; BUCKETS]) }
    }
}

impl Distribution {
    /// Of a report's row: `[low, high, values]` per bucket that is not empty, and the exact figures beside them. `None`
    /// if these are not the buckets of [`tbv_common::histogram`].
    pub fn from_row(
        count: u64,
        sum: u64,
        summary: Option<&Latency>,
        filled: Option<&[(u64, u64, u64)]>,
    ) -> Option<Self> {
        let buckets = match filled {
            None => None,
            Some(filled) => {
                let mut buckets = vec![0; BUCKETS];
                for (low, high, n) in filled {
                    let index = tbv_common::histogram::index(*low);
                    let known = Bucket::at(index) == Bucket { low: *low, high: *high };
                    *buckets.get_mut(index).filter(|_| known)? = *n;
                }
                Some(buckets)
            }
        };
        let (min, max) = summary.map_or((u64::MAX, 0), |summary| (summary.min, summary.max));
        Some(Distribution { count, sum, min, max, buckets })
    }

    /// `[low, high, values]` per bucket that is not empty, half-open, as reports hold them.
    pub fn filled(&self) -> Option<Vec<(u64, u64, u64)>> {
        let buckets = self.buckets.as_ref()?.iter().enumerate().filter(|(_, n)| **n > 0);
        Some(buckets.map(|(i, n)| (Bucket::at(i).low, Bucket::at(i).high, *n)).collect())
    }

    /// Counts one value, as the eBPF side does.
    pub fn record(&mut self, ns: u64) {
        self.count += 1;
        self.sum += ns;
        self.min = self.min.min(ns);
        self.max = self.max.max(ns);
        if let Some(bucket) = self.buckets.as_mut().and_then(|b| b.get_mut(tbv_common::histogram::index(ns)))
        {
            *bucket += 1;
        }
    }

    /// Adds another distribution. A missing histogram on either side leaves none.
    pub fn merge(&mut self, other: &Distribution) {
        self.count += other.count;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.buckets = match (self.buckets.take(), &other.buckets) {
            (Some(mut mine), Some(theirs)) => {
                mine.iter_mut().zip(theirs).for_each(|(a, b)| *a += b);
                Some(mine)
            }
            _ => None,
        };
    }

    /// What came since an earlier state of the same distribution, by its buckets. Its extremes are only known as far as the buckets
    /// tell; without them it has none.
    #[must_use]
    pub fn since(&self, earlier: &Distribution) -> Distribution {
        let buckets: Option<Vec<u64>> = match (&self.buckets, &earlier.buckets) {
            (Some(now), Some(then)) => {
                Some(now.iter().zip(then).map(|(a, b)| a.saturating_sub(*b)).collect())
            }
            _ => None,
        };
        let filled = |index: Option<usize>| index.map(Bucket::at);
        let lowest = filled(buckets.as_ref().and_then(|b| b.iter().position(|n| *n > 0)));
        let highest = filled(buckets.as_ref().and_then(|b| b.iter().rposition(|n| *n > 0)));
        // Read while it is written to, the total may be ahead of the buckets.
        let count = match &buckets {
            Some(buckets) => buckets.iter().sum(),
            None => self.count.saturating_sub(earlier.count),
        };
        Distribution {
            count,
            sum: self.sum.saturating_sub(earlier.sum),
            min: lowest.map_or(u64::MAX, |bucket| bucket.low.max(self.min.min(bucket.high - 1))),
            max: highest.map_or(0, |bucket| (bucket.high - 1).min(self.max.max(bucket.low))),
            buckets,
        }
    }

    /// The value below or at which the share `q` (0 to 1) of all values lies.
    pub fn percentile(&self, q: f64) -> Option<u64> {
        let buckets = self.buckets.as_ref()?;
        let total: u64 = buckets.iter().sum();
        if total == 0 {
            return None;
        }
        let rank = ((q * total as f64).ceil() as u64).clamp(1, total);
        let mut seen = 0;
        let index = buckets.iter().position(|count| {
            seen += count;
            seen >= rank
        })?;
        let middle = Bucket::at(index).middle();
        // Read while it is written to, the extremes may not be there yet.
        Some(if self.min <= self.max { middle.clamp(self.min, self.max) } else { middle })
    }

    /// Sum by count, rounded down, of at least one value. An interval's sum, read while calls ran, may hold one more or
    /// one less than its buckets: the mean stays within theirs.
    fn mean(&self) -> u64 {
        let mean = self.sum / self.count;
        let Some(buckets) = &self.buckets else { return mean };
        let (mut low, mut high, mut count) = (0, 0, 0);
        for (index, n) in buckets.iter().enumerate().filter(|(_, n)| **n > 0) {
            let (bucket, n) = (Bucket::at(index), u128::from(*n));
            low += n * u128::from(bucket.low.max(self.min));
            high += n * u128::from((bucket.high - 1).min(self.max));
            count += n;
        }
        let by_count = |sum: u128| u64::try_from(sum / count.max(1)).unwrap_or(u64::MAX);
        mean.clamp(by_count(low), by_count(high).max(by_count(low)))
    }

    /// The summary that reports hold; `None` without values.
    pub fn summary(&self) -> Option<Latency> {
        // A row that is read in the middle of its first call has no extremes yet.
        (self.count > 0 && self.min <= self.max).then(|| Latency {
            min: self.min,
            mean: self.mean(),
            max: self.max,
            p50: self.percentile(0.5),
            p90: self.percentile(0.9),
            p99: self.percentile(0.99),
            p99_9: self.percentile(0.999),
        })
    }
}

/// Counts by powers of two, from the first to the last that is not empty: `[low, high)` in nanoseconds. A high of
/// `u64::MAX` is open: values beyond what is resolved are in it. `None` without a histogram.
pub fn octaves(times: &Distribution) -> Option<Vec<(u64, u64, u64)>> {
    let mut counts: BTreeMap<u32, (u64, bool)> = BTreeMap::new();
    for (low, high, n) in times.filled()? {
        let octave = counts.entry(octave(low)).or_default();
        octave.0 = octave.0.saturating_add(n);
        octave.1 |= high == u64::MAX;
    }
    let (Some((first, _)), Some((last, _))) = (counts.first_key_value(), counts.last_key_value()) else {
        return Some(Vec::new());
    };
    let bound = |octave: u32| 1_u64.checked_shl(octave).unwrap_or(u64::MAX);
    let range = *first..=*last;
    Some(
        range
            .map(|octave| {
                let (n, open) = counts.get(&octave).copied().unwrap_or_default();
                let low = if octave == 0 { 0 } else { bound(octave - 1) };
                (low, if open { u64::MAX } else { bound(octave) }, n)
            })
            .collect(),
    )
}

/// Number of the power of two that a value lies below: 0 for 0, 1 for 1, 2 for 2 and 3, …
pub fn octave(ns: u64) -> u32 {
    u64::BITS - ns.leading_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octaves_are_whole_and_the_last_may_be_open() {
        let mut times = Distribution::default();
        [0, 1, 8, 9, 15].into_iter().for_each(|ns| times.record(ns));
        assert_eq!(octaves(&times).unwrap(), [(0, 1, 1), (1, 2, 1), (2, 4, 0), (4, 8, 0), (8, 16, 3)]);
        times.record(1 << 50);
        assert_eq!(octaves(&times).unwrap().last(), Some(&(1 << 37, u64::MAX, 1)));
        assert!(octaves(&Distribution::default()).unwrap().is_empty());
    }

    #[test]
    fn the_mean_of_an_interval_lies_among_its_values() {
        let mut earlier = Distribution::default();
        [100, 200].into_iter().for_each(|ns| earlier.record(ns));
        let mut now = earlier.clone();
        now.record(300);
        let exact = now.since(&earlier).summary().unwrap();
        assert_eq!(exact.mean, 300);
        // The sum of a call whose bucket is not filled yet, and the bucket of one whose sum was read before.
        for sum in [now.sum + 1_000_000, earlier.sum] {
            let torn = Distribution { sum, ..now.clone() }.since(&earlier).summary().unwrap();
            assert!((torn.min..=torn.max).contains(&torn.mean), "{torn:?}");
        }
        // A total is what it is.
        assert_eq!(now.summary().unwrap().mean, 200);
        let mut huge = Distribution::default();
        [u64::MAX / 2, 1].into_iter().for_each(|ns| huge.record(ns));
        assert_eq!(huge.summary().unwrap().mean, huge.sum / 2);
    }
}
