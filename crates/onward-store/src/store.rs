//! Entry point to the database: open it, write, read, and subscribe to changes.
//!
//! A [`Store`] is a handle; clones share one database. When [`Store::write`] returns `Ok`, the
//! change is on disk. If another caller changed the plan between load and commit, the store runs
//! the closure again from the start, so the closure must depend only on the data it reads.

pub(crate) mod address;
pub(crate) mod node_reads;
pub(crate) mod open;
mod versions;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use onward_core::PlanId;
use tokio::sync::broadcast;

use crate::backend::postgres::{Connecting, Mode, Postgres, Shared};
use crate::backend::sqlite::{self, Readers, Work, Writer};
use crate::backend::{Connections, Exec};
use crate::change::Changed;
use crate::distribution::Distribution;
use crate::error::Error;
use crate::fault::Faults;
use crate::interrupt::{self, Interrupt, gone};
use crate::lead::{Duties, Lead, Leadership};
use crate::plan_cache::{CacheSession, PlanCache};
use crate::plan_queue::{PlanQueues, Turn};
use crate::schema_check::SchemaDeviation;
use crate::tx::Tx;
use crate::vector_index::{Indexed, Many, VectorExtension};
use crate::work::{Running, job, poll_once, wait};

/// Number of retries after lost races before a call fails with [`Error::LostRace`].
const MAX_RETRIES: usize = 20;

/// An open database.
#[derive(Clone)]
pub struct Store {
    backend: Backend,
    watchers: broadcast::Sender<Changed>,
    faults: Faults,
    duties: Duties,
    /// SQLite: the file that announces the version of this process.
    presence: Arc<OnceLock<std::fs::File>>,
}

/// Where many transitions run at the same time ([`Store::transition_in`]). It is for one batch of
/// work: after its connection is lost, each transition takes a separate one.
#[derive(Default)]
pub struct Pipeline(OnceLock<Arc<Shared>>);

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
        queues: Arc<PlanQueues>,
    },
}

