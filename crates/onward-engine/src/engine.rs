//! The engine: an open database, its clock and its background state.

mod clock;
pub(crate) mod embedder;
mod indexing;
mod plan_watch;
mod request_queue;
mod sweep_waker;

use std::sync::Arc;
use std::time::Duration;

use onward_core::Timestamp;
use onward_core::attention::{DEFAULT_ARCHIVE_AFTER, DEFAULT_NO_AGENT_AFTER};
use onward_core::call::CallTimeouts;
use onward_store::{Address, Changed, Faults, Options, Prepare, Store, SyncMode};
use tokio::sync::broadcast;

use crate::caller::LOCAL;
use crate::environment::{Environment, IdGenerator};
use crate::error::Error;
use crate::machine::SystemEnvironment;
use clock::{Clock, require_tenant};
use embedder::EmbeddingState;
use indexing::Indexing;
pub use plan_watch::PlanWatch;
use plan_watch::PlanWatches;
use request_queue::RequestQueue;
use sweep_waker::SweepWaker;

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
    pub sync: SyncMode,
    /// PostgreSQL: open the database even if the server is unavailable, for this tenant, and
    /// connect in the background. Calls fail until then.
    pub start_unavailable: Option<Arc<str>>,
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
            sync: SyncMode::default(),
            start_unavailable: None,
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
    clock: Clock,
    pub(crate) sweep_waker: Arc<SweepWaker>,
    pub(crate) requests: RequestQueue,
    pub(crate) indexing: Arc<Indexing>,
    plan_watches: PlanWatches,
    /// The embedding model; `None` if only full-text search is available.
    pub(crate) embeddings: Option<Arc<EmbeddingState>>,
    /// The configured timeouts of tool calls.
    pub(crate) call_timeouts: Arc<CallTimeouts>,
    /// How long a plan with a ready step may be without agent activity.
    pub(crate) no_agent_after: Duration,
    /// How long after its last activity a captured plan is archived.
    pub(crate) archive_after: Duration,
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
            start_unavailable,
            plan_cache,
            batching,
            connections,
        } = settings;
        let clock = Clock::new(Arc::clone(&environment));
        let prepare: Prepare = {
            // For an SQLite file, the tenant is looked up when the caller is created.
            let tenant = start_unavailable.clone().filter(|_| address.is_server());
            let clock = clock.clone();
            Arc::new(move |store| {
                let (clock, tenant) = (clock.clone(), tenant.clone());
                Box::pin(async move {
                    clock.prepare(&store).await?;
                    match tenant {
                        Some(tenant) => require_tenant(&store, tenant).await,
                        None => Ok(()),
                    }
                })
            })
        };
        let options = Options {
            faults,
            keep_schema,
            in_place,
            prepare: Some(prepare),
            tenant: Some(Arc::from(LOCAL)),
            sync,
            start_unavailable: start_unavailable.is_some(),
            plan_cache,
            batching,
            connections,
        };
        let store = Store::open(address, options).await?;
        Ok(Self {
            requests: RequestQueue::start(store.clone()),
            store,
            ids: IdGenerator::new(environment),
            clock,
            sweep_waker: Arc::default(),
            indexing: Arc::default(),
            plan_watches: PlanWatches::default(),
            embeddings: None,
            call_timeouts: Arc::default(),
            no_agent_after: DEFAULT_NO_AGENT_AFTER,
            archive_after: DEFAULT_ARCHIVE_AFTER,
        })
    }

    /// The current time. All processes on one database use the database's clock, so that timestamps
    /// written by one process are comparable in another.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The correction applied to this machine's clock: how far the database's clock is ahead, in
    /// milliseconds.
    pub fn clock_offset_ms(&self) -> i64 {
        self.clock.offset_ms()
    }

    /// Reads the database's clock again: clocks may be adjusted while a server runs.
    pub(crate) async fn refresh_clock(&self) -> Result<(), Error> {
        Ok(self.clock.refresh(&self.store).await?)
    }

    /// Whether the clock has jumped, and it is not yet known whether it stays there.
    pub(crate) fn clock_is_settling(&self) -> bool {
        self.clock.is_settling()
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

    /// Announces that a server of this version uses the database, for as long as the engine is open.
    pub fn announce_version(&self) {
        self.store.announce_version();
    }

    /// Versions of the running programs that use the database, including this one.
    pub async fn versions(&self) -> Result<Vec<String>, Error> {
        Ok(self.store.versions().await?)
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
}
