//! Wakes the sweep of this process when a commit is due before the sweep's planned wake-up, and has
//! the time of its last check.

use std::sync::atomic::{AtomicI64, Ordering};

use onward_core::Timestamp;
use onward_core::next_check::Due;
use tokio::sync::Notify;

/// Wakes the sweep if something is due before its planned wake-up.
#[derive(Debug)]
pub(crate) struct SweepWaker {
    planned: AtomicI64,
    checked: AtomicI64,
    notify: Notify,
}

impl Default for SweepWaker {
    fn default() -> Self {
        Self {
            planned: AtomicI64::new(i64::MIN),
            checked: AtomicI64::new(i64::MIN),
            notify: Notify::new(),
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
}
