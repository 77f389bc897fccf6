//! Whether the database can be worked with: it accepts writes, and a process sweeps. Only reports;
//! the operator acts.

use std::sync::Arc;
use std::time::Duration;

use onward_core::Timestamp;
use onward_store::{Lead, NodeReport, Obstacle, ObstacleKind, Tenants};

use crate::caller::LOCAL;
use crate::engine::Engine;
use crate::error::Error;

/// A plan or tool call that has been due for longer than this was not checked by any process.
const SWEEP_DELAY: Duration = Duration::from_secs(60);

impl Engine {
    /// Writes to the database, to check whether it accepts writes: a full disk, a read-only database
    /// and one with a locked table still respond to queries. If a connection pooler changed its mode,
    /// only some calls fail. For the server's operator.
    pub async fn check_writable(&self) -> Result<(), Error> {
        self.store.check_pooler().await?;
        let (tenant, now) = (Arc::from(LOCAL), self.now());
        let checked = self.store.write(&tenant, move |tx| {
            Box::pin(async move {
                Tenants(tx).record_check(now);
                Ok::<(), onward_store::Error>(())
            })
        });
        Ok(checked.await?)
    }

    /// Explains a write that does not complete: locked tables, and a missing synchronous standby.
    pub async fn write_obstacles(&self) -> Result<Vec<Obstacle>, Error> {
        let no_tenant = Arc::from("");
        let found = self.store.read(&no_tenant, |tx| {
            Box::pin(async { Tenants(tx).obstacles().await })
        });
        let mut found = found.await?;
        // Without the standby, commits wait and hold their locks.
        let is_standby = |found: &Obstacle| found.kind == ObstacleKind::StandbyMissing;
        if found.iter().any(is_standby) {
            found.retain(is_standby);
        }
        Ok(found)
    }

    /// The nodes of a distributed database, of which some do not respond although others do: only the
    /// tenants on these nodes are affected. `None` in any other case. For the server's operator.
    pub async fn partial_outage(&self) -> Result<Option<NodeReport>, Error> {
        Ok(self.store.partial_outage().await?)
    }

    /// Whether a node of a distributed database did not respond when it was last read.
    pub fn has_node_down(&self) -> bool {
        self.store.has_node_down()
    }

    /// Whether no process sweeps: a plan or tool call has been due for a minute, this process has not
    /// looked for due plans in that time, and no other server holds the lease. A server with a long
    /// backlog does sweep; a leader that hangs reports it.
    pub async fn sweep_has_no_leader(&self) -> Result<bool, Error> {
        let now = self.now();
        let is_recent = |at: Timestamp| now.since(at) <= SWEEP_DELAY;
        let first = self.first_due().await?;
        if first.is_none_or(is_recent) || self.last_sweep_at().is_some_and(is_recent) {
            return Ok(false);
        }
        Ok(self.store.leads(Lead::Sweep) || !self.store.has_leader(Lead::Sweep).await?)
    }
}
