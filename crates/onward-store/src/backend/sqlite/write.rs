//! The one thread that writes to the file, and its group commit: whoever asks while a transaction is
//! open goes into the same one, and all of them are answered after one sync.
//!
//! There are no savepoints: a job decides first and writes last, so one that fails has written
//! nothing, or else something is wrong. Then the whole transaction is taken back, and each job of the
//! group is done again in a transaction of its own. If a commit fails, none of its jobs happened, and
//! each is told so.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use tokio::sync::{Notify, oneshot};

use super::line::Line;
use super::{Connection, migrate, wait};
use crate::error::Error;
use crate::fault::{Faults, Point};
use crate::tx::{self, Statement, Tx};
use crate::value::Value;

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

/// What the thread is told.
enum Message {
    Do(Box<dyn Job>),
    /// Close the file, and say when it is closed.
    End(oneshot::Sender<()>),
}

/// The way to the thread. It ends when the last of these is gone and its jobs are done.
#[derive(Clone)]
pub(crate) struct Writer {
    jobs: Sender<Message>,
    stuck: Arc<Notify>,
}

impl Writer {
    /// Opens the file, brings its schema up to date, and starts the thread. It also says whether
    /// this tenant is there: whoever asks for that first would open the file once more.
    pub(crate) fn start(
        path: &Path,
        faults: Faults,
        migrates: bool,
        tenant: Option<&str>,
    ) -> Result<(Self, bool), Error> {
        let mut connection = Connection::open(path, true)?;
        if migrates {
            migrate::migrate(&connection)?;
        } else {
            let (found, known) = (migrate::version(&connection)?, migrate::VERSION);
            if found < known {
                return Err(Error::Older { found, known });
            }
            if found > known {
                return Err(Error::Newer { found, known });
            }
        }
        let knows = match tenant {
            Some(tenant) => {
                let question = Statement::outside("tenant", vec![Value::Text(tenant.into())]);
                connection
                    .run(&[question])?
                    .iter()
                    .any(|rows| !rows.is_empty())
            }
            None => false,
        };
        let (sender, jobs) = channel();
        let tx = Tx::new(
            tx::Connection::Sqlite(connection),
            "".into(),
            faults.clone(),
        );
        let stuck = Arc::new(Notify::new());
        let line = Arc::new(Line::of(path, Arc::clone(&stuck)));
        let thread = Thread {
            line,
            tx,
            faults,
            jobs,
        };
        thread::Builder::new()
            .name("onward-writer".to_owned())
            .spawn(move || thread.work())
            .map_err(|why| Error::unavailable(why, "the system starts no more threads"))?;
        let writer = Self {
            jobs: sender,
            stuck,
        };
        Ok((writer, knows))
    }

    /// Gives a job to the thread. One that cannot be given is told so.
    pub(crate) fn send(&self, job: Box<dyn Job>) {
        if let Err(unsent) = self.jobs.send(Message::Do(job)) {
            unsent.0.refuse();
        }
    }

    /// Comes back when this process has stood in the line for too long.
    pub(crate) async fn stuck(&self) {
        self.stuck.notified().await;
    }

    /// Waits until what was given is done and the file is closed, but not for ever: the line may not
    /// move.
    pub(crate) async fn end(&self) {
        let (says, closed) = oneshot::channel();
        if self.jobs.send(Message::End(says)).is_ok() {
            // A thread that is gone has closed it.
            drop(tokio::time::timeout(wait::LONGEST, closed).await);
        }
    }
}

impl Message {
    fn refuse(self) {
        match self {
            Message::Do(job) => job.finish(Err(stopped())),
            Message::End(says) => says.send(()).unwrap_or(()),
        }
    }
}

fn stopped() -> Error {
    Error::unavailable("the writer has stopped", "start `onward` again")
}

struct Thread {
    line: Arc<Line>,
    tx: Tx,
    faults: Faults,
    jobs: Receiver<Message>,
}

type Done = Vec<Box<dyn Job>>;

impl Thread {
    fn work(mut self) {
        let end = loop {
            let end = match self.jobs.recv() {
                Ok(Message::Do(first)) => self.transaction(first),
                Ok(Message::End(says)) => Some(says),
                Err(_) => break None,
            };
            if end.is_some() {
                break end;
            }
        };
        let Self { tx, jobs, .. } = self;
        // The last connection to a file that closes leaves one file behind, not three.
        drop(tx);
        jobs.try_iter().for_each(Message::refuse);
        drop(jobs);
        if let Some(says) = end {
            says.send(()).ok();
        }
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

    /// One transaction with the first job, and with all that came meanwhile. Whoever wants the
    /// thread to end is answered when it does.
    fn transaction(&mut self, first: Box<dyn Job>) -> Option<oneshot::Sender<()>> {
        let mut end = None;
        let line = Arc::clone(&self.line);
        let front = line.stand();
        if let Err(why) = self.control("BEGIN IMMEDIATE") {
            // Who waits behind it would wait as long again: tell them all.
            let mut waiting = vec![first];
            while let Some(job) = self.waiting(&mut end) {
                waiting.push(job);
            }
            tell(waiting, &Err(why));
            return end;
        }
        let mut done = Done::new();
        let mut next = Some(first);
        while let Some(mut job) = next.take() {
            let ran = job.run(&mut self.tx);
            done.push(job);
            if ran == Ran::Spoilt {
                self.one_by_one(done);
                return end;
            }
            if done.len() < GROUP {
                next = self.waiting(&mut end);
            }
        }
        let committed = self.commit();
        // The next process can go on while ours are told.
        drop(front);
        tell(done, &committed);
        end
    }

    /// The next job that waits already, unless the end has come.
    fn waiting(&self, end: &mut Option<oneshot::Sender<()>>) -> Option<Box<dyn Job>> {
        if end.is_some() {
            return None;
        }
        match self.jobs.try_recv().ok()? {
            Message::Do(job) => Some(job),
            Message::End(says) => {
                *end = Some(says);
                None
            }
        }
    }

    /// Takes everything back that a group has written, and does each of its jobs alone.
    fn one_by_one(&mut self, group: Done) {
        self.roll_back();
        let alone = group.len() == 1;
        let mut group = group.into_iter();
        while let Some(mut job) = group.next() {
            if alone {
                // It has said itself why not.
                return job.finish(Ok(()));
            }
            if let Err(why) = self.control("BEGIN IMMEDIATE") {
                return tell(std::iter::once(job).chain(group).collect(), &Err(why));
            }
            let ended = match job.run(&mut self.tx) {
                Ran::Kept => self.commit(),
                Ran::Spoilt => {
                    self.roll_back();
                    Ok(())
                }
            };
            job.finish(ended);
        }
    }

    fn commit(&mut self) -> Result<(), Error> {
        let committed = match self.faults.strike(Point::Commit) {
            Ok(()) => self.control("COMMIT"),
            Err(fault) => Err(fault),
        };
        match committed {
            Ok(()) => self.faults.strike(Point::Committed),
            Err(why) => {
                self.roll_back();
                Err(why)
            }
        }
    }

    fn roll_back(&mut self) {
        // Nothing is left of a transaction that the file has given up by itself.
        drop(self.control("ROLLBACK"));
    }
}

fn tell(jobs: Done, how: &Result<(), Error>) {
    for job in jobs {
        job.finish(how.clone());
    }
}
