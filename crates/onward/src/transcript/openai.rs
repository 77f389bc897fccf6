//! Messages of OpenAI Chat Completions and compatible APIs.
//!
//! A turn ends at the next `user` message. Results have no error flag: a result that starts with
//! `Error` failed, and the success of others is unknown. External changes are unknown.

use serde_json::Value;

use super::messages::{self, MessageRules, is_user_prompt, text};
use super::turn_builder::TurnBuilder;
use super::{Error, Format, Lines, Visitor};

/// Reads every conversation.
pub(super) fn read(lines: Lines, visit: &mut Visitor<'_>) -> Result<(), Error> {
    let rules = MessageRules {
        format: Format::Openai,
        list: "messages",
        is_message: |value| value["role"].is_string(),
        is_prompt,
        add_message,
    };
    messages::read(lines, &rules, visit)
}

fn is_prompt(message: &Value) -> bool {
    message["role"] == "user" && is_user_prompt(&text(&message["content"]))
}

fn add_message(builder: &mut TurnBuilder, message: &mut Value) {
    let Some(role) = message["role"].as_str() else {
        return;
    };
    match role {
        "assistant" => add_response(builder, message),
        "tool" => add_result(builder, &message["tool_call_id"], message),
        // The older function API: results have the name of the function instead of a call id.
        "function" => add_result(builder, &message["name"], message),
        _ => {}
    }
}

fn add_response(builder: &mut TurnBuilder, message: &mut Value) {
    let step = builder.begin_step();
    builder.add_text(step, &text(&message["content"]));
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        let function = &call["function"];
        // The input of a custom tool is plain text.
        let (function, input) = if function.is_object() {
            (function, parse_arguments(&function["arguments"]))
        } else {
            (&call["custom"], call["custom"]["input"].clone())
        };
        let tool = function["name"].as_str().unwrap_or_default();
        builder.add_call(step, call["id"].as_str(), tool, input);
    }
    let old = &message["function_call"];
    if let Some(tool) = old["name"].as_str() {
        builder.add_call(step, Some(tool), tool, parse_arguments(&old["arguments"]));
    }
}

/// The arguments of a call: the parsed JSON, or the string itself if it is not JSON.
pub(super) fn parse_arguments(arguments: &Value) -> Value {
    let parsed = arguments.as_str().map(serde_json::from_str);
    match parsed {
        Some(Ok(input)) => input,
        Some(Err(_)) | None => arguments.clone(),
    }
}

fn add_result(builder: &mut TurnBuilder, id: &Value, message: &Value) {
    let Some(id) = id.as_str() else {
        return;
    };
    let output = text(&message["content"]).into_owned();
    let ok = output.starts_with("Error").then_some(false);
    builder.add_result(id, ok, output);
}
