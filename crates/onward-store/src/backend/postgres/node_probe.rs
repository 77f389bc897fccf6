//! The nodes of a distributed database: their names, whether they respond, and the log of those that do
//! not (`node_state`).

use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_postgres::Error as Driver;
use tokio_postgres::types::ToSql;

use super::error;
use super::server::Postgres;
use crate::distribution::{NodeDown, NodeReport};
use crate::error::Error;

/// Maximum time for the response of a node to a probe.
const PROBE_LIMIT: Duration = Duration::from_millis(1_500);

/// The nodes with rows of tenants.
const NODES: &str = "SELECT nodeid::bigint, nodename::text, nodeport::int FROM pg_dist_node \
    WHERE noderole = 'primary' AND groupid IN (SELECT groupid FROM pg_dist_placement \
        JOIN pg_dist_shard USING (shardid) WHERE logicalrelid = to_regclass('tenants')) ORDER BY 1";

/// Connects to a node, as the role of a transaction does.
const PROBE: &str = "SELECT success, coalesce(result, '') FROM master_run_on_worker(ARRAY[$1::text], \
    ARRAY[$2::int], ARRAY['SELECT 1'::text], false)";

/// A node with rows of tenants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) id: i64,
    host: String,
    port: i32,
}

impl Node {
    fn name(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

impl Postgres {
    /// Whether the tables are distributed over several nodes.
    pub(crate) fn is_distributed(&self) -> bool {
        self.0.distributed
    }

    /// Whether a query of all nodes can succeed.
    pub(crate) fn reads_all_nodes(&self) -> bool {
        self.0.nodes.are_all_up(Instant::now())
    }

    /// Whether a node did not respond when it was last read.
    pub(crate) fn has_node_down(&self) -> bool {
        self.0.nodes.is_any_down()
    }

    /// The nodes with rows of tenants.
    pub(crate) async fn nodes(&self) -> Result<Vec<Node>, Error> {
        let client = self.acquire().await?;
        let found = async {
            let rows = client.client.query(NODES, &[]).await?;
            let nodes = rows.iter().map(|row| {
                Ok(Node {
                    id: row.try_get(0)?,
                    host: row.try_get(1)?,
                    port: row.try_get(2)?,
                })
            });
            nodes.collect()
        };
        let found: Result<Vec<Node>, Driver> = found.await;
        let nodes = found.map_err(|why| error::of_statement(why, "nodes"))?;
        let ids: Vec<i64> = nodes.iter().map(|node| node.id).collect();
        self.0.nodes.keep_only(&ids);
        Ok(nodes)
    }

    /// Whether a node failed recently, and is not to be read now.
    pub(crate) fn is_postponed(&self, node: &Node) -> bool {
        self.0.nodes.is_postponed(node.id, Instant::now())
    }

    /// Records that a node does not respond.
    pub(crate) fn record_failure(&self, node: &Node, why: &str) {
        if let Some(delay) = self.0.nodes.fail(node.id, Instant::now()) {
            let (node, retry_in_s) = (node.name(), delay.as_secs());
            tracing::warn!(
                node,
                error = why,
                retry_in_s,
                "a node of the database does not respond: its plans are not checked"
            );
        }
    }

    /// Records that a node responds. Returns for how long, if it did not before.
    pub(crate) fn record_response(&self, node: &Node) -> Option<Duration> {
        let (was_down, back_for) = self.0.nodes.respond(node.id, Instant::now());
        if was_down {
            tracing::info!(node = node.name(), "a node of the database responds again");
        }
        back_for
    }

    /// Connects to every node; `None` if the database is not distributed.
    pub(crate) async fn probe_nodes(&self) -> Result<Option<NodeReport>, Error> {
        if !self.0.distributed {
            return Ok(None);
        }
        let mut probes = JoinSet::new();
        for node in self.nodes().await? {
            let postgres = self.clone();
            probes.spawn(async move {
                let why = postgres.probe(&node).await;
                (node, why)
            });
        }
        let mut report = NodeReport {
            responding: 0,
            down: Vec::new(),
        };
        while let Some(probed) = probes.join_next().await {
            match probed {
                Ok((node, Ok(()))) => {
                    self.record_response(&node);
                    report.responding += 1;
                }
                Ok((node, Err(why))) => {
                    self.record_failure(&node, &why);
                    let (id, name) = (node.id, node.name());
                    report.down.push(NodeDown { id, name, why });
                }
                // The process ends.
                Err(_) => {}
            }
        }
        report.down.sort_by_key(|node| node.id);
        Ok(Some(report))
    }

    async fn probe(&self, node: &Node) -> Result<(), String> {
        let client = self.acquire().await.map_err(|why| why.to_string())?;
        let params: [&(dyn ToSql + Sync); 2] = [&node.host, &node.port];
        let probing = client.client.query_one(PROBE, &params);
        let Ok(probed) = timeout(PROBE_LIMIT, probing).await else {
            // The connection waits for the node.
            client.close();
            return Err(format!("no response within {PROBE_LIMIT:?}"));
        };
        let cells = probed.and_then(|row| Ok((row.try_get(0)?, row.try_get(1)?)));
        match cells {
            Ok((true, _)) => Ok(()),
            Ok((false, why)) => Err(why),
            Err(why) => Err(error::in_full(&why)),
        }
    }
}
