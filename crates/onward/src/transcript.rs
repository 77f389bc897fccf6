//! Reads saved agent sessions into turns, steps, calls and results.
//!
//! Each format has its own file and an entry in [`FORMATS`]. [`detect`] recognizes the format by the
//! content, not by the file name. Turns are visited one by one, so a long log is never held in memory.
//!
//! `onward_core::turn` judges the turns; `cli/transcript/judge.rs` combines the two. [`score`]
//! compares verdicts with labels.

mod anthropic;
mod claude_code;
mod codex;
mod copilot;
mod detect;
mod error;
mod event;
mod external_change;
mod gemini;
mod kimi;
mod lines;
mod messages;
mod openai;
mod opencode;
pub(crate) mod repair;
mod responses;
pub(crate) mod score;
mod turn_builder;
mod turns;

use std::ops::ControlFlow;
use std::path::Path;

use clap::ValueEnum;
use onward_core::Timestamp;
use onward_core::transcript::Api;
use onward_core::turn::ExternalChange;
use onward_engine::opencode::is_database;
use serde_json::Value;

pub(crate) use error::Error;
pub(crate) use lines::Lines;
use repair::{Examination, RepairContext};

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
    /// Codex rollouts, JSON lines
    Codex,
    /// opencode exports, or its database
    Opencode,
    /// Copilot CLI event logs, JSON lines
    Copilot,
    /// Kimi Code wire logs, JSON lines
    Kimi,
    /// Gemini CLI chats
    Gemini,
    /// OpenAI Chat Completions messages
    Openai,
    /// OpenAI Responses items
    OpenaiResponses,
    /// Anthropic Messages API messages
    Anthropic,
}

/// Finds the defects of a session.
type Examine = fn(Lines, RepairContext) -> Result<Examination, Error>;

/// How a format is detected, read and repaired.
pub(crate) struct FormatEntry {
    pub(crate) format: Format,
    /// The name on the command line.
    pub(crate) name: &'static str,
    /// Whether a JSON value occurs only in this format.
    is_definite: fn(&Value) -> bool,
    read: fn(Lines, &mut Visitor<'_>) -> Result<(), Error>,
    /// Finds defects. `None` for a format without calls and results.
    examine: Option<Examine>,
    /// Whether defects can be repaired.
    is_repairable: bool,
}

/// The supported formats, in the order of detection.
pub(crate) static FORMATS: [FormatEntry; 10] = [
    FormatEntry {
        format: Format::Turns,
        name: "turns",
        is_definite: |value| value["steps"].is_array() && value["id"].is_string(),
        read: turns::read,
        examine: None,
        is_repairable: false,
    },
    FormatEntry {
        format: Format::ClaudeCode,
        name: "claude-code",
        is_definite: detect::is_claude_code,
        read: claude_code::read,
        examine: Some(repair::claude_code),
        is_repairable: true,
    },
    FormatEntry {
        format: Format::Codex,
        name: "codex",
        is_definite: codex::is_line,
        read: codex::read,
        examine: Some(repair::codex),
        is_repairable: true,
    },
    FormatEntry {
        format: Format::Opencode,
        name: "opencode",
        is_definite: opencode::is_export,
        read: opencode::read,
        examine: Some(repair::opencode),
        is_repairable: true,
    },
    FormatEntry {
        format: Format::Copilot,
        name: "copilot",
        is_definite: copilot::is_event,
        read: copilot::read,
        examine: Some(repair::copilot),
        is_repairable: false,
    },
    FormatEntry {
        format: Format::Kimi,
        name: "kimi",
        is_definite: kimi::is_record,
        read: kimi::read,
        examine: Some(repair::kimi),
        is_repairable: true,
    },
    FormatEntry {
        format: Format::Gemini,
        name: "gemini",
        is_definite: gemini::is_record,
        read: gemini::read,
        examine: Some(repair::gemini),
        is_repairable: false,
    },
    FormatEntry {
        format: Format::Openai,
        name: "openai",
        is_definite: |value| detect::api_format(value) == Some(Format::Openai),
        read: openai::read,
        examine: Some(|lines, _| repair::messages(lines, Api::Chat)),
        is_repairable: true,
    },
    FormatEntry {
        format: Format::OpenaiResponses,
        name: "openai-responses",
        is_definite: |value| detect::api_format(value) == Some(Format::OpenaiResponses),
        read: responses::read,
        examine: Some(|lines, _| repair::messages(lines, Api::Responses)),
        is_repairable: true,
    },
    FormatEntry {
        format: Format::Anthropic,
        name: "anthropic",
        is_definite: |value| detect::api_format(value) == Some(Format::Anthropic),
        read: anthropic::read,
        examine: Some(|lines, _| repair::messages(lines, Api::Anthropic)),
        is_repairable: true,
    },
];

impl Format {
    /// The entry of the format in the table.
    pub(crate) fn entry(self) -> &'static FormatEntry {
        // The table has the order of the variants; a test checks it.
        &FORMATS[self as usize]
    }

    /// The name on the command line.
    pub(crate) fn name(self) -> &'static str {
        self.entry().name
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
    if is_database(path) && matches!(format, None | Some(Format::Opencode)) {
        return opencode::read_store(path, visit);
    }
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
    (format.entry().read)(lines, visit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_an_entry_per_format_with_its_name() {
        for (format, entry) in Format::value_variants().iter().zip(&FORMATS) {
            assert_eq!(*format, entry.format);
            let value = format.to_possible_value().expect("name");
            assert_eq!(value.get_name(), entry.name);
        }
        assert_eq!(Format::value_variants().len(), FORMATS.len());
    }
}
