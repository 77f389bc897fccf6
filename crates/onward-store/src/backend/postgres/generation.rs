//! The cluster of a server and its timeline: every promotion of a standby starts a new timeline.

use tokio_postgres::{Client, SimpleQueryMessage, SimpleQueryRow};

/// The cluster and its timeline. Some services do not support these functions.
const GENERATION: &str = "SELECT (SELECT system_identifier FROM pg_control_system()) AS cluster, \
    CASE WHEN NOT pg_is_in_recovery() THEN substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END \
    AS timeline";

/// A database cluster between two promotions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Generation {
    pub(super) cluster: String,
    pub(super) timeline: u32,
}

impl Generation {
    /// Reads it; `None` for a standby, and if the server does not support it.
    pub(super) async fn read(client: &Client) -> Option<Self> {
        let row = first_row(client, GENERATION).await.ok()??;
        Some(Self {
            cluster: row.get("cluster")?.to_owned(),
            timeline: u32::from_str_radix(row.get("timeline")?, 16).ok()?,
        })
    }

    /// Whether it ended with a promotion that led to the other one.
    pub(super) fn is_before(&self, other: &Self) -> bool {
        self.cluster == other.cluster && self.timeline < other.timeline
    }
}

/// The first row of a query without parameters.
pub(super) async fn first_row(
    client: &Client,
    query: &str,
) -> Result<Option<SimpleQueryRow>, tokio_postgres::Error> {
    let messages = client.simple_query(query).await?;
    Ok(messages.into_iter().find_map(|message| {
        if let SimpleQueryMessage::Row(row) = message {
            Some(row)
        } else {
            None
        }
    }))
}
