//! Detects the format of a file from its content.
//!
//! Only content that occurs in exactly one format determines the result. Lines that occur in several
//! formats or at the head of a log (titles, snapshots), and invalid lines are skipped, up to a
//! limit. A file without such content is rejected.

use serde_json::Value;

use super::lines::parse;
use super::responses::is_item;
use super::{Error, FORMATS, Format, Lines};

/// The maximum number of lines inspected.
const MAX_LINES: usize = 200;

/// The types of lines that Claude Code writes besides messages.
const METADATA_TYPES: [&str; 8] = [
    "summary",
    "system",
    "file-history-snapshot",
    "queue-operation",
    "progress",
    "attachment",
    "custom-title",
    "last-prompt",
];

/// Detects the format without consuming lines.
pub(super) fn detect(lines: &mut Lines) -> Result<Format, Error> {
    let name = lines.name().to_owned();
    let mut likely = None;
    let mut first_error = None;
    for index in 0..MAX_LINES {
        let Some((number, line)) = lines.peek(index)? else {
            break;
        };
        let (number, mut cause) = match parse::<Value>(line) {
            Ok(value) => {
                if let Some(format) = definite_format(&value) {
                    return Ok(format);
                }
                likely = likely.or_else(|| likely_format(&value));
                continue;
            }
            Err(cause) => (number, cause),
        };
        // A value that continues after its first line is one document on many lines.
        if index == 0 && cause.is_eof() {
            match whole(lines)? {
                Ok(document) => {
                    return definite_format(&document).ok_or(Error::UnknownFormat { name });
                }
                Err(error) => cause = error,
            }
        }
        first_error.get_or_insert_with(|| Error::from_json(&name, number, "JSON", cause));
    }
    likely.ok_or(first_error.unwrap_or(Error::UnknownFormat { name }))
}

/// The first JSON value of a file, without consuming lines.
pub(super) fn whole(lines: &mut Lines) -> Result<serde_json::Result<Value>, Error> {
    let text = lines.peek_all()?;
    let mut documents = serde_json::Deserializer::from_slice(&text).into_iter::<Value>();
    Ok(documents.next().unwrap_or(Ok(Value::Null)))
}

/// The value of a file that is one document on many lines. `None` for a file with a value per line.
pub(super) fn document(lines: &mut Lines) -> Result<Option<Value>, Error> {
    let Some((_, line)) = lines.peek(0)? else {
        return Ok(None);
    };
    if parse::<Value>(line).is_ok() {
        return Ok(None);
    }
    Ok(whole(lines)?.ok())
}

/// The format of a value that occurs in exactly one format.
fn definite_format(value: &Value) -> Option<Format> {
    let mut formats = FORMATS.iter();
    let entry = formats.find(|entry| (entry.is_definite)(value));
    entry.map(|entry| entry.format)
}

/// Whether a value is a line with a message of a Claude Code log.
pub(super) fn is_claude_code(value: &Value) -> bool {
    let is_entry = value["type"] == "user" || value["type"] == "assistant";
    is_entry && value["message"].is_object()
}

/// The API of a list of messages, of a request or of a message.
pub(super) fn api_format(value: &Value) -> Option<Format> {
    if let Some(messages) = value.as_array() {
        return list_format(messages);
    }
    if let Some(messages) = value["messages"].as_array() {
        // An Anthropic request has the system prompt next to the messages.
        let by_system = value.get("system").map(|_| Format::Anthropic);
        return by_system.or_else(|| list_format(messages));
    }
    if let Some(items) = value["input"].as_array() {
        let is_request = items
            .iter()
            .any(|item| item["role"].is_string() || is_item(item));
        return is_request.then_some(Format::OpenaiResponses);
    }
    message_format(value)
}

/// The format of a list of messages. Plain messages are the same in all APIs.
fn list_format(messages: &[Value]) -> Option<Format> {
    let has_messages = messages.iter().any(|message| message["role"].is_string());
    let formats = || messages.iter().filter_map(message_format);
    let is_responses = formats().any(|format| format == Format::OpenaiResponses);
    let format = is_responses.then_some(Format::OpenaiResponses);
    format
        .or_else(|| formats().next())
        .or(has_messages.then_some(Format::Openai))
}

fn message_format(message: &Value) -> Option<Format> {
    if !message["role"].is_string() {
        return is_item(message).then_some(Format::OpenaiResponses);
    }
    let openai = ["tool", "function"]
        .iter()
        .any(|role| message["role"] == *role)
        || message["tool_calls"].is_array()
        || message["function_call"].is_object();
    if openai {
        return Some(Format::Openai);
    }
    let Some(blocks) = message["content"].as_array() else {
        return is_item(message).then_some(Format::OpenaiResponses);
    };
    let has = |kinds: &[&str]| {
        let mut kinds = kinds.iter();
        kinds.any(|kind| blocks.iter().any(|block| block["type"] == *kind))
    };
    if has(&["tool_use", "tool_result", "thinking"]) {
        Some(Format::Anthropic)
    } else if has(&["input_text", "output_text"]) {
        Some(Format::OpenaiResponses)
    } else {
        None
    }
}

/// The likely format of a value if no line decides: a plain message, or a line that Claude Code
/// writes besides messages.
fn likely_format(value: &Value) -> Option<Format> {
    if value["role"].is_string() {
        return Some(Format::Openai);
    }
    let is_metadata = METADATA_TYPES.iter().any(|kind| value["type"] == *kind);
    is_metadata.then_some(Format::ClaudeCode)
}
