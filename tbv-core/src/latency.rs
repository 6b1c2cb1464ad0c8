//! Percentiles out of the log-linear buckets.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tbv_common::{Bucket, histogram::BUCKETS};

/// Largest relative error of a percentile, for latencies below 137 s (2^37 ns).
pub use tbv_common::histogram::RELATIVE_ERROR;

/// Latency of one row in nanoseconds. min, mean and max are exact; percentiles are a
/// bucket's middle, see [`RELATIVE_ERROR`]; they are absent if the row got no histogram.
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

    /// The summary that reports hold; `None` without values.
    pub fn summary(&self) -> Option<Latency> {
        // A row that is read in the middle of its first call has no extremes yet.
        (self.count > 0 && self.min <= self.max).then(|| Latency {
            min: self.min,
            mean: self.sum / self.count,
            max: self.max,
            p50: self.percentile(0.5),
            p90: self.percentile(0.9),
            p99: self.percentile(0.99),
            p99_9: self.percentile(0.999),
        })
    }
}
