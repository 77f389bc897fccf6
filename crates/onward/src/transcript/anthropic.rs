//! Messages of the Anthropic Messages API.
//!
//! A `user` message with tool results is not a prompt, even with other content: harnesses add
//! reminders to it. External changes are unknown. Claude Code logs contain the same blocks, so
//! `claude_code` uses the functions of this file.

use serde_json::Value;

use super::messages::{self, MessageRules, is_user_prompt, text};
use super::turn_builder::TurnBuilder;
use super::{Error, Format, Lines, Visitor};

/// Reads every conversation.
pub(super) fn read(lines: Lines, visit: &mut Visitor<'_>) -> Result<(), Error> {
    let rules = MessageRules {
        format: Format::Anthropic,
        list: "messages",
        is_message: |value| value["role"].is_string(),
        is_prompt,
        add_message,
    };
    messages::read(lines, &rules, visit)
}

fn is_prompt(message: &Value) -> bool {
    message["role"] == "user" && !has_results(message) && is_user_prompt(&text(&message["content"]))
}

fn add_message(builder: &mut TurnBuilder, message: &mut Value) {
    if message["role"] == "assistant" {
        let step = builder.begin_step();
        add_content(builder, step, message);
    } else {
        for (id, ok, output) in results(message) {
            builder.add_result(id, ok, output);
        }
    }
}

/// Whether a message contains tool results.
pub(super) fn has_results(message: &Value) -> bool {
    blocks(message).any(|block| block["type"] == "tool_result")
}

/// Adds the texts, thoughts and calls of a message to a step.
pub(super) fn add_content(builder: &mut TurnBuilder, step: usize, message: &mut Value) {
    if let Some(text) = message["content"].as_str() {
        builder.add_text(step, text);
    }
    let blocks = message.get_mut("content").and_then(Value::as_array_mut);
    for block in blocks.into_iter().flatten() {
        let texts = [&block["text"], &block["thinking"]];
        if let Some(text) = texts.into_iter().find_map(|text| text.as_str()) {
            builder.add_text(step, text);
        }
        if block["type"] != "tool_use" {
            continue;
        }
        let input = block.get_mut("input").map(Value::take).unwrap_or_default();
        let tool = block["name"].as_str().unwrap_or_default();
        builder.add_call(step, block["id"].as_str(), tool, input);
    }
}

/// The results in a message: call id, success and output.
pub(super) fn results(message: &Value) -> impl Iterator<Item = (&str, Option<bool>, String)> {
    blocks(message)
        .filter(|block| block["type"] == "tool_result")
        .filter_map(|block| {
            let id = block["tool_use_id"].as_str()?;
            let failed = block["is_error"].as_bool().unwrap_or(false);
            Some((id, Some(!failed), text(&block["content"]).into_owned()))
        })
}

fn blocks(message: &Value) -> impl Iterator<Item = &Value> {
    message["content"].as_array().into_iter().flatten()
}
