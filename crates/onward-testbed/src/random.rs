//! A seeded random number generator, so that a run can be repeated with its seed.

use std::hash::{BuildHasher, RandomState};

/// A splitmix64 generator.
#[derive(Debug, Clone, Default)]
pub struct Rng(u64);

impl Rng {
    /// A generator with this seed.
    pub fn new(seed: u64) -> Self {
        // Adjacent seeds must not start with similar numbers.
        Self(Self(seed).next_u64())
    }

    /// 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// 128 random bits for an id.
    pub fn id(&mut self) -> u128 {
        (u128::from(self.next_u64()) << 64) | u128::from(self.next_u64())
    }

    /// Random bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            for (byte, random) in chunk.iter_mut().zip(self.next_u64().to_le_bytes()) {
                *byte = random;
            }
        }
    }

    /// 0 to `bound - 1`; 0 if the bound is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next_u64().checked_rem(bound).unwrap_or(0)
    }

    /// 0 to `bound - 1`, as a step order.
    pub fn order_below(&mut self, bound: u32) -> u32 {
        u32::try_from(self.below(u64::from(bound))).unwrap_or(0)
    }

    /// 0 to `bound - 1`, as a list index.
    pub fn index(&mut self, bound: usize) -> usize {
        usize::try_from(self.below(bound as u64)).unwrap_or(0)
    }

    /// `from` to `to`, inclusive.
    pub fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to - from + 1)
    }

    /// True with this probability.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of the items; `None` if there are none.
    pub fn pick<'t, T>(&mut self, items: &'t [T]) -> Option<&'t T> {
        items.get(self.index(items.len()))
    }

    /// One of the choices, with probabilities proportional to their weights.
    pub fn weighted<T: Copy>(&mut self, choices: &[(u64, T)]) -> T {
        let mut left = self.below(choices.iter().map(|(weight, _)| weight).sum());
        for (weight, choice) in choices {
            if left < *weight {
                return *choice;
            }
            left -= weight;
        }
        panic!("all weights are zero")
    }
}

/// The seed of a run: `ONWARD_SEED`, or a random one.
pub fn seed() -> u64 {
    match std::env::var("ONWARD_SEED") {
        Ok(seed) => seed.parse().expect("`ONWARD_SEED` is a number"),
        Err(_) => RandomState::new().hash_one(0) % 1_000_000_007,
    }
}
