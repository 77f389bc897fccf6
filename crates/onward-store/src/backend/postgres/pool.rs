//! The connection pool, and the known settings of each connection.
//!
//! A connection assumes the role that is subject to row security when it is created. The other
//! settings are sent only when they change: a server with one tenant sets its tenant once per
//! connection. A distributed database forwards settings to its nodes only for the duration of a
//! transaction, and a pooler may change the server connection, so there they are sent with each
//! transaction.
//!
//! If the server rejects a new connection because it has too many, the pool continues with those
//! that it has: callers wait for them. Every few seconds one caller may try again to open another.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use deadpool::managed::{
    self, Metrics, PoolConfig, QueueMode, RecycleError, RecycleResult, Timeouts,
};
use deadpool_postgres::ClientWrapper;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};
use tokio_postgres::{Error as Driver, Statement};

use super::address::Address;
use super::session::{ROLE, Session, literal};
use super::{error, pooler};
use crate::backend::Connections;
use crate::error::Error;
use crate::recent::Recent;

/// A connection and its known settings.
pub(super) struct PooledClient {
    pub(super) client: ClientWrapper,
    pub(super) statements: Statements,
    pub(super) settings: Option<Settings>,
    /// The server process, if a pooler is in between.
    pub(super) process: Option<i32>,
}

/// The recently used prepared statements of a connection, by their text. The server frees one that was
/// dropped when its last use ends.
pub(super) struct Statements(Mutex<Recent<Arc<str>, Statement>>);

/// Capacity of a generation of statements.
const STATEMENT_CAPACITY: usize = 128;

impl Default for Statements {
    fn default() -> Self {
        Self(Mutex::new(Recent::new(STATEMENT_CAPACITY)))
    }
}

impl PooledClient {
    /// Prepares a statement, unless it is prepared.
    pub(super) async fn prepare(&self, sql: &Arc<str>) -> Result<Statement, Driver> {
        if let Some(known) = self.statements.lock().get(sql) {
            return Ok(known.clone());
        }
        let prepared = self.client.prepare(sql).await?;
        let mut statements = self.statements.lock();
        statements.insert(Arc::clone(sql), prepared.clone());
        Ok(prepared)
    }
}

impl Statements {
    fn lock(&self) -> MutexGuard<'_, Recent<Arc<str>, Statement>> {
        // A panic leaves whole entries.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lock timeout of a batch, equal to the maximum time in its queue (`Limits`).
const SHORT_LOCK_TIMEOUT: &str = "20ms";

/// Session settings, which persist from one transaction to the next.
pub(super) struct Settings {
    /// Tenant for row security. Every statement also contains it, so a statement whose
    /// tenant differs from this one reads and writes nothing.
    pub(super) tenant: Arc<str>,
    /// Whether it waits for locked rows for longer than a batch does.
    pub(super) waits_for_locks: bool,
}

impl Settings {
    /// SQL that changes the settings `was` to these; empty if they are equal. `lock_timeout` is that
    /// of a transaction that waits for locked rows.
    pub(super) fn session_sql(&self, was: Option<&Self>, lock_timeout: &str) -> String {
        let mut sql = String::new();
        if was.is_none_or(|was| was.tenant != self.tenant) {
            sql = format!("SET {};", self.tenant_setting());
        }
        if was.is_none_or(|was| was.waits_for_locks != self.waits_for_locks) {
            let timeout = if self.waits_for_locks {
                lock_timeout
            } else {
                SHORT_LOCK_TIMEOUT
            };
            sql += &format!("SET lock_timeout = {}", literal(timeout));
        }
        sql
    }

    /// SQL that sets them for a transaction, on all nodes of a distributed database. Through a
    /// pooler, it verifies the server process, and does not rely on the settings of the session.
    pub(super) fn transaction_sql(&self, process: Option<i32>) -> String {
        let mut sql = match process {
            Some(process) => {
                let verification = pooler::verification(process);
                format!("{verification}; SET LOCAL ROLE {ROLE}; ")
            }
            None => String::new(),
        };
        if !self.waits_for_locks {
            sql += &format!("SET LOCAL lock_timeout = {}; ", literal(SHORT_LOCK_TIMEOUT));
        }
        sql + &format!("SET LOCAL {}", self.tenant_setting())
    }

    fn tenant_setting(&self) -> String {
        format!("onward.tenant = {}", literal(&self.tenant))
    }
}

/// Creates and recycles the connections of the pool.
struct Factory {
    address: Address,
    session: Session,
}

impl managed::Manager for Factory {
    type Type = PooledClient;
    type Error = Error;

    async fn create(&self) -> Result<PooledClient, Error> {
        // Boxed: it is rare, and large as part of every future that takes a connection.
        let opened = Box::pin(self.address.open(&self.session, None)).await?;
        Ok(PooledClient {
            client: ClientWrapper::new(opened.client, opened.driving),
            statements: Statements::default(),
            settings: None,
            process: opened.process,
        })
    }

    /// The driver detects closed connections, and a connection is returned only between
    /// transactions, so nothing has to be reset.
    async fn recycle(&self, pooled: &mut PooledClient, _: &Metrics) -> RecycleResult<Error> {
        if pooled.client.is_closed() {
            return Err(RecycleError::message("the connection is closed"));
        }
        Ok(())
    }
}

type PoolError = managed::PoolError<Error>;

/// Default maximum number of connections of a process.
const CONNECTIONS: usize = 16;

/// Limits of the backend.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) connections: usize,
    /// Maximum wait for a free connection.
    pub(super) wait: Duration,
    /// Maximum wait for a response. The server cancels a statement before that.
    pub(super) response: Duration,
    /// Maximum time that a transition is queued to be batched with others.
    pub(super) max_wait: Duration,
}

