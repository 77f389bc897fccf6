//! Entry point to the database: open it, write, read, and subscribe to changes.
//!
//! A [`Store`] is a handle; clones share one database. When [`Store::write`] returns `Ok`, the
//! change is on disk. If another caller changed the plan between load and commit, the store runs
//! the closure again from the start, so the closure must depend only on what it reads.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::sync::broadcast;

use crate::backend::postgres::{Mode, Postgres, displayed};
use crate::backend::sqlite::{self, Readers, Sync, Work, Writer};
use crate::change::Changed;
use crate::distribution::Distribution;
use crate::error::Error;
use crate::fault::Faults;
use crate::lead::{Lead, Leadership};
use crate::plan::cache::{CacheSession, PlanCache};
use crate::query::Query;
use crate::statement::Statement;
use crate::tx::Tx;
use crate::value::params;
use crate::vector_index::{Indexed, Many, Pgvector};
use crate::work::{Running, gone, poll_once, send};

/// Number of changes a subscriber may lag behind before it loses the oldest ones.
const BEHIND: usize = 1024;

/// Number of retries after lost races before a call fails with [`Error::LostRace`].
const RACES: usize = 20;

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
            return Err(Error::Address {
                address: address.to_owned(),
                why: "neither a path nor a `postgres://…` URL".to_owned(),
            });
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

/// How to open a database.
#[derive(Debug, Clone)]
pub struct Options {
    /// Fault injection, for tests.
    pub faults: Faults,
    /// Reject a database with an older schema instead of migrating it.
    pub keep_schema: bool,
    /// SQLite: run writes on the calling thread instead of a writer thread. For short-lived
    /// processes that are terminated from outside if the write queue does not advance.
    pub in_place: bool,
    /// SQLite: a tenant to look up while opening the file. [`Store::knows`] returns whether it
    /// exists.
    pub tenant: Option<Arc<str>>,
    /// SQLite: when a commit is synced to disk.
    pub sync: Sync,
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
            tenant: None,
            sync: Sync::default(),
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
    knows: bool,
}

#[derive(Clone)]
enum Backend {
    Sqlite {
        path: Arc<PathBuf>,
        writer: Writer,
        readers: Readers,
    },
    Postgres {
        postgres: Postgres,
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
        let (watchers, _) = broadcast::channel(BEHIND);
        let Options {
            faults,
            keep_schema,
            in_place,
            tenant,
            sync,
            plan_cache,
            batching,
            connections,
        } = options;
        let (backend, knows) = match address {
            Address::File(path) => {
                let settings = sqlite::Settings {
                    faults: faults.clone(),
                    sync,
                    migrates: !keep_schema,
                    in_place,
                    probe: tenant
                        .as_ref()
                        .map(|tenant| Statement::new(Query::Tenant, params![]).bind(tenant)),
                };
                let (writer, knows) = Writer::start(path, settings)?;
                let backend = Backend::Sqlite {
                    writer,
                    readers: Readers::new(path),
                    path: Arc::new(path.clone()),
                };
                (backend, knows)
            }
            Address::Server(url) => {
                let watchers = watchers.clone();
                let postgres =
                    Postgres::connect(url, connections, !keep_schema, batching, watchers).await?;
                let backend = Backend::Postgres {
                    postgres,
                    cache: plan_cache.then(PlanCache::default),
                    contention: Arc::default(),
                };
                (backend, false)
            }
        };
        Ok(Self {
            backend,
            watchers,
            faults,
            knows,
        })
    }

    /// Whether the tenant in [`Options::tenant`] was found while opening. `false` means unknown:
    /// PostgreSQL does not look it up.
    pub fn knows(&self) -> bool {
        self.knows
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
                send(writer, tenant, work, length, &self.watchers, &self.faults).await
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
                        Attempt::Lost { .. } if race == RACES => {
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
        let session = |cache: &PlanCache| CacheSession::new(cache.clone(), Arc::clone(tenant));
        let exec = Box::new(postgres.begin(Arc::clone(tenant), mode));
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
            Err(why) => Err(why),
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
                    let connection = readers.begin()?;
                    let exec = Box::new(connection.clone());
                    let answer = poll_once(work(&mut Tx::new(exec, tenant, faults)));
                    readers.end(connection);
                    answer
                });
                reading.await.unwrap_or_else(|_| Err(gone().into()))
            }
            Backend::Postgres { postgres, .. } => {
                let exec = Box::new(postgres.begin(Arc::clone(tenant), Mode::Read));
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
            Backend::Sqlite { path, .. } => sqlite::lead(path, lead.name()).await,
            Backend::Postgres { postgres, .. } => postgres.lead(lead).await,
        };
        leader.map(Leadership)
    }

    /// Builds a sign-bit index for each tenant with many chunks, and drops indexes that are no
    /// longer needed. Does nothing on SQLite, or if the server has no usable pgvector.
    pub async fn index_signs(&self, many: &[Many]) -> Result<Indexed, Error> {
        match &self.backend {
            Backend::Sqlite { .. } => Ok(Indexed::default()),
            Backend::Postgres { postgres, .. } => postgres.index_signs(many).await,
        }
    }

    /// State of pgvector on the server; `None` on SQLite.
    pub async fn pgvector(&self) -> Result<Option<Pgvector>, Error> {
        match &self.backend {
            Backend::Sqlite { .. } => Ok(None),
            Backend::Postgres { postgres, .. } => postgres.pgvector().await.map(Some),
        }
    }

    /// The nodes of a distributed PostgreSQL database; `None` if it is not distributed.
    pub async fn distribution(&self) -> Result<Option<Distribution>, Error> {
        match &self.backend {
            Backend::Sqlite { .. } => Ok(None),
            Backend::Postgres { postgres, .. } => postgres.distribution().await,
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
            return Err(Error::Address {
                address: "postgres://…".to_owned(),
                why: "back up a PostgreSQL server with its own tools, such as `pg_dump`".to_owned(),
            });
        };
        let copying = tokio::task::spawn_blocking(move || sqlite::back_up(&from, &to));
        copying.await.unwrap_or_else(|_| Err(gone()))
    }

    /// The files of the database, of which some may not exist; empty if a server stores it.
    pub fn files(&self) -> Vec<PathBuf> {
        self.file().map_or_else(Vec::new, sqlite::files)
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

    /// Path of the SQLite file; `None` on PostgreSQL.
    pub fn file(&self) -> Option<&Path> {
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
            let connection = sqlite::File::open(path, false)?;
            Ok((sqlite::version(&connection)?, sqlite::VERSION))
        }
        Address::Server(url) => Postgres::schema(url).await,
    }
}

/// Distributes a PostgreSQL database with Citus over its nodes, by tenant. Returns the number of
/// tables that were not distributed before. Servers that use the database must be restarted.
pub async fn distribute(address: &Address) -> Result<u64, Error> {
    match address {
        Address::File(path) => Err(Error::Address {
            address: path.display().to_string(),
            why: "only a PostgreSQL server with Citus can be distributed".to_owned(),
        }),
        Address::Server(url) => Postgres::distribute(url).await,
    }
}
