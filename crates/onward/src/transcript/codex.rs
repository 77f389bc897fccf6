//! Codex rollouts: JSON lines `{"timestamp", "type", "payload"}`.
//!
//! The payload of a `response_item` is an item of the Responses API. Prompts are recorded as events,
//! too; Codex also writes messages with the role of the user, which are enclosed in tags.

use serde_json::Value;

use super::event::{AgentFormat, Entry, Event};
use super::external_change::AgentTools;
use super::messages::text;
use super::responses::{is_user_message, item_events};
use super::{Error, Format, Lines, Visitor};

const AGENT: AgentFormat = AgentFormat {
    format: Format::Codex,
    expected: "a Codex rollout line",
    parse,
    tools: AgentTools {
        edit: &["apply_patch"],
        read: &[
            "list_dir",
            "read_file",
            "grep_files",
            "update_plan",
            "view_image",
        ],
        shell: &["exec_command", "local_shell_call", "shell", "shell_command"],
    },
};

/// The types of lines.
const TYPES: [&str; 6] = [
    "compacted",
    "event_msg",
    "response_item",
    "session_meta",
    "turn_context",
    "world_state",
];

/// Whether a value is a line of a rollout.
pub(super) fn is_line(value: &Value) -> bool {
    value["payload"].is_object() && TYPES.iter().any(|kind| value["type"] == *kind)
}

pub(super) fn read(lines: Lines, visit: &mut Visitor<'_>) -> Result<(), Error> {
    AGENT.read_lines(lines, visit)
}

fn parse(line: Value) -> Entry {
    let payload = &line["payload"];
    let events = match line["type"].as_str() {
        Some("event_msg") if payload["type"] == "user_message" => vec![Event::Prompt],
        Some("response_item") if is_user_message(payload) => {
            let is_prompt = is_prompt(&text(&payload["content"]));
            is_prompt.then_some(Event::Prompt).into_iter().collect()
        }
        Some("response_item") => item_events(payload),
        Some(_) | None => Vec::new(),
    };
    Entry {
        events,
        at: line["timestamp"].as_str().and_then(|at| at.parse().ok()),
    }
}

/// Whether a user message is from the user: not empty, and not written by Codex.
fn is_prompt(text: &str) -> bool {
    let text = text.trim();
    let is_element = text.starts_with('<') && text.ends_with('>');
    !text.is_empty() && !is_element && !text.starts_with("# AGENTS.md instructions")
}
