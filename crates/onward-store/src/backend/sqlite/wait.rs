//! How to wait for a file that another program holds, one that does not stand in the
//! [line](super::line): in short sleeps of random length, so that nobody is starved, and not for ever.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

/// Nothing waits longer for SQLite's own lock than this.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
/// Nobody waits much longer in the line: work that has not begun by then is given up.
pub(crate) const LONGEST: Duration = Duration::from_secs(5);
/// A nap, in microseconds.
const NAP: std::ops::Range<u64> = 100..400;

thread_local! {
    static SINCE: Cell<Option<Instant>> = const { Cell::new(None) };
    static IMPATIENT: Cell<bool> = const { Cell::new(false) };
    static DICE: Cell<u64> = Cell::new(RandomState::new().hash_one(0u8) | 1);
}

/// From now on this connection waits as this file says.
pub(super) fn patiently(file: &mut rusqlite::Connection) -> rusqlite::Result<()> {
    file.busy_handler(Some(again))
}

/// Whether to try once more; SQLite counts the tries of one wait from 0.
fn again(tries: i32) -> bool {
    let since = match SINCE.get() {
        Some(since) if tries > 0 => since,
        Some(_) | None => {
            let now = Instant::now();
            SINCE.set(Some(now));
            now
        }
    };
    if IMPATIENT.get() || since.elapsed() >= PATIENCE {
        return false;
    }
    nap();
    true
}

/// Does something without waiting for anybody.
pub(super) fn not_at_all<T>(attempt: impl FnOnce() -> T) -> T {
    IMPATIENT.set(true);
    let answer = attempt();
    IMPATIENT.set(false);
    answer
}

/// Tries what SQLite answers with "busy" without asking the handler, such as the switch to WAL.
pub(super) fn until_free<T>(
    mut attempt: impl FnMut() -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    let since = Instant::now();
    loop {
        match attempt() {
            Err(why) if is_busy(&why) && since.elapsed() < PATIENCE => nap(),
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

fn nap() {
    // A xorshift generator: this is about not waking in step, not about secrets.
    let mut dice = DICE.get();
    dice ^= dice << 13;
    dice ^= dice >> 7;
    dice ^= dice << 17;
    DICE.set(dice);
    let span = NAP.start + dice % (NAP.end - NAP.start);
    std::thread::sleep(Duration::from_micros(span));
}
