//! Waiting for SQLite's own lock, which a program outside the write queue ([`write_queue`](super::write_queue))
//! may hold: short sleeps of random length, so that no process starves, with a timeout.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

/// Maximum wait for SQLite's own lock.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum wait in the write queue: a job that has not started by then fails.
pub(crate) const QUEUE_TIMEOUT: Duration = Duration::from_secs(5);
/// Duration of a sleep, in microseconds.
const SLEEP: std::ops::Range<u64> = 100..400;

thread_local! {
    static SINCE: Cell<Option<Instant>> = const { Cell::new(None) };
    static NO_WAIT: Cell<bool> = const { Cell::new(false) };
    static RNG: Cell<u64> = Cell::new(RandomState::new().hash_one(0u8) | 1);
}

/// Installs the busy handler on a connection.
pub(super) fn install(file: &mut rusqlite::Connection) -> rusqlite::Result<()> {
    file.busy_handler(Some(retry))
}

/// Busy handler: whether to retry. SQLite counts the tries of one wait from 0.
fn retry(tries: i32) -> bool {
    let since = match SINCE.get() {
        Some(since) if tries > 0 => since,
        Some(_) | None => {
            let now = Instant::now();
            SINCE.set(Some(now));
            now
        }
    };
    if NO_WAIT.get() || since.elapsed() >= BUSY_TIMEOUT {
        return false;
    }
    sleep_briefly();
    true
}

/// Runs `attempt` without waiting for the lock.
pub(super) fn without_waiting<T>(attempt: impl FnOnce() -> T) -> T {
    NO_WAIT.set(true);
    let answer = attempt();
    NO_WAIT.set(false);
    answer
}

/// Retries an operation that returns `SQLITE_BUSY` without calling the handler, such as the switch
/// to WAL mode.
pub(super) fn until_free<T>(
    mut attempt: impl FnMut() -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    let since = Instant::now();
    loop {
        match attempt() {
            Err(why) if is_busy(&why) && since.elapsed() < BUSY_TIMEOUT => sleep_briefly(),
            answer => return answer,
        }
    }
}

fn is_busy(why: &rusqlite::Error) -> bool {
    matches!(
        why.sqlite_error_code(),
        Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked)
    )
}

fn sleep_briefly() {
    // A xorshift generator: it only keeps processes from waking up in step.
    let mut random = RNG.get();
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    RNG.set(random);
    let span = SLEEP.start + random % (SLEEP.end - SLEEP.start);
    std::thread::sleep(Duration::from_micros(span));
}
