//! Wakes the sweep of this process when a commit is due before the sweep's planned wake-up, and has
//! the state of the sweep that outlives a round.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use onward_core::next_check::Due;
use onward_core::{PlanId, Timestamp};
use tokio::sync::Notify;

/// Delay after the second failed check of a plan in sequence; the first is repeated in the next round. It
/// doubles with each further one, up to the maximum.
const FIRST_DELAY: Duration = Duration::from_secs(2);
const MAX_DELAY: Duration = Duration::from_secs(60);

/// Wakes the sweep if something is due before its planned wake-up.
#[derive(Debug)]
pub(crate) struct SweepWaker {
    planned: AtomicI64,
    checked: AtomicI64,
    overdue: AtomicUsize,
    notify: Notify,
    postponed: Mutex<HashMap<PlanId, Postponed>>,
}

/// A plan that could not be reached.
#[derive(Debug, Clone, Copy)]
struct Postponed {
    delay: Duration,
    until: Timestamp,
}

impl Default for SweepWaker {
    fn default() -> Self {
        Self {
            planned: AtomicI64::new(i64::MIN),
            checked: AtomicI64::new(i64::MIN),
            overdue: AtomicUsize::new(0),
            notify: Notify::new(),
            postponed: Mutex::default(),
        }
    }
}

impl SweepWaker {
    pub(crate) fn wake_by(&self, due: Due) {
        match due {
            Due::By(at) | Due::At(at) => {
                if at.as_millis() < self.planned.load(Ordering::SeqCst) {
                    self.notify.notify_one();
                }
            }
            Due::Unchanged | Due::Never => {}
        }
    }

    /// Records that the sweep of this process has looked for due plans and calls.
    pub(crate) fn record_check(&self, at: Timestamp) {
        self.checked.store(at.as_millis(), Ordering::Relaxed);
    }

    /// Records that another process sweeps.
    pub(crate) fn record_end(&self) {
        self.checked.store(i64::MIN, Ordering::Relaxed);
        self.record_overdue(0);
    }

    /// The last check; `None` if another process sweeps.
    pub(crate) fn last_check(&self) -> Option<Timestamp> {
        let at = self.checked.load(Ordering::Relaxed);
        (at != i64::MIN).then(|| Timestamp::from_millis(at))
    }

    /// Records the planned wake-up.
    pub(crate) fn plan(&self, at: Option<Timestamp>) {
        let planned = at.map_or(i64::MAX, Timestamp::as_millis);
        self.planned.store(planned, Ordering::SeqCst);
    }

    /// Returns when something is due before the planned wake-up.
    pub(crate) async fn woken(&self) {
        self.notify.notified().await;
    }

    /// Records the number of plans that are due and not checked yet.
    pub(crate) fn record_overdue(&self, plans: usize) {
        self.overdue.store(plans, Ordering::Relaxed);
    }

    /// Number of plans that are due and not checked yet.
    pub(crate) fn overdue(&self) -> usize {
        self.overdue.load(Ordering::Relaxed)
    }

    /// Postpones a plan that could not be reached, in this process: its due time may be unreachable as
    /// well.
    pub(crate) fn postpone(&self, plan: PlanId, now: Timestamp) {
        let mut postponed = self.postponed();
        let delay = postponed.get(&plan).map_or(Duration::ZERO, |earlier| {
            (earlier.delay * 2).clamp(FIRST_DELAY, MAX_DELAY)
        });
        let until = now.checked_add(delay).unwrap_or(Timestamp::MAX);
        postponed.insert(plan, Postponed { delay, until });
    }

    /// A plan was reached, or has been deleted.
    pub(crate) fn reached(&self, plan: PlanId) {
        self.postponed().remove(&plan);
    }

    pub(crate) fn is_postponed(&self, plan: PlanId, now: Timestamp) -> bool {
        let postponed = self.postponed();
        postponed.get(&plan).is_some_and(|plan| plan.until > now)
    }

    fn postponed(&self) -> MutexGuard<'_, HashMap<PlanId, Postponed>> {
        // A panic leaves a map of whole entries.
        self.postponed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_postponed_for_longer_each_time_until_it_is_reached() {
        let (waker, plan) = (SweepWaker::default(), PlanId::from_u128(1));
        let mut now = Timestamp::from_millis(0);
        for delay in [0, 2, 4, 8, 16, 32, 60, 60] {
            waker.postpone(plan, now);
            let until = now.checked_add(Duration::from_secs(delay)).unwrap();
            assert!(!waker.is_postponed(plan, until));
            assert_eq!(waker.is_postponed(plan, now), delay > 0);
            now = until;
        }
        waker.reached(plan);
        waker.postpone(plan, now);
        assert!(!waker.is_postponed(plan, now));
    }
}
