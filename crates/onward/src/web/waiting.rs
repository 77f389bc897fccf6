//! What a request holds: a slot, a permit for its current work, and its time.
//!
//! A request that waits for a change of a plan counts as a stream instead of a concurrent request,
//! holds no permit, and its wait does not count against the request timeout.

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

type Held = Option<Box<dyn Any + Send>>;

/// The slot, the permit and the time of a request.
#[derive(Clone, Default)]
pub(super) struct Lease(Arc<Inner>);

#[derive(Default)]
struct Inner {
    slot: Mutex<Held>,
    work: Mutex<Held>,
    /// Milliseconds in addition to the timeout.
    extension: AtomicU64,
}

impl Lease {
    /// Replaces the slot that the request holds.
    pub(super) fn hold(&self, slot: impl Send + 'static) {
        replace(&self.0.slot, Some(Box::new(slot)));
    }

    /// Releases the slot to the caller.
    pub(super) fn take(&self) -> Option<Box<dyn Any + Send>> {
        lock(&self.0.slot).take()
    }

    /// Holds a permit until the work ends. A request that waits for another permit ends its work
    /// first, so that it never holds one while it waits.
    pub(super) fn start_work(&self, permit: impl Send + 'static) {
        replace(&self.0.work, Some(Box::new(permit)));
    }

    /// Releases the permit.
    pub(super) fn end_work(&self) {
        replace(&self.0.work, None);
    }

    /// Keeps the slot and the permit while work of the request continues, after the request was
    /// dropped.
    pub(super) fn keep(&self) -> Arc<dyn Any + Send + Sync> {
        Arc::<Inner>::clone(&self.0)
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
}

/// Replaces a value, and drops the previous one outside of the lock.
fn replace(held: &Mutex<Held>, value: Held) {
    let before = std::mem::replace(&mut *lock(held), value);
    drop(before);
}

fn lock(held: &Mutex<Held>) -> MutexGuard<'_, Held> {
    // Every critical section is one operation.
    held.lock().unwrap_or_else(PoisonError::into_inner)
}
