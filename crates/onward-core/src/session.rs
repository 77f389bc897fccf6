//! The status of an agent session for people: derived from its last turn and its calls, never
//! stored.
//!
//! One function serves the dashboard, the command line and the metrics, so that all of them show
//! the same word. `turn` judges responses, `call` judges calls, `subagent` judges subagents.

mod subagent;

use std::time::Duration;

use crate::time::Timestamp;
use crate::turn::TurnEnd;
use crate::turn::escalation::EscalationState;

pub use subagent::{SubagentFacts, SubagentStatus};

/// Without activity for this long, an open turn no longer counts as work.
pub const IDLE_AFTER: Duration = Duration::from_secs(10 * 60);
/// Without activity for this long, a session no longer needs a person.
pub const FORGOTTEN_AFTER: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The status of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SessionStatus {
    /// A call was interrupted, and the agent has made no progress since.
    DeadCall,
    /// Consecutive responses without progress; the agent was nudged.
    Looping,
    /// Every tool call is rejected until the agent answers in text.
    ToolsClosed,
    /// Onward stopped the turn; the agent waits for the next prompt.
    Stopped,
    /// A subagent is silent and has not reported its end.
    StaleSubagent,
    /// A call waits for a person's approval.
    AwaitingApproval,
    /// The agent works on a prompt.
    Working,
    /// The agent waits for the next prompt, or has been silent.
    Idle,
    /// The session has ended.
    Ended,
}

impl SessionStatus {
    /// All statuses; those that need a person first.
    pub const ALL: [SessionStatus; 9] = [
        SessionStatus::DeadCall,
        SessionStatus::Looping,
        SessionStatus::ToolsClosed,
        SessionStatus::Stopped,
        SessionStatus::StaleSubagent,
        SessionStatus::AwaitingApproval,
        SessionStatus::Working,
        SessionStatus::Idle,
        SessionStatus::Ended,
    ];

    /// The wire name.
    pub const fn as_str(self) -> &'static str {
        match self {
            SessionStatus::DeadCall => "dead_call",
            SessionStatus::Looping => "looping",
            SessionStatus::ToolsClosed => "tools_closed",
            SessionStatus::Stopped => "stopped",
            SessionStatus::StaleSubagent => "stale_subagent",
            SessionStatus::AwaitingApproval => "awaiting_approval",
            SessionStatus::Working => "working",
            SessionStatus::Idle => "idle",
            SessionStatus::Ended => "ended",
        }
    }

    /// Whether a person must look at the session. A call that waits for approval is not a problem:
    /// the agent itself asks the person.
    pub const fn is_trouble(self) -> bool {
        match self {
            SessionStatus::DeadCall
            | SessionStatus::Looping
            | SessionStatus::ToolsClosed
            | SessionStatus::Stopped
            | SessionStatus::StaleSubagent => true,
            SessionStatus::AwaitingApproval
            | SessionStatus::Working
            | SessionStatus::Idle
            | SessionStatus::Ended => false,
        }
    }
}

/// Facts about a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionFacts {
    /// Last activity.
    pub last_seen_at: Timestamp,
    /// Time of its end, if it was reported.
    pub ended_at: Option<Timestamp>,
    /// Its last turn.
    pub turn: Option<TurnFacts>,
    /// When the oldest call that waits for approval was requested.
    pub approval_requested_at: Option<Timestamp>,
    /// The call that was interrupted last.
    pub dead_call: Option<DeadCall>,
    /// When a subagent became stale last.
    pub stale_subagent_at: Option<Timestamp>,
    /// Whether a call is running.
    pub has_running_call: bool,
    /// Whether a stall closes the tools: not if a person switched loop control off.
    pub closes_tools: bool,
}

/// A call that was interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeadCall {
    /// When it was interrupted.
    pub interrupted_at: Timestamp,
    /// Its last activity. Onward may notice much later that a call will not return.
    pub active_at: Timestamp,
}

/// Facts about the last turn of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnFacts {
    /// Time of its beginning.
    pub began_at: Timestamp,
    /// Time of the last response with progress.
    pub progressed_at: Option<Timestamp>,
    /// Time and reason of its end.
    pub ended: Option<(Timestamp, TurnEnd)>,
    /// Escalation state.
    pub escalation: EscalationState,
}

impl SessionFacts {
    /// The status, and since when.
    pub fn status(&self, now: Timestamp) -> (SessionStatus, Timestamp) {
        let seen = self.last_seen_at;
        if let Some(at) = self.ended_at {
            return (SessionStatus::Ended, at);
        }
        if let Some(at) = self.approval_requested_at {
            return (SessionStatus::AwaitingApproval, at);
        }
        let is_forgotten = now.since(seen) >= FORGOTTEN_AFTER;
        match self.trouble() {
            Some(trouble) if !is_forgotten => trouble,
            Some(_) => (SessionStatus::Idle, seen),
            None => self.activity(now),
        }
    }

