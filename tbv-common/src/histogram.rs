//! The log-linear latency histogram that the kernel side fills.
//!
//! Values below 64 ns have a bucket each; above, every power of two is cut into 32 equal
//! buckets. A bucket is half-open, `[low, high)`; taking its middle for a value is wrong by
//! at most 1/64 of the value (1.6 %).

/// Bits of resolution inside a power of two.
pub const SUB_BITS: u32 = 5;
const SUB: u64 = 1 << SUB_BITS;
/// Exponent of the last power of two that is resolved: 2^38 ns is 275 s.
pub const MAX_EXPONENT: u32 = 37;
/// Number of buckets. The last one also takes every value from 2^38 ns up.
pub const BUCKETS: usize = ((MAX_EXPONENT - SUB_BITS + 2) as usize) << SUB_BITS;
/// Largest relative error of a bucket's middle, for every value below 2^38 ns.
pub const RELATIVE_ERROR: f64 = 1.0 / (2 * SUB) as f64;

/// Index of the bucket that holds `ns`.
#[inline(always)]
pub fn index(ns: u64) -> usize {
    if ns < 2 * SUB {
        return ns as usize;
    }
    let exponent = 63 - ns.leading_zeros();
    if exponent > MAX_EXPONENT {
        return BUCKETS - 1;
    }
    let sub = ns >> (exponent - SUB_BITS) & (SUB - 1);
    (((exponent - SUB_BITS + 1) as u64) << SUB_BITS | sub) as usize
}

/// A bucket's bounds in nanoseconds, half-open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Smallest value in the bucket.
    pub low: u64,
    /// Smallest value above the bucket; `u64::MAX` for the last one, which is open.
    pub high: u64,
}

impl Bucket {
    /// Bounds of bucket `index`.
    pub fn at(index: usize) -> Self {
        let index = index as u64;
        if index < 2 * SUB {
            return Bucket { low: index, high: index + 1 };
        }
        let shift = (index >> SUB_BITS) - 1;
        let low = (SUB | index & (SUB - 1)) << shift;
        let high = if index as usize == BUCKETS - 1 { u64::MAX } else { low + (1 << shift) };
        Bucket { low, high }
    }

    /// The value that stands for the bucket: its middle, or its low bound where it is open.
    pub fn middle(self) -> u64 {
        if self.high == u64::MAX { self.low } else { self.low + (self.high - 1 - self.low) / 2 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn buckets_tile_the_range() {
        for i in 0..BUCKETS {
            let b = Bucket::at(i);
            assert_eq!((index(b.low), index(b.high - 1)), (i, i));
            if i > 0 {
                assert_eq!(Bucket::at(i - 1).high, b.low, "bucket {i} leaves no gap");
            }
        }
        assert_eq!(Bucket::at(BUCKETS - 1).high, u64::MAX);
    }

    proptest! {
        #[test]
        fn middle_is_within_the_stated_error(v in 1u64..1 << 38) {
            let b = Bucket::at(index(v));
            prop_assume!(b.high != u64::MAX);
            let error = b.middle().abs_diff(v) as f64 / v as f64;
            prop_assert!(error <= RELATIVE_ERROR, "{v}: {error}");
        }

        #[test]
        fn every_value_has_its_bucket(v: u64) {
            let b = Bucket::at(index(v));
            prop_assert!(b.low <= v && (v < b.high || b.high == u64::MAX));
        }
    }
}
