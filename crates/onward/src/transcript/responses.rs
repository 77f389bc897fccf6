//! Items of OpenAI's Responses API.
//!
//! A response is a sequence of items: reasoning, messages and calls. It ends at the first result or
//! user message. Codex rollouts contain the same items, so `codex` uses [`item_events`].

use serde_json::Value;

use super::event::{Event, add_event, string};
use super::messages::{self, MessageRules, is_user_prompt, text};
use super::openai::parse_arguments;
use super::turn_builder::TurnBuilder;
use super::{Error, Format, Lines, Visitor};

/// Reads every conversation.
pub(super) fn read(lines: Lines, visit: &mut Visitor<'_>) -> Result<(), Error> {
    let rules = MessageRules {
        format: Format::OpenaiResponses,
        list: "input",
        is_message: |value| value["role"].is_string() || is_item(value),
        is_prompt: |item| is_user_message(item) && is_user_prompt(&text(&item["content"])),
        add_message,
    };
    messages::read(lines, &rules, visit)
}

fn add_message(builder: &mut TurnBuilder, item: &mut Value) {
    for event in item_events(item) {
        add_event(builder, event);
    }
}

/// Whether a value occurs only in Responses. A message of the Messages API can have a type, too.
pub(super) fn is_item(value: &Value) -> bool {
    let kind = value["type"].as_str().unwrap_or_default();
    let is_call = kind.ends_with("_call") || kind.ends_with("_call_output");
    let is_message = kind == "message" && value["role"].is_string();
    is_message || kind == "reasoning" || (is_call && value["call_id"].is_string())
}

/// Whether an item is a message of the user.
pub(super) fn is_user_message(item: &Value) -> bool {
    item["role"] == "user"
}

/// The events of an item that is not a prompt.
pub(super) fn item_events(item: &Value) -> Vec<Event> {
    if item["role"].is_string() {
        if item["role"] != "assistant" {
            return Vec::new();
        }
        let text = text(&item["content"]).into_owned();
        return vec![Event::Content, Event::Text(text)];
    }
    let kind = item["type"].as_str().unwrap_or_default();
    let Some(id) = item["call_id"].as_str() else {
        // A thought, or a call that the server executes.
        if kind.is_empty() || kind.ends_with("_output") {
            return Vec::new();
        }
        let thought = text(&item["summary"]).into_owned();
        return vec![Event::Content, Event::Text(thought)];
    };
    let id = id.to_owned();
    if kind.ends_with("_output") {
        let (ok, output) = result(&item["output"]);
        return vec![Event::Result { id, ok, output }];
    }
    let input = [&item["arguments"], &item["input"], &item["action"]];
    let input = input.into_iter().find(|input| !input.is_null());
    vec![
        Event::Content,
        Event::Call {
            id,
            tool: string(if item["name"].is_string() {
                &item["name"]
            } else {
                &item["type"]
            }),
            input: input.map(parse_arguments).unwrap_or_default(),
        },
    ]
}

/// The success and the text of an output. Codex reports the exit code of a command in a header, or
/// in JSON.
fn result(output: &Value) -> (Option<bool>, String) {
    let output = text(output).into_owned();
    if output.starts_with('{')
        && let Ok(json) = serde_json::from_str::<Value>(&output)
        && let Some(code) = json["metadata"]["exit_code"].as_i64()
    {
        return (Some(code == 0), string(&json["output"]));
    }
    let header = output.lines().take(6);
    let code = header.filter_map(|line| {
        let code = line
            .strip_prefix("Exit code: ")
            .or_else(|| line.strip_prefix("Process exited with code "))?;
        code.trim().parse::<i64>().ok()
    });
    let failed = ["Error", "error:", "apply_patch verification failed"]
        .iter()
        .any(|prefix| output.starts_with(prefix));
    let ok = code.map(|code| code == 0).next();
    (ok.or(failed.then_some(false)), output)
}