    fn trouble(&self) -> Option<(SessionStatus, Timestamp)> {
        let turn = self.turn.as_ref();
        let started_at = turn.map(|turn| turn.progressed_at.unwrap_or(turn.began_at));
        if let Some(dead) = self.dead_call
            && started_at.is_none_or(|started| dead.interrupted_at >= started)
        {
            return Some((SessionStatus::DeadCall, dead.active_at));
        }
        let looping = turn
            .zip(started_at)
            .and_then(|(turn, since)| match turn.ended {
                Some((at, TurnEnd::Stopped)) => Some((SessionStatus::Stopped, at)),
                Some((_, TurnEnd::Answered | TurnEnd::NextPrompt | TurnEnd::SessionEnded)) => None,
                None if turn.escalation.text_only.is_some() && self.closes_tools => {
                    Some((SessionStatus::ToolsClosed, since))
                }
                None if turn.escalation.text_only.is_some() || turn.escalation.nudged => {
                    Some((SessionStatus::Looping, since))
                }
                None => None,
            });
        looping.or_else(|| self.stale_subagent())
    }

    /// A person who sends a prompt after a subagent became stale has seen it.
    fn stale_subagent(&self) -> Option<(SessionStatus, Timestamp)> {
        let at = self.stale_subagent_at?;
        let is_seen = self.turn.is_some_and(|turn| turn.began_at > at);
        (!is_seen).then_some((SessionStatus::StaleSubagent, at))
    }

    fn activity(&self, now: Timestamp) -> (SessionStatus, Timestamp) {
        let seen = self.last_seen_at;
        let open = self.turn.as_ref().filter(|turn| turn.ended.is_none());
        match open {
            Some(turn) if self.has_running_call || now.since(seen) < IDLE_AFTER => {
                (SessionStatus::Working, turn.began_at)
            }
            Some(_) => (SessionStatus::Idle, seen),
            None => {
                let ended = self.turn.as_ref().and_then(|turn| turn.ended);
                (SessionStatus::Idle, ended.map_or(seen, |(at, _)| at))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turn::escalation::TextOnlyReason;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    fn facts() -> SessionFacts {
        SessionFacts {
            last_seen_at: at(100),
            ended_at: None,
            turn: Some(TurnFacts {
                began_at: at(10),
                progressed_at: Some(at(50)),
                ended: None,
                escalation: EscalationState::default(),
            }),
            approval_requested_at: None,
            dead_call: None,
            stale_subagent_at: None,
            has_running_call: false,
            closes_tools: true,
        }
    }

    fn with_turn(change: impl FnOnce(&mut TurnFacts)) -> SessionFacts {
        let mut facts = facts();
        if let Some(turn) = facts.turn.as_mut() {
            change(turn);
        }
        facts
    }

    #[test]
    fn every_status_has_its_own_instant() {
        use SessionStatus::{
            AwaitingApproval, Ended, Idle, Looping, StaleSubagent, Stopped, ToolsClosed, Working,
        };
        let held = |turn: &mut TurnFacts| {
            turn.escalation.nudged = true;
            turn.escalation.text_only = Some(TextOnlyReason::Stalled);
        };
        let mut without_control = with_turn(held);
        without_control.closes_tools = false;
        let mut ended = with_turn(held);
        ended.ended_at = Some(at(99));
        let mut asked = with_turn(held);
        asked.approval_requested_at = Some(at(97));
        let interrupted = |seconds| {
            let mut facts = facts();
            facts.dead_call = Some(DeadCall {
                interrupted_at: at(seconds),
                active_at: at(30),
            });
            facts
        };
        let stale_since = |mut facts: SessionFacts, seconds| {
            facts.stale_subagent_at = Some(at(seconds));
            facts
        };
        let stopped = |turn: &mut TurnFacts| turn.ended = Some((at(98), TurnEnd::Stopped));
        let answered = |turn: &mut TurnFacts| turn.ended = Some((at(96), TurnEnd::Answered));
        for (facts, status, since) in [
            (facts(), Working, 10),
            (with_turn(|turn| turn.escalation.nudged = true), Looping, 50),
            (with_turn(held), ToolsClosed, 50),
            (without_control, Looping, 50),
            (with_turn(stopped), Stopped, 98),
            (with_turn(answered), Idle, 96),
            (asked, AwaitingApproval, 97),
            (interrupted(60), SessionStatus::DeadCall, 30),
            (interrupted(40), Working, 10),
            (stale_since(facts(), 70), StaleSubagent, 70),
            (stale_since(with_turn(answered), 70), StaleSubagent, 70),
            // The prompt was sent after the subagent became stale.
            (stale_since(facts(), 9), Working, 10),
            (stale_since(with_turn(held), 70), ToolsClosed, 50),
            (ended, Ended, 99),
        ] {
            assert_eq!(facts.status(at(101)), (status, at(since)));
        }
    }

    #[test]
    fn silence_ends_work_and_then_trouble() {
        let later = |after: Duration| at(100).checked_add(after).unwrap_or(at(100));
        let mut running = facts();
        assert_eq!(running.status(later(IDLE_AFTER)).0, SessionStatus::Idle);
        running.has_running_call = true;
        assert_eq!(running.status(later(IDLE_AFTER)).0, SessionStatus::Working);
        let nudged = with_turn(|turn| turn.escalation.nudged = true);
        assert_eq!(nudged.status(later(IDLE_AFTER)).0, SessionStatus::Looping);
        assert_eq!(nudged.status(later(FORGOTTEN_AFTER)).0, SessionStatus::Idle);
    }
}
