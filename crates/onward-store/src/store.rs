//! Entry point to the database: open it, write, read, and subscribe to changes.
//!
//! A [`Store`] is a handle; clones share one database. When [`Store::write`] returns `Ok`, the
//! change is on disk. If another caller changed the plan between load and commit, the store runs
//! the closure again from the start, so the closure must depend only on the data it reads.

mod endpoints;
mod versions;

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::sync::broadcast;

use crate::backend::postgres::{self, Connecting, Mode, Postgres, displayed};
use crate::backend::sqlite::{self, Readers, Work, Writer};
use crate::change::Changed;
use crate::distribution::Distribution;
use crate::error::Error;
use crate::fault::Faults;
use crate::lead::{Lead, Leadership};
use crate::plan_cache::{CacheSession, PlanCache};
use crate::query::Query;
use crate::statement::Statement;
use crate::sync::Sync;
use crate::tx::Tx;
use crate::value::params;
use crate::vector_index::{Indexed, Many, VectorExtension};
use crate::work::{Running, gone, job, poll_once, wait};

/// Number of changes that are buffered for a subscriber. A slower subscriber loses the oldest ones.
const CHANGE_BUFFER: usize = 1024;

/// Number of retries after lost races before a call fails with [`Error::LostRace`].
const MAX_RETRIES: usize = 20;

/// Location of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// An SQLite file.
    File(PathBuf),
    /// A PostgreSQL database, as `postgres://…`.
    Server(String),
}

impl Address {
    /// Parses an address: `postgres://…` and `postgresql://…` are servers; `sqlite:PATH` and
    /// everything else are file paths.
    pub fn parse(address: &str) -> Result<Self, Error> {
        if address.starts_with("postgres://") || address.starts_with("postgresql://") {
            return Ok(Address::Server(address.to_owned()));
        }
        let path = address
            .strip_prefix("sqlite://")
            .or_else(|| address.strip_prefix("sqlite:"))
            .unwrap_or(address);
        if path.is_empty() || path.contains("://") {
            return Err(Error::address(
                address,
                "neither a path nor a `postgres://…` URL",
            ));
        }
        Ok(Address::File(PathBuf::from(path)))
    }

    /// The address in the form that [`Address::parse`] accepts.
    pub fn as_os_str(&self) -> &OsStr {
        match self {
            Address::File(path) => path.as_os_str(),
            Address::Server(url) => OsStr::new(url),
        }
    }

    /// Whether a server stores the database.
    pub fn is_server(&self) -> bool {
        matches!(self, Address::Server(_))
    }

    /// The files of the database, of which some may not exist; empty if a server stores it.
    pub fn files(&self) -> Vec<PathBuf> {
        match self {
            Address::File(path) => sqlite::files(path),
            Address::Server(_) => Vec::new(),
        }
    }
}

impl fmt::Display for Address {
    /// The address without its password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::File(path) => path.display().fmt(f),
            Address::Server(url) => f.write_str(&displayed(url)),
        }
    }
}

/// Work to do on a database before it is used.
pub type Prepare = Arc<
    dyn Fn(Store) -> Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>
        + Send
        + std::marker::Sync,
>;

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
    pub sync: Sync,
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
            sync: Sync::default(),
            start_unavailable: false,
            plan_cache: true,
            batching: true,
            connections: None,
        }
    }
}

/// An open database.
#[derive(Clone)]
pub struct Store {
    backend: Backend,
    watchers: broadcast::Sender<Changed>,
    faults: Faults,
    /// SQLite: the file that announces the version of this process.
    presence: Arc<OnceLock<std::fs::File>>,
}

#[derive(Clone)]
enum Backend {
    Sqlite {
        path: Arc<PathBuf>,
        writer: Writer,
        readers: Readers,
    },
    Postgres {
        postgres: Connecting,
        cache: Option<PlanCache>,
        contention: Arc<Contention>,
    },
}

/// Number of transitions that lock their plan after a lost race, because further races are likely.
const CONTENDED: u32 = 32;

/// Number of upcoming transitions that lock their plan.
#[derive(Default)]
struct Contention(AtomicU32);

impl Contention {
    fn record(&self) {
        self.0.store(CONTENDED, Ordering::Relaxed);
    }

