//! The connections that are kept for transactions, each with what is known of its settings.
//!
//! They have taken the role that row security binds when they were made, and name their tenant only
//! when that is another one than before: a server for one organisation names it once.

use std::sync::Arc;

use deadpool::managed::{self, Metrics, RecycleResult};
use deadpool_postgres::{ClientWrapper, Manager};
use tokio_postgres::Error as Driver;

/// A connection, and the tenant that it is known to have named.
pub(super) struct Held {
    pub(super) client: ClientWrapper,
    pub(super) tenant: Option<Arc<str>>,
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
            tenant: None,
        })
    }

    async fn recycle(&self, held: &mut Held, metrics: &Metrics) -> RecycleResult<Driver> {
        self.0.recycle(&mut held.client, metrics).await
    }

    fn detach(&self, held: &mut Held) {
        self.0.detach(&mut held.client);
    }
}
