//! Tags of sessions and calls: a word with a symbol and a class, so that no state depends on colour
//! alone. Tags of plans and steps are in `format.rs`.

use std::fmt;

use askama::filters::HtmlSafe;
use onward_core::call::{CallState, CallStatus, Cause};
use onward_core::session::{SessionStatus, SubagentStatus};
use onward_engine::CallRecord;

/// A word for a state. All values are those of this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tag {
    pub(super) class: &'static str,
    pub(super) symbol: char,
    pub(super) label: &'static str,
}

impl Tag {
    pub(super) const fn new(class: &'static str, symbol: char, label: &'static str) -> Self {
        Self {
            class,
            symbol,
            label,
        }
    }

    pub(super) const fn session(status: SessionStatus) -> Self {
        let (symbol, label) = match status {
            SessionStatus::DeadCall => ('▲', "dead call"),
            SessionStatus::Looping => ('↻', "looping"),
            SessionStatus::ToolsClosed => ('⊘', "tools closed"),
            SessionStatus::Stopped => ('■', "stopped"),
            SessionStatus::StaleSubagent => ('◌', "stale subagent"),
            SessionStatus::AwaitingApproval => ('◆', "waits for approval"),
            SessionStatus::Working => ('▶', "working"),
            SessionStatus::Idle => ('○', "idle"),
            SessionStatus::Ended => ('✓', "ended"),
        };
        Self::new(status.as_str(), symbol, label)
    }

    pub(super) const fn subagent(status: SubagentStatus) -> Self {
        let (symbol, label) = match status {
            SubagentStatus::Stale => ('◌', "stale"),
            SubagentStatus::Working => ('▶', "working"),
            SubagentStatus::Ended => ('✓', "ended"),
        };
        Self::new(status.as_str(), symbol, label)
    }

    pub(super) fn call(record: &CallRecord) -> Self {
        let status = record.status();
        if record.is_in_background() {
            return Self::new(CallStatus::Running.as_str(), '▷', "in background");
        }
        let (symbol, label) = match status {
            CallStatus::Requested => ('○', "requested"),
            CallStatus::AwaitingApproval => ('◆', "waiting for approval"),
            CallStatus::Running => ('▶', "running"),
            CallStatus::Completed => ('✓', "done"),
            CallStatus::Failed => ('✕', "failed"),
            CallStatus::Denied => ('⊘', "denied"),
            CallStatus::Cancelled => ('»', "cancelled"),
            CallStatus::Interrupted => {
                let is_timeout = matches!(record.call.state, CallState::Interrupted(end)
                    if end.cause == Cause::TimedOut);
                ('▲', if is_timeout { "timed out" } else { "killed" })
            }
        };
        // Not the class of a completed plan: a call that returned is not a success of the turn.
        let class = if status == CallStatus::Completed {
            "returned"
        } else {
            status.as_str()
        };
        Self::new(class, symbol, label)
    }

    /// A call of which only the outcome is known.
    pub(super) const fn outcome(ok: Option<bool>) -> Self {
        match ok {
            Some(false) => Self::new("failed", '✕', "failed"),
            Some(true) | None => Self::new("returned", '✓', "done"),
        }
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            class,
            symbol,
            label,
        } = self;
        write!(
            f,
            "<span class=\"badge {class}\"><span aria-hidden=\"true\">{symbol}</span> {label}</span>"
        )
    }
}

impl HtmlSafe for Tag {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_tags_have_distinct_symbols_and_labels() {
        let tags = SessionStatus::ALL.map(Tag::session);
        for (index, tag) in tags.iter().enumerate() {
            for other in &tags[index + 1..] {
                assert_ne!(tag.symbol, other.symbol, "{}, {}", tag.label, other.label);
                assert_ne!(tag.label, other.label);
            }
        }
    }
}
