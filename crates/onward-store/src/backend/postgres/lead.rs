//! Which of several servers acts for all of them: the one that holds a lock of the database.
//!
//! The lock belongs to a connection, so it goes to the next one by itself when a server ends, however
//! it ends. A leader that is cut off from the network may believe in its lead for half a minute after
//! another has taken it: two may act for a while, and the guard in every commit keeps that harmless.

use super::address::{Address, Standing};
use super::error;
use crate::error::Error;
use crate::lead::Lead;

/// The name of a lock. The sweep's is the one that it has always had: servers of several versions may
/// share a database for a while.
fn lock(lead: Lead) -> String {
    let name = match lead {
        Lead::Sweep => "leader",
        Lead::Embed => "embed",
    };
    format!("hashtextextended('onward {name} ' || current_schema(), 0)")
}

/// Waits for a lock, and gives up after a while without a word in the server's log. Whoever waits sees a
/// moment of the database, and for as long as it does, nothing that was deleted since is cleaned up, and no
/// index that is built beside the work of others gets done. So nobody waits long at a time.
fn wait(lock: &str) -> String {
    format!(
        "DO $$ BEGIN PERFORM set_config('lock_timeout', '{AT_A_TIME}', true); \
         PERFORM pg_advisory_lock({lock}); EXCEPTION WHEN lock_not_available THEN NULL; END $$"
    )
}

/// How long a moment of the database is held on to. Tests wait for what waits for that.
const AT_A_TIME: &str = if cfg!(test) { "1s" } else { "20s" };

/// The lead, held until this is dropped or the connection is lost.
pub(crate) struct Leadership(Standing);

impl Leadership {
    /// Waits until nobody else leads.
    pub(super) async fn of(address: &Address, lead: Lead) -> Result<Self, Error> {
        let standing = address.stand().await?;
        let lock = lock(lead);
        let (wait, take) = (wait(&lock), format!("SELECT pg_try_advisory_lock({lock})"));
        let client = &standing.client;
        let led = async {
            client.batch_execute("SET idle_session_timeout = 0").await?;
            loop {
                client.batch_execute(&wait).await?;
                // Who has it by now takes it once more, which is the same.
                if client.query_one(&take, &[]).await?.try_get(0)? {
                    return Ok(());
                }
            }
        };
        let led: Result<(), tokio_postgres::Error> = led.await;
        led.map_err(|why| error::doing(&why, "leader"))?;
        Ok(Self(standing))
    }

    /// Whether the connection is gone, and the lead with it.
    pub(crate) fn is_lost(&self) -> bool {
        self.0.client.is_closed()
    }

    /// Waits until it is.
    pub(crate) async fn lost(&mut self) {
        while self.0.heard.recv().await.is_some() {}
    }
}
