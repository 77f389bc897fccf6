//! Entry point to the database: open it, write, read, and subscribe to changes.
//!
//! A [`Store`] is a handle; clones share one database. When [`Store::write`] returns `Ok`, the
//! change is on disk. If another caller changed the plan between load and commit, the store runs
//! the closure again from the start, so the closure must depend only on what it reads.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::broadcast;

use crate::backend::postgres::{Kind, Postgres};
use crate::backend::sqlite::{self, Manner, Readers, Work, Writer};
use crate::error::Error;
use crate::fault::Faults;
use crate::lead::{Lead, Leadership};
use crate::tx::{Changed, Tx};
use crate::vectors::{Indexed, Many, Pgvector};
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
}

/// How to open a database.
#[derive(Debug, Clone, Default)]
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
    Postgres(Postgres),
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
        } = options;
        let (backend, knows) = match address {
            Address::File(path) => {
                let manner = Manner {
                    faults: faults.clone(),
                    migrates: !keep_schema,
                    in_place,
                    tenant: tenant.as_deref(),
                };
                let (writer, knows) = Writer::start(path, manner)?;
                let backend = Backend::Sqlite {
                    writer,
                    readers: Readers::of(path, faults.clone()),
                    path: Arc::new(path.clone()),
                };
                (backend, knows)
            }
            Address::Server(url) => {
                let postgres = Postgres::connect(url, !keep_schema, watchers.clone()).await?;
                (Backend::Postgres(postgres), false)
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
    pub async fn advance<A, E, F>(&self, tenant: &Arc<str>, work: F) -> Result<A, E>
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
                let length = match advances {
                    true => Work::Short,
                    false => Work::Any,
                };
                send(writer, tenant, work, length, &self.watchers).await
            }
            Backend::Postgres(postgres) => {
                let mut race = 0;
                let mut kind = match advances {
                    true => postgres.manner(),
                    false => Kind::Locking,
                };
                loop {
                    match self.attempt(postgres, tenant, kind, &mut work).await? {
                        Attempt::Answered(answer) => return answer,
                        Attempt::Lost { .. } if race == RACES => {
                            return Err(Error::LostRace.into());
                        }
                        // The stale entry is no longer in the cache; the next attempt reads the
                        // database.
                        Attempt::Lost { to_memory: true } => {}
                        Attempt::Lost { to_memory: false } => kind = Kind::Locking,
                    }
                    race += 1;
                }
            }
        }
    }

    /// Runs one attempt on PostgreSQL.
    async fn attempt<A, E, F>(
        &self,
        postgres: &Postgres,
        tenant: &Arc<str>,
        kind: Kind,
        work: &mut F,
    ) -> Result<Attempt<Result<A, E>>, Error>
    where
        E: From<Error>,
        F: for<'t> FnMut(&'t mut Tx) -> Running<'t, A, E>,
    {
        let mut tx = postgres.begin(Arc::clone(tenant), self.faults.clone(), kind);
        let answer = work(&mut tx).await;
        let to_memory = tx.from_memory;
        if tx.is_doubtful() {
            postgres.rollback(tx).await;
            return Ok(Attempt::Lost { to_memory });
        }
        let answer = match answer {
            Ok(answer) => answer,
            Err(why) => {
                let lost = tx.lost_race();
                postgres.rollback(tx).await;
                return Ok(match lost {
                    true => Attempt::Lost { to_memory },
                    false => Attempt::Answered(Err(why)),
                });
            }
        };
        let (changed, lesson) = (tx.take_changed(), tx.take_lesson());
        match postgres.commit(tx).await {
            Ok(()) => {
                postgres.memory().learn(lesson, &changed);
                postgres.tell(changed);
                Ok(Attempt::Answered(Ok(answer)))
            }
            Err(Error::LostRace) => {
                if !to_memory {
                    postgres.lost_race();
                }
                Ok(Attempt::Lost { to_memory })
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
                let reading = tokio::task::spawn_blocking(move || {
                    let mut tx = readers.begin(tenant)?;
                    let answer = poll_once(work(&mut tx));
                    readers.end(tx);
                    answer
                });
                reading.await.unwrap_or_else(|_| Err(gone().into()))
            }
            Backend::Postgres(postgres) => {
                let tenant = Arc::clone(tenant);
                let mut tx = postgres.begin(tenant, self.faults.clone(), Kind::Reading);
                let answer = work(&mut tx).await;
                postgres.rollback(tx).await;
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
        match &self.backend {
            Backend::Sqlite { path, .. } => Leadership::of_file(path, lead).await,
            Backend::Postgres(postgres) => Ok(Leadership::of_server(postgres.lead(lead).await?)),
        }
    }

    /// Builds a sign-bit index for each tenant with many chunks, and drops indexes that are no
    /// longer needed. Does nothing on SQLite, or if the server has no usable pgvector.
    pub async fn index_signs(&self, many: &[Many]) -> Result<Indexed, Error> {
        match &self.backend {
            Backend::Sqlite { .. } => Ok(Indexed::default()),
            Backend::Postgres(postgres) => postgres.index_signs(many).await,
        }
    }

    /// State of pgvector on the server; `None` on SQLite.
    pub async fn pgvector(&self) -> Result<Option<Pgvector>, Error> {
        match &self.backend {
            Backend::Sqlite { .. } => Ok(None),
            Backend::Postgres(postgres) => postgres.pgvector().await.map(Some),
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
        let copying = tokio::task::spawn_blocking(move || sqlite::copy(&from, &to));
        copying.await.unwrap_or_else(|_| Err(gone()))
    }

    /// Path of the SQLite file; `None` on PostgreSQL.
    pub fn file(&self) -> Option<&Path> {
        match &self.backend {
            Backend::Sqlite { path, .. } => Some(path.as_path()),
            Backend::Postgres(_) => None,
        }
    }
}

/// Outcome of one attempt.
enum Attempt<A> {
    Answered(A),
    /// The version check failed, or the reads need revalidation. Nothing was written.
    Lost {
        /// Whether the attempt used the plan cache, whose entry may have been stale for long.
        to_memory: bool,
    },
}

/// Schema version of a database, and the version that this program requires. Changes nothing. A
/// missing file has version 0.
pub async fn schema(address: &Address) -> Result<(i64, i64), Error> {
    match address {
        Address::File(path) if !path.exists() => Ok((0, sqlite::VERSION)),
        Address::File(path) => {
            let connection = sqlite::Connection::open(path, false)?;
            Ok((sqlite::version(&connection)?, sqlite::VERSION))
        }
        Address::Server(url) => Postgres::schema(url).await,
    }
}
