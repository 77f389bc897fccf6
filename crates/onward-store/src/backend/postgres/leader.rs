//! Leader election among servers: the leader holds an advisory lock.
//!
//! The lock belongs to a connection, so another server takes over when its holder exits for any
//! reason. A leader that is cut off from the network may consider itself the leader for half a
//! minute after that. Two servers may then act concurrently, which the version check at commit
//! makes harmless.

use std::pin::Pin;

use super::address::{Address, LongLivedConnection};
use super::error;
use crate::backend::Leader;
use crate::error::Error;
use crate::lead::Lead;

/// SQL expression for the key of a lock. The key of the sweep is kept for compatibility: servers of
/// several versions may share a database for a while.
fn lock(lead: Lead) -> String {
    let name = match lead {
        Lead::Sweep => "leader",
        Lead::Embed => "embed",
    };
    format!("hashtextextended('onward {name} ' || current_schema(), 0)")
}

/// SQL that waits for a lock, and returns after a timeout without an error in the server's log. A
/// waiting statement holds a snapshot, which blocks vacuum and `CREATE INDEX CONCURRENTLY`, so each
/// wait is short.
fn wait(lock: &str) -> String {
    format!(
        "DO $$ BEGIN PERFORM set_config('lock_timeout', '{AT_A_TIME}', true); \
         PERFORM pg_advisory_lock({lock}); EXCEPTION WHEN lock_not_available THEN NULL; END $$"
    )
}

/// Duration of one wait. Tests use a shorter one, because they wait for its end.
const AT_A_TIME: &str = if cfg!(test) { "1s" } else { "20s" };

/// Key of a lock that only this process takes.
const CHECK: &str = "hashtextextended('onward lock check ' || $1, 0)";

/// Rejects a server on which two sessions can hold the same advisory lock, as on CockroachDB: every
/// server would become the leader.
pub(super) async fn check_locks(address: &Address) -> Result<(), Error> {
    let (first, second) = (
        address.open_long_lived().await?,
        address.open_long_lived().await?,
    );
    let key = super::listen::random_id();
    let held = async |session: &LongLivedConnection| {
        let take = format!("SELECT pg_try_advisory_lock({CHECK})");
        let taken = session.client.query_one(&take, &[&key]).await;
        let taken = taken.and_then(|row| row.try_get::<_, bool>(0));
        taken.map_err(|why| error::of_statement(&why, "advisory lock"))
    };
    if held(&first).await? && !held(&second).await? {
        return Ok(());
    }
    Err(error::address(
        &address.shown,
        "advisory locks have no effect on this server: two sessions can hold the same lock. Use \
         PostgreSQL, or Citus on PostgreSQL",
    ))
}

/// The leader lock, held until dropped or until the connection is lost.
pub(super) struct Leadership(LongLivedConnection);

impl Leadership {
    /// Waits until no other server is the leader.
    pub(super) async fn acquire(address: &Address, lead: Lead) -> Result<Self, Error> {
        check_locks(address).await?;
        let standing = address.open_long_lived().await?;
        let lock = lock(lead);
        let (wait, take) = (wait(&lock), format!("SELECT pg_try_advisory_lock({lock})"));
        let client = &standing.client;
        let led = async {
            client.batch_execute("SET idle_session_timeout = 0").await?;
            loop {
                client.batch_execute(&wait).await?;
                // A connection that already holds the lock can take it again.
                if client.query_one(&take, &[]).await?.try_get(0)? {
                    return Ok(());
                }
            }
        };
        let led: Result<(), tokio_postgres::Error> = led.await;
        led.map_err(|why| error::of_statement(&why, "leader"))?;
        Ok(Self(standing))
    }
}

impl Leader for Leadership {
    fn lost(&mut self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async { while self.0.notifications.recv().await.is_some() {} })
    }

    fn is_lost(&self) -> bool {
        self.0.client.is_closed()
    }
}
