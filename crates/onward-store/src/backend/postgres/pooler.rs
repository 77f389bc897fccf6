//! Connection poolers between this process and the server, such as PgBouncer.
//!
//! A pooler that keeps a server connection for a whole session is supported. One that assigns
//! another server connection to each transaction is rejected: role, tenant, prepared statements and
//! notifications belong to a server connection. The start detects it, and every transaction through
//! a pooler verifies that it runs on the server process of its session, so an undetected pooler
//! causes errors and never wrong results.

use std::time::Duration;

use tokio::time::timeout;
use tokio_postgres::Client;
use tokio_postgres::Error as Driver;

use super::address::{Address, LongLivedConnection};
use super::error;
use crate::error::Error;

/// Maximum wait for the pooler to assign a second server connection.
const SECOND: Duration = Duration::from_secs(10);

/// SQLSTATE of a failed verification.
const OTHER_PROCESS: &str = "ONW03";

/// SQL that fails on another server process. It uses no function of the schema: the settings of that
/// session are not known, and neither is its search path.
pub(super) fn verification(process: i32) -> String {
    format!(
        "DO $$ BEGIN IF pg_backend_pid() <> {process} THEN RAISE EXCEPTION \
         'the connection pooler assigned another server process' USING ERRCODE = '{OTHER_PROCESS}'; \
         END IF; END $$"
    )
}

/// Whether a verification failed.
pub(super) fn is_other_process(why: &Driver) -> bool {
    why.as_db_error()
        .is_some_and(|db_error| db_error.code().code() == OTHER_PROCESS)
}

/// Opens the first connection to a server, and rejects a pooler that does not support sessions.
pub(super) async fn open(address: &Address) -> Result<LongLivedConnection, Error> {
    let first = address.open_long_lived().await?;
    let Some(process) = first.process else {
        return Ok(first);
    };
    let second = address.open_long_lived().await?;
    let failed = |why: Driver| match why.as_db_error() {
        // The pooler rejects transactions.
        Some(db_error) if db_error.code().code() == "08P01" => error::pooler(&address.shown),
        Some(_) | None => error::of_statement(why, "pooler"),
    };
    let probed = async {
        // In a session, the server process of the first connection serves no other connection, and
        // the first connection has no other server process.
        second.client.batch_execute("BEGIN").await?;
        if process_of(&second.client).await? == process {
            return Ok(false);
        }
        let kept = process_of(&first.client).await? == process;
        second.client.batch_execute("COMMIT").await?;
        Ok(kept)
    };
    match timeout(SECOND, probed).await {
        Ok(Ok(true)) => Ok(first),
        Ok(Ok(false)) => Err(error::pooler(&address.shown)),
        Ok(Err(why)) => Err(failed(why)),
        Err(_) => Err(error::pool_too_small(&address.shown)),
    }
}

async fn process_of(client: &Client) -> Result<i32, Driver> {
    let row = client.query_one("SELECT pg_backend_pid()", &[]).await?;
    row.try_get(0)
}
