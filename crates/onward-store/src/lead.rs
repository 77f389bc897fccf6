//! Leader election: on each database one process runs the sweep, and one computes embeddings.
//!
//! The leader holds a lock that ends with its process. Other processes block on the lock and are
//! woken when it is released.

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
    /// Name of its lock.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Lead::Sweep => "sweep",
            Lead::Embed => "embed",
        }
    }
}

/// The leader lock, held until dropped.
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
