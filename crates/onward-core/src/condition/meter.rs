//! The budget of one evaluation: work and memory, counted and not timed.
//!
//! Work is charged before it is done, in units of about two nanoseconds at worst: 16 for a node or
//! a comparison, one per searched byte, a quarter per compared or copied byte. Memory is charged on
//! allocation and never refunded, so the budget also bounds the peak. The whole budget is about the
//! cost of the longest condition over the longest list; a typical condition over a full result
//! takes a few hundredths of it. The same condition on the same scope always has the same cost.

use super::failure::Failure;

/// The work budget of one evaluation.
pub const MAX_WORK: u64 = 5_000_000;
/// The work budget of all branches of one step. When it is used up, the remaining branches are not
/// evaluated.
pub const MAX_WORK_PER_STEP: u64 = 4 * MAX_WORK;
/// The total number of bytes that one evaluation may allocate.
pub const MAX_BYTES: u64 = 2 * 1024 * 1024;

/// The cost of visiting one node.
pub(super) const NODE: u64 = 16;

/// The cost of an evaluation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Work units, at most [`MAX_WORK`].
    pub work: u64,
    /// Allocated bytes, at most [`MAX_BYTES`].
    pub bytes: u64,
}

#[derive(Default)]
pub(super) struct Meter {
    spent: Cost,
}

impl Meter {
    pub(super) fn spent(&self) -> Cost {
        self.spent
    }

    /// Charges work. Fails if the budget is exhausted.
    pub(super) fn work<'a>(&mut self, units: u64) -> Result<(), Failure<'a>> {
        charge(&mut self.spent.work, units, MAX_WORK)
    }

    /// Charges a scan of this many bytes.
    pub(super) fn search<'a>(&mut self, bytes: usize) -> Result<(), Failure<'a>> {
        self.work(bytes as u64)
    }

    /// Charges comparing or counting this many bytes, which processes several bytes per unit.
    pub(super) fn compare<'a>(&mut self, bytes: usize) -> Result<(), Failure<'a>> {
        self.work(4 + bytes as u64 / 4)
    }

    /// Charges a key lookup in an object of maximum size.
    pub(super) fn look_up<'a>(&mut self, key: &str) -> Result<(), Failure<'a>> {
        self.work(2 * NODE)?;
        self.compare(key.len())
    }

    /// Charges an allocation and filling it.
    pub(super) fn allocate<'a>(&mut self, bytes: usize) -> Result<(), Failure<'a>> {
        self.compare(bytes)?;
        charge(&mut self.spent.bytes, 16 + bytes as u64, MAX_BYTES)
    }
}

fn charge<'a>(spent: &mut u64, cost: u64, limit: u64) -> Result<(), Failure<'a>> {
    if cost > limit - *spent {
        return Err(Failure::Exhausted);
    }
    *spent += cost;
    Ok(())
}
