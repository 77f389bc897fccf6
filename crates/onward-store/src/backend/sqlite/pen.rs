//! What writes to the file: one connection, one transaction at a time, and all who wait for it at its
//! beginning in the same one.
//!
//! There are no savepoints: a job decides first and writes last, so one that fails has written
//! nothing, or else something is wrong. Then the whole transaction is taken back, and each job of the
//! group is done again in a transaction of its own. If a commit fails, none of its jobs happened, and
//! each is told so.
//!
//! A commit appends to the log, and whoever waits for it is answered once the log is on disk. SQLite
//! would wait for the disk with the file locked; here the next process goes on meanwhile, and one sync
//! takes along whatever others have appended.

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

/// How many jobs share one sync at most.
const GROUP: usize = 64;

/// Something to be done in a transaction, and to be told of its end.
pub(crate) trait Job: Send {
    /// Does it, and keeps its own answer. It may be done again.
    fn run(&mut self, tx: &mut Tx) -> Ran;
    /// Tells whoever waits: the answer of its own, or that it could not be committed.
    fn finish(self: Box<Self>, committed: Result<(), Error>);
}

/// How a job left its transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ran {
    /// As it should be: with all that it had to write, or with nothing where it failed.
    Kept,
    /// With half of what it had to write.
    Spoilt,
}

/// Jobs that have come meanwhile.
pub(super) type More<'m> = &'m mut dyn FnMut() -> Option<Box<dyn Job>>;

/// What writes.
pub(super) struct Pen {
    line: Arc<Line>,
    tx: Tx,
    faults: Faults,
    log: Log,
}

impl Pen {
    /// Takes a connection over. Whoever wants to know that the line does not move is told by `stuck`.
    pub(super) fn new(
        connection: Connection,
        path: &Path,
        faults: Faults,
        stuck: Arc<Notify>,
    ) -> Result<Self, Error> {
        // The log is synced below, behind the commit.
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

    /// One transaction with the first job, and with all that came meanwhile; how many these are.
    pub(super) fn transaction(&mut self, first: Box<dyn Job>, more: More<'_>) -> usize {
        let line = Arc::clone(&self.line);
        let front = line.stand();
        if let Err(why) = self.control("BEGIN IMMEDIATE") {
            // Who waits behind it would wait as long again: tell them all.
            let mut waiting = vec![first];
            waiting.extend(std::iter::from_fn(more));
            return tell(waiting, &Err(why));
        }
        self.group(front, first, more)
    }

    /// A transaction with this job alone, unless it would have to wait for others: then it is given
    /// back.
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

    /// What a transaction that has begun does.
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
        // The next process can go on while ours wait for the disk, and are told.
        drop(front);
        let kept = committed.and_then(|log| self.keep(log));
        tell(done, &kept)
    }

    /// Takes everything back that a group has written, and does each of its jobs alone.
    fn one_by_one(&mut self, group: Vec<Box<dyn Job>>) -> usize {
        self.roll_back();
        let (count, alone) = (group.len(), group.len() == 1);
        let mut group = group.into_iter();
        while let Some(mut job) = group.next() {
            if alone {
                // It has said itself why not.
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

    /// Commits; whether the log has become longer by it.
    fn commit(&mut self) -> Result<Grown, Error> {
        let changes = self.connection().map(|file| file.file.total_changes());
        let grown = self.log.grown(changes.unwrap_or_default());
        let committed = match self.faults.strike(Point::Commit) {
            Ok(()) => self.control("COMMIT"),
            Err(fault) => Err(fault),
        };
        committed.map(|()| grown).inspect_err(|_| self.roll_back())
    }

    /// Waits until what was committed is on disk.
    fn keep(&mut self, log: Grown) -> Result<(), Error> {
        if log == Grown::Longer {
            self.faults.strike(Point::Sync)?;
            self.log.sync()?;
        }
        self.faults.strike(Point::Committed)
    }

    fn roll_back(&mut self) {
        // Nothing is left of a transaction that the file has given up by itself.
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

/// Whether a commit adds to the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Grown {
    Longer,
    Not,
}

/// The log of the file, which a commit appends to. SQLite keeps it as long as a connection is open, and
/// takes no locks on it.
struct Log {
    name: OsString,
    /// Made when it is first needed: there is none before the first commit.
    file: Option<File>,
    /// How many rows this connection had changed at the last commit.
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

    /// Whether rows were changed since the last commit, by how many this connection has changed.
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

fn tell(jobs: Vec<Box<dyn Job>>, how: &Result<(), Error>) -> usize {
    let count = jobs.len();
    for job in jobs {
        job.finish(how.clone());
    }
    count
}
