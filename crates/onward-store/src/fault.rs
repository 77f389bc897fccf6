//! Fault injection for tests: the n-th store operation fails as if the database were unavailable.
//!
//! A store without faults pays one comparison per operation. A fault before the commit means that
//! nothing was written. A fault after it means that everything was written but the caller got an
//! error, which is the harder case to handle.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::error::Error;

/// Point at which a fault can be injected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Point {
    /// A query, with the queued writes that are sent along.
    Query,
    /// Immediately before the commit.
    Commit,
    /// The fsync of a commit to SQLite.
    Sync,
    /// Immediately after the commit.
    Committed,
}

/// Number of the system error of a failed read or write.
const EIO: i32 = 5;

/// Countdown to the next fault, shared by all clones.
#[derive(Debug, Clone, Default)]
pub struct Faults(Option<Arc<AtomicI64>>);

impl Faults {
    /// Enables injection. No fault occurs until [`fail_after`](Self::fail_after) is called.
    pub fn armed() -> Self {
        Faults(Some(Arc::new(AtomicI64::new(-1))))
    }

    /// Lets `operations` operations succeed and the next one fail, once.
    pub fn fail_after(&self, operations: u32) {
        if let Some(countdown) = &self.0 {
            countdown.store(i64::from(operations), Ordering::SeqCst);
        }
    }

    /// Whether a fault is still pending.
    pub fn is_pending(&self) -> bool {
        self.left().is_some()
    }

    /// Number of operations until the pending fault.
    pub fn left(&self) -> Option<u32> {
        let countdown = self.0.as_ref()?;
        u32::try_from(countdown.load(Ordering::SeqCst)).ok()
    }

    pub(crate) fn inject(&self, point: Point) -> Result<(), Error> {
        let Some(countdown) = &self.0 else {
            return Ok(());
        };
        let left = countdown.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
            (left >= 0).then(|| left - 1)
        });
        match left {
            Ok(0) => Err(Error::unavailable(
                format!("injected fault ({point:?})"),
                "retry the call",
            )),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// A fault of the disk: the system reports that data could not be written.
    pub(crate) fn inject_sync(&self) -> io::Result<()> {
        let injected = self.inject(Point::Sync);
        injected.map_err(|_| io::Error::from_raw_os_error(EIO))
    }
}
