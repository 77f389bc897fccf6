//! A seeded random number generator, so that a run can be repeated with its seed.

/// A splitmix64 generator.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next_u64() % end.max(1)
    }

    /// True with this probability.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of the items.
    pub fn choose<T: Copy>(&mut self, items: &[T]) -> Option<T> {
        let index = self.below(u64::try_from(items.len()).unwrap_or(u64::MAX));
        items.get(usize::try_from(index).unwrap_or(0)).copied()
    }
}

/// The seed of a run: `ONWARD_SEED`, or a random one.
pub fn seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    match std::env::var("ONWARD_SEED") {
        Ok(seed) => seed.parse().expect("`ONWARD_SEED` is a number"),
        Err(_) => RandomState::new().hash_one(0) % 1_000_000_007,
    }
}
