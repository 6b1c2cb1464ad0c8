//! The histogram against the truth: a million values from 1 ns to 100 s.

use proptest::prelude::*;
use tbv_core::latency::{Distribution, RELATIVE_ERROR};

const VALUES: usize = 1_000_000;
const LONGEST_NS: f64 = 100e9;

/// Small, seeded, and good enough to spread values: xorshift64*.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Evenly spread over the powers of ten.
    fn nanoseconds(&mut self) -> u64 {
        (self.next() * LONGEST_NS.ln()).exp().round().max(1.0) as u64
    }
}

#[test]
fn a_million_values_keep_every_percentile_within_the_stated_error() {
    for seed in 1..=3u64 {
        let mut random = Random(seed * 0x9e37_79b9);
        let mut values: Vec<u64> = (0..VALUES).map(|_| random.nanoseconds()).collect();
        let mut one = Distribution::default();
        let mut per_cpu = vec![Distribution::default(); 7];
        for (i, v) in values.iter().enumerate() {
            one.record(*v);
            per_cpu[i % 7].record(*v);
        }
        let mut merged = Distribution::default();
        per_cpu.iter().for_each(|d| merged.merge(d));
        assert_eq!(merged, one, "merging per-CPU results changes nothing");

        values.sort_unstable();
        assert_eq!(one.count, VALUES as u64);
        assert_eq!(one.sum, values.iter().sum::<u64>());
        assert_eq!((one.min, one.max), (values[0], values[VALUES - 1]));
        for step in 0..=1000 {
            let q = f64::from(step) / 1000.0;
            let rank = ((q * VALUES as f64).ceil() as usize).clamp(1, VALUES);
            let exact = values[rank - 1];
            let got = one.percentile(q).unwrap();
            let error = got.abs_diff(exact) as f64 / exact as f64;
            assert!(error <= RELATIVE_ERROR, "seed {seed} q {q}: {got} for {exact}, {error}");
        }
    }
}

proptest! {
    #[test]
    fn percentiles_rise_and_stay_between_the_extremes(
        values in prop::collection::vec(1u64..100_000_000_000, 1..200),
    ) {
        let mut d = Distribution::default();
        values.iter().for_each(|v| d.record(*v));
        let mut last = 0;
        for step in 0..=100 {
            let p = d.percentile(f64::from(step) / 100.0).unwrap();
            prop_assert!(p >= last && p >= d.min && p <= d.max);
            last = p;
        }
    }
}
