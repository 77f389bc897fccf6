//! What a person can check: which calls, and why each counted for nothing.

use std::fmt;

use super::Call;
use super::clean::clean;
use super::intent::command_line;

/// Characters of a preview.
pub(crate) const PREVIEW: usize = 80;

/// One call that counted for nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// Which step of the turn, from 1.
    pub step: u32,
    /// The tool's name.
    pub tool: String,
    /// How its input begins.
    pub input: String,
    /// How its output begins.
    pub output: String,
    /// Why it counted for nothing.
    pub why: Nothing,
}

/// Why a call counted for nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Nothing {
    /// It failed.
    Failed,
    /// It failed as it did before.
    SameError,
    /// It is a known no-op.
    NoOp,
    /// It answered nothing.
    Empty,
    /// What is new in its output is too short to be news.
    Short,
    /// Its output was seen before in this turn.
    Seen,
}

impl Nothing {
    /// Every reason.
    pub const ALL: [Nothing; 6] = [
        Nothing::Failed,
        Nothing::SameError,
        Nothing::NoOp,
        Nothing::Empty,
        Nothing::Short,
        Nothing::Seen,
    ];

    /// The word for it, where it is stored.
    pub const fn as_str(self) -> &'static str {
        match self {
            Nothing::Failed => "failed",
            Nothing::SameError => "same_error",
            Nothing::NoOp => "no_op",
            Nothing::Empty => "empty",
            Nothing::Short => "short",
            Nothing::Seen => "seen",
        }
    }
}

impl fmt::Display for Nothing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Nothing::Failed => "it failed",
            Nothing::SameError => "it failed as it did before",
            Nothing::NoOp => "it does nothing",
            Nothing::Empty => "it answered nothing",
            Nothing::Short => "too little in its answer is new",
            Nothing::Seen => "its answer was seen before",
        })
    }
}

impl Evidence {
    pub(crate) fn of(step: u32, call: &Call<'_>, why: Nothing) -> Self {
        let input = match command_line(call) {
            Some(line) => preview(line),
            None => preview(&call.input.to_string()),
        };
        Evidence {
            step,
            tool: preview(call.tool),
            input,
            output: preview(&clean(call.output)),
            why,
        }
    }
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "step {}: {} `{}`: {}",
            self.step, self.tool, self.input, self.why
        )
    }
}

/// The beginning of a text, on one line.
pub fn preview(text: &str) -> String {
    let mut words = text.split_whitespace();
    let mut line = words.next().unwrap_or_default().to_owned();
    for word in words {
        if line.len() > 4 * PREVIEW {
            break;
        }
        line.push(' ');
        line.push_str(word);
    }
    match line.char_indices().nth(PREVIEW) {
        None => line,
        Some((end, _)) => {
            line.truncate(end);
            line.push('…');
            line
        }
    }
}