    /// Mode of the next transition: without a lock, unless a race was lost recently.
    fn next(&self) -> Mode {
        let one_less = |left: u32| left.checked_sub(1);
        // A count that is off by one costs an unnecessary lock or a retry.
        match self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less)
        {
            Ok(_) => Mode::Lock,
            Err(_) => Mode::Optimistic,
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
        let contention = Arc::<Contention>::default();
        let faults = options.faults.clone();
        let store = {
            let watchers = watchers.clone();
            move |postgres| Self {
                backend: Backend::Postgres {
                    postgres,
                    cache: cache.clone(),
                    contention: Arc::clone(&contention),
                },
                watchers: watchers.clone(),
                faults: faults.clone(),
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

    /// Runs `work` in one transaction. `Ok` means that its writes are on disk. `Err` means that
    /// nothing was written, unless the error states that the response to the commit was lost.
    pub async fn write<A, E, F>(&self, tenant: &Arc<str>, work: F) -> Result<A, E>
    where
        A: Send + 'static,
        E: From<Error> + Send + 'static,
        F: for<'t> FnMut(&'t mut Tx) -> Running<'t, A, E> + Send + 'static,
    {
        self.work(tenant, false, work).await
    }

    /// Like [`Self::write`], for a transition of one plan. On PostgreSQL it does not lock the plan:
    /// everything it reads changes only together with the plan's version, and the commit fails if
    /// that version has changed. Then `work` runs again: on fresh data if the plan came from the
    /// cache, with the plan locked otherwise.
    pub async fn transition<A, E, F>(&self, tenant: &Arc<str>, work: F) -> Result<A, E>
    where
        A: Send + 'static,
        E: From<Error> + Send + 'static,
        F: for<'t> FnMut(&'t mut Tx) -> Running<'t, A, E> + Send + 'static,
    {
        self.work(tenant, true, work).await
    }

    async fn work<A, E, F>(&self, tenant: &Arc<str>, advances: bool, mut work: F) -> Result<A, E>
    where
        A: Send + 'static,
        E: From<Error> + Send + 'static,
        F: for<'t> FnMut(&'t mut Tx) -> Running<'t, A, E> + Send + 'static,
    {
        match &self.backend {
            Backend::Sqlite { writer, .. } => {
                let length = if advances { Work::Short } else { Work::Any };
                let (job, answer) = job(tenant, work, &self.watchers, &self.faults);
                wait(answer, writer.send(job, length)).await
            }
            Backend::Postgres { contention, .. } => {
                let mut race = 0;
                let mut mode = if advances {
                    contention.next()
                } else {
                    Mode::Lock
                };
                loop {
                    match self.attempt(tenant, mode, &mut work).await? {
                        Attempt::Answered(answer) => return answer,
                        Attempt::Lost { .. } if race == MAX_RETRIES => {
                            return Err(Error::LostRace.into());
                        }
                        // The stale entry is no longer in the cache; the next attempt reads the
                        // database.
                        Attempt::Lost { used_cache: true } => {}
                        Attempt::Lost { used_cache: false } => mode = Mode::Lock,
                    }
                    race += 1;
                }
            }
        }
    }

