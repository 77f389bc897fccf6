//! The writer of an SQLite file: a thread that runs all queued jobs in one transaction, so that
//! they share one sync.
//!
//! A short job that finds no other job runs on the caller's thread, because waking the thread and
//! being woken by it takes about as long as the job. A short-lived process has no writer thread,
//! and runs all its jobs on the calling thread.
//!
//! When the file is lost (`file_watch`), the next job opens the file that is now at the path. After a
//! failed sync it also moves the content of the log to the database before it continues.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use tokio::sync::{Notify, oneshot};

use super::file::File;
use super::file_watch::{FileWatch, Loss, OpenFile, missing};
use super::group_commit::{GroupCommit, More};
use super::paths::{self, companion, resolve};
use super::queued_job::{QueuedJob, Start};
use super::reader_pool::ReaderPool;
use super::{busy, error, lock_file, migrate, write_queue};
use crate::backend::Job;
use crate::error::Error;
use crate::fault::Faults;
use crate::statement::Statement;
use crate::sync::SyncMode;

/// After several jobs shared a transaction, this many jobs go to the thread: they are likely to
/// share a sync again.
const QUEUED_AFTER_GROUP: u32 = 32;

/// Message to the writer thread.
enum Message {
    Do(QueuedJob),
    /// Close the file, and confirm.
    End(oneshot::Sender<()>),
}

/// Expected duration of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// A few rows.
    Short,
    /// Unknown.
    Any,
}

/// Options of the writer.
pub(crate) struct Settings {
    pub(crate) faults: Faults,
    pub(crate) sync: SyncMode,
    /// Whether to migrate an older schema; otherwise it is rejected.
    pub(crate) migrates: bool,
    /// Whether jobs run on the calling thread.
    pub(crate) in_place: bool,
    /// A query to run while opening the file.
    pub(crate) probe: Option<Statement>,
}

/// Handle to the writer. The thread ends when the last handle is dropped and its jobs are done.
#[derive(Clone)]
pub(crate) struct Writer {
    /// Channel to the thread, if there is one.
    jobs: Option<Sender<Message>>,
    shared: Arc<Shared>,
}

/// State shared by the callers and the thread.
struct Shared {
    commits: Mutex<Commits>,
    watch: Arc<FileWatch>,
    pool: ReaderPool,
    /// How to open the file again.
    migrates: bool,
    sync: SyncMode,
    faults: Faults,
    stuck: Arc<Notify>,
    /// Number of messages that the thread has not received.
    queued: AtomicUsize,
    /// Number of upcoming jobs that go to the thread in any case.
    forced_to_thread: AtomicU32,
}

/// The open file of the writer.
enum Commits {
    Open(GroupCommit),
    /// The file is lost.
    Lost,
    Closed,
}

/// Opens a file for writing, and checks or migrates its schema.
fn open(path: PathBuf, exists: bool, migrates: bool) -> Result<(File, OpenFile), Error> {
    let queue = lock_file::check(&companion(&path, write_queue::SUFFIX));
    queue.map_err(|why| error::inaccessible(why, &path))?;
    let mut open = OpenFile::open(path)?;
    let file = File::open(&open.path)?;
    migrate::check_application(&file, &open.path, exists)?;
    file.prepare_to_write(&open.path)?;
    if migrates {
        migrate::migrate(&file, &open.path)?;
    } else {
        let (found, known) = (migrate::version(&file)?, migrate::VERSION);
        if found < known {
            return Err(Error::Older { found, known });
        }
        if found > known {
            return Err(Error::Newer { found, known });
        }
    }
    open.opened();
    Ok((file, open))
}

