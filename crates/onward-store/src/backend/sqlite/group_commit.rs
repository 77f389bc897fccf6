//! Group commit for SQLite: one transaction and one fsync for all queued jobs.
//!
//! There are no savepoints. A job decides first and writes last, so a job that fails has normally
//! written nothing. If it has, the transaction is rolled back, and each job of the group runs again
//! in its own transaction. If a commit fails, each job gets the error.
//!
//! Jobs get their results once the write-ahead log is synced. SQLite would sync it while holding
//! the file lock; here the next process proceeds meanwhile, and one sync also covers the entries
//! that other processes appended.
//!
//! Before a job gets its result, the file is checked (`file_watch`): a commit to a file that was
//! deleted or replaced is not acknowledged. After a failed sync nothing more is acknowledged: the
//! writer opens the file again and moves the content of the log to the database first.
//!
//! Tests: the conformance suite for jobs that fail after a write;
//! `onward-engine/tests/outages/failed_sync.rs` and `lost_file.rs` for acknowledgements.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::Notify;

use super::connection::Connection;
use super::file::File;
use super::file_watch::{FileWatch, Loss};
use super::paths::companion;
use super::queued_job::QueuedJob;
use super::write_queue::{QueueGuard, WriteQueue};
use super::{busy, error};
use crate::backend::JobOutcome;
use crate::error::Error;
use crate::fault::{Faults, Point};
use crate::sync::SyncMode;

/// Maximum number of jobs per transaction.
const GROUP: usize = 64;

/// Source of further queued jobs.
pub(super) type More<'m> = &'m mut dyn FnMut() -> Option<QueuedJob>;

/// Group commit: runs queued jobs in shared transactions.
pub(super) struct GroupCommit {
    queue: Arc<WriteQueue>,
    connection: Connection,
    watch: Arc<FileWatch>,
    faults: Faults,
    /// The log, if this process syncs it and not SQLite.
    log: Option<Log>,
}

impl GroupCommit {
    /// Takes over a connection. `stuck` is notified when the write queue does not advance.
    pub(super) fn new(
        file: File,
        path: &Path,
        watch: Arc<FileWatch>,
        sync: SyncMode,
        faults: Faults,
        stuck: Arc<Notify>,
    ) -> Result<Self, Error> {
        let level = match sync {
            SyncMode::BeforeCommit => "FULL",
            // The log is synced after the commit, by `sync`.
            SyncMode::BeforeResponse => "NORMAL",
        };
        file.file
            .pragma_update(None, "synchronous", level)
            .map_err(|why| error::running(why, "synchronous"))?;
        Ok(Self {
            queue: Arc::new(WriteQueue::new(path, stuck)),
            connection: Connection::new(file),
            watch,
            faults,
            log: (sync == SyncMode::BeforeResponse).then(|| Log::new(path)),
        })
    }

    /// Runs the first job and all queued ones in one transaction; returns their number.
    pub(super) fn transaction(&mut self, first: QueuedJob, more: More<'_>) -> usize {
        let queue = Arc::clone(&self.queue);
        let guard = queue.acquire();
        if let Err(why) = self.begin() {
            // The queued jobs would time out as well, so all of them fail.
            let mut waiting = vec![first];
            waiting.extend(std::iter::from_fn(more));
            return finish_all(waiting, &Err(why));
        }
        self.group(guard, first, more)
    }

    /// Runs this job alone in a transaction. Returns the job if it would have to wait.
    pub(super) fn try_alone(&mut self, job: QueuedJob) -> Option<QueuedJob> {
        let queue = Arc::clone(&self.queue);
        let Some(guard) = queue.try_acquire() else {
            return Some(job);
        };
        match busy::without_waiting(|| self.begin()) {
            Ok(()) => {}
            Err(why) if self.watch.is_lost() => {
                job.finish(Err(why));
                return None;
            }
            Err(_) => return Some(job),
        }
        self.group(guard, job, &mut || None);
        None
    }

    /// Begins a transaction on the file that is at the path.
    fn begin(&mut self) -> Result<(), Error> {
        let begun = self.connection.control("BEGIN IMMEDIATE");
        // A lost file may also be the reason why the transaction could not begin.
        self.watch.check().inspect_err(|_| self.roll_back())?;
        begun
    }

    /// Runs the jobs of a transaction that has begun, and commits it.
    fn group(&mut self, guard: QueueGuard<'_>, first: QueuedJob, more: More<'_>) -> usize {
        let mut done = Vec::new();
        let mut next = Some(first);
        while let Some(mut job) = next.take() {
            let outcome = job.run(&self.connection);
            done.push(job);
            if outcome == JobOutcome::Dirty {
                return self.one_by_one(done);
            }
            if done.len() < GROUP {
                next = more();
            }
        }
        let committed = self.commit();
        // The next process proceeds while this one waits for the sync.
        drop(guard);
        let synced = self.acknowledge(committed);
        finish_all(done, &synced)
    }

    /// Copies the log into the database and empties it, unless another process uses it.
    pub(super) fn checkpoint(&self) -> Result<(), Error> {
        self.watch.check()?;
        let emptied = busy::without_waiting(|| self.connection.lock().empty_log());
        match emptied {
            Ok(_) => Ok(()),
            Err(why) => Err(self.failed(why, "wal_checkpoint")),
        }
    }

    /// Moves the content of the log to the database after a failed sync. The log may have a gap on
    /// disk that no later sync reports, and nothing after a gap survives a power failure. So the
    /// log must be empty before it gets new entries. Fails while another connection uses the log.
    pub(super) fn recover(&self) -> Result<(), Error> {
        let _guard = self.queue.acquire();
        match self.connection.lock().empty_log() {
            Ok(true) => Ok(()),
            Ok(false) => Err(error::locked()),
            Err(why) => Err(error::running(why, "wal_checkpoint")),
        }
    }

