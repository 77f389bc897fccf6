//! Copilot CLI's `events.jsonl`: JSON lines `{"type", "data", "id", "timestamp", "parentId"}`.
//!
//! An `assistant.message` contains all calls of a model response. Each result is a later
//! `tool.execution_complete`. Events with an `agentId` belong to a subagent; its calls are
//! recorded together with the others.

use serde_json::Value;

use super::event::{AgentFormat, Entry, Event, string};
use super::external_change::AgentTools;
use super::messages::is_user_prompt;
use super::openai::parse_arguments;
use super::{Error, Format, Lines, Visitor};

pub(super) const AGENT: AgentFormat = AgentFormat {
    format: Format::Copilot,
    expected: "a Copilot event",
    parse,
    tools: AgentTools {
        edit: &["apply_patch", "create", "edit", "str_replace_editor"],
        read: &[
            "glob",
            "grep",
            "report_intent",
            "rg",
            "update_todo",
            "view",
            "web_fetch",
        ],
        shell: &["bash", "powershell", "shell"],
    },
};

/// The groups of event types.
const GROUPS: [&str; 5] = [
    "session.",
    "user.message",
    "assistant.",
    "tool.execution_",
    "subagent.",
];

/// Whether a value is an event.
pub(super) fn is_event(value: &Value) -> bool {
    let kind = value["type"].as_str().unwrap_or_default();
    value["data"].is_object() && GROUPS.iter().any(|group| kind.starts_with(group))
}

pub(super) fn read(lines: Lines, visit: &mut Visitor<'_>) -> Result<(), Error> {
    AGENT.read_lines(lines, visit)
}

fn parse(event: Value) -> Entry {
    let data = &event["data"];
    let events = match event["type"].as_str() {
        Some("user.message") => {
            let is_prompt = data["content"].as_str().is_some_and(is_user_prompt);
            is_prompt.then_some(Event::Prompt).into_iter().collect()
        }
        Some("assistant.message") => response(data),
        Some("tool.execution_complete") => vec![Event::Result {
            id: string(&data["toolCallId"]),
            ok: data["success"].as_bool(),
            output: output(data),
        }],
        Some("session.compaction_complete") => vec![Event::Reset],
        Some(_) | None => Vec::new(),
    };
    Entry {
        events,
        at: event["timestamp"].as_str().and_then(|at| at.parse().ok()),
    }
}

fn response(data: &Value) -> Vec<Event> {
    let requests = data["toolRequests"].as_array().into_iter().flatten();
    let call = |request: &Value| Event::Call {
        id: string(&request["toolCallId"]),
        tool: string(&request["name"]),
        input: parse_arguments(&request["arguments"]),
    };
    [Event::Step, Event::Text(string(&data["content"]))]
        .into_iter()
        .chain(requests.map(call))
        .collect()
}

/// The text of a result: the content for the model, the error, or the whole result.
fn output(data: &Value) -> String {
    let result = &data["result"];
    let texts = [
        &result["content"],
        &data["error"]["message"],
        &data["error"],
        result,
    ];
    let text = texts.iter().find_map(|text| text.as_str());
    text.map_or_else(|| result.to_string(), str::to_owned)
}
