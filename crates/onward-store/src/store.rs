//! The way into a database: open it, work in it, read from it, hear of changes.
//!
//! A [`Store`] is a handle; clones share one database. What is answered by [`Store::write`] is on
//! disk. Where somebody else changed the plan between the facts and the commit, the work is done
//! again from the start, so it must be a function of what it reads.

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

/// Changes that a watcher may be behind before it is told that it missed some.
const BEHIND: usize = 1024;

/// A race that is lost this often in a row is given up.
const RACES: usize = 20;

/// Where a database is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// An SQLite file.
    File(PathBuf),
    /// A PostgreSQL database, as `postgres://…`.
    Server(String),
}

impl Address {
    /// Reads an address: `postgres://…` or `postgresql://…` is a server, `sqlite:PATH` and anything
    /// else a file.
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
                why: "it is neither a path nor `postgres://…`".to_owned(),
            });
        }
        Ok(Address::File(PathBuf::from(path)))
    }
}

/// How to open a database.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Faults on purpose, for tests.
    pub faults: Faults,
    /// Refuse a database whose schema is older, instead of bringing it up to date.
    pub keep_schema: bool,
    /// Write to a file where one is asked to, without a thread for it: for a process that asks once,
    /// and has somebody who ends it where the line does not move.
    pub in_place: bool,
    /// A tenant to look for on the way, where that costs nothing: [`Store::knows`] says whether it is
    /// there.
    pub tenant: Option<Arc<str>>,
}

/// A database that is open.
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
    /// Opens a database; a file is made where there is none, and the schema is brought up to date.
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

    /// Whether the tenant that was to be looked for was seen to be there. One that was not seen may
    /// be there all the same.
    pub fn knows(&self) -> bool {
        self.knows
    }

    /// Does the work in one transaction. Its answer means that what it wrote is on disk; an error
    /// means that nothing of it was written, unless the error is that the commit's own answer was
    /// lost on the way.
    pub async fn write<A, E, F>(&self, tenant: &Arc<str>, work: F) -> Result<A, E>
    where
        A: Send + 'static,
        E: From<Error> + Send + 'static,
        F: for<'t> FnMut(&'t mut Tx) -> Running<'t, A, E> + Send + 'static,
    {
        self.work(tenant, false, work).await
    }

    /// The same for a transition of one plan, which needs not hold the plan: nothing that it looks at
    /// changes without the plan's version, and its commit fails where that is another one by then.
    /// The work is done again in that case, this time with the plan held.
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
                        // What was remembered is forgotten: the next one sees what is.
                        Attempt::Lost { to_memory: true } => {}
                        Attempt::Lost { to_memory: false } => kind = Kind::Locking,
                    }
                    race += 1;
                }
            }
        }
    }

    /// One try on PostgreSQL.
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

    /// Reads in one transaction, which sees one state of the database.
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

    /// Hears of every plan that this process changes from now on, and, on PostgreSQL, of those that
    /// other servers change.
    pub fn watch(&self) -> broadcast::Receiver<Changed> {
        self.watchers.subscribe()
    }

    /// A number that is another one whenever somebody has changed the database, for whoever watches a
    /// file that other processes change too. None where [`Self::watch`] hears of everything.
    pub async fn version(&self) -> Result<Option<i64>, Error> {
        let Backend::Sqlite { readers, .. } = &self.backend else {
            return Ok(None);
        };
        let readers = readers.clone();
        let asking = tokio::task::spawn_blocking(move || readers.version());
        asking.await.unwrap_or_else(|_| Err(gone())).map(Some)
    }

    /// Waits until no other process does this on this database, and keeps them from it from then on.
    pub async fn lead(&self, lead: Lead) -> Result<Leadership, Error> {
        match &self.backend {
            Backend::Sqlite { path, .. } => Leadership::of_file(path, lead).await,
            Backend::Postgres(postgres) => Ok(Leadership::of_server(postgres.lead(lead).await?)),
        }
    }

    /// Has an index of signs built for everybody who has many chunks, and drops those that nobody needs.
    /// Does nothing on a file, or where the server cannot have one.
    pub async fn index_signs(&self, many: &[Many]) -> Result<Indexed, Error> {
        match &self.backend {
            Backend::Sqlite { .. } => Ok(Indexed::default()),
            Backend::Postgres(postgres) => postgres.index_signs(many).await,
        }
    }

    /// Whether the server can have such an index; none for a file.
    pub async fn pgvector(&self) -> Result<Option<Pgvector>, Error> {
        match &self.backend {
            Backend::Sqlite { .. } => Ok(None),
            Backend::Postgres(postgres) => postgres.pgvector().await.map(Some),
        }
    }

    /// Waits until what was asked is done, and closes the database. Later calls are refused.
    pub async fn close(&self) {
        if let Backend::Sqlite {
            writer, readers, ..
        } = &self.backend
        {
            readers.close();
            writer.end().await;
        }
    }

    /// Copies the database to a file that does not exist yet, while it is in use.
    pub async fn back_up(&self, to: PathBuf) -> Result<(), Error> {
        let Some(from) = self.file().map(Path::to_owned) else {
            return Err(Error::Address {
                address: "postgres://…".to_owned(),
                why: "a server is backed up with its own tools, such as `pg_dump`".to_owned(),
            });
        };
        let copying = tokio::task::spawn_blocking(move || sqlite::copy(&from, &to));
        copying.await.unwrap_or_else(|_| Err(gone()))
    }

    /// The file, where it is one.
    pub fn file(&self) -> Option<&Path> {
        match &self.backend {
            Backend::Sqlite { path, .. } => Some(path.as_path()),
            Backend::Postgres(_) => None,
        }
    }
}

/// What became of one try.
enum Attempt<A> {
    Answered(A),
    /// A race was lost, or may have been, so that nothing happened.
    Lost {
        /// To whoever changed the plan since it was remembered, perhaps long ago.
        to_memory: bool,
    },
}

/// The schema's version that a database has, and the one that this program needs. Changes nothing;
/// a file that is not there has version 0.
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
