//! Chance that comes again: numbers that follow from a seed, by splitmix64.

/// A row of numbers.
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        let mut dice = Dice(seed);
        // Neighbouring seeds must not look alike.
        let stirred = dice.next();
        Dice(stirred)
    }

    /// Any number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// 0 to `bound - 1`; 0 where the bound is.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next().checked_rem(bound).unwrap_or(0)
    }

    /// 0 to `bound - 1`, as an order.
    pub(crate) fn order_below(&mut self, bound: u32) -> u32 {
        u32::try_from(self.below(u64::from(bound))).unwrap_or(0)
    }

    /// 0 to `bound - 1`, as a place in a list.
    pub(crate) fn place(&mut self, bound: usize) -> usize {
        usize::try_from(self.below(bound as u64)).unwrap_or(0)
    }

    /// From one number to another, both included.
    pub(crate) fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to - from + 1)
    }

    /// So often in a hundred.
    pub(crate) fn percent(&mut self, often: u64) -> bool {
        self.below(100) < often
    }

    /// One of these, if there are any.
    pub(crate) fn pick<'t, T>(&mut self, from: &'t [T]) -> Option<&'t T> {
        from.get(self.place(from.len()))
    }

    /// One of these, each as often as its weight says.
    pub(crate) fn weighed<T: Copy>(&mut self, from: &[(u64, T)]) -> T {
        let mut left = self.below(from.iter().map(|(weight, _)| weight).sum());
        for (weight, choice) in from {
            if left < *weight {
                return *choice;
            }
            left -= weight;
        }
        panic!("a weighed choice needs something to choose from")
    }

    /// 128 bits, for an id.
    pub(crate) fn id(&mut self) -> u128 {
        (u128::from(self.next()) << 64) | u128::from(self.next())
    }
}
