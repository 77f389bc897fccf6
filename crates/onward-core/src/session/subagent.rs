//! Staleness of a subagent: it has begun, has not reported its end, and is silent.
//!
//! Agents lose subagents: one never starts its work, another ends without an event. Onward cannot
//! interrupt a subagent, so this rule changes nothing; it shows a person what the agent waits for.

use crate::call::CallPolicy;
use crate::time::Timestamp;

use super::IDLE_AFTER;

/// The status of a subagent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SubagentStatus {
    /// Silent, without an end.
    Stale,
    /// It works on its task.
    Working,
    /// It has ended.
    Ended,
}

impl SubagentStatus {
    /// The wire name.
    pub const fn as_str(self) -> &'static str {
        match self {
            SubagentStatus::Stale => "stale",
            SubagentStatus::Working => "working",
            SubagentStatus::Ended => "ended",
        }
    }
}

/// Facts about the last turn of a subagent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubagentFacts {
    /// Time of its beginning.
    pub began_at: Timestamp,
    /// Time of its last event.
    pub last_seen_at: Timestamp,
    /// Time of its end.
    pub ended_at: Option<Timestamp>,
    /// Whether one of its calls is open. A call has its own timeout.
    pub has_open_call: bool,
}

impl SubagentFacts {
    /// The last instant at which the subagent is not yet stale without further activity. `None` if
    /// it cannot become stale.
    ///
    /// A subagent that has done nothing since its beginning has the time of a call. After its first
    /// event, it has the time after which an open turn no longer counts as work: a model may need
    /// minutes for a long answer.
    pub fn stale_at(&self) -> Option<Timestamp> {
        if self.ended_at.is_some() || self.has_open_call {
            return None;
        }
        let CallPolicy {
            default_timeout,
            grace,
        } = CallPolicy::default();
        if self.last_seen_at > self.began_at {
            self.last_seen_at.checked_add(IDLE_AFTER)
        } else {
            self.began_at
                .checked_add(default_timeout.checked_add(grace)?)
        }
    }

    /// The status, and since when. A stale subagent is stale since its last event.
    pub fn status(&self, now: Timestamp) -> (SubagentStatus, Timestamp) {
        if let Some(at) = self.ended_at {
            return (SubagentStatus::Ended, at);
        }
        if self.stale_at().is_some_and(|stale_at| now > stale_at) {
            return (SubagentStatus::Stale, self.last_seen_at);
        }
        (SubagentStatus::Working, self.began_at)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::call::{DEFAULT_CALL_TIMEOUT, STALE_GRACE};

    const START: Timestamp = Timestamp::from_millis(1_000_000);

    fn after(duration: Duration) -> Timestamp {
        START.checked_add(duration).unwrap_or(START)
    }

    fn facts() -> SubagentFacts {
        SubagentFacts {
            began_at: START,
            last_seen_at: START,
            ended_at: None,
            has_open_call: false,
        }
    }

    #[test]
    fn a_subagent_that_does_nothing_is_stale_after_the_time_of_a_call() {
        let limit = after(DEFAULT_CALL_TIMEOUT + STALE_GRACE);
        assert_eq!(facts().status(limit), (SubagentStatus::Working, START));
        assert_eq!(facts().status(limit.next()), (SubagentStatus::Stale, START));
    }

    #[test]
    fn a_subagent_that_falls_silent_is_stale_after_the_idle_time() {
        let seen = after(Duration::from_secs(60));
        let silent = SubagentFacts {
            last_seen_at: seen,
            ..facts()
        };
        let limit = after(Duration::from_secs(60) + IDLE_AFTER);
        assert_eq!(silent.status(limit), (SubagentStatus::Working, START));
        assert_eq!(silent.status(limit.next()), (SubagentStatus::Stale, seen));
    }

    #[test]
    fn an_ended_subagent_and_one_with_an_open_call_are_never_stale() {
        let late = after(Duration::from_secs(1_000_000));
        let ended = SubagentFacts {
            ended_at: Some(START),
            ..facts()
        };
        assert_eq!(ended.status(late), (SubagentStatus::Ended, START));
        let calling = SubagentFacts {
            has_open_call: true,
            ..facts()
        };
        assert_eq!(calling.status(late), (SubagentStatus::Working, START));
    }
}
