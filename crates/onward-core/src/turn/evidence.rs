//! Evidence for a verdict: the idle calls with the reason for each.

use std::fmt;

use super::Call;
use super::clean::clean;
use super::intent::command_line;

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
    /// It is a no-op.
    NoOp,
    /// Its output is empty.
    Empty,
    /// The new part of its output is too short.
    Short,
    /// Its output was seen before in this turn.
    Seen,
}

impl IdleReason {
    /// All reasons.
    pub const ALL: [IdleReason; 6] = [
        IdleReason::Failed,
        IdleReason::SameError,
        IdleReason::NoOp,
        IdleReason::Empty,
        IdleReason::Short,
        IdleReason::Seen,
    ];

    /// The stored value.
    pub const fn as_str(self) -> &'static str {
        match self {
            IdleReason::Failed => "failed",
            IdleReason::SameError => "same_error",
            IdleReason::NoOp => "no_op",
            IdleReason::Empty => "empty",
            IdleReason::Short => "short",
            IdleReason::Seen => "seen",
        }
    }
}

impl fmt::Display for IdleReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            IdleReason::Failed => "failed",
            IdleReason::SameError => "same error as before",
            IdleReason::NoOp => "no-op",
            IdleReason::Empty => "empty output",
            IdleReason::Short => "too little new output",
            IdleReason::Seen => "output already seen",
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
            "step {}: {} `{}`: {}",
            self.step, self.tool, self.input, self.reason
        )
    }
}

/// The beginning of a text on one line, with secrets masked.
pub fn preview(text: &str) -> String {
    crate::secret::preview(text, PREVIEW_CHARS)
}
