//! The budget of one trial: work and memory, counted and not timed.
//!
//! Work is charged before it is done, in units of about two nanoseconds at worst: sixteen for a
//! node or a comparison, one for each byte that is searched, a quarter for each that is compared
//! or copied. Memory is charged when it is asked for and never given back, so that the budget
//! bounds its peak too. The whole of it is about what the longest condition takes over the
//! longest list; an ordinary one over a full result takes a few hundredths.
//! The same condition on the same scope always costs the same.

use super::failure::Failure;

/// How much work one trial may take.
pub const MAX_WORK: u64 = 5_000_000;
/// How much work the trials of all branches of one step may take together, before the rest of them
/// are not tried any more.
pub const MAX_WORK_PER_STEP: u64 = 4 * MAX_WORK;
/// How many bytes one trial may allocate, all in all.
pub const MAX_BYTES: u64 = 2 * 1024 * 1024;

/// What looking at one node costs.
pub(super) const NODE: u64 = 16;

/// What a trial has cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Of [`MAX_WORK`].
    pub work: u64,
    /// Of [`MAX_BYTES`].
    pub bytes: u64,
}

#[derive(Default)]
pub(super) struct Meter {
    spent: Spent,
}

impl Meter {
    pub(super) fn spent(&self) -> Spent {
        self.spent
    }

    /// Pays for some work, or says that it is not affordable.
    pub(super) fn work<'a>(&mut self, units: u64) -> Result<(), Failure<'a>> {
        charge(&mut self.spent.work, units, MAX_WORK)
    }

    /// Pays for looking at every byte once.
    pub(super) fn search<'a>(&mut self, bytes: usize) -> Result<(), Failure<'a>> {
        self.work(bytes as u64)
    }

    /// Pays for comparing or counting that many bytes, which goes by several at once.
    pub(super) fn compare<'a>(&mut self, bytes: usize) -> Result<(), Failure<'a>> {
        self.work(4 + bytes as u64 / 4)
    }

    /// Pays for finding a key among as many as an object may have.
    pub(super) fn look_up<'a>(&mut self, key: &str) -> Result<(), Failure<'a>> {
        self.work(2 * NODE)?;
        self.compare(key.len())
    }

    /// Pays for memory, and for filling it.
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