impl Store {
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
    /// that version has changed. Then `work` runs again when the other transitions of the plan that
    /// wait have ended: on fresh data if the plan came from the cache, with the plan locked otherwise.
    pub async fn transition<A, E, F>(&self, tenant: &Arc<str>, work: F) -> Result<A, E>
    where
        A: Send + 'static,
        E: From<Error> + Send + 'static,
        F: for<'t> FnMut(&'t mut Tx) -> Running<'t, A, E> + Send + 'static,
    {
        self.work(tenant, true, work).await
    }

    /// Like [`Self::transition`], for many plans of several tenants at the same time. On PostgreSQL, their
    /// transactions follow each other on one connection, each under its own tenant, without waiting for
    /// the responses to those before it; a locked plan is an error. On SQLite, one transaction holds
    /// many of them. All of a pipeline must be polled by one task.
    pub async fn transition_in<A, E, F>(
        &self,
        pipeline: &Pipeline,
        tenant: &Arc<str>,
        mut work: F,
    ) -> Result<A, E>
    where
        A: Send + 'static,
        E: From<Error> + Send + 'static,
        F: for<'t> FnMut(&'t mut Tx) -> Running<'t, A, E> + Send + 'static,
    {
        let postgres = match &self.backend {
            Backend::Sqlite { .. } => return self.work(tenant, false, work).await,
            Backend::Postgres { postgres, .. } => postgres.get().await?,
        };
        let shared = pipeline.0.get_or_init(|| postgres.share());
        let mut mode = postgres.sharing_mode();
        for _ in 0..=MAX_RETRIES {
            let exec = postgres.begin_in(Arc::clone(tenant), mode, shared);
            match self
                .attempt(&postgres, exec, tenant, true, &mut work)
                .await?
            {
                Attempt::Answered(answer) => return answer,
                Attempt::Lost { .. } => mode = Mode::Lock,
            }
        }
        Err(Error::LostRace.into())
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
            Backend::Postgres {
                postgres, queues, ..
            } => {
                let postgres = postgres.get().await?;
                let mut race = 0;
                let mut mode = if advances {
                    Mode::Optimistic
                } else {
                    Mode::Lock
                };
                let mut turn: Option<Turn> = None;
                loop {
                    let exec = postgres.begin(Arc::clone(tenant), mode);
                    let is_queued = turn.is_some() || !advances;
                    let attempt = self.attempt(&postgres, exec, tenant, is_queued, &mut work);
                    let (used_cache, plan) = match attempt.await? {
                        Attempt::Answered(answer) => return answer,
                        Attempt::Lost { .. } if race == MAX_RETRIES => {
                            return Err(Error::LostRace.into());
                        }
                        Attempt::Lost { used_cache, plan } => (used_cache, plan),
                    };
                    race += 1;
                    if let Some(turn) = &turn {
                        turn.record_race();
                    } else if let Some(plan) = plan.filter(|_| advances) {
                        let entered = queues.enter(plan).await?;
                        if entered.takes_lock() {
                            mode = Mode::Lock;
                        }
                        turn = Some(entered);
                    }
                    // A stale entry is no longer in the cache; the next attempt reads the database.
                    if !used_cache {
                        mode = Mode::Lock;
                    }
                }
            }
        }
    }

    /// Runs one attempt on PostgreSQL.
    async fn attempt<A, E, F>(
        &self,
        postgres: &Postgres,
        exec: Box<dyn Exec>,
        tenant: &Arc<str>,
        is_queued: bool,
        work: &mut F,
    ) -> Result<Attempt<Result<A, E>>, Error>
    where
        E: From<Error>,
        F: for<'t> FnMut(&'t mut Tx) -> Running<'t, A, E>,
    {
        let Backend::Postgres { cache, queues, .. } = &self.backend else {
            return Err(gone());
        };
        let session = |cache: &PlanCache| {
            let session = CacheSession::new(cache.clone(), Arc::clone(tenant));
            session.behind((!is_queued).then(|| Arc::clone(queues)))
        };
        let mut tx = Tx::new(exec, Arc::clone(tenant), self.faults.clone())
            .with_cache(cache.as_ref().map(session));
        let answer = work(&mut tx).await;
        if let Some(plan) = tx.must_queue() {
            tx.rollback();
            return Ok(Attempt::Lost {
                used_cache: true,
                plan: Some(plan),
            });
        }
        let (used_cache, plan) = (tx.used_cache(), tx.versions.first());
        let lost = Attempt::Lost { used_cache, plan };
        if tx.needs_revalidation() {
            tx.rollback();
            return Ok(lost);
        }
        let answer = match answer {
            Ok(answer) => answer,
            Err(why) => {
                let lost_race = tx.lost_race();
                tx.rollback();
                return Ok(if lost_race {
                    lost
                } else {
                    Attempt::Answered(Err(why))
                });
            }
        };
        match tx.commit().await {
            Ok(()) => {
                let mut committed = tx.take_committed();
                let changed = std::mem::take(&mut committed.changed);
                if let Some(cache) = tx.cache.take() {
                    cache.committed(&changed);
                }
                postgres.publish(changed);
                committed.run();
                Ok(Attempt::Answered(Ok(answer)))
            }
            Err(Error::LostRace) => Ok(lost),
            Err(why) => {
                // The next connection may reach another server, or an older copy of the database.
                if let Some(cache) = cache {
                    cache.clear();
                }
                Err(why)
            }
        }
    }

    /// Runs `work` in one read transaction, which sees a single snapshot. If the future is dropped,
    /// the work ends with its current statement.
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
                let permit = interrupt::permit();
                let (interrupt, _interrupts_on_drop) = Interrupt::new();
                let reading = tokio::task::spawn_blocking(move || {
                    let _permit = permit;
                    interrupt.check()?;
                    let reading = readers.begin()?;
                    interrupt.watch(reading.stop());
                    let exec = Box::new(reading.connection());
                    let mut tx = Tx::new(exec, tenant, faults).interruptible(&interrupt);
                    let answer = poll_once(work(&mut tx));
                    drop(tx);
                    interrupt.end();
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
        leader.map(|leader| Leadership::new(leader, lead, self.duties.clone()))
    }

    /// Whether this process is the leader for a duty.
    pub fn leads(&self, lead: Lead) -> bool {
        self.duties.includes(lead)
    }

    /// The connections to the server; `None` on SQLite, and before the first one.
    pub fn connections(&self) -> Option<Connections> {
        match &self.backend {
            Backend::Sqlite { .. } => None,
            Backend::Postgres { postgres, .. } => Some(postgres.current()?.connections()),
        }
    }

    /// Whether a server holds the lease of a duty. On SQLite, this is not known.
    pub async fn has_leader(&self, lead: Lead) -> Result<bool, Error> {
        match &self.backend {
            Backend::Sqlite { .. } => Ok(false),
            Backend::Postgres { postgres, .. } => {
                postgres.get().await?.has_leader(lead.name()).await
            }
        }
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

    /// Differences between the schema and the one that the migrations create: row security and
    /// privileges, tables, columns, indexes, constraints, triggers and functions.
    pub async fn schema_deviations(&self) -> Result<Vec<SchemaDeviation>, Error> {
        match &self.backend {
            Backend::Sqlite { path, .. } => {
                let path = Arc::clone(path);
                let comparing = tokio::task::spawn_blocking(move || {
                    sqlite::deviations(&sqlite::File::open_to_read(&path)?)
                });
                comparing.await.unwrap_or_else(|_| Err(gone()))
            }
            Backend::Postgres { postgres, .. } => postgres.get().await?.schema_deviations().await,
        }
    }

    /// Fails if a connection pooler has changed to a mode that is not supported.
    pub async fn check_pooler(&self) -> Result<(), Error> {
        match &self.backend {
            Backend::Sqlite { .. } => Ok(()),
            Backend::Postgres { postgres, .. } => postgres.get().await?.check_pooler().await,
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
                "only an SQLite file can be copied",
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
    /// The version check failed, the reads need revalidation, or the plan has a queue. Nothing was
    /// written.
    Lost {
        /// Whether the attempt used the plan cache, whose entry may have been stale for long.
        used_cache: bool,
        /// The plan, if it is known.
        plan: Option<PlanId>,
    },
}
