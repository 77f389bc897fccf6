//! The connection pool, and the known settings of each connection.
//!
//! A connection assumes the role that is subject to row security when it is created. The other
//! settings are sent only when they change: a server with one tenant sets its tenant once per
//! connection.

use std::sync::Arc;

use deadpool::managed::{self, Metrics, RecycleResult};
use deadpool_postgres::{ClientWrapper, Manager};
use tokio_postgres::Error as Driver;

/// A connection and its known settings.
pub(super) struct Held {
    pub(super) client: ClientWrapper,
    pub(super) settings: Option<Settings>,
}

/// Lock timeout of a batch, equal to the maximum time in its queue (`Limits`).
const NOT_FOR_LONG: &str = "SET lock_timeout = '20ms'";

/// Session settings, which persist from one transaction to the next.
pub(super) struct Settings {
    /// Tenant for row security. Every statement names it too, so a mismatch reads and writes
    /// nothing.
    pub(super) tenant: Arc<str>,
    /// Whether it waits for locked rows for longer than a batch does.
    pub(super) waits: bool,
}

impl Settings {
    /// SQL that changes the settings `was` to these; empty if they are equal.
    pub(super) fn text(&self, was: Option<&Self>) -> String {
        let mut text = String::new();
        if was.is_none_or(|was| was.tenant != self.tenant) {
            // An `E''` literal has the same meaning whatever `standard_conforming_strings` is set
            // to.
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

/// Creates and recycles the connections of the pool.
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
