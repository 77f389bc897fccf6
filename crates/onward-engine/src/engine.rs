//! The engine: an open database, its clock and its background state.

pub(crate) mod embedder;
mod request_queue;
mod sweep_waker;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use onward_core::Timestamp;
use onward_store::{Address, Changed, Faults, Options, Store, Sync, Tenants};
use tokio::sync::broadcast;

use crate::caller::LOCAL;
use crate::environment::{Environment, IdGenerator};
use crate::error::Error;
use crate::machine::SystemEnvironment;
use embedder::EmbeddingState;
use request_queue::RequestQueue;
use sweep_waker::SweepWaker;

/// Clock differences up to this many milliseconds are ignored.
const CLOCK_TOLERANCE_MS: i64 = 1_000;

/// Options for opening a database.
#[derive(Clone)]
pub struct Settings {
    /// Source of time and randomness.
    pub environment: Arc<dyn Environment>,
    /// Fault injection, for tests.
    pub faults: Faults,
    /// Reject a database with an older schema instead of migrating it.
    pub keep_schema: bool,
    /// Write on the calling task, without a writer thread. For a process that writes once and is
    /// terminated from outside if the database stays locked.
    pub in_place: bool,
    /// SQLite: when a commit is synced to disk.
    pub sync: Sync,
    /// PostgreSQL: keep the plans of recent transitions in memory.
    pub plan_cache: bool,
    /// PostgreSQL: send transitions of concurrent callers in batches.
    pub batching: bool,
    /// PostgreSQL: maximum number of connections of this process; the store's default if `None`.
    pub connections: Option<usize>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            environment: Arc::new(SystemEnvironment),
            faults: Faults::default(),
            keep_schema: false,
            in_place: false,
            sync: Sync::default(),
            plan_cache: true,
            batching: true,
            connections: None,
        }
    }
}

/// A handle to one open database. Clones share all state.
#[derive(Clone)]
pub struct Engine {
    pub(crate) store: Store,
    pub(crate) ids: IdGenerator,
    /// Milliseconds by which the database's clock is ahead of the local clock.
    clock_offset_ms: Arc<AtomicI64>,
    pub(crate) sweep_waker: Arc<SweepWaker>,
    pub(crate) requests: RequestQueue,
    /// The embedding model; `None` if only full-text search is available.
    pub(crate) embeddings: Option<Arc<EmbeddingState>>,
}

impl Engine {
    /// Opens a database. Creates the file and the tenant `local` if they do not exist.
    pub async fn open(address: &Address, settings: Settings) -> Result<Self, Error> {
        let Settings {
            environment,
            faults,
            keep_schema,
            in_place,
            sync,
            plan_cache,
            batching,
            connections,
        } = settings;
        let options = Options {
            faults,
            keep_schema,
            in_place,
            tenant: Some(Arc::from(LOCAL)),
            sync,
            plan_cache,
            batching,
            connections,
        };
        let store = Store::open(address, options).await?;
        let knows = store.knows();
        let engine = Self {
            requests: RequestQueue::start(store.clone()),
            store,
            ids: IdGenerator::new(environment),
            clock_offset_ms: Arc::default(),
            sweep_waker: Arc::default(),
            embeddings: None,
        };
        if !knows {
            engine.make_local_tenant().await?;
        }
        Ok(engine)
    }

    /// The current time. All processes on one database use the database's clock, so that timestamps
    /// written by one process are comparable in another.
    pub fn now(&self) -> Timestamp {
        let now = self.ids.environment.now().as_millis();
        Timestamp::from_millis(now.saturating_add(self.clock_offset_ms.load(Ordering::Relaxed)))
    }

    /// The correction applied to this machine's clock: how far the database's clock is ahead, in
    /// milliseconds.
    pub fn clock_offset_ms(&self) -> i64 {
        self.clock_offset_ms.load(Ordering::Relaxed)
    }

    /// Adopts the database's clock, which was requested at `requested_at` local time. Differences
    /// within the tolerance or the round-trip time are ignored.
    fn set_clock(&self, requested_at: Timestamp, clock: Option<Timestamp>) {
        let Some(clock) = clock.filter(|_| self.ids.environment.is_wall_clock()) else {
            return;
        };
        let round_trip = self.ids.environment.now().since(requested_at).as_millis();
        let half = i64::try_from(round_trip / 2).unwrap_or(i64::MAX);
        let here = requested_at.as_millis().saturating_add(half);
        let ahead = clock.as_millis().saturating_sub(here);
        let current = self.clock_offset_ms.load(Ordering::Relaxed);
        if ahead.abs_diff(current) > CLOCK_TOLERANCE_MS.saturating_add(half).unsigned_abs() {
            self.clock_offset_ms.store(ahead, Ordering::Relaxed);
        }
    }

    /// Reads the database's clock again: clocks may be adjusted while a server runs.
    pub(crate) async fn refresh_clock(&self) -> Result<(), Error> {
        if !self.ids.environment.is_wall_clock() {
            return Ok(());
        }
        let requested_at = self.ids.environment.now();
        let no_tenant = Arc::from("");
        let clock = self.store.read(&no_tenant, |tx| {
            Box::pin(async { Tenants(tx).clock().await })
        });
        self.set_clock(requested_at, clock.await?);
        Ok(())
    }

    /// Subscribes to plan changes.
    pub fn subscribe(&self) -> broadcast::Receiver<Changed> {
        self.store.watch()
    }

    /// A number that differs after every change to the database, including changes by other
    /// processes on the same file. `None` if [`Self::subscribe`] reports all changes.
    pub async fn version(&self) -> Result<Option<i64>, Error> {
        Ok(self.store.version().await?)
    }

    /// The files of the database, of which some may not exist; empty if a server stores it.
    pub fn files(&self) -> Vec<std::path::PathBuf> {
        self.store.files()
    }

    /// Number of bytes that the next checkpoint has to copy.
    pub fn checkpoint_size(&self) -> u64 {
        self.store.checkpoint_size()
    }

    /// Copies recent changes from the log into the database file, if no other process uses the log.
    pub fn checkpoint(&self) -> Result<(), Error> {
        Ok(self.store.checkpoint()?)
    }

    /// Copies an SQLite database to a new file while it is in use.
    pub async fn back_up(&self, to: std::path::PathBuf) -> Result<(), Error> {
        Ok(self.store.back_up(to).await?)
    }

    /// Flushes the request log and closes the database. Acknowledged commands are already on disk.
    pub async fn close(self) {
        let Self {
            store, requests, ..
        } = self;
        requests.close().await;
        store.close().await;
    }

    async fn make_local_tenant(&self) -> Result<(), Error> {
        let tenant = Arc::from(LOCAL);
        let requested_at = self.ids.environment.now();
        let (current, clock) = self
            .store
            .read(&tenant, |tx| {
                Box::pin(async { Tenants(tx).own_tenant_and_clock().await })
            })
            .await?;
        self.set_clock(requested_at, clock);
        if current.is_some() {
            return Ok(());
        }
        let now = self.now();
        let made = self.store.write(&tenant, move |tx| {
            Box::pin(async move {
                Tenants(tx).make_tenant(true, now);
                Ok::<(), onward_store::Error>(())
            })
        });
        Ok(made.await?)
    }
}