impl Writer {
    /// Opens the file, migrates its schema, and starts the thread. Also returns whether
    /// the probe found a row, which would otherwise need another connection.
    pub(crate) fn start(path: &Path, settings: Settings) -> Result<(Self, bool), Error> {
        let Settings {
            faults,
            sync,
            migrates,
            in_place,
            probe,
        } = settings;
        let resolved = resolve(path, true)?;
        paths::create(&resolved)?;
        let (mut file, open) = open(resolved, false, migrates)?;
        let watch = Arc::new(FileWatch::new(path));
        let resolved = open.path.clone();
        watch.watch(open);
        watch.check()?;
        let found = match &probe {
            Some(probe) => {
                let rows = file.run(std::slice::from_ref(probe))?;
                rows.iter().any(|rows| !rows.is_empty())
            }
            None => false,
        };
        let stuck = Arc::new(Notify::new());
        let commits = GroupCommit::new(
            file,
            &resolved,
            Arc::clone(&watch),
            sync,
            faults.clone(),
            Arc::clone(&stuck),
        )?;
        let shared = Arc::new(Shared {
            commits: Mutex::new(Commits::Open(commits)),
            watch,
            pool: ReaderPool::default(),
            migrates,
            sync,
            faults,
            stuck,
            queued: AtomicUsize::new(0),
            forced_to_thread: AtomicU32::new(0),
        });
        let jobs = if in_place {
            None
        } else {
            Some(Thread::start(&shared)?)
        };
        Ok((Self { jobs, shared }, found))
    }

    /// The watch of the file, which the readers share.
    pub(crate) fn watch(&self) -> &Arc<FileWatch> {
        &self.shared.watch
    }

    /// The idle read connections of the file.
    pub(super) fn pool(&self) -> &ReaderPool {
        &self.shared.pool
    }

    /// Opens the file again if it is lost.
    pub(super) fn reopen(&self) -> Result<(), Error> {
        match self.shared.commits.lock() {
            Ok(mut commits) => self.shared.open_commits(&mut commits).map(|_| ()),
            Err(_) => Err(stopped()),
        }
    }

    /// Runs a job. A job that cannot run gets an error.
    ///
    /// The returned future withdraws the job if it has not started and the write queue is stuck
    /// (another process writes for too long, or is suspended). Then it returns the error for the
    /// caller, and the job never runs.
    pub(crate) fn send(&self, job: Box<dyn Job>, work: Work) -> impl Future<Output = Error> {
        let start = Start::default();
        self.start_job(QueuedJob::new(job, start.clone()), work);
        let shared = &self.shared;
        async move {
            // No timer per call: setting one wakes a thread.
            shared.stuck.notified().await;
            if start.take() {
                error::locked()
            } else {
                std::future::pending().await
            }
        }
    }

    fn start_job(&self, job: QueuedJob, work: Work) {
        let Some(jobs) = &self.jobs else {
            return self.shared.transaction(job, &mut || None);
        };
        let job = match work {
            Work::Short => self.shared.try_alone(job),
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

    /// Copies the write-ahead log into the database and empties it, unless another process uses it.
    pub(crate) fn checkpoint(&self) -> Result<(), Error> {
        match self.shared.commits.lock() {
            Ok(commits) => match &*commits {
                Commits::Open(commits) => commits.checkpoint(),
                Commits::Lost | Commits::Closed => Ok(()),
            },
            Err(_) => Err(stopped()),
        }
    }

    /// Waits until the queued jobs are done and the file is closed, with a timeout, because the
    /// write queue may be stuck.
    pub(crate) async fn end(&self) {
        let Some(jobs) = &self.jobs else {
            return self.shared.close();
        };
        let (confirm, closed) = oneshot::channel();
        self.queue(jobs, Message::End(confirm));
        // A thread that has ended has closed the file.
        drop(tokio::time::timeout(busy::QUEUE_TIMEOUT, closed).await);
    }
}

impl Message {
    fn refuse(self) {
        match self {
            Message::Do(job) => job.finish(Err(stopped())),
            Message::End(confirm) => confirm.send(()).unwrap_or(()),
        }
    }
}

fn stopped() -> Error {
    Error::unavailable("the writer has stopped", "restart `onward`")
}

impl Shared {
    /// Runs the first job and all queued ones in one transaction.
    fn transaction(&self, first: QueuedJob, more: More<'_>) {
        // A panic while writing leaves a transaction open: nothing more can be written.
        let done = match self.commits.lock() {
            Ok(mut commits) => match self.open_commits(&mut commits) {
                Ok(commits) => commits.transaction(first, more),
                Err(why) => {
                    // The queued jobs would wait as long again, so all of them fail.
                    let waiting = std::iter::once(first).chain(std::iter::from_fn(more));
                    return waiting.for_each(|job| job.finish(Err(why.clone())));
                }
            },
            Err(_) => return first.finish(Err(stopped())),
        };
        if done > 1 {
            self.forced_to_thread
                .store(QUEUED_AFTER_GROUP, Ordering::Relaxed);
        }
    }

    /// The open file. If it is lost, opens the one that is at the path, but creates none.
    fn open_commits<'c>(&self, commits: &'c mut Commits) -> Result<&'c mut GroupCommit, Error> {
        if matches!(commits, Commits::Open(_)) && self.watch.is_lost() {
            // SQLite shares its view of the log between the connections of a process.
            self.pool.clear();
            *commits = Commits::Lost;
        }
        if matches!(commits, Commits::Lost) {
            let given = self.watch.given();
            if !given.exists() {
                return Err(missing(given));
            }
            let (file, open) = open(resolve(given, false)?, true, self.migrates)?;
            let opened = GroupCommit::new(
                file,
                &open.path,
                Arc::clone(&self.watch),
                self.sync,
                self.faults.clone(),
                Arc::clone(&self.stuck),
            )?;
            if self.watch.loss() == Some(Loss::Unsynced) {
                opened.recover()?;
            }
            self.watch.watch(open);
            *commits = Commits::Open(opened);
        }
        match commits {
            Commits::Open(commits) => Ok(commits),
            Commits::Lost | Commits::Closed => Err(stopped()),
        }
    }

