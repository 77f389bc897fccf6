//! Write queue between processes that write to one SQLite file.
//!
//! SQLite makes waiting processes poll for its lock: the lock is idle until one of them wakes up,
//! and waking up too early is wasted work. So a writer first locks an empty file next to the
//! database. The operating system queues the writers and wakes each one when it is next. The queue
//! is advisory: SQLite's own lock still protects the file, and other programs need not use the
//! queue.
//!
//! A file lock has no timeout, so a monitor thread runs while processes compete for the file.
//!
//! Tests: `onward-engine/tests/outages/locked_file.rs` for a blocked queue;
//! `onward-engine/tests/race` for several processes.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::busy::QUEUE_TIMEOUT;
use super::lock_file;
use super::paths::companion;

/// The lock file of the queue is the database's path with this suffix.
pub(super) const SUFFIX: &str = "-queue";

/// Interval of the monitor thread, and the number of intervals without a wait after which it ends.
const INTERVAL: Duration = Duration::from_millis(500);
const IDLE_INTERVALS: u32 = 60;

/// Write queue between the processes that use a database.
pub(super) struct WriteQueue {
    path: PathBuf,
    /// Created when first needed, so that a process that only reads creates no file. `None`
    /// if it cannot be created; then there is no queue.
    file: OnceLock<Option<File>>,
    waiter: Arc<Waiter>,
}

/// State of this process in the queue.
struct Waiter {
    begun: Instant,
    /// Start of the current wait, in milliseconds since `begun` plus 1; 0 if the process does not
    /// wait.
    since: AtomicU64,
    /// Whether the process had to wait since the last check.
    contended: AtomicBool,
    /// Whether the monitor thread is running.
    monitored: AtomicBool,
    /// Wakes all callers that wait for their jobs.
    stuck: Arc<Notify>,
}

impl WriteQueue {
    /// The queue of a database. `stuck` is notified when the queue does not advance.
    pub(super) fn new(database: &Path, stuck: Arc<Notify>) -> Self {
        Self {
            path: companion(database, SUFFIX),
            file: OnceLock::new(),
            waiter: Arc::new(Waiter {
                begun: Instant::now(),
                since: AtomicU64::new(0),
                contended: AtomicBool::new(false),
                monitored: AtomicBool::new(false),
                stuck,
            }),
        }
    }

    /// Takes the lock if no other process holds it. Always succeeds if there is no queue.
    pub(super) fn try_acquire(&self) -> Option<QueueGuard<'_>> {
        let Some(file) = self.file() else {
            return Some(QueueGuard(None));
        };
        match file.try_lock() {
            Ok(()) => Some(QueueGuard(Some(file))),
            Err(TryLockError::WouldBlock) => None,
            Err(TryLockError::Error(_)) => Some(QueueGuard(None)),
        }
    }

    /// Waits for the lock, which is held until the guard is dropped.
    pub(super) fn acquire(&self) -> QueueGuard<'_> {
        if let Some(guard) = self.try_acquire() {
            return guard;
        }
        self.waiter.enter();
        let locked = self.file().filter(|file| file.lock().is_ok());
        self.waiter.since.store(0, Ordering::SeqCst);
        QueueGuard(locked)
    }

    fn file(&self) -> Option<&File> {
        let file = self.file.get_or_init(|| lock_file::open(&self.path).ok());
        file.as_ref()
    }
}

impl Waiter {
    /// Records the start of a wait, and starts the monitor thread if it is not running.
    fn enter(self: &Arc<Self>) {
        let now = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX - 1);
        self.since.store(now + 1, Ordering::SeqCst);
        self.contended.store(true, Ordering::SeqCst);
        if self.monitored.swap(true, Ordering::SeqCst) {
            return;
        }
        let waiter = Arc::clone(self);
        let monitor = thread::Builder::new().name("onward-queue".to_owned());
        if monitor.spawn(move || waiter.monitor()).is_err() {
            // The next wait tries again.
            self.monitored.store(false, Ordering::SeqCst);
        }
    }

    /// Notifies callers while the queue does not advance; ends after a while without a wait.
    fn monitor(&self) {
        loop {
            self.monitor_until_idle();
            self.monitored.store(false, Ordering::SeqCst);
            // A wait may have begun just now, when this thread still counted as running.
            if !self.is_waiting() || self.monitored.swap(true, Ordering::SeqCst) {
                return;
            }
        }
    }

    /// Checks the wait in every interval, until there was none for `IDLE_INTERVALS` intervals.
    fn monitor_until_idle(&self) {
        let mut idle = 0;
        while idle < IDLE_INTERVALS {
            thread::sleep(INTERVAL);
            idle = if self.contended.swap(false, Ordering::SeqCst) || self.is_waiting() {
                0
            } else {
                idle + 1
            };
            if self.waited() >= QUEUE_TIMEOUT {
                self.stuck.notify_waiters();
            }
        }
    }

    fn is_waiting(&self) -> bool {
        self.since.load(Ordering::SeqCst) > 0
    }

    fn waited(&self) -> Duration {
        match self.since.load(Ordering::SeqCst).checked_sub(1) {
            Some(since) => self
                .begun
                .elapsed()
                .saturating_sub(Duration::from_millis(since)),
            None => Duration::ZERO,
        }
    }
}

/// Guard of the write queue.
pub(super) struct QueueGuard<'q>(Option<&'q File>);

impl Drop for QueueGuard<'_> {
    fn drop(&mut self) {
        if let Some(file) = self.0 {
            // A lock that cannot be released ends with the process.
            drop(file.unlock());
        }
    }
}
