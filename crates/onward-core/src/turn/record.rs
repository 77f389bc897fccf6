//! The words for what is kept of a turn: how a step was judged, and why a turn is over.

use std::fmt;
use std::str::FromStr;

use super::Verdict;
use crate::policy::{UnknownWord, from_word};

/// How a step was judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Judgement {
    /// It got somewhere.
    Progress,
    /// It did not, and the turn may go on.
    Idle,
    /// It did not, and nothing has come of the turn for too long.
    Stalled,
    /// Nobody can tell.
    Unjudged,
}

impl Judgement {
    /// Every one.
    pub const ALL: [Judgement; 4] = [
        Judgement::Progress,
        Judgement::Idle,
        Judgement::Stalled,
        Judgement::Unjudged,
    ];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Judgement::Progress => "progress",
            Judgement::Idle => "idle",
            Judgement::Stalled => "stalled",
            Judgement::Unjudged => "unjudged",
        }
    }

    /// The word for a verdict; none for the end of a turn, which is no step.
    pub const fn of(verdict: &Verdict) -> Option<Self> {
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
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        from_word(word, &Judgement::ALL, Judgement::as_str)
    }
}

/// Why a turn is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TurnEnd {
    /// The agent answered.
    Answered,
    /// The next message came before an answer did.
    NextPrompt,
    /// It was stopped: the agent went on although tools were closed.
    Stopped,
    /// The session is over.
    SessionEnded,
}

impl TurnEnd {
    /// Every one.
    pub const ALL: [TurnEnd; 4] = [
        TurnEnd::Answered,
        TurnEnd::NextPrompt,
        TurnEnd::Stopped,
        TurnEnd::SessionEnded,
    ];

    /// The word for it.
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
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        from_word(word, &TurnEnd::ALL, TurnEnd::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_back() {
        for judgement in Judgement::ALL {
            assert_eq!(judgement.as_str().parse(), Ok(judgement));
        }
        for end in TurnEnd::ALL {
            assert_eq!(end.as_str().parse(), Ok(end));
        }
    }
}
