//! Pseudo-random numbers that a seed repeats exactly (SplitMix64).

use std::ops::RangeInclusive;

/// A generator; the same seed gives the same numbers on every machine.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number of the range, whose ends are included.
    pub fn within(&mut self, range: RangeInclusive<usize>) -> usize {
        let (low, high) = (*range.start(), *range.end());
        let span = (high.saturating_sub(low) as u64).saturating_add(1);
        // The bias of the remainder is far below anything a test could see.
        low + (self.word() % span) as usize
    }

    /// A number up to `max`, each power of two as likely as any other, so that small ones are not rare.
    pub fn logarithmic(&mut self, max: usize) -> usize {
        let bits = self.within(1..=max.max(1).ilog2() as usize + 1);
        let low = 1 << (bits - 1);
        self.within(low..=(2 * low - 1).min(max.max(1)))
    }

    pub fn chance(&mut self, one_in: usize) -> bool {
        self.within(1..=one_in) == 1
    }

    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let word = self.word().to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn a_seed_repeats() {
        let numbers = |seed| {
            let mut random = Random::new(seed);
            [random.word(), random.word()]
        };
        // The generator's published first outputs for seed 0.
        assert_eq!(numbers(0), [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4]);
        assert_eq!(numbers(7), numbers(7));
        assert_ne!(numbers(7), numbers(8));
    }

    #[test]
    fn ranges_include_both_ends_and_nothing_else() {
        let mut random = Random::new(1);
        let mut seen = [false; 5];
        for _ in 0..1000 {
            seen[random.within(3..=7) - 3] = true;
        }
        assert_eq!(seen, [true; 5]);
        assert_eq!(random.within(9..=9), 9);
    }

    #[test]
    fn logarithmic_numbers_reach_all_magnitudes() {
        let mut random = Random::new(2);
        let numbers: Vec<usize> = (0..5000).map(|_| random.logarithmic(1000)).collect();
        assert!(numbers.iter().all(|n| (1..=1000).contains(n)));
        for magnitude in [1..=1, 2..=3, 4..=15, 16..=127, 128..=511, 512..=1000] {
            assert!(numbers.iter().any(|n| magnitude.contains(n)), "{magnitude:?}");
        }
        assert_eq!(random.logarithmic(1), 1);
    }

    #[test]
    fn filling_reaches_the_last_byte() {
        let mut bytes = [0; 13];
        Random::new(3).fill(&mut bytes);
        assert!(bytes[8..].iter().any(|&b| b != 0));
    }
}
