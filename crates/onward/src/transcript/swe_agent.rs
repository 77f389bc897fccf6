//! SWE-agent's `.traj`: one run of the agent, which is one turn.
//!
//! Each entry of the trajectory is one step with one action, written as a command. SWE-agent keeps
//! no mark of failure: an observation fails by what it says, and its own commands that answered
//! succeeded; of the others nobody knows. The history and the settings in the file are passed over.

use onward_core::turn::Outside;
use serde::Deserialize;
use serde_json::Value;

use super::outside::{self, Edits};
use super::{Call, Each, Error, Format, Found, Lines, Step, Turn};

/// What only a failure says, wherever it stands.
const FAILED: [&str; 13] = [
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

/// SWE-agent's own commands that look at something.
const LOOKS: [&str; 8] = [
    "open",
    "goto",
    "scroll_down",
    "scroll_up",
    "search_dir",
    "search_file",
    "find_file",
    "filemap",
];

/// SWE-agent's own commands that write a file.
const WRITES: [&str; 4] = ["edit", "create", "insert", "append"];

#[derive(Deserialize)]
struct Run {
    trajectory: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    action: Option<String>,
    observation: Option<String>,
}

/// Reads every run; there is one in a file as a rule.
pub(super) fn read(lines: Lines, each: &mut Each<'_>) -> Result<(), Error> {
    let name = lines.name().to_owned();
    let runs = serde_json::Deserializer::from_reader(lines.into_bytes());
    for (count, run) in runs.into_iter::<Run>().enumerate() {
        let run = run.map_err(|cause| Error::of_json(&name, 1, "a run of SWE-agent", cause))?;
        let id = match count {
            0 => name.clone(),
            _ => format!("{name}#{count}"),
        };
        let mut edits = Edits::default();
        let turn = Turn {
            id,
            source: Format::SweAgent.name().to_owned(),
            steps: run
                .trajectory
                .into_iter()
                .map(|entry| step(entry, &mut edits))
                .collect(),
        };
        if each(Found::Turn(turn)).is_break() {
            break;
        }
    }
    Ok(())
}

fn step(entry: Entry, edits: &mut Edits) -> Step {
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
        outside: outside_of(&call, &action, edits),
        calls: vec![call],
        ..Step::default()
    }
}

fn success(action: &str, tool: &str, output: &str) -> Option<bool> {
    let opens = output.trim_start();
    let own = looks(action, tool) || writes(action, tool);
    // A page of a file says nothing about itself, whatever stands on it.
    if own && opens.starts_with("[File: ") {
        return Some(true);
    }
    let names = opens.starts_with("File ") || opens.starts_with("Directory ");
    let not_found = names && opens.contains(" not found");
    if not_found || opens.starts_with("Usage: ") || FAILED.iter().any(|sign| output.contains(sign))
    {
        return Some(false);
    }
    (own && !opens.is_empty()).then_some(true)
}

fn outside_of(call: &Call, action: &str, edits: &mut Edits) -> Outside {
    if writes(action, &call.tool) {
        return match call.ok {
            Some(true) => edits.accepted(call),
            Some(false) => Outside::Same,
            None => Outside::Unknown,
        };
    }
    if looks(action, &call.tool) {
        return Outside::Same;
    }
    outside::of_command(action)
}

fn looks(action: &str, tool: &str) -> bool {
    LOOKS.contains(&tool) || action.starts_with("str_replace_editor view")
}

fn writes(action: &str, tool: &str) -> bool {
    WRITES.contains(&tool) || (tool == "str_replace_editor" && !looks(action, tool))
}
