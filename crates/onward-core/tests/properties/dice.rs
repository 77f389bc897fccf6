//! Choices, read off a list of random numbers.
//!
//! Where the numbers run out, every further one is 0, and 0 stands for the plainest choice: so a walk
//! that fails shrinks towards plain commands. Nothing here is random by itself.

/// What is left of the numbers.
pub(crate) struct Dice<'r> {
    rolls: std::slice::Iter<'r, u16>,
}

impl<'r> Dice<'r> {
    pub(crate) fn new(rolls: &'r [u16]) -> Self {
        Self {
            rolls: rolls.iter(),
        }
    }

    /// 0 to `bound - 1`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let roll = self.rolls.next().copied().map_or(0, usize::from);
        roll.checked_rem(bound).unwrap_or(0)
    }

    /// The same, for orders.
    pub(crate) fn order_below(&mut self, bound: u32) -> u32 {
        let roll = self.rolls.next().copied().map_or(0, u32::from);
        roll.checked_rem(bound).unwrap_or(0)
    }

    /// True once in so many times, and not on 0.
    pub(crate) fn one_in(&mut self, times: usize) -> bool {
        self.below(times) + 1 == times
    }

    /// One of these, the first on 0.
    pub(crate) fn pick<'t, T>(&mut self, from: &'t [T]) -> Option<&'t T> {
        from.get(self.below(from.len()))
    }

    /// One of these, each as often as its weight says, the first on 0.
    pub(crate) fn weighed<T: Copy>(&mut self, from: &[(usize, T)]) -> T {
        let mut left = self.below(from.iter().map(|(weight, _)| weight).sum());
        for (weight, choice) in from {
            if left < *weight {
                return *choice;
            }
            left -= weight;
        }
        panic!("a weighed choice needs something to choose from")
    }
}
