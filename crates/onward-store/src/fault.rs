//! Faults on purpose: the n-th operation of a store fails, as if the database had gone away.
//!
//! For the tests of whoever stands on this store; a store that was not given any has none, and pays
//! one comparison for that. A fault before the commit means that nothing happened; one after it means
//! that everything happened and nobody was told, which is the hard case.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::error::Error;

/// Where a fault can strike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Point {
    /// A question, or a change that goes with it.
    Ask,
    /// Right before the commit.
    Commit,
    /// Before what was committed to a file is on disk.
    Sync,
    /// Right after it.
    Committed,
}

/// A countdown to the next fault, shared by all who hold a clone.
#[derive(Debug, Clone, Default)]
pub struct Faults(Option<Arc<AtomicI64>>);

impl Faults {
    /// No fault is due until [`strike_after`](Self::strike_after) says so.
    pub fn armed() -> Self {
        Faults(Some(Arc::new(AtomicI64::new(-1))))
    }

    /// The operation after this many others fails, once.
    pub fn strike_after(&self, operations: u32) {
        if let Some(countdown) = &self.0 {
            countdown.store(i64::from(operations), Ordering::SeqCst);
        }
    }

    /// Whether a fault is still to come.
    pub fn is_pending(&self) -> bool {
        self.left().is_some()
    }

    /// How many operations are left until then.
    pub fn left(&self) -> Option<u32> {
        let countdown = self.0.as_ref()?;
        u32::try_from(countdown.load(Ordering::SeqCst)).ok()
    }

    pub(crate) fn strike(&self, point: Point) -> Result<(), Error> {
        let Some(countdown) = &self.0 else {
            return Ok(());
        };
        let left = countdown.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
            (left >= 0).then(|| left - 1)
        });
        match left {
            Ok(0) => Err(Error::unavailable(
                format!("a fault on purpose ({point:?})"),
                "send the call again",
            )),
            Ok(_) | Err(_) => Ok(()),
        }
    }
}
