//! Wakes the sweep of this process when a commit is due before the sweep's planned wake-up.

use std::sync::atomic::{AtomicI64, Ordering};

use onward_core::Timestamp;
use onward_core::transition::Due;
use tokio::sync::Notify;

/// Wakes the sweep if something is due before its planned wake-up.
#[derive(Debug)]
pub(crate) struct SweepWaker {
    planned: AtomicI64,
    notify: Notify,
}

impl Default for SweepWaker {
    fn default() -> Self {
        Self {
            planned: AtomicI64::new(i64::MIN),
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
