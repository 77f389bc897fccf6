//! Did the watcher itself sleep? The detector's own sleep convicts nobody.
//!
//! A laptop that was closed for the night, or a paused container, wakes up to find every step silent
//! for hours, although each agent slept beside it. So whoever acts on findings asks here first. What
//! fell silent *before* the watcher woke up is acted upon only when one grace period has passed since
//! then and nobody has shown a sign of life. What fell silent after it is judged as always.
//!
//! Pure: the caller says when it woke up, and when it had meant to.

use std::time::Duration;

use crate::time::Timestamp;

/// How late a watcher may be, and how long it waits after it was later than that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatcherPolicy {
    /// Waking up later than meant by up to this much is ordinary.
    pub tolerance: Duration,
    /// How long those who slept beside the watcher have to show a sign of life.
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

/// What a watcher remembers between two rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watcher {
    policy: WatcherPolicy,
    due_at: Timestamp,
    woke_at: Timestamp,
}

impl Watcher {
    /// A watcher that begins now. Nobody watched before it, so that counts as waking up.
    pub fn begin(policy: WatcherPolicy, now: Timestamp) -> Self {
        Self {
            policy,
            due_at: now,
            woke_at: now,
        }
    }

    /// The watcher begins a round. One that is late by more than the tolerance has slept. A clock
    /// that was set back counts as a sleep, too: what it measured before does not fit what comes.
    pub fn wake(&mut self, now: Timestamp) {
        if now > later(self.due_at, self.policy.tolerance) || now < self.woke_at {
            self.woke_at = now;
        }
        self.due_at = now;
    }

    /// The round is over; the next one is meant to begin at `due_at`.
    pub fn sleep_until(&mut self, due_at: Timestamp) {
        self.due_at = due_at;
    }

    /// The last instant at which something silent since `reference`, whose limit is `limit_at`, must
    /// still be let alone. Like every limit: alive at it, convicted after it.
    pub fn convicts_after(&self, reference: Timestamp, limit_at: Timestamp) -> Timestamp {
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

    /// Began at 0, slept until 100 as it had meant to, and woke up at `seconds`.
    fn woken_at(seconds: i64) -> Watcher {
        let mut watcher = Watcher::begin(POLICY, at(0));
        watcher.sleep_until(at(100));
        watcher.wake(at(seconds));
        watcher
    }

    #[test]
    fn a_watcher_that_wakes_in_time_judges_as_always() {
        assert_eq!(woken_at(105).convicts_after(at(10), at(90)), at(90));
    }

    #[test]
    fn a_watcher_that_overslept_gives_one_grace_period() {
        assert_eq!(woken_at(106).convicts_after(at(10), at(90)), at(166));
    }

    #[test]
    fn what_falls_silent_after_the_sleep_gets_no_grace() {
        assert_eq!(woken_at(106).convicts_after(at(106), at(107)), at(107));
    }

    #[test]
    fn a_limit_past_the_grace_stays_as_it_is() {
        assert_eq!(woken_at(106).convicts_after(at(10), at(1_000)), at(1_000));
    }

    #[test]
    fn being_woken_early_is_no_sleep() {
        assert_eq!(woken_at(50).convicts_after(at(10), at(40)), at(40));
    }

    #[test]
    fn nobody_watched_before_the_watcher_began() {
        assert_eq!(
            Watcher::begin(POLICY, at(0)).convicts_after(at(-500), at(-1)),
            at(60)
        );
    }

    #[test]
    fn a_clock_that_is_set_back_silences_the_watcher_for_one_grace_only() {
        let mut watcher = woken_at(100);
        watcher.wake(at(-9_000));
        assert_eq!(watcher.convicts_after(at(-9_500), at(-9_400)), at(-8_940));
    }
}
