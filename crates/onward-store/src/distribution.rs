//! How a PostgreSQL database is distributed over several nodes.

/// A distributed database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Distribution {
    /// The nodes with data, as `host:port`, and the number of tenants on each.
    pub nodes: Vec<(String, u64)>,
    /// Tables that are not distributed with the others: `onward migrate --distribute` was
    /// interrupted, or the schema is newer than the distribution.
    pub missing: Vec<String>,
}

/// The nodes of a distributed database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeReport {
    /// Number of nodes that respond.
    pub responding: usize,
    /// The nodes that do not.
    pub down: Vec<NodeDown>,
}

/// A node that does not respond.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeDown {
    /// Its id in the catalog of Citus.
    pub id: i64,
    /// `host:port`.
    pub name: String,
    /// The error.
    pub why: String,
}
