//! Sleep detection for the monitor.
//!
//! After a machine or container resumes, every step appears inactive for hours, although its agent
//! was suspended as well. The monitor therefore waits one grace period after a sleep before it acts
//! on anything that was inactive *before* the sleep ended. Later inactivity is judged as usual.
//!
//! Pure: the caller passes the actual and the planned wake-up times.

use std::time::Duration;

use crate::time::Timestamp;

/// The tolerance for late wake-ups, and the grace period after a sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatcherPolicy {
    /// A wake-up that is later than planned by more than this counts as a sleep.
    pub tolerance: Duration,
    /// The time for suspended agents to show activity after a sleep.
    pub grace: Duration,
}

impl Default for WatcherPolicy {
    fn default() -> Self {
        Self {
            tolerance: Duration::from_secs(30),
            grace: Duration::from_secs(60),
        }
    }
}

/// The state of the monitor between two rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watcher {
    policy: WatcherPolicy,
    due_at: Timestamp,
    woke_at: Timestamp,
    /// The time of the last round.
    seen_at: Timestamp,
    must_reschedule: bool,
}

impl Watcher {
    /// Starts monitoring. Counts as the end of a sleep, because nothing was monitored before.
    pub fn begin(policy: WatcherPolicy, now: Timestamp) -> Self {
        Self {
            policy,
            due_at: now,
            woke_at: now,
            seen_at: now,
            must_reschedule: true,
        }
    }

    /// Starts a round, or continues it after a part of its work. A wake-up that is too late counts as a
    /// sleep, and so does a pause in the work that is longer than the tolerance: the work itself never
    /// does, however long it takes. A clock that was set back counts as a sleep because earlier times
    /// cannot be compared with later ones.
    pub fn wake(&mut self, now: Timestamp) {
        if now > later(self.due_at, self.policy.tolerance) || now < self.woke_at {
            self.woke_at = now;
        }
        self.must_reschedule |= now < self.seen_at;
        self.seen_at = now;
        self.due_at = now;
    }

    /// Whether the planned checks may be too late: at the start, and after the clock was set back.
    pub fn must_reschedule(&self) -> bool {
        self.must_reschedule
    }

    /// Records that all checks that were planned too late have been rescheduled.
    pub fn rescheduled(&mut self) {
        self.must_reschedule = false;
    }

    /// Ends the round. The next one is planned for `due_at`, or for now if that has passed while the
    /// round worked.
    pub fn sleep_until(&mut self, due_at: Timestamp) {
        self.due_at = due_at.max(self.seen_at);
    }

    /// The same monitor for steps whose activity could not be recorded before `at`: counts as the end of
    /// a sleep.
    #[must_use]
    pub fn resumed_at(self, at: Timestamp) -> Self {
        Self {
            woke_at: self.woke_at.max(at),
            ..self
        }
    }

    /// The last time at which the monitor must not act on something that has been inactive since
    /// `reference` and whose limit is `limit_at`.
    pub fn deadline(&self, reference: Timestamp, limit_at: Timestamp) -> Timestamp {
        if reference < self.woke_at {
            limit_at.max(later(self.woke_at, self.policy.grace))
        } else {
            limit_at
        }
    }
}

fn later(at: Timestamp, span: Duration) -> Timestamp {
    at.checked_add(span).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: WatcherPolicy = WatcherPolicy {
        tolerance: Duration::from_secs(5),
        grace: Duration::from_secs(60),
    };

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    /// Started at 0, planned to wake up at 100, woke up at `seconds`.
    fn woken_at(seconds: i64) -> Watcher {
        let mut watcher = Watcher::begin(POLICY, at(0));
        watcher.sleep_until(at(100));
        watcher.wake(at(seconds));
        watcher
    }

    #[test]
    fn a_wake_up_in_time_does_not_change_the_deadline() {
        assert_eq!(woken_at(105).deadline(at(10), at(90)), at(90));
    }

    #[test]
    fn a_late_wake_up_adds_one_grace_period() {
        assert_eq!(woken_at(106).deadline(at(10), at(90)), at(166));
    }

    #[test]
    fn work_is_not_a_sleep() {
        let mut watcher = woken_at(100);
        for seconds in 101..400 {
            watcher.wake(at(seconds));
        }
        watcher.sleep_until(at(101));
        watcher.wake(at(400));
        assert_eq!(watcher.deadline(at(10), at(90)), at(90));
    }

    #[test]
    fn a_pause_in_the_work_is_a_sleep() {
        let mut watcher = woken_at(100);
        watcher.wake(at(106));
        assert_eq!(watcher.deadline(at(10), at(90)), at(166));
    }

    #[test]
    fn steps_that_could_not_report_get_a_grace_period_and_others_do_not() {
        let watcher = woken_at(100);
        assert_eq!(watcher.resumed_at(at(90)).deadline(at(10), at(90)), at(150));
        assert_eq!(watcher.resumed_at(at(90)).deadline(at(91), at(95)), at(95));
        assert_eq!(watcher.deadline(at(10), at(90)), at(90));
        let later = woken_at(106).resumed_at(at(90));
        assert_eq!(later.deadline(at(10), at(90)), at(166));
    }

    #[test]
    fn inactivity_after_the_sleep_gets_no_grace_period() {
        assert_eq!(woken_at(106).deadline(at(106), at(107)), at(107));
    }

    #[test]
    fn a_limit_after_the_grace_period_does_not_change() {
        assert_eq!(woken_at(106).deadline(at(10), at(1_000)), at(1_000));
    }

    #[test]
    fn an_early_wake_up_is_not_a_sleep() {
        assert_eq!(woken_at(50).deadline(at(10), at(40)), at(40));
    }

    #[test]
    fn inactivity_before_the_start_gets_a_grace_period() {
        assert_eq!(
            Watcher::begin(POLICY, at(0)).deadline(at(-500), at(-1)),
            at(60)
        );
    }

    #[test]
    fn checks_are_rescheduled_at_the_start_and_after_the_clock_was_set_back() {
        let mut watcher = woken_at(100);
        assert!(watcher.must_reschedule());
        watcher.rescheduled();
        watcher.wake(at(5_000));
        assert!(!watcher.must_reschedule());
        watcher.wake(at(4_999));
        assert!(watcher.must_reschedule());
    }

    #[test]
    fn a_clock_set_back_adds_one_grace_period() {
        let mut watcher = woken_at(100);
        watcher.wake(at(-9_000));
        assert_eq!(watcher.deadline(at(-9_500), at(-9_400)), at(-8_940));
    }
}
