//! SWE-agent `.traj` files: one run of the agent, which is one turn.
//!
//! Each trajectory entry is a step with one action, a command. Entries have no error flag: an
//! observation with a failure marker failed, SWE-agent's own commands with other output succeeded,
//! and the success of the rest is unknown. The history and the settings in the file are ignored.

use onward_core::turn::{ExternalChange, command_effect};
use serde::Deserialize;
use serde_json::Value;

use super::external_change::EditTracker;
use super::{Call, Error, Format, Lines, ReaderItem, Step, Turn, Visitor};

/// Texts that occur only in a failed observation.
const FAILURE_MARKERS: [&str; 13] = [
    "Traceback (most recent call last)",
    "command not found",
    "Your proposed edit has introduced new syntax error(s)",
    "No such file or directory",
    "EXECUTION TIMED OUT",
    "BUILD FAILURE",
    "No file open. Use the open command first",
    "No replacement was performed",
    "is a directory. You can only",
    "syntax error near unexpected token",
    "COMMAND FAILED TO EXECUTE",
    "Permission denied",
    "Error: ",
];

/// SWE-agent commands that read.
const READ_COMMANDS: [&str; 8] = [
    "open",
    "goto",
    "scroll_down",
    "scroll_up",
    "search_dir",
    "search_file",
    "find_file",
    "filemap",
];

/// SWE-agent commands that write a file.
const WRITE_COMMANDS: [&str; 4] = ["edit", "create", "insert", "append"];

#[derive(Deserialize)]
struct Run {
    trajectory: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    action: Option<String>,
    observation: Option<String>,
}

/// Reads every run. A file usually contains one.
pub(super) fn read(lines: Lines, visit: &mut Visitor<'_>) -> Result<(), Error> {
    let name = lines.name().to_owned();
    let runs = serde_json::Deserializer::from_reader(lines.into_bytes());
    for (count, run) in runs.into_iter::<Run>().enumerate() {
        let run = run.map_err(|cause| Error::from_json(&name, 1, "a SWE-agent run", cause))?;
        let id = match count {
            0 => name.clone(),
            _ => format!("{name}#{count}"),
        };
        let mut edits = EditTracker::default();
        let turn = Turn {
            id,
            source: Format::SweAgent.name().to_owned(),
            steps: run
                .trajectory
                .into_iter()
                .map(|entry| step(entry, &mut edits))
                .collect(),
        };
        if visit(ReaderItem::Turn(turn)).is_break() {
            break;
        }
    }
    Ok(())
}

fn step(entry: Entry, edits: &mut EditTracker) -> Step {
    let action = entry.action.unwrap_or_default();
    let output = entry.observation.unwrap_or_default();
    let tool = action.split_whitespace().next().unwrap_or_default();
    let call = Call {
        tool: tool.to_owned(),
        ok: success(&action, tool, &output),
        input: Value::String(action.trim_end().to_owned()),
        output,
    };
    Step {
        external_change: call_effect(&call, &action, edits),
        calls: vec![call],
        ..Step::default()
    }
}

fn success(action: &str, tool: &str, output: &str) -> Option<bool> {
    let start = output.trim_start();
    let own = is_read(action, tool) || is_write(action, tool);
    // A page of a file is a success, whatever text it contains.
    if own && start.starts_with("[File: ") {
        return Some(true);
    }
    let names_path = start.starts_with("File ") || start.starts_with("Directory ");
    let not_found = names_path && start.contains(" not found");
    if not_found
        || start.starts_with("Usage: ")
        || FAILURE_MARKERS.iter().any(|marker| output.contains(marker))
    {
        return Some(false);
    }
    (own && !start.is_empty()).then_some(true)
}

fn call_effect(call: &Call, action: &str, edits: &mut EditTracker) -> ExternalChange {
    if is_write(action, &call.tool) {
        return match call.ok {
            Some(true) => edits.record_edit(call),
            Some(false) => ExternalChange::Unchanged,
            None => ExternalChange::Unknown,
        };
    }
    if is_read(action, &call.tool) {
        return ExternalChange::Unchanged;
    }
    command_effect(action)
}

fn is_read(action: &str, tool: &str) -> bool {
    READ_COMMANDS.contains(&tool) || action.starts_with("str_replace_editor view")
}

fn is_write(action: &str, tool: &str) -> bool {
    WRITE_COMMANDS.contains(&tool) || (tool == "str_replace_editor" && !is_read(action, tool))
}
