//! PostgreSQL: a pool of connections, each used for one transaction at a time.
//!
//! A transaction costs as many round trips as it asks questions, and one for its commit; transitions that
//! meet share that one (`group`). Every connection has taken a role that row security binds, and names the
//! tenant that it works for, so a login that is a superuser does not get around row security.
//!
//! Nothing here waits without a limit, and a server that was restarted is found again by itself. Any
//! number of servers may work on one database: they tell each other what they change (`notify`), and
//! one of them leads (`lead`).

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
use crate::tx::{self, Changed, Statement, Tx};
use crate::vectors::{Indexed, Many, Pgvector};
use address::Address;
use group::Groups;
use notify::Outbox;
use pool::{Connections, Object, Pool};

/// How many connections a server keeps at most, where the environment says nothing else.
const CONNECTIONS: usize = 16;
const VARIABLE: &str = "ONWARD_DATABASE_CONNECTIONS";

/// How much of everything there is.
#[derive(Debug, Clone, Copy)]
struct Limits {
    connections: usize,
    /// Nobody waits longer for a free connection.
    wait: Duration,
    /// Nor longer for an answer. The server gives up a statement before that.
    answer: Duration,
    /// Nor longer for others to go with.
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

/// A database on a server. Clones share it.
#[derive(Clone)]
pub(crate) struct Postgres(Arc<Inner>);

struct Inner {
    address: Address,
    pool: Pool,
    limits: Limits,
    outbox: Arc<Outbox>,
    watchers: broadcast::Sender<Changed>,
    /// How many of the next transitions lock their plan: somebody has lost a race just now.
    crowded: AtomicU32,
    memory: Memory,
    groups: Groups,
}

/// So many transitions after a race that was lost expect another one.
const CROWD: u32 = 32;

impl Drop for Inner {
    fn drop(&mut self) {
        self.outbox.close();
    }
}

impl Postgres {
    /// Opens the database, and brings its schema up to date or refuses it.
    pub(crate) async fn connect(
        url: &str,
        migrates: bool,
        watchers: broadcast::Sender<Changed>,
    ) -> Result<Self, Error> {
        Self::within(Limits::from_environment()?, url, migrates, watchers).await
    }

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

    /// The schema's version that the database has, and the one that this program needs.
    pub(crate) async fn schema(url: &str) -> Result<(i64, i64), Error> {
        let address = Address::parse(url)?;
        let standing = address.stand().await?;
        migrate::check_server(&standing.client, &address.shown).await?;
        Ok((migrate::version(&standing.client).await?, migrate::VERSION))
    }

    /// A transaction. Nothing is sent before its first question.
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

    /// A connection from the pool.
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

    /// What this process remembers of plans.
    pub(crate) fn memory(&self) -> &Memory {
        &self.0.memory
    }

    /// How a transition begins: without a lock, unless races were lost of late.
    pub(crate) fn manner(&self) -> Kind {
        let one_less = |left: u32| left.checked_sub(1);
        let crowded = &self.0.crowded;
        // A count that is off by one costs somebody a lock, or a second try.
        match crowded.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less) {
            Ok(_) => Kind::Locking,
            Err(_) => Kind::Advancing,
        }
    }

    /// Somebody else was faster.
    pub(crate) fn lost_race(&self) {
        self.0.crowded.store(CROWD, Ordering::Relaxed);
    }

    /// Commits, with what is still queued. An error means that nothing was written, unless it says
    /// that the answer was lost.
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

    /// Takes everything back. Nobody needs to wait for that: the next transaction on this connection
    /// stands behind it in the same line.
    pub(crate) async fn rollback(&self, tx: Tx) {
        if let Ok(mut connection) = ours(tx) {
            connection.rollback();
        }
    }

    /// Tells whoever watches, here and on other servers.
    pub(crate) fn tell(&self, changed: Vec<Changed>) {
        for changed in &changed {
            // Nobody may be watching.
            drop(self.0.watchers.send(changed.clone()));
        }
        self.0.outbox.put(changed);
    }

    /// Waits until no other server leads, and leads.
    pub(crate) async fn lead(&self, lead: Lead) -> Result<Leadership, Error> {
        Leadership::of(&self.0.address, lead).await
    }

    /// Builds and drops indexes of signs.
    pub(crate) async fn index_signs(&self, many: &[Many]) -> Result<Indexed, Error> {
        near_index::tend(&self.0.address, many).await
    }

    /// Whether the server can have them.
    pub(crate) async fn pgvector(&self) -> Result<Pgvector, Error> {
        near_index::look(&self.0.address).await
    }
}

/// Writes what is left, by itself or together with what others write.
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
        tx::Connection::Sqlite(_) => Err(Error::Refused("a transaction of a file".to_owned())),
    }
}

fn connections(number: &str) -> Result<usize, Error> {
    match number.trim().parse() {
        Ok(number) if number > 0 => Ok(number),
        Ok(_) | Err(_) => Err(error::address(
            &format!("{VARIABLE}={number}"),
            "it must be a number of connections, at least 1",
        )),
    }
}

fn pool(address: &Address, schemas: &str, limits: Limits) -> Result<Pool, Error> {
    // The driver notices a closed connection by itself; a connection comes back only between
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
        // The one that was used last knows the most statements.
        queue_mode: QueueMode::Lifo,
    };
    Pool::builder(Connections(manager))
        .config(config)
        .runtime(Runtime::Tokio1)
        .build()
        .map_err(|why| error::address(&address.shown, why.to_string()))
}
