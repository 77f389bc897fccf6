//! Which of several servers acts for all of them: the one that holds a lock of the database.
//!
//! The lock belongs to a connection, so it goes to the next one by itself when a server ends, however
//! it ends. A leader that is cut off from the network may believe in its lead for half a minute after
//! another has taken it: two may act for a while, and the guard in every commit keeps that harmless.

use super::address::{Address, Standing};
use super::error;
use crate::error::Error;
use crate::lead::Lead;

/// The statement that waits for a lead. The sweep's name is the one that it has always had: servers of
/// several versions may share a database for a while.
fn lock(lead: Lead) -> String {
    let name = match lead {
        Lead::Sweep => "leader",
        Lead::Embed => "embed",
    };
    format!(
        "SET idle_session_timeout = 0; \
         SELECT pg_advisory_lock(hashtextextended('onward {name} ' || current_schema(), 0))"
    )
}

/// The lead, held until this is dropped or the connection is lost.
pub(crate) struct Leadership(Standing);

impl Leadership {
    /// Waits until nobody else leads.
    pub(super) async fn of(address: &Address, lead: Lead) -> Result<Self, Error> {
        let standing = address.stand().await?;
        let taken = standing.client.batch_execute(&lock(lead)).await;
        taken.map_err(|why| error::doing(&why, "leader"))?;
        Ok(Self(standing))
    }

    /// Whether the connection is gone, and the lead with it.
    pub(crate) fn is_lost(&self) -> bool {
        self.0.client.is_closed()
    }

    /// Waits until it is.
    pub(crate) async fn lost(&mut self) {
        while self.0.heard.recv().await.is_some() {}
    }
}
