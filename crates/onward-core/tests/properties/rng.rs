//! A random number generator that reads a list of values.
//!
//! After the end of the list every value is 0, which selects the simplest choice. proptest shrinks
//! the values towards 0, so a failing walk shrinks towards simple commands.

/// The remaining values.
pub(crate) struct Rng<'r> {
    values: std::slice::Iter<'r, u16>,
}

impl<'r> Rng<'r> {
    pub(crate) fn new(values: &'r [u16]) -> Self {
        Self {
            values: values.iter(),
        }
    }

    /// A number from 0 to `bound - 1`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let value = self.values.next().copied().map_or(0, usize::from);
        value.checked_rem(bound).unwrap_or(0)
    }

    /// Like [`Rng::below`], for orders.
    pub(crate) fn order_below(&mut self, bound: u32) -> u32 {
        let value = self.values.next().copied().map_or(0, u32::from);
        value.checked_rem(bound).unwrap_or(0)
    }

    /// True with a probability of 1 in `times`. False for the value 0.
    pub(crate) fn one_in(&mut self, times: usize) -> bool {
        self.below(times) + 1 == times
    }

    /// One of the options. The first for the value 0.
    pub(crate) fn pick<'t, T>(&mut self, from: &'t [T]) -> Option<&'t T> {
        from.get(self.below(from.len()))
    }

    /// One of the weighted options. The first for the value 0.
    pub(crate) fn pick_weighted<T: Clone>(&mut self, from: &[(usize, T)]) -> T {
        let mut left = self.below(from.iter().map(|(weight, _)| weight).sum());
        for (weight, choice) in from {
            if left < *weight {
                return choice.clone();
            }
            left -= weight;
        }
        panic!("no option with a positive weight")
    }
}
