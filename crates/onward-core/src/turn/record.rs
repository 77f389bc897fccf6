//! Stored values of turns: the judgement of a step and the end of a turn.

use std::fmt;
use std::str::FromStr;

use super::Verdict;
use crate::policy::{UnknownVariant, parse_variant};

/// The judgement of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Judgement {
    /// Progress.
    Progress,
    /// Idle, below the threshold.
    Idle,
    /// Idle, and the threshold is reached.
    Stalled,
    /// Unknown.
    Unjudged,
}

impl Judgement {
    /// All judgements.
    pub const ALL: [Judgement; 4] = [
        Judgement::Progress,
        Judgement::Idle,
        Judgement::Stalled,
        Judgement::Unjudged,
    ];

    /// The stored value.
    pub const fn as_str(self) -> &'static str {
        match self {
            Judgement::Progress => "progress",
            Judgement::Idle => "idle",
            Judgement::Stalled => "stalled",
            Judgement::Unjudged => "unjudged",
        }
    }

    /// The judgement of a verdict. `None` for the end of a turn.
    pub const fn from_verdict(verdict: &Verdict) -> Option<Self> {
        match verdict {
            Verdict::Progress { .. } => Some(Judgement::Progress),
            Verdict::Idle { .. } => Some(Judgement::Idle),
            Verdict::Stalled { .. } => Some(Judgement::Stalled),
            Verdict::Unjudged { .. } => Some(Judgement::Unjudged),
            Verdict::Ended => None,
        }
    }
}

impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Judgement {
    type Err = UnknownVariant;

    fn from_str(text: &str) -> Result<Self, UnknownVariant> {
        parse_variant(text, &Judgement::ALL, Judgement::as_str)
    }
}

/// Why a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TurnEnd {
    /// The agent answered.
    Answered,
    /// The next user message came before an answer.
    NextPrompt,
    /// The turn was stopped because the agent kept calling disabled tools.
    Stopped,
    /// The session ended.
    SessionEnded,
}

impl TurnEnd {
    /// All values.
    pub const ALL: [TurnEnd; 4] = [
        TurnEnd::Answered,
        TurnEnd::NextPrompt,
        TurnEnd::Stopped,
        TurnEnd::SessionEnded,
    ];

    /// The stored value.
    pub const fn as_str(self) -> &'static str {
        match self {
            TurnEnd::Answered => "answered",
            TurnEnd::NextPrompt => "next_prompt",
            TurnEnd::Stopped => "stopped",
            TurnEnd::SessionEnded => "session_ended",
        }
    }
}

impl fmt::Display for TurnEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for TurnEnd {
    type Err = UnknownVariant;

    fn from_str(text: &str) -> Result<Self, UnknownVariant> {
        parse_variant(text, &TurnEnd::ALL, TurnEnd::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_values_parse_back() {
        for judgement in Judgement::ALL {
            assert_eq!(judgement.as_str().parse(), Ok(judgement));
        }
        for end in TurnEnd::ALL {
            assert_eq!(end.as_str().parse(), Ok(end));
        }
    }
}