    /// Runs one attempt on PostgreSQL.
    async fn attempt<A, E, F>(
        &self,
        tenant: &Arc<str>,
        mode: Mode,
        work: &mut F,
    ) -> Result<Attempt<Result<A, E>>, Error>
    where
        E: From<Error>,
        F: for<'t> FnMut(&'t mut Tx) -> Running<'t, A, E>,
    {
        let Backend::Postgres {
            postgres,
            cache,
            contention,
        } = &self.backend
        else {
            return Err(gone());
        };
        let postgres = postgres.get().await?;
        let session = |cache: &PlanCache| CacheSession::new(cache.clone(), Arc::clone(tenant));
        let exec = postgres.begin(Arc::clone(tenant), mode);
        let mut tx = Tx::new(exec, Arc::clone(tenant), self.faults.clone())
            .with_cache(cache.as_ref().map(session));
        let answer = work(&mut tx).await;
        let used_cache = tx.used_cache();
        if tx.needs_revalidation() {
            tx.rollback();
            return Ok(Attempt::Lost { used_cache });
        }
        let answer = match answer {
            Ok(answer) => answer,
            Err(why) => {
                let lost_race = tx.lost_race();
                tx.rollback();
                return Ok(if lost_race {
                    Attempt::Lost { used_cache }
                } else {
                    Attempt::Answered(Err(why))
                });
            }
        };
        match tx.commit().await {
            Ok(()) => {
                let changed = tx.take_changed();
                if let Some(cache) = tx.cache.take() {
                    cache.committed(&changed);
                }
                postgres.publish(changed);
                Ok(Attempt::Answered(Ok(answer)))
            }
            Err(Error::LostRace) => {
                if !used_cache {
                    contention.record();
                }
                Ok(Attempt::Lost { used_cache })
            }
            Err(why) => {
                // The next connection may reach another server, or an older copy of the database.
                if let Some(cache) = cache {
                    cache.clear();
                }
                Err(why)
            }
        }
    }

    /// Runs `work` in one read transaction, which sees a single snapshot.
    pub async fn read<A, E, F>(&self, tenant: &Arc<str>, mut work: F) -> Result<A, E>
    where
        A: Send + 'static,
        E: From<Error> + Send + 'static,
        F: for<'t> FnMut(&'t mut Tx) -> Running<'t, A, E> + Send + 'static,
    {
        match &self.backend {
            Backend::Sqlite { readers, .. } => {
                let (readers, tenant) = (readers.clone(), Arc::clone(tenant));
                let faults = self.faults.clone();
                let reading = tokio::task::spawn_blocking(move || {
                    let reading = readers.begin()?;
                    let exec = Box::new(reading.connection());
                    let answer = poll_once(work(&mut Tx::new(exec, tenant, faults)));
                    readers.end(reading)?;
                    answer
                });
                reading.await.unwrap_or_else(|_| Err(gone().into()))
            }
            Backend::Postgres { postgres, .. } => {
                let postgres = postgres.get().await?;
                let exec = postgres.begin(Arc::clone(tenant), Mode::Read);
                let mut tx = Tx::new(exec, Arc::clone(tenant), self.faults.clone());
                let answer = work(&mut tx).await;
                tx.rollback();
                answer
            }
        }
    }

    /// Subscribes to changes made by this process and, on PostgreSQL, by other servers.
    pub fn watch(&self) -> broadcast::Receiver<Changed> {
        self.watchers.subscribe()
    }

    /// A number that changes whenever any process commits to an SQLite file, for polling. `None` on
    /// PostgreSQL, where [`Self::watch`] reports the changes of all servers.
    pub async fn version(&self) -> Result<Option<i64>, Error> {
        let Backend::Sqlite { readers, .. } = &self.backend else {
            return Ok(None);
        };
        let readers = readers.clone();
        let asking = tokio::task::spawn_blocking(move || readers.version());
        asking.await.unwrap_or_else(|_| Err(gone())).map(Some)
    }

    /// Waits until this process is the leader for a duty. While it is, no other process on this
    /// database performs that duty.
    pub async fn lead(&self, lead: Lead) -> Result<Leadership, Error> {
        let leader = match &self.backend {
            Backend::Sqlite { writer, .. } => match writer.watch().path() {
                Ok(path) => sqlite::lead(path.as_path(), lead.name()).await,
                Err(lost) => Err(lost),
            },
            Backend::Postgres { postgres, .. } => postgres.get().await?.lead(lead.name()).await,
        };
        leader.map(Leadership)
    }

    /// Builds a sign-bit index for each tenant with many chunks, and drops indexes that are no
    /// longer needed. Does nothing on SQLite, or if the server has no supported extension.
    pub async fn index_signs(&self, many: &[Many]) -> Result<Indexed, Error> {
        match &self.backend {
            Backend::Sqlite { .. } => Ok(Indexed::default()),
            Backend::Postgres { postgres, .. } => postgres.get().await?.index_signs(many).await,
        }
    }

    /// State of the extension that vector indexes require; `None` on SQLite.
    pub async fn vector_extension(&self) -> Result<Option<VectorExtension>, Error> {
        match &self.backend {
            Backend::Sqlite { .. } => Ok(None),
            Backend::Postgres { postgres, .. } => {
                postgres.get().await?.vector_extension().await.map(Some)
            }
        }
    }

    /// The nodes of a distributed PostgreSQL database; `None` if it is not distributed.
    pub async fn distribution(&self) -> Result<Option<Distribution>, Error> {
        match &self.backend {
            Backend::Sqlite { .. } => Ok(None),
            Backend::Postgres { postgres, .. } => postgres.get().await?.distribution().await,
        }
    }

    /// Waits for queued writes and closes the file; later calls fail. Does nothing on PostgreSQL.
    pub async fn close(&self) {
        if let Backend::Sqlite {
            writer, readers, ..
        } = &self.backend
        {
            readers.close();
            writer.end().await;
        }
    }

    /// Copies an SQLite database to a new file while it is in use.
    pub async fn back_up(&self, to: PathBuf) -> Result<(), Error> {
        let Some(from) = self.file().map(Path::to_owned) else {
            return Err(Error::address(
                "postgres://…",
                "back up a PostgreSQL server with its own tools, such as `pg_dump`",
            ));
        };
        let copying = tokio::task::spawn_blocking(move || sqlite::back_up(&from, &to));
        copying.await.unwrap_or_else(|_| Err(gone()))
    }

    /// Number of bytes that the next checkpoint has to copy.
    pub fn checkpoint_size(&self) -> u64 {
        self.file().map_or(0, sqlite::log_size)
    }

    /// Copies recent changes from the log into the database, so that the next process need not read
    /// them from the log. Does nothing while another process uses the log, or if a server stores
    /// the database.
    pub fn checkpoint(&self) -> Result<(), Error> {
        match &self.backend {
            Backend::Sqlite { writer, .. } => writer.checkpoint(),
            Backend::Postgres { .. } => Ok(()),
        }
    }

    /// Whether a server stores the database. The server has a clock, and builds vector indexes.
    pub fn is_on_server(&self) -> bool {
        self.file().is_none()
    }

    /// Path of the file without symbolic links; `None` if a server stores the database.
    fn file(&self) -> Option<&Path> {
        match &self.backend {
            Backend::Sqlite { path, .. } => Some(path.as_path()),
            Backend::Postgres { .. } => None,
        }
    }
}