impl Limits {
    pub(super) fn new(connections: Option<usize>) -> Self {
        Self {
            connections: connections.unwrap_or(CONNECTIONS),
            wait: Duration::from_secs(5),
            response: Duration::from_secs(40),
            max_wait: Duration::from_millis(20),
        }
    }
}

/// Interval at which another connection is opened after the server rejected one.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// The connection pool.
pub(super) struct Pool {
    connections: managed::Pool<Factory>,
    /// One permit per connection that is open or may be opened.
    permits: Arc<Semaphore>,
    /// Number of permits that were removed because the server has too many connections.
    removed: Arc<Mutex<usize>>,
    /// Number of callers that wait for a permit.
    waiting: AtomicUsize,
    limits: Limits,
    shown: String,
}

/// A connection of the pool, returned when dropped.
pub(super) struct Checkout {
    connection: managed::Object<Factory>,
    _permit: OwnedSemaphorePermit,
}

impl Checkout {
    /// Closes the connection instead of returning it.
    pub(super) fn close(self) {
        drop(managed::Object::take(self.connection));
    }
}

impl Deref for Checkout {
    type Target = PooledClient;

    fn deref(&self) -> &PooledClient {
        &self.connection
    }
}

impl DerefMut for Checkout {
    fn deref_mut(&mut self) -> &mut PooledClient {
        &mut self.connection
    }
}

impl Pool {
    pub(super) fn new(address: &Address, session: Session, limits: Limits) -> Result<Self, Error> {
        let connections = Factory {
            address: address.clone(),
            session,
        };
        let config = PoolConfig {
            max_size: limits.connections,
            // `permits` limits the wait for a connection, and `Address` the time to open one.
            timeouts: Timeouts::default(),
            // The most recently used connection has the most prepared statements.
            queue_mode: QueueMode::Lifo,
        };
        let connections = managed::Pool::builder(connections).config(config).build();
        Ok(Self {
            connections: connections
                .map_err(|why| error::no_pool(&address.shown).caused_by(why))?,
            permits: Arc::new(Semaphore::new(limits.connections)),
            removed: Arc::default(),
            waiting: AtomicUsize::new(0),
            limits,
            shown: address.shown.clone(),
        })
    }

    /// Takes a connection, or opens one. The wait for a connection in use is limited.
    pub(super) async fn get(&self) -> Result<Checkout, Error> {
        let deadline = Instant::now() + self.limits.wait;
        loop {
            let permit = Arc::clone(&self.permits).acquire_owned();
            let waiting = Waiting::new(&self.waiting);
            let permit = timeout_at(deadline, permit).await;
            drop(waiting);
            let permit = match permit {
                Ok(Ok(permit)) => permit,
                Ok(Err(_)) => return Err(error::pool_closed(&self.shown)),
                Err(_) => return Err(error::pool_exhausted(&self.shown, self.size_limit())),
            };
            match self.connections.get().await {
                Ok(connection) => {
                    return Ok(Checkout {
                        connection,
                        _permit: permit,
                    });
                }
                Err(PoolError::Backend(why)) if error::is_full(&why) => {
                    if !self.remove(permit) {
                        return Err(why);
                    }
                }
                Err(PoolError::Backend(why)) => return Err(why),
                Err(_) => return Err(error::pool_closed(&self.shown)),
            }
        }
    }

    /// The state of the pool.
    pub(super) fn connections(&self) -> Connections {
        let status = self.connections.status();
        Connections {
            open: status.size,
            idle: status.available,
            waiting: self.waiting.load(Ordering::Relaxed),
            max: self.size_limit(),
        }
    }

    /// Maximum number of connections at the moment.
    fn size_limit(&self) -> usize {
        self.limits.connections.saturating_sub(*lock(&self.removed))
    }

    /// Removes a permit if there are other connections to wait for. The removed permits are added
    /// again, one per interval.
    fn remove(&self, permit: OwnedSemaphorePermit) -> bool {
        let mut removed = lock(&self.removed);
        let permits = self.limits.connections.saturating_sub(*removed);
        let in_use = permits.saturating_sub(self.permits.available_permits());
        if in_use <= 1 && self.connections.status().size == 0 {
            return false;
        }
        permit.forget();
        *removed += 1;
        if *removed == 1 {
            let (permits, removed) = (Arc::clone(&self.permits), Arc::clone(&self.removed));
            tokio::spawn(async move {
                loop {
                    tokio::time::sleep(RETRY_INTERVAL).await;
                    let mut removed = lock(&removed);
                    permits.add_permits(1);
                    *removed -= 1;
                    if *removed == 0 {
                        return;
                    }
                }
            });
        }
        true
    }

    /// Number of open connections.
    #[cfg(test)]
    pub(super) fn size(&self) -> usize {
        self.connections.status().size
    }

    /// Closes the idle connections.
    #[cfg(test)]
    pub(super) fn close_idle(&self) {
        self.connections.retain(|_, _| false);
    }
}

/// A caller that waits, until this is dropped.
struct Waiting<'w>(&'w AtomicUsize);

impl<'w> Waiting<'w> {
    fn new(count: &'w AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn lock(count: &Mutex<usize>) -> MutexGuard<'_, usize> {
    // A panic leaves a count valid.
    count.lock().unwrap_or_else(PoisonError::into_inner)
}
