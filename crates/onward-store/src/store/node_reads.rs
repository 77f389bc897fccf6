//! Reads of the rows of all tenants. In a distributed database, a node that does not respond must not
//! hide the rows of the others.

use std::sync::Arc;
use std::time::Duration;

use onward_core::Timestamp;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::{Backend, Store};
use crate::backend::postgres::{Mode, Postgres};
use crate::distribution::NodeReport;
use crate::error::Error;
use crate::tx::Tx;
use crate::work::Running;

/// Maximum time for the response of all nodes, and for that of one.
const LIMIT: Duration = Duration::from_secs(5);

/// What was read on one node, or on all together.
#[derive(Debug)]
pub struct NodeRead<A> {
    /// The result.
    pub read: A,
    /// For how long the node has responded again, if it did not for a time.
    pub back_for: Option<Duration>,
}

impl<A> NodeRead<A> {
    fn of_all(read: A) -> Self {
        Self {
            read,
            back_for: None,
        }
    }

    /// The time at which the node responded again, if it did not for a time: until then, no agent of its
    /// tenants could report progress.
    pub fn reachable_since(&self, now: Timestamp) -> Option<Timestamp> {
        let span = i64::try_from(self.back_for?.as_millis()).unwrap_or(i64::MAX);
        Some(Timestamp::from_millis(now.as_millis().saturating_sub(span)))
    }
}

impl Store {
    /// Runs a read of rows of all tenants. In a distributed database in which a node does not respond,
    /// it runs on each node that does, and returns the result of each; it fails if there is none.
    pub async fn read_nodes<A, F>(&self, mut work: F) -> Result<Vec<NodeRead<A>>, Error>
    where
        A: Send + 'static,
        F: for<'t> FnMut(&'t mut Tx) -> Running<'t, A, Error> + Clone + Send + 'static,
    {
        let postgres = match &self.backend {
            Backend::Sqlite { .. } => None,
            Backend::Postgres { postgres, .. } => Some(postgres.get().await?),
        };
        let Some(postgres) = postgres.filter(Postgres::is_distributed) else {
            let no_tenant = Arc::from("");
            return Ok(vec![NodeRead::of_all(self.read(&no_tenant, work).await?)]);
        };
        if postgres.reads_all_nodes() {
            let all = timeout(LIMIT, self.read_on(&postgres, None, &mut work));
            match all.await {
                Ok(Ok(read)) => return Ok(vec![NodeRead::of_all(read)]),
                Ok(Err(Error::Unavailable { .. })) | Err(_) => {}
                Ok(Err(why)) => return Err(why),
            }
        }
        self.read_each_node(&postgres, work).await
    }

    async fn read_each_node<A, F>(
        &self,
        postgres: &Postgres,
        work: F,
    ) -> Result<Vec<NodeRead<A>>, Error>
    where
        A: Send + 'static,
        F: for<'t> FnMut(&'t mut Tx) -> Running<'t, A, Error> + Clone + Send + 'static,
    {
        let mut reads = JoinSet::new();
        for node in postgres.nodes().await? {
            if postgres.is_postponed(&node) {
                continue;
            }
            let (store, postgres, mut work) = (self.clone(), postgres.clone(), work.clone());
            reads.spawn(async move {
                let read = store.read_on(&postgres, Some(node.id), &mut work);
                let read = timeout(LIMIT, read).await;
                let read = read.unwrap_or_else(|_| {
                    Err(Error::unavailable(
                        format_args!("no response within {LIMIT:?}"),
                        "retry the call",
                    ))
                });
                (node, read)
            });
        }
        let mut found = Vec::new();
        let mut failed = Error::unavailable(
            "no node responds",
            "check that the nodes of the distributed database are running",
        );
        while let Some(read) = reads.join_next().await {
            match read {
                Ok((node, Ok(read))) => {
                    let back_for = postgres.record_response(&node);
                    found.push(NodeRead { read, back_for });
                }
                Ok((node, Err(why @ Error::Unavailable { .. }))) => {
                    postgres.record_failure(&node, &why.to_string());
                    failed = why;
                }
                Ok((_, Err(why))) => return Err(why),
                // The process ends.
                Err(_) => {}
            }
        }
        if found.is_empty() {
            return Err(failed);
        }
        Ok(found)
    }

    async fn read_on<A, F>(
        &self,
        postgres: &Postgres,
        node: Option<i64>,
        work: &mut F,
    ) -> Result<A, Error>
    where
        F: for<'t> FnMut(&'t mut Tx) -> Running<'t, A, Error>,
    {
        let no_tenant: Arc<str> = Arc::from("");
        let exec = postgres.begin(Arc::clone(&no_tenant), Mode::Read);
        let mut tx = Tx::new(exec, no_tenant, self.faults.clone()).on_node(node);
        let answer = work(&mut tx).await;
        tx.rollback();
        answer
    }

    /// Connects to every node of a distributed database. Returns a report if some do not respond
    /// although others do.
    pub async fn partial_outage(&self) -> Result<Option<NodeReport>, Error> {
        let report = match &self.backend {
            Backend::Sqlite { .. } => None,
            Backend::Postgres { postgres, .. } => postgres.get().await?.probe_nodes().await?,
        };
        Ok(report.filter(|found| found.responding > 0 && !found.down.is_empty()))
    }

    /// Whether a node of a distributed database did not respond when it was last read.
    pub fn has_node_down(&self) -> bool {
        match &self.backend {
            Backend::Sqlite { .. } => false,
            Backend::Postgres { postgres, .. } => {
                postgres.current().is_some_and(|one| one.has_node_down())
            }
        }
    }
}
