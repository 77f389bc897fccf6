//! Opening a database.

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::broadcast;

use super::address::Address;
use super::{Backend, Store};
use crate::backend::postgres::{self, Connecting, Postgres};
use crate::backend::sqlite::{self, Readers, Writer};
use crate::error::Error;
use crate::fault::Faults;
use crate::lead::Duties;
use crate::plan_cache::PlanCache;
use crate::plan_queue::PlanQueues;
use crate::query::Query;
use crate::statement::Statement;
use crate::sync::SyncMode;
use crate::value::params;

/// Number of changes that are buffered for a subscriber. A slower subscriber loses the oldest ones.
const CHANGE_BUFFER: usize = 1024;

/// Work to do on a database before it is used.
pub type Prepare =
    Arc<dyn Fn(Store) -> Pin<Box<dyn Future<Output = Result<(), Error>> + Send>> + Send + Sync>;

/// How to open a database.
#[derive(Clone)]
pub struct Options {
    /// Fault injection, for tests.
    pub faults: Faults,
    /// Reject a database with an older schema instead of migrating it.
    pub keep_schema: bool,
    /// SQLite: run writes on the calling thread instead of a writer thread. For short-lived
    /// processes that are terminated from outside if the write queue does not advance.
    pub in_place: bool,
    /// Work to do before the database is used. Omitted on SQLite if [`Options::tenant`] exists.
    pub prepare: Option<Prepare>,
    /// SQLite: a tenant to look up while opening the file.
    pub tenant: Option<Arc<str>>,
    /// SQLite: when a commit is synced to disk.
    pub sync: SyncMode,
    /// PostgreSQL: open the database even if the server is unavailable, and connect in the
    /// background. Calls wait for the first attempt. If it fails, calls fail until a later
    /// attempt succeeds.
    pub start_unavailable: bool,
    /// PostgreSQL: keep the plans of recent transitions in memory.
    pub plan_cache: bool,
    /// PostgreSQL: send transitions of concurrent callers in batches.
    pub batching: bool,
    /// PostgreSQL: maximum number of connections of this process; 16 if `None`.
    pub connections: Option<usize>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            faults: Faults::default(),
            keep_schema: false,
            in_place: false,
            prepare: None,
            tenant: None,
            sync: SyncMode::default(),
            start_unavailable: false,
            plan_cache: true,
            batching: true,
            connections: None,
        }
    }
}

impl Store {
    /// Opens a database. Creates a missing file, and migrates the schema unless
    /// [`Options::keep_schema`] is set.
    pub async fn open(address: &Address, options: Options) -> Result<Self, Error> {
        match address {
            Address::File(path) => Self::open_file(path, options).await,
            Address::Server(url) => Self::open_server(url, options).await,
        }
    }

    async fn open_file(path: &Path, options: Options) -> Result<Self, Error> {
        let settings = sqlite::Settings {
            faults: options.faults.clone(),
            sync: options.sync,
            migrates: !options.keep_schema,
            in_place: options.in_place,
            probe: options
                .tenant
                .map(|tenant| Statement::new(Query::Tenant, params![]).bind(&tenant)),
        };
        let (writer, knows_tenant) = Writer::start(path, settings)?;
        let store = Self {
            backend: Backend::Sqlite {
                path: Arc::new(writer.watch().path()?),
                readers: Readers::new(writer.clone()),
                writer,
            },
            watchers: broadcast::channel(CHANGE_BUFFER).0,
            faults: options.faults,
            duties: Duties::default(),
            presence: Arc::default(),
        };
        if let Some(prepare) = options.prepare.filter(|_| !knows_tenant) {
            prepare(store.clone()).await?;
        }
        Ok(store)
    }

    async fn open_server(url: &str, options: Options) -> Result<Self, Error> {
        let watchers = broadcast::channel(CHANGE_BUFFER).0;
        let cache = options.plan_cache.then(PlanCache::default);
        let queues = Arc::<PlanQueues>::default();
        let faults = options.faults.clone();
        let duties = Duties::default();
        let store = {
            let watchers = watchers.clone();
            move |postgres| Self {
                backend: Backend::Postgres {
                    postgres,
                    cache: cache.clone(),
                    queues: Arc::clone(&queues),
                },
                watchers: watchers.clone(),
                faults: faults.clone(),
                duties: duties.clone(),
                presence: Arc::default(),
            }
        };
        let (url, ready, notified) = (url.to_owned(), store.clone(), watchers.clone());
        let (start_unavailable, migrates) = (options.start_unavailable, !options.keep_schema);
        let attempt = move || -> postgres::Attempt {
            let (url, ready, watchers) = (url.clone(), ready.clone(), watchers.clone());
            let (prepare, connections) = (options.prepare.clone(), options.connections);
            let batching = options.batching;
            Box::pin(async move {
                let postgres =
                    Postgres::connect(&url, connections, migrates, batching, watchers).await?;
                if let Some(prepare) = prepare {
                    prepare(ready(Connecting::connected(postgres.clone()))).await?;
                }
                Ok(postgres)
            })
        };
        Ok(store(if start_unavailable {
            Connecting::start(attempt, notified).await?
        } else {
            Connecting::connected(attempt().await?)
        }))
    }
}
