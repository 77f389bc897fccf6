//! Names, symbols and colours of plan and step states for display: *stuck* instead of `stalled`,
//! spaces instead of `_`. A symbol distinguishes the states without colour.

use std::fmt;

use onward_core::attention::Word;
use onward_core::plan::Origin;
use onward_core::session::SessionStatus;
use onward_core::{PlanStatus, StepStatus, Timestamp};
use onward_engine::StepLine;

use super::Tone;

pub(crate) const STUCK: &str = "stuck";

pub(crate) const fn plan_label(status: PlanStatus) -> &'static str {
    match status {
        PlanStatus::Planning => "planning",
        PlanStatus::Executing => "executing",
        PlanStatus::AwaitingReview => "awaiting review",
        PlanStatus::Stalled => STUCK,
        PlanStatus::Completed => "completed",
        PlanStatus::Failed => "failed",
    }
}

pub(crate) const fn step_label(status: StepStatus) -> &'static str {
    match status {
        StepStatus::Pending => "pending",
        StepStatus::InProgress => "in progress",
        StepStatus::AwaitingInput => "awaiting review",
        StepStatus::Completed => "completed",
        StepStatus::Skipped => "skipped",
        StepStatus::Failed => "failed",
    }
}

/// The symbol and the colour of a plan's state.
pub(crate) const fn word_mark(word: Word) -> (char, Tone) {
    match word {
        Word::Stuck | Word::Blocked => ('▲', Tone::Alert),
        Word::NeedsYou => ('◆', Tone::Attention),
        Word::NoAgent => ('◌', Tone::Unattended),
        Word::Working => ('▶', Tone::Active),
        Word::NotStarted | Word::UnfinishedList => ('○', Tone::Faint),
        Word::Done => ('✓', Tone::Good),
        Word::DoneWithFailures => ('✓', Tone::Attention),
        Word::Failed => ('✕', Tone::Alert),
        Word::Cancelled => ('✕', Tone::Faint),
    }
}

pub(crate) const fn session_label(status: SessionStatus) -> &'static str {
    match status {
        SessionStatus::DeadCall => "dead call",
        SessionStatus::Looping => "looping",
        SessionStatus::ToolsClosed => "tools closed",
        SessionStatus::Stopped => "stopped",
        SessionStatus::StaleSubagent => "stale subagent",
        SessionStatus::AwaitingApproval => "approval",
        SessionStatus::Working => "working",
        SessionStatus::Idle => "idle",
        SessionStatus::Ended => "ended",
    }
}

pub(crate) const fn session_tone(status: SessionStatus) -> Tone {
    match status {
        SessionStatus::DeadCall
        | SessionStatus::Looping
        | SessionStatus::ToolsClosed
        | SessionStatus::Stopped
        | SessionStatus::StaleSubagent => Tone::Alert,
        SessionStatus::AwaitingApproval => Tone::Attention,
        SessionStatus::Working => Tone::Active,
        SessionStatus::Idle | SessionStatus::Ended => Tone::Faint,
    }
}

/// The state of a step: a symbol, a word and a colour.
#[derive(Clone, Copy)]
pub(crate) struct StepMark {
    pub(crate) symbol: char,
    pub(crate) label: &'static str,
    pub(crate) tone: Option<Tone>,
}

impl StepMark {
    pub(crate) fn new(line: &StepLine, origin: Origin, now: Timestamp) -> Self {
        if line.superseded_by.is_some() {
            return Self {
                symbol: '↻',
                label: "superseded",
                tone: Some(Tone::Faint),
            };
        }
        let is_inactive = line.is_stalled(now) || line.orphaned_at.is_some();
        let is_stuck = line.is_stalled(now) && origin.reports_inactivity();
        let (symbol, tone) = match line.status {
            StepStatus::InProgress if is_stuck => {
                return Self {
                    symbol: '▲',
                    label: STUCK,
                    tone: Some(Tone::Alert),
                };
            }
            StepStatus::InProgress if is_inactive && !origin.reports_inactivity() => {
                return Self {
                    symbol: '◌',
                    label: "unfinished",
                    tone: Some(Tone::Faint),
                };
            }
            StepStatus::InProgress => ('▶', Tone::Active),
            StepStatus::Pending => ('○', Tone::Faint),
            StepStatus::AwaitingInput => ('◆', Tone::Attention),
            StepStatus::Completed => ('✓', Tone::Good),
            StepStatus::Skipped => ('»', Tone::Faint),
            StepStatus::Failed => ('✕', Tone::Alert),
        };
        Self {
            symbol,
            label: step_label(line.status),
            tone: Some(tone),
        }
    }
}

impl fmt::Display for StepMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.symbol, self.label)
    }
}
