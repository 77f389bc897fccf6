//! Check of the clock, which stall detection and timeouts depend on.

use std::time::Duration;

use onward_core::Timestamp;
use onward_engine::Engine;

use super::Check;
use crate::output::format;

const CLOCK: &str = "clock";
/// A difference that is reported.
const NOTABLE: Duration = Duration::from_secs(2);
/// A difference that fails the check.
const MAX_DIFFERENCE: Duration = Duration::from_secs(60);
const SYNCHRONIZED: &str = "synchronized";

/// Compares the local clock with the clock of the database server, if there is one, and with the
/// latest stored timestamp.
pub(super) fn check(engine: &Engine, newest: Option<Timestamp>) -> Check {
    compare(engine.clock_offset_ms(), engine.now(), newest)
}

fn compare(ahead: i64, now: Timestamp, newest: Option<Timestamp>) -> Check {
    let hint = "synchronize the clock of this machine, for example with NTP";
    let difference = Duration::from_millis(ahead.unsigned_abs());
    let direction = if ahead > 0 { "behind" } else { "ahead of" };
    let message = format!(
        "the local clock is {} {direction} the database's clock",
        format::duration(difference)
    );
    if difference >= MAX_DIFFERENCE {
        return Check::failed(CLOCK, message, hint);
    }
    let future = newest.map(|newest| newest.since(now)).unwrap_or_default();
    if future >= MAX_DIFFERENCE {
        let message = format!(
            "the latest stored timestamp is {} in the future; stalls are not detected until then",
            format::duration(future)
        );
        return Check::failed(CLOCK, message, hint);
    }
    if difference >= NOTABLE {
        Check::passed(CLOCK, format!("{message}; the database's clock is used"))
    } else {
        Check::passed(CLOCK, SYNCHRONIZED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(ahead: i64, newest: Option<i64>) -> (bool, String) {
        let now = Timestamp::from_millis(1_000_000);
        let check = compare(ahead, now, newest.map(Timestamp::from_millis));
        assert_eq!(check.ok, check.hint.is_none());
        (check.ok, check.message)
    }

    #[test]
    fn a_small_difference_is_not_reported() {
        for newest in [None, Some(0), Some(1_000_000), Some(1_059_999)] {
            assert_eq!(run(1_999, newest), (true, SYNCHRONIZED.to_owned()));
        }
    }

    #[test]
    fn a_difference_of_seconds_is_reported_and_one_of_minutes_fails() {
        let (ok, message) = run(5_000, None);
        assert!(ok && message != SYNCHRONIZED, "{message}");
        let (ok, message) = run(-90_000, None);
        assert!(!ok, "{message}");
    }

    #[test]
    fn a_stored_timestamp_in_the_future_fails() {
        let (ok, message) = run(0, Some(1_060_000));
        assert!(!ok, "{message}");
    }
}
