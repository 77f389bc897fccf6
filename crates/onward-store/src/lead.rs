//! Leader election: on each database one process runs the sweep, and one computes embeddings.
//!
//! On SQLite the leader holds a lock that ends with its process, and other processes block on it. On
//! PostgreSQL it holds a lease, which it renews.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::backend::Leader;

/// A duty that one process performs for all processes on the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lead {
    /// Handles stalls.
    Sweep,
    /// Computes embeddings. Separate from the sweep, because not every process has an embedding
    /// model.
    Embed,
}

impl Lead {
    /// Name of its lock or lease.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Lead::Sweep => "sweep",
            Lead::Embed => "embed",
        }
    }
}

/// The duties of this process.
#[derive(Clone, Default)]
pub(crate) struct Duties(Arc<[AtomicBool; 2]>);

impl Duties {
    fn of(&self, lead: Lead) -> &AtomicBool {
        let [sweep, embed] = &*self.0;
        match lead {
            Lead::Sweep => sweep,
            Lead::Embed => embed,
        }
    }

    /// Whether this process is the leader, as far as it knows.
    pub(crate) fn includes(&self, lead: Lead) -> bool {
        self.of(lead).load(Ordering::Relaxed)
    }
}

/// The leader lock or lease, held until dropped.
pub struct Leadership {
    leader: Box<dyn Leader>,
    lead: Lead,
    duties: Duties,
}

impl Leadership {
    pub(crate) fn new(leader: Box<dyn Leader>, lead: Lead, duties: Duties) -> Self {
        duties.of(lead).store(true, Ordering::Relaxed);
        Self {
            leader,
            lead,
            duties,
        }
    }

    /// Waits until another process may be the leader.
    pub async fn lost(&mut self) {
        self.leader.lost().await;
        self.duties.of(self.lead).store(false, Ordering::Relaxed);
    }

    /// Whether another process may be the leader.
    pub fn is_lost(&self) -> bool {
        self.leader.is_lost()
    }
}

impl Drop for Leadership {
    fn drop(&mut self) {
        self.duties.of(self.lead).store(false, Ordering::Relaxed);
    }
}
