//! Whether the clock can be gone by: stalls and calls are judged by it.

use std::time::Duration;

use onward_core::Timestamp;
use onward_engine::Engine;

use super::Check;
use crate::output::words;

const CLOCK: &str = "clock";
/// A difference that is worth a word.
const NOTABLE: Duration = Duration::from_secs(2);
/// A difference that is a fault.
const WRONG: Duration = Duration::from_secs(60);

/// Compares this machine's clock with the database's, where it has one, and with the newest instant
/// that is stored: time does not go back.
pub(super) fn look(engine: &Engine, newest: Option<Timestamp>) -> Check {
    judge(engine.ahead(), engine.now(), newest)
}

fn judge(ahead: i64, now: Timestamp, newest: Option<Timestamp>) -> Check {
    let hint = "set this machine's clock, best by NTP";
    let difference = Duration::from_millis(ahead.unsigned_abs());
    let way = if ahead > 0 { "behind" } else { "ahead of" };
    let told = format!(
        "this machine is {} {way} the database's clock",
        words::span(difference)
    );
    if difference >= WRONG {
        return Check::fault(CLOCK, told, hint);
    }
    let future = newest.map(|newest| newest.since(now)).unwrap_or_default();
    if future >= WRONG {
        let message = format!(
            "something is stored that happened in {}: no stall is seen until then",
            words::span(future)
        );
        return Check::fault(CLOCK, message, hint);
    }
    match difference >= NOTABLE {
        true => Check::good(CLOCK, format!("{told}, which counts")),
        false => Check::good(CLOCK, "right, as far as can be told"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(ahead: i64, newest: Option<i64>) -> (bool, String) {
        let now = Timestamp::from_millis(1_000_000);
        let check = judge(ahead, now, newest.map(Timestamp::from_millis));
        assert_eq!(check.ok, check.hint.is_none());
        (check.ok, check.message)
    }

    #[test]
    fn a_clock_that_agrees_is_right() {
        for newest in [None, Some(0), Some(1_000_000), Some(1_059_999)] {
            assert_eq!(
                seen(1_999, newest),
                (true, "right, as far as can be told".to_owned())
            );
        }
    }

    #[test]
    fn a_clock_that_differs_is_named_with_its_way() {
        let (ok, message) = seen(5_000, None);
        assert!(
            ok && message.contains("5 s behind the database's clock"),
            "{message}"
        );
        let (ok, message) = seen(-90_000, None);
        assert!(
            !ok && message.contains("ahead of the database's clock"),
            "{message}"
        );
    }

    #[test]
    fn time_that_went_back_is_a_fault() {
        let (ok, message) = seen(0, Some(1_060_000));
        assert!(!ok && message.contains("happened in"), "{message}");
    }
}
