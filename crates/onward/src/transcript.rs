//! Reads saved agent sessions into turns, steps, calls and results.
//!
//! Each format has its own file. [`detect`] recognizes the format by the content, not by the file
//! name. Turns are visited one by one, so a long log is never held in memory.
//!
//! `onward_core::turn` judges the turns; `cli/transcript/judge.rs` combines the two. [`score`]
//! compares verdicts with labels.

mod anthropic;
mod claude_code;
mod detect;
mod error;
mod external_change;
mod lines;
mod messages;
mod openai;
pub(crate) mod repair;
pub(crate) mod score;
mod turn_builder;
mod turns;

use std::ops::ControlFlow;
use std::path::Path;

use clap::ValueEnum;
use onward_core::Timestamp;
use onward_core::turn::ExternalChange;
use serde_json::Value;

pub(crate) use error::Error;
pub(crate) use lines::Lines;

/// What an agent did between a user message and its answer.
#[derive(Debug, PartialEq)]
pub(crate) struct Turn {
    /// A unique id: the file name as given, and the number of the turn.
    pub(crate) id: String,
    /// The source of the turn, for the table: a field of the file, or the name of the format.
    pub(crate) source: String,
    pub(crate) steps: Vec<Step>,
}

/// A model response with its calls. A step without calls is a text answer.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Step {
    pub(crate) calls: Vec<Call>,
    pub(crate) external_change: ExternalChange,
    pub(crate) at: Option<Timestamp>,
    /// Notifications about background tasks before this step, each with the id of a task that
    /// ended.
    pub(crate) task_notifications: Vec<Option<String>>,
    /// The text of the response, if the format has it.
    pub(crate) text: String,
}

/// A tool call with its result.
#[derive(Debug, PartialEq)]
pub(crate) struct Call {
    pub(crate) tool: String,
    pub(crate) input: Value,
    /// Whether the call succeeded, if the file records it.
    pub(crate) ok: Option<bool>,
    pub(crate) output: String,
}

/// The supported formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// JSON lines, one turn each: `{"id", "steps": [{"calls": […], "changed"}]}`
    Turns,
    /// Claude Code session logs, JSON lines
    ClaudeCode,
    /// OpenAI Chat Completions messages
    Openai,
    /// Anthropic Messages API messages
    Anthropic,
}

impl Format {
    /// The name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Format::Turns => "turns",
            Format::ClaudeCode => "claude-code",
            Format::Openai => "openai",
            Format::Anthropic => "anthropic",
        }
    }
}

/// An item of a file, in order.
pub(crate) enum ReaderItem {
    Turn(Turn),
    /// A problem that was skipped.
    Warning(String),
}

/// Called for each item; may stop reading.
pub(crate) type Visitor<'a> = dyn FnMut(ReaderItem) -> ControlFlow<()> + 'a;

/// Reads a file, and visits each turn when it is complete.
pub(crate) fn read(
    path: &Path,
    format: Option<Format>,
    visit: &mut Visitor<'_>,
) -> Result<(), Error> {
    let name = path.display().to_string();
    let mut lines = Lines::open(path)?;
    if lines.peek(0)?.is_none() {
        // This is the last item, so the returned value does not matter.
        let _ = visit(ReaderItem::Warning(format!("`{name}` is empty")));
        return Ok(());
    }
    let format = match format {
        Some(format) => format,
        None => detect::detect(&mut lines)?,
    };
    match format {
        Format::Turns => turns::read(lines, visit),
        Format::ClaudeCode => claude_code::read(lines, visit),
        Format::Openai => openai::read(lines, visit),
        Format::Anthropic => anthropic::read(lines, visit),
    }
}
