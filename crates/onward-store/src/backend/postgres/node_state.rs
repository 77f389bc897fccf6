//! The nodes of a distributed database that do not respond.
//!
//! A query of all nodes fails if one of them does not respond. Then each node is read separately
//! (`store/node_reads.rs`), and one that fails is not read again before a delay, which doubles with
//! each failure. `node_probe` connects to the nodes.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Delay after a failure. It doubles with each further one, up to the maximum.
const FIRST_DELAY: Duration = Duration::from_secs(1);
const MAX_DELAY: Duration = Duration::from_secs(30);
/// How long a node is read separately after it responded again. Longer than the grace period of the
/// sweep, which depends on this time.
const RECOVERY: Duration = Duration::from_secs(120);

/// The nodes that do not respond, and those that have not until recently.
#[derive(Default)]
pub(super) struct NodeStates(Mutex<HashMap<i64, State>>);

enum State {
    Down { delay: Duration, retry_at: Instant },
    Back(Instant),
}

impl NodeStates {
    /// Whether all nodes respond, and have for some time.
    pub(super) fn are_all_up(&self, now: Instant) -> bool {
        let mut states = self.lock();
        states.retain(|_, state| match state {
            State::Down { .. } => true,
            State::Back(at) => now.duration_since(*at) < RECOVERY,
        });
        states.is_empty()
    }

    pub(super) fn is_any_down(&self) -> bool {
        let states = self.lock();
        let mut states = states.values();
        states.any(|state| matches!(state, State::Down { .. }))
    }

    /// Whether a node failed, and is to be read again later.
    pub(super) fn is_postponed(&self, id: i64, now: Instant) -> bool {
        matches!(self.lock().get(&id), Some(State::Down { retry_at, .. }) if *retry_at > now)
    }

    /// Records a failure. Returns the delay until the next attempt, unless this one came before its
    /// time.
    pub(super) fn fail(&self, id: i64, now: Instant) -> Option<Duration> {
        let mut states = self.lock();
        let delay = match states.get(&id) {
            Some(State::Down { retry_at, .. }) if *retry_at > now => return None,
            Some(State::Down { delay, .. }) => (*delay * 2).min(MAX_DELAY),
            Some(State::Back(_)) | None => FIRST_DELAY,
        };
        let retry_at = now + delay;
        states.insert(id, State::Down { delay, retry_at });
        Some(delay)
    }

    /// Records a response. Returns whether the node was down before, and for how long it has responded
    /// again.
    pub(super) fn respond(&self, id: i64, now: Instant) -> (bool, Option<Duration>) {
        let mut states = self.lock();
        match states.get_mut(&id) {
            None => (false, None),
            Some(State::Back(at)) => (false, Some(now.duration_since(*at))),
            Some(state) => {
                *state = State::Back(now);
                (true, Some(Duration::ZERO))
            }
        }
    }

    /// Forgets nodes that no longer exist.
    pub(super) fn keep_only(&self, nodes: &[i64]) {
        self.lock().retain(|id, _| nodes.contains(id));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<i64, State>> {
        // A panic leaves a map of whole entries.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_read_less_often_while_it_is_down_and_separately_for_a_time_after_it() {
        let states = NodeStates::default();
        let mut now = Instant::now();
        assert!(states.are_all_up(now));
        for delay in [1, 2, 4, 8, 16, 30, 30].map(Duration::from_secs) {
            assert_eq!(states.fail(1, now), Some(delay));
            assert_eq!(states.fail(1, now), None, "a probe does not prolong it");
            assert!(states.is_postponed(1, now) && states.is_any_down());
            now += delay;
            assert!(!states.is_postponed(1, now));
        }
        assert!(!states.are_all_up(now));
        assert_eq!(states.respond(2, now), (false, None));
        assert_eq!(states.respond(1, now), (true, Some(Duration::ZERO)));
        assert!(!states.is_any_down() && !states.are_all_up(now));
        let later = now + FIRST_DELAY;
        assert_eq!(states.respond(1, later), (false, Some(FIRST_DELAY)));
        assert!(states.are_all_up(now + RECOVERY));
        assert_eq!(states.respond(1, now + RECOVERY), (false, None));
    }
}
