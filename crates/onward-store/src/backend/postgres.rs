//! PostgreSQL backend: a connection pool, with one transaction at a time per connection.
//!
//! A transaction costs one round trip per batch of queries and one for its commit; concurrent
//! transitions share the commit (`group`). Every connection assumes a role that is subject to row
//! security, so a superuser login does not bypass it.
//!
//! Every wait has a limit. Any number of servers may share one database: they notify each other of
//! changes (`notify`), and elect a leader (`lead`).

mod address;
mod batch;
mod connection;
mod count;
mod error;
mod group;
mod lead;
mod migrate;
mod near_index;
mod notify;
mod pipeline;
mod pool;
mod shape;
mod tls;
mod value;

#[cfg(test)]
mod tests;

pub(crate) use address::displayed;
pub(crate) use connection::{Connection, Kind};
use lead::Leadership;

use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{
    Manager, ManagerConfig, PoolConfig, QueueMode, RecyclingMethod, Runtime, Timeouts,
};
use tokio::sync::broadcast;

use crate::backend::Leader;
use crate::change::Changed;
use crate::error::Error;
use crate::lead::Lead;
use crate::vector_index::{Indexed, Many, Pgvector};
use address::Address;
use group::Groups;
use notify::Outbox;
use pool::{Connections, Object, Pool};

/// Default maximum number of connections of a process.
const CONNECTIONS: usize = 16;

/// Limits of the backend.
#[derive(Debug, Clone, Copy)]
struct Limits {
    connections: usize,
    /// Maximum wait for a free connection.
    wait: Duration,
    /// Maximum wait for a response. The server cancels a statement before that.
    answer: Duration,
    /// Maximum time that a transition is queued to be batched with others.
    company: Duration,
}

impl Limits {
    fn new(connections: Option<usize>) -> Self {
        Self {
            connections: connections.unwrap_or(CONNECTIONS),
            wait: Duration::from_secs(5),
            answer: Duration::from_secs(40),
            company: Duration::from_millis(20),
        }
    }
}

/// A database on a PostgreSQL server. Clones share it.
#[derive(Clone)]
pub(crate) struct Postgres(Arc<Inner>);

struct Inner {
    address: Address,
    pool: Pool,
    limits: Limits,
    outbox: Arc<Outbox>,
    watchers: broadcast::Sender<Changed>,
    /// Whether transitions of concurrent callers are batched.
    batching: bool,
    groups: Groups,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.outbox.close();
    }
}

impl Postgres {
    /// Connects to the database, and migrates its schema or rejects it.
    pub(crate) async fn connect(
        url: &str,
        connections: Option<usize>,
        migrates: bool,
        batching: bool,
        watchers: broadcast::Sender<Changed>,
    ) -> Result<Self, Error> {
        let limits = Limits::new(connections);
        Self::within(limits, url, migrates, batching, watchers).await
    }

    /// Connects with these limits.
    async fn within(
        limits: Limits,
        url: &str,
        migrates: bool,
        batching: bool,
        watchers: broadcast::Sender<Changed>,
    ) -> Result<Self, Error> {
        let address = Address::parse(url)?;
        let standing = address.stand().await?;
        let schemas = migrate::check_server(&standing.client, &address.shown).await?;
        migrate::migrate(&standing.client, &address.shown, &schemas, migrates).await?;
        let pool = pool(&address, &schemas, limits)?;
        let outbox = notify::start(address.clone(), standing, watchers.clone()).await?;
        Ok(Self(Arc::new(Inner {
            address,
            pool,
            limits,
            outbox,
            watchers,
            batching,
            groups: Groups::new(limits.connections, limits.company),
        })))
    }

    /// Schema version of the database, and the version that this program requires.
    pub(crate) async fn schema(url: &str) -> Result<(i64, i64), Error> {
        let address = Address::parse(url)?;
        let standing = address.stand().await?;
        migrate::check_server(&standing.client, &address.shown).await?;
        Ok((migrate::version(&standing.client).await?, migrate::VERSION))
    }

    /// Starts a transaction. Nothing is sent before its first batch.
    pub(crate) fn begin(&self, tenant: Arc<str>, kind: Kind) -> Connection {
        Connection::new(self.clone(), tenant, kind)
    }

    /// Takes a connection from the pool.
    async fn take(&self) -> Result<Object, Error> {
        let Inner {
            pool,
            address,
            limits,
            ..
        } = &*self.0;
        let failed = |why| error::pooling(why, &address.shown, limits.connections);
        pool.get().await.map_err(failed)
    }

    /// Notifies the subscribers in this process and the other servers.
    pub(crate) fn publish(&self, changed: Vec<Changed>) {
        for changed in &changed {
            // There may be no subscriber.
            drop(self.0.watchers.send(changed.clone()));
        }
        self.0.outbox.put(changed);
    }

    /// Waits until no other server is the leader, and becomes the leader.
    pub(crate) async fn lead(&self, lead: Lead) -> Result<Box<dyn Leader>, Error> {
        let leadership = Leadership::of(&self.0.address, lead).await?;
        Ok(Box::new(leadership))
    }

    /// Builds and drops sign-bit indexes.
    pub(crate) async fn index_signs(&self, many: &[Many]) -> Result<Indexed, Error> {
        near_index::tend(&self.0.address, many).await
    }

    /// State of pgvector on the server.
    pub(crate) async fn pgvector(&self) -> Result<Pgvector, Error> {
        near_index::look(&self.0.address).await
    }
}

fn pool(address: &Address, schemas: &str, limits: Limits) -> Result<Pool, Error> {
    // The driver detects closed connections, and a connection is returned only between
    // transactions, so nothing has to be reset.
    let recycling_method = RecyclingMethod::Fast;
    let manager = Manager::from_connect(
        address.for_transactions(schemas),
        address.clone(),
        ManagerConfig { recycling_method },
    );
    let config = PoolConfig {
        max_size: limits.connections,
        timeouts: Timeouts {
            wait: Some(limits.wait),
            create: Some(address::CONNECT),
            recycle: Some(address::CONNECT),
        },
        // The most recently used connection has the most prepared statements.
        queue_mode: QueueMode::Lifo,
    };
    Pool::builder(Connections(manager))
        .config(config)
        .runtime(Runtime::Tokio1)
        .build()
        .map_err(|why| error::address(&address.shown, why.to_string()))
}
