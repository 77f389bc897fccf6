//! The connections that are kept for transactions, each with what is known of its settings.
//!
//! They have taken the role that row security binds when they were made. Whatever else depends on who uses
//! them is set only where it is another than before: a server for one organisation names its tenant once.

use std::sync::Arc;

use deadpool::managed::{self, Metrics, RecycleResult};
use deadpool_postgres::{ClientWrapper, Manager};
use tokio_postgres::Error as Driver;

/// A connection, and what it is known to be set to.
pub(super) struct Held {
    pub(super) client: ClientWrapper,
    pub(super) settings: Option<Settings>,
}

/// Many transitions hold a plan for a moment: who is there longer is not waited for, as nobody waits longer for
/// company (`Limits`).
const NOT_FOR_LONG: &str = "SET lock_timeout = '20ms'";

/// What a connection is set to, from one transaction to the next.
pub(super) struct Settings {
    /// Whom row security lets through. Every statement names it too, so where the two differ nothing is
    /// seen and nothing written.
    pub(super) tenant: Arc<str>,
    /// Whether it waits for others who hold what it wants to change for longer than a moment.
    pub(super) waits: bool,
}

impl Settings {
    /// What sets a connection to this, where it was set otherwise; nothing where it was not.
    pub(super) fn text(&self, was: Option<&Self>) -> String {
        let mut text = String::new();
        if was.is_none_or(|was| was.tenant != self.tenant) {
            // Quoted so that it means the same however the server reads backslashes.
            let tenant = self.tenant.replace('\\', r"\\").replace('\'', "''");
            text = format!("SET onward.tenant = E'{tenant}';");
        }
        if was.is_none_or(|was| was.waits != self.waits) {
            text.push_str(match self.waits {
                true => "RESET lock_timeout",
                false => NOT_FOR_LONG,
            });
        }
        text
    }
}

pub(super) struct Connections(pub(super) Manager);

pub(super) type Pool = managed::Pool<Connections>;
pub(super) type Object = managed::Object<Connections>;
pub(super) type PoolError = managed::PoolError<Driver>;

impl managed::Manager for Connections {
    type Type = Held;
    type Error = Driver;

    async fn create(&self) -> Result<Held, Driver> {
        let client = self.0.create().await?;
        Ok(Held {
            client,
            settings: None,
        })
    }

    async fn recycle(&self, held: &mut Held, metrics: &Metrics) -> RecycleResult<Driver> {
        self.0.recycle(&mut held.client, metrics).await
    }

    fn detach(&self, held: &mut Held) {
        self.0.detach(&mut held.client);
    }
}
