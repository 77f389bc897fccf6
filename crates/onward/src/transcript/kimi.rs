//! Kimi Code's `wire.jsonl`: one record per line, with a `type` and a `time`.
//!
//! `turn.prompt` starts a turn. The loop events contain the steps of the model, its calls and their
//! results. Compaction and `/clear` remove the records before them from the context.

use serde_json::Value;

use super::event::{AgentFormat, Entry, Event, millis, string};
use super::external_change::AgentTools;
use super::messages::text;
use super::openai::parse_arguments;
use super::{Error, Format, Lines, Visitor};

pub(super) const AGENT: AgentFormat = AgentFormat {
    format: Format::Kimi,
    expected: "a Kimi wire record",
    parse,
    tools: AgentTools {
        edit: &["Edit", "Write", "StrReplaceFile", "WriteFile"],
        read: &[
            "FetchURL",
            "Glob",
            "Grep",
            "Read",
            "ReadFile",
            "ReadMediaFile",
            "SetTodoList",
            "TodoList",
            "WebSearch",
        ],
        shell: &["Bash", "Shell"],
    },
};

/// Whether a value is a record of a wire log.
pub(super) fn is_record(value: &Value) -> bool {
    let kind = value["type"].as_str().unwrap_or_default();
    (kind == "metadata" && value["protocol_version"].is_string())
        || kind.starts_with("context.append_")
        || (kind == "turn.prompt" && value["input"].is_array())
}

pub(super) fn read(lines: Lines, visit: &mut Visitor<'_>) -> Result<(), Error> {
    AGENT.read_lines(lines, visit)
}

fn parse(mut record: Value) -> Entry {
    let events = match record["type"].as_str() {
        Some("turn.prompt") => vec![Event::Prompt],
        Some("context.append_loop_event") => loop_event(&mut record["event"]),
        Some("context.append_message") => message(&record["message"]),
        Some("context.apply_compaction" | "context.clear" | "context.undo") => vec![Event::Reset],
        Some(_) | None => Vec::new(),
    };
    Entry {
        events,
        at: millis(&record["time"]),
    }
}

fn loop_event(event: &mut Value) -> Vec<Event> {
    match event["type"].as_str() {
        Some("step.begin") => vec![Event::Step],
        Some("content.part") => {
            let part = &event["part"];
            let texts = [&part["text"], &part["think"]];
            let text = texts.into_iter().find_map(|text| text.as_str());
            text.map(|text| Event::Text(text.to_owned()))
                .into_iter()
                .collect()
        }
        Some("tool.call") => vec![Event::Call {
            id: string(&event["toolCallId"]),
            tool: string(&event["name"]),
            input: parse_arguments(&event["args"]),
        }],
        Some("tool.result") => vec![Event::Result {
            id: string(&event["toolCallId"]),
            ok: Some(event["result"]["isError"] != true),
            output: text(&event["result"]["output"]).into_owned(),
        }],
        Some(_) | None => Vec::new(),
    }
}

/// A message from another source than the loop, as in a forked session.
fn message(message: &Value) -> Vec<Event> {
    match message["role"].as_str() {
        Some("assistant") => {
            let calls = message["toolCalls"].as_array().into_iter().flatten();
            let call = |call: &Value| {
                let function = call.get("function").unwrap_or(call);
                Event::Call {
                    id: string(&call["id"]),
                    tool: string(&function["name"]),
                    input: parse_arguments(&function["arguments"]),
                }
            };
            let text = text(&message["content"]).into_owned();
            [Event::Step, Event::Text(text)]
                .into_iter()
                .chain(calls.map(call))
                .collect()
        }
        Some("tool") => vec![Event::Result {
            id: string(&message["toolCallId"]),
            ok: Some(message["isError"] != true),
            output: text(&message["content"]).into_owned(),
        }],
        Some(_) | None => Vec::new(),
    }
}
