//! Group commit for SQLite: one transaction and one fsync for all queued jobs.
//!
//! There are no savepoints. A job decides first and writes last, so a job that fails has normally
//! written nothing. If it has, the transaction is rolled back, and each job of the group runs again
//! in its own transaction. If a commit fails, each job gets the error.
//!
//! Jobs get their results once the write-ahead log is synced. SQLite would sync it while holding
//! the file lock; here the next process proceeds, and one sync covers what others appended.

use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use tokio::sync::Notify;

use super::line::{Front, Line};
use super::{Connection, error, wait};
use crate::error::Error;
use crate::fault::{Faults, Point};
use crate::tx::{self, Tx};

/// Maximum number of jobs per transaction.
const GROUP: usize = 64;

/// A unit of work for the writer.
pub(crate) trait Job: Send {
    /// Runs the job, and keeps its result. May be called again.
    fn run(&mut self, tx: &mut Tx) -> Ran;
    /// Returns the result to the caller, or the error of the commit.
    fn finish(self: Box<Self>, committed: Result<(), Error>);
}

/// Outcome of a job for its transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ran {
    /// Clean: the job wrote everything, or failed and wrote nothing.
    Kept,
    /// Dirty: the job failed after it wrote something.
    Spoilt,
}

/// Source of further queued jobs.
pub(super) type More<'m> = &'m mut dyn FnMut() -> Option<Box<dyn Job>>;

/// Group commit: runs queued jobs in shared transactions.
pub(super) struct Pen {
    line: Arc<Line>,
    tx: Tx,
    faults: Faults,
    log: Log,
}

impl Pen {
    /// Takes over a connection. `stuck` is notified when the write queue does not advance.
    pub(super) fn new(
        connection: Connection,
        path: &Path,
        faults: Faults,
        stuck: Arc<Notify>,
    ) -> Result<Self, Error> {
        // The log is synced after the commit, by `keep`.
        let level = connection.file.pragma_update(None, "synchronous", "NORMAL");
        level.map_err(|why| error::running(why, "synchronous"))?;
        let tx = tx::Connection::Sqlite(connection);
        Ok(Self {
            line: Arc::new(Line::of(path, stuck)),
            tx: Tx::new(tx, "".into(), faults.clone()),
            faults,
            log: Log::of(path),
        })
    }

    /// Runs the first job and all queued ones in one transaction; returns their number.
    pub(super) fn transaction(&mut self, first: Box<dyn Job>, more: More<'_>) -> usize {
        let line = Arc::clone(&self.line);
        let front = line.stand();
        if let Err(why) = self.control("BEGIN IMMEDIATE") {
            // The queued jobs would wait as long again, so all of them fail.
            let mut waiting = vec![first];
            waiting.extend(std::iter::from_fn(more));
            return tell(waiting, &Err(why));
        }
        self.group(front, first, more)
    }

    /// Runs this job alone in a transaction. Returns the job if it would have to wait.
    pub(super) fn at_once(&mut self, job: Box<dyn Job>) -> Option<Box<dyn Job>> {
        let line = Arc::clone(&self.line);
        let Some(front) = line.front() else {
            return Some(job);
        };
        if wait::not_at_all(|| self.control("BEGIN IMMEDIATE")).is_err() {
            return Some(job);
        }
        self.group(front, job, &mut || None);
        None
    }

    /// Runs the jobs of a transaction that has begun, and commits it.
    fn group(&mut self, front: Front<'_>, first: Box<dyn Job>, more: More<'_>) -> usize {
        let mut done = Vec::new();
        let mut next = Some(first);
        while let Some(mut job) = next.take() {
            let ran = job.run(&mut self.tx);
            done.push(job);
            if ran == Ran::Spoilt {
                return self.one_by_one(done);
            }
            if done.len() < GROUP {
                next = more();
            }
        }
        let committed = self.commit();
        // The next process proceeds while this one waits for the sync.
        drop(front);
        let kept = committed.and_then(|log| self.keep(log));
        tell(done, &kept)
    }

    /// Rolls back a group, and runs each of its jobs in a separate transaction.
    fn one_by_one(&mut self, group: Vec<Box<dyn Job>>) -> usize {
        self.roll_back();
        let (count, alone) = (group.len(), group.len() == 1);
        let mut group = group.into_iter();
        while let Some(mut job) = group.next() {
            if alone {
                // The job keeps its own error.
                job.finish(Ok(()));
                break;
            }
            if let Err(why) = self.control("BEGIN IMMEDIATE") {
                tell(std::iter::once(job).chain(group).collect(), &Err(why));
                break;
            }
            let ended = match job.run(&mut self.tx) {
                Ran::Kept => self.commit().and_then(|log| self.keep(log)),
                Ran::Spoilt => {
                    self.roll_back();
                    Ok(())
                }
            };
            job.finish(ended);
        }
        count
    }

    /// Commits; returns whether the log has grown.
    fn commit(&mut self) -> Result<Grown, Error> {
        let changes = self.connection().map(|file| file.file.total_changes());
        let grown = self.log.grown(changes.unwrap_or_default());
        let committed = match self.faults.strike(Point::Commit) {
            Ok(()) => self.control("COMMIT"),
            Err(fault) => Err(fault),
        };
        committed.map(|()| grown).inspect_err(|_| self.roll_back())
    }

    /// Waits until the commit is on disk.
    fn keep(&mut self, log: Grown) -> Result<(), Error> {
        if log == Grown::Longer {
            self.faults.strike(Point::Sync)?;
            self.log.sync()?;
        }
        self.faults.strike(Point::Committed)
    }

    fn roll_back(&mut self) {
        // Fails if SQLite has already rolled back the transaction, which is the same result.
        drop(self.control("ROLLBACK"));
    }

    fn connection(&self) -> Option<&Connection> {
        match &self.tx.connection {
            tx::Connection::Sqlite(connection) => Some(connection),
            tx::Connection::Postgres(_) => None,
        }
    }

    fn control(&self, text: &'static str) -> Result<(), Error> {
        self.connection().map_or(Ok(()), |file| file.control(text))
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
    name: OsString,
    /// Opened when first needed: it does not exist before the first commit.
    file: Option<File>,
    /// Number of rows that this connection had changed at the last commit.
    changes: u64,
}

impl Log {
    fn of(database: &Path) -> Self {
        let mut name = database.as_os_str().to_owned();
        name.push("-wal");
        Self {
            name,
            file: None,
            changes: 0,
        }
    }

    /// Whether this connection has changed rows since the last commit.
    fn grown(&mut self, changes: u64) -> Grown {
        match std::mem::replace(&mut self.changes, changes) == changes {
            true => Grown::Not,
            false => Grown::Longer,
        }
    }

    fn sync(&mut self) -> Result<(), Error> {
        let file = match self.file.take() {
            Some(file) => file,
            None => File::options()
                .write(true)
                .open(&self.name)
                .map_err(error::unsynced)?,
        };
        let synced = file.sync_data().map_err(error::unsynced);
        self.file = Some(file);
        synced
    }
}

/// Finishes all jobs with this result; returns their number.
fn tell(jobs: Vec<Box<dyn Job>>, how: &Result<(), Error>) -> usize {
    let count = jobs.len();
    for job in jobs {
        job.finish(how.clone());
    }
    count
}
