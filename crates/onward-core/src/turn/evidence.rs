//! Evidence for a verdict: the idle calls with the reason for each.

use std::fmt;
use std::str::FromStr;

use super::Call;
use super::clean::clean;
use super::intent::command_line;
use crate::policy::{UnknownVariant, parse_variant};

/// The maximum number of characters in a preview.
pub(crate) const PREVIEW_CHARS: usize = 80;

/// An idle call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// The number of the step in the turn, from 1.
    pub step: u32,
    /// The tool's name.
    pub tool: String,
    /// The beginning of the input.
    pub input: String,
    /// The beginning of the output.
    pub output: String,
    /// Why it is idle.
    pub reason: IdleReason,
}

/// Why a call is idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IdleReason {
    /// It failed.
    Failed,
    /// It failed with an error that was seen before.
    SameError,
    /// It was refused in the same way as before.
    Refused,
    /// It found nothing.
    NotFound,
    /// It is a no-op.
    NoOp,
    /// Its output is empty.
    Empty,
    /// The new part of its output is too short.
    Short,
    /// Its output was seen before in this turn.
    Seen,
    /// It repeats an earlier call.
    Repeated,
    /// It repeats an earlier call, and only measurements differ.
    Fluctuates,
    /// It waits, and nothing changed. Counted by time.
    Waits,
    /// It returned the working tree to an earlier state.
    Reverted,
}

impl IdleReason {
    /// All reasons.
    pub const ALL: [IdleReason; 12] = [
        IdleReason::Failed,
        IdleReason::SameError,
        IdleReason::Refused,
        IdleReason::NotFound,
        IdleReason::NoOp,
        IdleReason::Empty,
        IdleReason::Short,
        IdleReason::Seen,
        IdleReason::Repeated,
        IdleReason::Fluctuates,
        IdleReason::Waits,
        IdleReason::Reverted,
    ];

    /// The stored value.
    pub const fn as_str(self) -> &'static str {
        match self {
            IdleReason::Failed => "failed",
            IdleReason::SameError => "same_error",
            IdleReason::Refused => "refused",
            IdleReason::NotFound => "not_found",
            IdleReason::NoOp => "no_op",
            IdleReason::Empty => "empty",
            IdleReason::Short => "short",
            IdleReason::Seen => "seen",
            IdleReason::Repeated => "repeated",
            IdleReason::Fluctuates => "fluctuates",
            IdleReason::Waits => "waits",
            IdleReason::Reverted => "reverted",
        }
    }
}

impl FromStr for IdleReason {
    type Err = UnknownVariant;

    fn from_str(text: &str) -> Result<Self, UnknownVariant> {
        parse_variant(text, &IdleReason::ALL, IdleReason::as_str)
    }
}

impl fmt::Display for IdleReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            IdleReason::Failed => "failed",
            IdleReason::SameError => "same error as before",
            IdleReason::Refused => "same refusal as before",
            IdleReason::NotFound => "nothing found",
            IdleReason::NoOp => "no-op",
            IdleReason::Empty => "empty output",
            IdleReason::Short => "too little new output",
            IdleReason::Seen => "output already seen",
            IdleReason::Repeated => "same call as before",
            IdleReason::Fluctuates => "only measurements differ",
            IdleReason::Waits => "waiting without a change",
            IdleReason::Reverted => "working tree returned to an earlier state",
        })
    }
}

impl Evidence {
    pub(crate) fn new(step: u32, call: &Call<'_>, reason: IdleReason) -> Self {
        let input = match command_line(call) {
            Some(line) => preview(line),
            None => preview(&call.input.to_string()),
        };
        Evidence {
            step,
            tool: preview(call.tool),
            input,
            output: preview(&clean(call.output)),
            reason,
        }
    }
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "response {}: {} `{}`: {}",
            self.step, self.tool, self.input, self.reason
        )
    }
}

/// The beginning of a text on one line, with secrets masked.
pub fn preview(text: &str) -> String {
    crate::secret::preview(text, PREVIEW_CHARS)
}
