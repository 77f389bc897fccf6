//! Detects the format of a file from its content.
//!
//! Only content that occurs in exactly one format determines the result. Lines that occur in several
//! formats or at the head of a log (titles, snapshots) are skipped, up to a limit. A file without
//! such content is rejected.

use serde_json::Value;

use super::lines::parse;
use super::{Error, Format, Lines};

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
    for index in 0..MAX_LINES {
        let Some((number, line)) = lines.peek(index)? else {
            break;
        };
        match parse::<Value>(line) {
            Ok(value) => {
                if let Some(format) = definite_format(&value) {
                    return Ok(format);
                }
                likely = likely.or_else(|| likely_format(&value));
            }
            // A value that continues after its first line is one document on many lines.
            Err(cause) if index == 0 && cause.is_eof() => return detect_document(lines, &name),
            Err(cause) if index == 0 => {
                return Err(Error::from_json(&name, number, "JSON", cause));
            }
            // The reader reports the error in the rest of the file.
            Err(_) => break,
        }
    }
    likely.ok_or(Error::UnknownFormat { name })
}

fn detect_document(lines: &mut Lines, name: &str) -> Result<Format, Error> {
    let text = lines.peek_all()?;
    let mut documents = serde_json::Deserializer::from_slice(&text).into_iter::<Value>();
    match documents.next() {
        Some(Ok(document)) => definite_format(&document).ok_or(Error::UnknownFormat {
            name: name.to_owned(),
        }),
        Some(Err(cause)) => Err(Error::from_json(name, 1, "JSON", cause)),
        None => Err(Error::UnknownFormat {
            name: name.to_owned(),
        }),
    }
}

/// The format of a value that occurs in exactly one format.
pub(super) fn definite_format(value: &Value) -> Option<Format> {
    if let Some(messages) = value.as_array() {
        return list_format(messages);
    }
    if value["steps"].is_array() && value["id"].is_string() {
        return Some(Format::Turns);
    }
    if let Some(messages) = value["messages"].as_array() {
        // An Anthropic request has the system prompt next to the messages.
        let by_system = value.get("system").map(|_| Format::Anthropic);
        return by_system.or_else(|| list_format(messages));
    }
    if value["role"].is_string() {
        return message_format(value);
    }
    let is_entry = value["type"] == "user" || value["type"] == "assistant";
    (is_entry && value["message"].is_object()).then_some(Format::ClaudeCode)
}

/// The format of a list of messages. Plain messages are the same in both APIs.
fn list_format(messages: &[Value]) -> Option<Format> {
    let has_messages = messages.iter().any(|message| message["role"].is_string());
    let first = messages.iter().find_map(message_format);
    first.or(has_messages.then_some(Format::Openai))
}

fn message_format(message: &Value) -> Option<Format> {
    let openai = ["tool", "function", "system", "developer"]
        .iter()
        .any(|role| message["role"] == *role)
        || message["tool_calls"].is_array()
        || message["function_call"].is_object();
    if openai {
        return Some(Format::Openai);
    }
    let blocks = message["content"].as_array()?;
    ["tool_use", "tool_result", "thinking"]
        .iter()
        .any(|kind| blocks.iter().any(|block| block["type"] == *kind))
        .then_some(Format::Anthropic)
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
