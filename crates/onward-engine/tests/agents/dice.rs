//! Chance that can be repeated: everything that a test or a worker chooses follows from its seed.

/// A splitmix64 generator.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below this one.
    pub fn below(&mut self, end: u64) -> u64 {
        self.roll() % end.max(1)
    }

    /// True in so many of a hundred cases.
    pub fn percent(&mut self, cases: u64) -> bool {
        self.below(100) < cases
    }

    /// One of them.
    pub fn one_of<T: Copy>(&mut self, all: &[T]) -> Option<T> {
        let place = self.below(u64::try_from(all.len()).unwrap_or(u64::MAX));
        all.get(usize::try_from(place).unwrap_or(0)).copied()
    }
}

/// The seed of a run: the one that the environment names, or another one each time.
pub fn seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    match std::env::var("ONWARD_SEED") {
        Ok(seed) => seed.parse().expect("`ONWARD_SEED` is a number"),
        Err(_) => RandomState::new().hash_one(0) % 1_000_000_007,
    }
}