/// Outcome of one attempt.
enum Attempt<A> {
    Answered(A),
    /// The version check failed, or the reads need revalidation. Nothing was written.
    Lost {
        /// Whether the attempt used the plan cache, whose entry may have been stale for long.
        used_cache: bool,
    },
}

/// Schema version of a database, and the version that this program requires. Changes nothing. A
/// missing file has version 0.
pub async fn schema(address: &Address) -> Result<(i64, i64), Error> {
    match address {
        Address::File(path) if !path.exists() => Ok((0, sqlite::VERSION)),
        Address::File(path) => {
            let connection = sqlite::File::open_to_read(path)?;
            Ok((sqlite::version(&connection)?, sqlite::VERSION))
        }
        Address::Server(url) => Postgres::schema(url).await,
    }
}

/// Replaces an SQLite database with a backup. Other processes that use the database open the
/// restored one with their next call. Returns the new path of the previous database, if there was
/// one; `stamp` is part of it.
pub async fn restore(
    address: &Address,
    from: PathBuf,
    stamp: String,
) -> Result<Option<PathBuf>, Error> {
    let Address::File(path) = address.clone() else {
        return Err(Error::address(
            address,
            "restore a PostgreSQL database with its own tools, such as `pg_restore`",
        ));
    };
    let restoring = tokio::task::spawn_blocking(move || sqlite::restore(&path, &from, &stamp));
    restoring.await.unwrap_or_else(|_| Err(gone()))
}

/// Distributes a PostgreSQL database with Citus over its nodes, by tenant. Returns the number of
/// tables that were not distributed before. Servers that use the database must be restarted.
pub async fn distribute(address: &Address) -> Result<u64, Error> {
    match address {
        Address::File(path) => Err(Error::address(
            path.display(),
            "only a PostgreSQL server with Citus can be distributed",
        )),
        Address::Server(url) => Postgres::distribute(url).await,
    }
}
