//! Messages of Anthropic's Messages API.
//!
//! A `user` message with tool results is no prompt, whatever else stands in it: reminders are put
//! there by harnesses. Nothing is known of the outside.
//! The blocks of a message are the same in Claude Code's logs; `claude_code` reads them with the
//! functions from here.

use serde_json::Value;

use super::draft::Draft;
use super::messages::{self, Dialect, is_from_a_person, text};
use super::{Each, Error, Format, Lines};

/// Reads every conversation.
pub(super) fn read(lines: Lines, each: &mut Each<'_>) -> Result<(), Error> {
    let dialect = Dialect {
        format: Format::Anthropic,
        is_prompt,
        take,
    };
    messages::read(lines, &dialect, each)
}

fn is_prompt(message: &Value) -> bool {
    message["role"] == "user"
        && !has_results(message)
        && is_from_a_person(&text(&message["content"]))
}

fn take(draft: &mut Draft, message: &mut Value) {
    if message["role"] == "assistant" {
        let step = draft.begin_step();
        calls(draft, step, message);
    } else {
        for (id, ok, output) in results(message) {
            draft.answer(id, ok, output);
        }
    }
}

/// Whether a message holds the result of a call.
pub(super) fn has_results(message: &Value) -> bool {
    blocks(message).any(|block| block["type"] == "tool_result")
}

/// Adds the calls of a message to a step.
pub(super) fn calls(draft: &mut Draft, step: usize, message: &mut Value) {
    let blocks = message.get_mut("content").and_then(Value::as_array_mut);
    for block in blocks.into_iter().flatten() {
        if block["type"] != "tool_use" {
            continue;
        }
        let input = block.get_mut("input").map(Value::take).unwrap_or_default();
        let tool = block["name"].as_str().unwrap_or_default();
        draft.call(step, block["id"].as_str(), tool, input);
    }
}

/// The results in a message: of which call, whether it succeeded, and what came out.
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
