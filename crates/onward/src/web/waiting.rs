//! Requests that wait for a change of a plan. A waiting request counts as a stream instead of a
//! concurrent request, and its wait does not count against the request timeout.

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The slot and the time of a request.
#[derive(Clone, Default)]
pub(super) struct Lease(Arc<Inner>);

#[derive(Default)]
struct Inner {
    slot: Mutex<Option<Box<dyn Any + Send>>>,
    /// Milliseconds in addition to the timeout.
    extension: AtomicU64,
}

impl Lease {
    /// Replaces the slot that the request holds.
    pub(super) fn hold(&self, slot: impl Send + 'static) {
        let slot: Box<dyn Any + Send> = Box::new(slot);
        let before = self.slot().replace(slot);
        drop(before);
    }

    /// Releases the slot to the caller.
    pub(super) fn take(&self) -> Option<Box<dyn Any + Send>> {
        self.slot().take()
    }

    /// Adds time to the timeout.
    pub(super) fn extend(&self, wait: Duration) {
        let wait = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        self.0.extension.fetch_add(wait, Ordering::Relaxed);
    }

    /// The time in addition to the timeout.
    pub(super) fn extension(&self) -> Duration {
        Duration::from_millis(self.0.extension.load(Ordering::Relaxed))
    }

    fn slot(&self) -> std::sync::MutexGuard<'_, Option<Box<dyn Any + Send>>> {
        // Every critical section is one operation.
        self.0.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