    /// Closes the file, which rolls back an open transaction. The last connection of all processes
    /// removes the write-ahead log when it closes.
    fn close(&self) {
        let commits = self.commits.lock();
        *commits.unwrap_or_else(PoisonError::into_inner) = Commits::Closed;
    }

    /// Runs a job on the calling thread if no other job runs or is queued; otherwise returns it.
    fn try_alone(&self, job: QueuedJob) -> Option<QueuedJob> {
        let one_less = |left: u32| left.checked_sub(1);
        // If the count is off by one, the job runs on the thread, which is only slower.
        let forced = &self.forced_to_thread;
        let forced = forced.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
        if forced.is_ok() || self.queued.load(Ordering::SeqCst) > 0 {
            return Some(job);
        }
        let Ok(mut commits) = self.commits.try_lock() else {
            return Some(job);
        };
        let job = match &mut *commits {
            Commits::Open(commits) if !self.watch.is_lost() => commits.try_alone(job),
            // The thread opens the file, which may take long.
            Commits::Open(_) | Commits::Lost | Commits::Closed => Some(job),
        };
        drop(commits);
        if self.queued.load(Ordering::SeqCst) > 0 {
            self.forced_to_thread
                .store(QUEUED_AFTER_GROUP, Ordering::Relaxed);
        }
        job
    }
}

/// The writer thread.
struct Thread {
    jobs: Receiver<Message>,
    shared: Arc<Shared>,
}

impl Thread {
    /// Starts the thread; returns the channel to it.
    fn start(shared: &Arc<Shared>) -> Result<Sender<Message>, Error> {
        let (sender, jobs) = channel();
        let shared = Arc::clone(shared);
        let thread = Self { jobs, shared };
        thread::Builder::new()
            .name("onward-writer".to_owned())
            .spawn(move || thread.work())
            .map_err(|why| {
                Error::unavailable(why, "check the thread limit of the system (`ulimit -u`)")
            })?;
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
                Message::End(confirm) => end = Some(confirm),
            }
        }
        self.shared.close();
        self.jobs.try_iter().for_each(Message::refuse);
        drop(self.jobs);
        if let Some(confirm) = end {
            confirm.send(()).ok();
        }
    }

    /// The next queued job, unless the end was requested.
    fn waiting(&self, end: &mut Option<oneshot::Sender<()>>) -> Option<QueuedJob> {
        if end.is_some() {
            return None;
        }
        let message = self.jobs.try_recv().ok()?;
        self.shared.queued.fetch_sub(1, Ordering::SeqCst);
        match message {
            Message::Do(job) => Some(job),
            Message::End(confirm) => {
                *end = Some(confirm);
                None
            }
        }
    }
}
