//! Has the server count the rows of young tables.
//!
//! While nobody has, a server takes an empty table for a small one, cannot tell an index that finds one row
//! from one that finds all rows of a tenant, and each connection keeps the way that it chose then. A server
//! counts by itself, but only after a minute, and not everywhere: by then somebody may have made thousands
//! of plans, and every call would have gone through all of them.

use tokio_postgres::{Client, Error};

/// After so many changes by one process: enough to see which rows there are many of.
pub(super) const CHANGES: usize = 32;

/// The tables that a transition looks at, where they hold rows that were never counted.
const UNCOUNTED: &str = "SELECT string_agg(name, ', ') FROM unnest(ARRAY['plans', 'steps', 'events', \
    'due', 'dependencies', 'branches']) AS name JOIN pg_class ON pg_class.oid = to_regclass(name) \
    WHERE reltuples < 0 AND pg_relation_size(pg_class.oid) > 0";

/// Counts them. Where this login may not, the server only warns of it.
pub(super) async fn count(client: &Client) -> Result<(), Error> {
    let uncounted = client.query_one(UNCOUNTED, &[]).await?;
    match uncounted.try_get::<_, Option<String>>(0)? {
        Some(tables) => client.batch_execute(&format!("ANALYZE {tables}")).await,
        None => Ok(()),
    }
}
