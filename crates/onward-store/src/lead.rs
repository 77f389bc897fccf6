//! Leader election: on each database one process runs the sweep, and one computes embeddings.
//!
//! On SQLite the leader holds a lock that ends with its process, and other processes block on it. On
//! PostgreSQL it holds a lease, which it renews.

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

/// The leader lock or lease, held until dropped.
pub struct Leadership(pub(crate) Box<dyn Leader>);

impl Leadership {
    /// Waits until another process may be the leader.
    pub async fn lost(&mut self) {
        self.0.lost().await;
    }

    /// Whether another process may be the leader.
    pub fn is_lost(&self) -> bool {
        self.0.is_lost()
    }
}
