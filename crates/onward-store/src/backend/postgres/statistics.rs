//! Planner statistics for new tables: runs `ANALYZE`.
//!
//! Without statistics the planner cannot distinguish an index that finds one row from one that
//! finds all rows of a tenant, and each connection keeps the query plan that it chose first.
//! Autovacuum analyzes a table only after a minute, and not on every server. By then there may be
//! thousands of plans, and every call would scan all of them.

use tokio_postgres::{Client, Error};

/// Number of changes by one process after which it runs: enough for useful statistics.
pub(super) const CHANGES: usize = 32;

/// The tables that a transition reads, if they contain rows but have no statistics.
const UNANALYZED: &str = "SELECT string_agg(name, ', ') FROM unnest(ARRAY['plans', 'steps', 'events', \
    'due', 'dependencies', 'branches']) AS name JOIN pg_class ON pg_class.oid = to_regclass(name) \
    WHERE reltuples < 0 AND pg_relation_size(pg_class.oid) > 0";

/// Analyzes these tables. If the login lacks the privilege, the server only emits a warning.
pub(super) async fn analyze(client: &Client) -> Result<(), Error> {
    let tables = client.query_one(UNANALYZED, &[]).await?;
    match tables.try_get::<_, Option<String>>(0)? {
        Some(tables) => client.batch_execute(&format!("ANALYZE {tables}")).await,
        None => Ok(()),
    }
}
