//! Messages of OpenAI's Chat Completions, and of everything that speaks like it.
//!
//! A turn goes from one `user` message to the next. Results carry no mark of failure; one that
//! begins with `Error` failed, of the others nobody knows. Nothing is known of the outside.

use serde_json::Value;

use super::draft::Draft;
use super::messages::{self, Dialect, is_from_a_person, text};
use super::{Each, Error, Format, Lines};

/// Reads every conversation.
pub(super) fn read(lines: Lines, each: &mut Each<'_>) -> Result<(), Error> {
    let dialect = Dialect {
        format: Format::Openai,
        is_prompt,
        take,
    };
    messages::read(lines, &dialect, each)
}

fn is_prompt(message: &Value) -> bool {
    message["role"] == "user" && is_from_a_person(&text(&message["content"]))
}

fn take(draft: &mut Draft, message: &mut Value) {
    let Some(role) = message["role"].as_str() else {
        return;
    };
    match role {
        "assistant" => assistant(draft, message),
        "tool" => answer(draft, &message["tool_call_id"], message),
        // The calls that came before tools: their results name the function, not the call.
        "function" => answer(draft, &message["name"], message),
        _ => {}
    }
}

fn assistant(draft: &mut Draft, message: &mut Value) {
    let step = draft.begin_step();
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        let function = &call["function"];
        // A tool of the kind `custom` is asked in plain text.
        let (function, input) = if function.is_object() {
            (function, arguments(&function["arguments"]))
        } else {
            (&call["custom"], call["custom"]["input"].clone())
        };
        let tool = function["name"].as_str().unwrap_or_default();
        draft.call(step, call["id"].as_str(), tool, input);
    }
    let old = &message["function_call"];
    if let Some(tool) = old["name"].as_str() {
        draft.call(step, Some(tool), tool, arguments(&old["arguments"]));
    }
}

/// Arguments are JSON within a text; where they are not, the text itself is the input.
fn arguments(arguments: &Value) -> Value {
    let parsed = arguments.as_str().map(serde_json::from_str);
    match parsed {
        Some(Ok(input)) => input,
        Some(Err(_)) | None => arguments.clone(),
    }
}

fn answer(draft: &mut Draft, id: &Value, message: &Value) {
    let Some(id) = id.as_str() else {
        return;
    };
    let output = text(&message["content"]).into_owned();
    let ok = output.starts_with("Error").then_some(false);
    draft.answer(id, ok, output);
}
