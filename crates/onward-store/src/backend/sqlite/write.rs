//! Who writes to the file: a thread, which takes whatever has come meanwhile into one transaction, so
//! that all are answered after one sync. A short job that finds nobody else there is done by whoever
//! brings it: to wake a thread and be woken by it takes about as long as the work. A process that asks
//! once and ends has no such thread, and does all of it where it asks.

use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use tokio::sync::{Notify, oneshot};

use super::pen::{Job, More, Pen};
use super::{Connection, migrate, wait};
use crate::error::Error;
use crate::fault::Faults;
use crate::tx::Statement;
use crate::value::Value;

/// So many jobs after several have met are given to the thread: they are likely to meet again, and
/// share a sync then.
const CROWD: u32 = 32;

/// What the thread is told.
enum Message {
    Do(Box<dyn Job>),
    /// Close the file, and say when it is closed.
    End(oneshot::Sender<()>),
}

/// How long a job takes, as far as that is known before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// A few rows.
    Short,
    /// Anything.
    Any,
}

/// How to begin to write.
pub(crate) struct Manner<'a> {
    pub(crate) faults: Faults,
    /// Whether an older schema is brought up to date; else it is refused.
    pub(crate) migrates: bool,
    /// Whether whoever asks does the work.
    pub(crate) in_place: bool,
    /// A tenant to look for on the way.
    pub(crate) tenant: Option<&'a str>,
}

/// The way to the file. The thread ends when the last of these is gone and its jobs are done.
#[derive(Clone)]
pub(crate) struct Writer {
    /// To the thread, where there is one.
    jobs: Option<Sender<Message>>,
    shared: Arc<Shared>,
    stuck: Arc<Notify>,
}

/// What those who bring jobs share with the thread.
struct Shared {
    /// None when the file is closed.
    pen: Mutex<Option<Pen>>,
    /// How many messages the thread has not taken yet.
    queued: AtomicUsize,
    /// How many of the next jobs are given to the thread in any case.
    crowded: AtomicU32,
}

impl Writer {
    /// Opens the file, brings its schema up to date, and starts the thread. It also says whether
    /// this tenant is there: whoever asks for that first would open the file once more.
    pub(crate) fn start(path: &Path, manner: Manner<'_>) -> Result<(Self, bool), Error> {
        let Manner {
            faults,
            migrates,
            in_place,
            tenant,
        } = manner;
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
        let stuck = Arc::new(Notify::new());
        let pen = Pen::new(connection, path, faults, Arc::clone(&stuck))?;
        let shared = Arc::new(Shared {
            pen: Mutex::new(Some(pen)),
            queued: AtomicUsize::new(0),
            crowded: AtomicU32::new(0),
        });
        let jobs = match in_place {
            true => None,
            false => Some(Thread::start(&shared)?),
        };
        let writer = Self {
            jobs,
            shared,
            stuck,
        };
        Ok((writer, knows))
    }

    /// Has a job done. One that cannot be is told so.
    pub(crate) fn send(&self, job: Box<dyn Job>, work: Work) {
        let Some(jobs) = &self.jobs else {
            return self.shared.transaction(job, &mut || None);
        };
        let job = match work {
            Work::Short => self.shared.at_once(job),
            Work::Any => Some(job),
        };
        if let Some(job) = job {
            self.queue(jobs, Message::Do(job));
        }
    }

    fn queue(&self, jobs: &Sender<Message>, message: Message) {
        self.shared.queued.fetch_add(1, Ordering::SeqCst);
        if let Err(unsent) = jobs.send(message) {
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
        let Some(jobs) = &self.jobs else {
            return self.shared.close();
        };
        let (says, closed) = oneshot::channel();
        self.queue(jobs, Message::End(says));
        // A thread that is gone has closed it.
        drop(tokio::time::timeout(wait::LONGEST, closed).await);
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

impl Shared {
    /// One transaction with the first job, and with all that came meanwhile.
    fn transaction(&self, first: Box<dyn Job>, more: More<'_>) {
        // Whoever panicked while writing has left a transaction open: nothing more can be written.
        let done = match self.pen.lock() {
            Ok(mut pen) => match &mut *pen {
                Some(pen) => pen.transaction(first, more),
                None => return first.finish(Err(stopped())),
            },
            Err(_) => return first.finish(Err(stopped())),
        };
        if done > 1 {
            self.crowded.store(CROWD, Ordering::Relaxed);
        }
    }

    /// Closes the file; what was left open on it is taken back. The last connection to a file that closes
    /// leaves one file behind, not three.
    fn close(&self) {
        let pen = self.pen.lock();
        drop(pen.unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Does a job here and now where nobody else writes or waits; otherwise it is given back.
    fn at_once(&self, job: Box<dyn Job>) -> Option<Box<dyn Job>> {
        let one_less = |left: u32| left.checked_sub(1);
        let crowded = &self.crowded;
        // A count that is off by one costs somebody a way through the thread.
        let crowded = crowded.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
        if crowded.is_ok() || self.queued.load(Ordering::SeqCst) > 0 {
            return Some(job);
        }
        let Ok(mut pen) = self.pen.try_lock() else {
            return Some(job);
        };
        let job = match &mut *pen {
            Some(pen) => pen.at_once(job),
            None => Some(job),
        };
        drop(pen);
        if self.queued.load(Ordering::SeqCst) > 0 {
            self.crowded.store(CROWD, Ordering::Relaxed);
        }
        job
    }
}

struct Thread {
    jobs: Receiver<Message>,
    shared: Arc<Shared>,
}

impl Thread {
    /// Starts it; the way to it.
    fn start(shared: &Arc<Shared>) -> Result<Sender<Message>, Error> {
        let (sender, jobs) = channel();
        let shared = Arc::clone(shared);
        let thread = Self { jobs, shared };
        thread::Builder::new()
            .name("onward-writer".to_owned())
            .spawn(move || thread.work())
            .map_err(|why| Error::unavailable(why, "the system starts no more threads"))?;
        Ok(sender)
    }

    fn work(self) {
        let mut end = None;
        while end.is_none()
            && let Ok(message) = self.jobs.recv()
        {
            self.shared.queued.fetch_sub(1, Ordering::SeqCst);
            match message {
                Message::Do(first) => {
                    self.shared
                        .transaction(first, &mut || self.waiting(&mut end));
                }
                Message::End(says) => end = Some(says),
            }
        }
        self.shared.close();
        self.jobs.try_iter().for_each(Message::refuse);
        drop(self.jobs);
        if let Some(says) = end {
            says.send(()).ok();
        }
    }

    /// The next job that waits already, unless the end has come.
    fn waiting(&self, end: &mut Option<oneshot::Sender<()>>) -> Option<Box<dyn Job>> {
        if end.is_some() {
            return None;
        }
        let message = self.jobs.try_recv().ok()?;
        self.shared.queued.fetch_sub(1, Ordering::SeqCst);
        match message {
            Message::Do(job) => Some(job),
            Message::End(says) => {
                *end = Some(says);
                None
            }
        }
    }
}
