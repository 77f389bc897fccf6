//! The connection pool, and the known settings of each connection.
//!
//! A connection assumes the role that is subject to row security when it is created. The other
//! settings are sent only when they change: a server with one tenant sets its tenant once per
//! connection. A distributed database forwards settings to its nodes only for the duration of a
//! transaction, so there they are sent with each transaction.

use std::sync::Arc;

use deadpool::managed::{self, Metrics, RecycleResult};
use deadpool_postgres::{ClientWrapper, Manager};
use tokio_postgres::Error as Driver;

/// A connection and its known settings.
pub(super) struct PooledClient {
    pub(super) client: ClientWrapper,
    pub(super) settings: Option<Settings>,
}

/// Lock timeout of a batch, equal to the maximum time in its queue (`Limits`).
const SHORT_LOCK_TIMEOUT: &str = "SET lock_timeout = '20ms'";

/// Session settings, which persist from one transaction to the next.
pub(super) struct Settings {
    /// Tenant for row security. Every statement also contains it, so a statement with another
    /// tenant reads and writes nothing.
    pub(super) tenant: Arc<str>,
    /// Whether it waits for locked rows for longer than a batch does.
    pub(super) waits_for_locks: bool,
}

impl Settings {
    /// SQL that changes the settings `was` to these; empty if they are equal.
    pub(super) fn session_sql(&self, was: Option<&Self>) -> String {
        let mut sql = String::new();
        if was.is_none_or(|was| was.tenant != self.tenant) {
            sql = format!("SET {};", self.tenant_setting());
        }
        if was.is_none_or(|was| was.waits_for_locks != self.waits_for_locks) {
            sql.push_str(if self.waits_for_locks {
                "RESET lock_timeout"
            } else {
                SHORT_LOCK_TIMEOUT
            });
        }
        sql
    }

    /// SQL that sets them for a transaction, on all nodes of a distributed database.
    pub(super) fn transaction_sql(&self) -> String {
        format!("SET LOCAL {}", self.tenant_setting())
    }

    fn tenant_setting(&self) -> String {
        // An `E''` literal has the same meaning for every value of `standard_conforming_strings`.
        let tenant = self.tenant.replace('\\', r"\\").replace('\'', "''");
        format!("onward.tenant = E'{tenant}'")
    }
}

/// Creates and recycles the connections of the pool.
pub(super) struct Connections(pub(super) Manager);

pub(super) type Pool = managed::Pool<Connections>;
pub(super) type Object = managed::Object<Connections>;
pub(super) type PoolError = managed::PoolError<Driver>;

impl managed::Manager for Connections {
    type Type = PooledClient;
    type Error = Driver;

    async fn create(&self) -> Result<PooledClient, Driver> {
        let client = self.0.create().await?;
        Ok(PooledClient {
            client,
            settings: None,
        })
    }

    async fn recycle(&self, pooled: &mut PooledClient, metrics: &Metrics) -> RecycleResult<Driver> {
        self.0.recycle(&mut pooled.client, metrics).await
    }

    fn detach(&self, pooled: &mut PooledClient) {
        self.0.detach(&mut pooled.client);
    }
}