    /// The error of a commit or a checkpoint. After a failed sync the file counts as lost.
    fn failed(&self, why: rusqlite::Error, what: &'static str) -> Error {
        if error::is_sync_failure(&why) {
            self.watch.sync_failed();
            // The log may contain the whole commit.
            return error::unsynced(why);
        }
        error::running(why, what)
    }

    /// Rolls back a group, and runs each of its jobs in a separate transaction.
    fn one_by_one(&mut self, group: Vec<QueuedJob>) -> usize {
        self.roll_back();
        let (count, alone) = (group.len(), group.len() == 1);
        let mut group = group.into_iter();
        while let Some(mut job) = group.next() {
            if alone {
                // The job keeps its own error.
                job.finish(self.watch.check().map(|_| ()));
                break;
            }
            if let Err(why) = self.begin() {
                finish_all(std::iter::once(job).chain(group).collect(), &Err(why));
                break;
            }
            let ended = match job.run(&self.connection) {
                JobOutcome::Clean => {
                    let committed = self.commit();
                    self.acknowledge(committed)
                }
                JobOutcome::Dirty => {
                    self.roll_back();
                    self.watch.check().map(|_| ())
                }
            };
            job.finish(ended);
        }
        count
    }

    /// Commits; returns whether the log has grown and must be synced.
    fn commit(&mut self) -> Result<Grown, Error> {
        let changes = self.connection.lock().file.total_changes();
        let grown = self
            .log
            .as_mut()
            .map_or(Grown::Not, |log| log.grown(changes));
        let committed = match self.inject_faults() {
            Ok(()) => {
                let committed = self.connection.lock().try_control("COMMIT");
                committed.map_err(|why| self.failed(why, "COMMIT"))
            }
            Err(fault) => Err(fault),
        };
        committed.map(|()| grown).inspect_err(|_| self.roll_back())
    }

    /// Injects the faults of a commit, which includes a sync if SQLite syncs the log.
    fn inject_faults(&self) -> Result<(), Error> {
        self.faults.inject(Point::Commit)?;
        if self.log.is_some() {
            return Ok(());
        }
        self.faults.inject_sync().map_err(|why| {
            self.watch.sync_failed();
            error::unsynced(why)
        })
    }

    /// Waits until the commit is on disk, in the file that is at the path. A job that wrote
    /// nothing has read the file, so it is checked in any case.
    fn acknowledge(&mut self, committed: Result<Grown, Error>) -> Result<(), Error> {
        let wrote = matches!(committed, Ok(Grown::Longer)) || self.log.is_none();
        let synced = committed.and_then(|log| self.sync(log));
        if synced.is_err() && self.watch.loss() == Some(Loss::Unsynced) {
            return synced;
        }
        self.watch
            .check()
            .map_err(|lost| if wrote { lost.after_commit() } else { lost })?;
        synced
    }

    /// Waits until the commit is on disk.
    fn sync(&mut self, grown: Grown) -> Result<(), Error> {
        if let (Grown::Longer, Some(log)) = (grown, &mut self.log) {
            let synced = self.faults.inject_sync().and_then(|()| log.sync());
            synced.map_err(|why| {
                self.watch.sync_failed();
                error::unsynced(why)
            })?;
        }
        self.faults.inject(Point::Committed)
    }

    fn roll_back(&mut self) {
        // Fails if SQLite has already rolled back the transaction, which is the same result.
        drop(self.connection.control("ROLLBACK"));
    }
}

impl Drop for GroupCommit {
    fn drop(&mut self) {
        match self.watch.loss() {
            // Closing the last connection would copy the log into the new content. If the setting
            // fails, this cannot be prevented.
            Some(Loss::Overwritten) => drop(self.connection.lock().keep_log()),
            // The open log is the only one with the acknowledged changes. If this fails, they are
            // lost with the log.
            Some(Loss::Log) => {
                let file = self.connection.lock();
                let copied = file
                    .file
                    .query_row("PRAGMA wal_checkpoint(FULL)", [], |_| Ok(()));
                drop(copied);
            }
            Some(Loss::Deleted | Loss::Replaced | Loss::Unsynced) | None => {}
        }
    }
}

/// Whether a commit appends to the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Grown {
    Longer,
    Not,
}

/// The write-ahead log, to which a commit appends. SQLite keeps the file while a connection is
/// open, and takes no locks on it.
struct Log {
    path: PathBuf,
    /// `None` until the log exists. Opened as early as possible: the system reports a failed write
    /// only to descriptors that were open when it failed.
    file: Option<fs::File>,
    /// Number of rows that this connection had changed at the last commit.
    changes: u64,
}

impl Log {
    fn new(database: &Path) -> Self {
        let path = companion(database, "-wal");
        Self {
            file: Self::open(&path).ok(),
            path,
            changes: 0,
        }
    }

    fn open(path: &Path) -> io::Result<fs::File> {
        fs::File::options().write(true).open(path)
    }

    /// Whether this connection has changed rows since the last commit.
    fn grown(&mut self, changes: u64) -> Grown {
        if std::mem::replace(&mut self.changes, changes) == changes {
            Grown::Not
        } else {
            Grown::Longer
        }
    }

    fn sync(&mut self) -> io::Result<()> {
        let file = match self.file.take() {
            Some(file) => file,
            None => Self::open(&self.path)?,
        };
        self.file.insert(file).sync_data()
    }
}

/// Finishes all jobs with this result; returns their number.
fn finish_all(jobs: Vec<QueuedJob>, how: &Result<(), Error>) -> usize {
    let count = jobs.len();
    for job in jobs {
        job.finish(how.clone());
    }
    count
}
