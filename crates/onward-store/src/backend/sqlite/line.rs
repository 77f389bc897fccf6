//! The line in which the processes that want to write to one file stand.
//!
//! SQLite lets whoever waits for its lock find out by trying: the lock lies idle until somebody wakes
//! up, and whoever wakes up too early has worked for nothing. So those who want to write stand in a
//! line of the system's own, a lock on an empty file beside the database, in which each is woken when
//! it is next. It is a courtesy: SQLite's own lock still decides, and other programs need not know.
//!
//! A lock has no time limit, so where somebody has to wait a second thread looks after them. It is there
//! only while processes meet in the line.

use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::wait::LONGEST;

/// How often the second thread looks, and how long it stays when nobody had to wait.
const LOOK: Duration = Duration::from_millis(500);
const STAY: u32 = 60;

/// The line of a database.
pub(super) struct Line {
    name: OsString,
    /// Made when it is first needed: whoever only reads leaves nothing behind. Where there can be no
    /// such file, nobody stands in line.
    file: OnceLock<Option<File>>,
    waiter: Arc<Waiter>,
}

/// What is known of whoever waits.
struct Waiter {
    begun: Instant,
    /// Since when, in milliseconds after the beginning and 1; 0 where nobody waits.
    since: AtomicU64,
    /// Whether somebody had to wait since the last look.
    met: AtomicBool,
    /// Whether the second thread is there.
    watched: AtomicBool,
    /// Wakes all who wait for their work to be done.
    stuck: Arc<Notify>,
}

impl Line {
    /// Of a database. Whoever wants to know that the line does not move is told by `stuck`.
    pub(super) fn of(database: &Path, stuck: Arc<Notify>) -> Self {
        let mut name = database.as_os_str().to_owned();
        name.push("-line");
        Self {
            name,
            file: OnceLock::new(),
            waiter: Arc::new(Waiter {
                begun: Instant::now(),
                since: AtomicU64::new(0),
                met: AtomicBool::new(false),
                watched: AtomicBool::new(false),
                stuck,
            }),
        }
    }

    /// The front, where nobody stands in line. Where there is no line, everybody is at the front.
    pub(super) fn front(&self) -> Option<Front<'_>> {
        let Some(file) = self.file() else {
            return Some(Front(None));
        };
        match file.try_lock() {
            Ok(()) => Some(Front(Some(file))),
            Err(TryLockError::WouldBlock) => None,
            Err(TryLockError::Error(_)) => Some(Front(None)),
        }
    }

    /// Waits until this process is at the front; it is until the answer is dropped.
    pub(super) fn stand(&self) -> Front<'_> {
        if let Some(front) = self.front() {
            return front;
        }
        self.waiter.enter();
        let locked = self.file().filter(|file| file.lock().is_ok());
        self.waiter.since.store(0, Ordering::SeqCst);
        Front(locked)
    }

    fn file(&self) -> Option<&File> {
        let file = self.file.get_or_init(|| {
            let mut options = File::options();
            options.create(true).append(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            options.open(&self.name).ok()
        });
        file.as_ref()
    }
}

impl Waiter {
    fn enter(self: &Arc<Self>) {
        let now = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX - 1);
        self.since.store(now + 1, Ordering::SeqCst);
        self.met.store(true, Ordering::SeqCst);
        if self.watched.swap(true, Ordering::SeqCst) {
            return;
        }
        let waiter = Arc::clone(self);
        let watch = thread::Builder::new().name("onward-line".to_owned());
        if watch.spawn(move || waiter.watch()).is_err() {
            // The next one who has to wait tries again.
            self.watched.store(false, Ordering::SeqCst);
        }
    }

    /// Tells whoever waits that the line does not move, until nobody has had to wait for a while.
    fn watch(&self) {
        loop {
            self.look_until_alone();
            self.watched.store(false, Ordering::SeqCst);
            // Somebody may have come in the last moment, and seen that this thread is there.
            if !self.is_waiting() || self.watched.swap(true, Ordering::SeqCst) {
                return;
            }
        }
    }

    fn look_until_alone(&self) {
        let mut alone = 0;
        while alone < STAY {
            thread::sleep(LOOK);
            alone = match self.met.swap(false, Ordering::SeqCst) || self.is_waiting() {
                true => 0,
                false => alone + 1,
            };
            if self.waited() >= LONGEST {
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

/// The front of the line.
pub(super) struct Front<'l>(Option<&'l File>);

impl Drop for Front<'_> {
    fn drop(&mut self) {
        if let Some(file) = self.0 {
            // A lock that cannot be given back goes with the process.
            drop(file.unlock());
        }
    }
}
