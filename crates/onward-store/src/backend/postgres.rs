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

pub(crate) use connection::{Connection, Kind};
pub(crate) use lead::Leadership;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use deadpool_postgres::{
    Manager, ManagerConfig, PoolConfig, QueueMode, RecyclingMethod, Runtime, Timeouts,
};
use tokio::sync::broadcast;

use crate::error::Error;
use crate::fault::{Faults, Point};
use crate::lead::Lead;
use crate::memory::Memory;
use crate::statement::Statement;
use crate::tx::{self, Changed, Tx};
use crate::vectors::{Indexed, Many, Pgvector};
use address::Address;
use group::Groups;
use notify::Outbox;
use pool::{Connections, Object, Pool};

/// Default maximum number of connections of a process.
const CONNECTIONS: usize = 16;
const VARIABLE: &str = "ONWARD_DATABASE_CONNECTIONS";

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
    fn from_environment() -> Result<Self, Error> {
        Ok(Self {
            connections: match std::env::var(VARIABLE) {
                Ok(number) => connections(&number)?,
                Err(_) => CONNECTIONS,
            },
            wait: Duration::from_secs(5),
            answer: Duration::from_secs(40),
            company: Duration::from_millis(20),
        })
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
    /// Number of upcoming transitions that lock their plan, because a race was lost recently.
    crowded: AtomicU32,
    memory: Memory,
    groups: Groups,
}

/// Number of transitions that lock their plan after a lost race.
const CROWD: u32 = 32;

impl Drop for Inner {
    fn drop(&mut self) {
        self.outbox.close();
    }
}

impl Postgres {
    /// Connects to the database, and migrates its schema or rejects it.
    pub(crate) async fn connect(
        url: &str,
        migrates: bool,
        watchers: broadcast::Sender<Changed>,
    ) -> Result<Self, Error> {
        Self::within(Limits::from_environment()?, url, migrates, watchers).await
    }

    /// Connects with these limits.
    async fn within(
        limits: Limits,
        url: &str,
        migrates: bool,
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
            crowded: AtomicU32::new(0),
            memory: Memory::default(),
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
    pub(crate) fn begin(&self, tenant: Arc<str>, faults: Faults, kind: Kind) -> Tx {
        let connection = Connection::new(self.clone(), Arc::clone(&tenant), kind);
        let connection = tx::Connection::Postgres(Box::new(connection));
        let tx = Tx::new(connection, tenant, faults);
        match kind {
            Kind::Reading => tx,
            Kind::Locking | Kind::Advancing | Kind::Together => {
                tx.remembering(self.0.memory.clone())
            }
        }
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

    /// The plan cache of this process.
    pub(crate) fn memory(&self) -> &Memory {
        &self.0.memory
    }

    /// Mode of the next transition: without a lock, unless a race was lost recently.
    pub(crate) fn manner(&self) -> Kind {
        let one_less = |left: u32| left.checked_sub(1);
        let crowded = &self.0.crowded;
        // A count that is off by one costs an unnecessary lock or a retry.
        match crowded.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less) {
            Ok(_) => Kind::Locking,
            Err(_) => Kind::Advancing,
        }
    }

    /// Records a lost race.
    pub(crate) fn lost_race(&self) {
        self.0.crowded.store(CROWD, Ordering::Relaxed);
    }

    /// Sends the queued writes and commits. An error means that nothing was written, unless it
    /// states that the response was lost.
    pub(crate) async fn commit(&self, mut tx: Tx) -> Result<(), Error> {
        let queued = tx.take_queued();
        let faults = tx.faults().clone();
        let mut connection = ours(tx)?;
        let answer = match faults.strike(Point::Commit) {
            Ok(()) => finish(&mut connection, queued).await,
            Err(fault) => Err(fault),
        };
        connection.rollback();
        answer?;
        faults.strike(Point::Committed)
    }

    /// Rolls back without waiting for the response: the next transaction on this connection is
    /// queued after the rollback.
    pub(crate) async fn rollback(&self, tx: Tx) {
        if let Ok(mut connection) = ours(tx) {
            connection.rollback();
        }
    }

    /// Notifies the subscribers in this process and the other servers.
    pub(crate) fn tell(&self, changed: Vec<Changed>) {
        for changed in &changed {
            // There may be no subscriber.
            drop(self.0.watchers.send(changed.clone()));
        }
        self.0.outbox.put(changed);
    }

    /// Waits until no other server is the leader, and becomes the leader.
    pub(crate) async fn lead(&self, lead: Lead) -> Result<Leadership, Error> {
        Leadership::of(&self.0.address, lead).await
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

/// Sends the remaining writes and commits, alone or in a batch with other callers.
async fn finish(connection: &mut Connection, queued: Vec<Statement>) -> Result<(), Error> {
    let queued = match group::joins(&queued) {
        Some(plan) if connection.holds_nothing() => group::commit(connection, plan, queued).await?,
        Some(_) | None => Some(queued),
    };
    let Some(queued) = queued else { return Ok(()) };
    connection.commit(&queued.iter().collect::<Vec<_>>()).await
}

fn ours(tx: Tx) -> Result<Box<Connection>, Error> {
    match tx.connection {
        tx::Connection::Postgres(connection) => Ok(connection),
        tx::Connection::Sqlite(_) => Err(Error::Refused("not a PostgreSQL transaction".to_owned())),
    }
}

fn connections(number: &str) -> Result<usize, Error> {
    match number.trim().parse() {
        Ok(number) if number > 0 => Ok(number),
        Ok(_) | Err(_) => Err(error::address(
            &format!("{VARIABLE}={number}"),
            "must be a number of connections, at least 1",
        )),
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
