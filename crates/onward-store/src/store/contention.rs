//! Contention tracking: after a lost race, the next transitions lock their plan.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::backend::postgres::Mode;

/// Number of transitions that lock their plan after a lost race, because further races are likely.
const CONTENDED: u32 = 32;

/// Number of upcoming transitions that lock their plan.
#[derive(Default)]
pub(super) struct Contention(AtomicU32);

impl Contention {
    pub(super) fn record(&self) {
        self.0.store(CONTENDED, Ordering::Relaxed);
    }

    /// Mode of the next transition: without a lock, unless a race was lost recently.
    pub(super) fn next(&self) -> Mode {
        let one_less = |left: u32| left.checked_sub(1);
        // A count that is off by one costs an unnecessary lock or a retry.
        match self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less)
        {
            Ok(_) => Mode::Lock,
            Err(_) => Mode::Optimistic,
        }
    }
}
