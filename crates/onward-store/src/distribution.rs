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
