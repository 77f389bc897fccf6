//! Which format a file has, told by what is inside.
//!
//! Only signs that one format alone has decide. Lines that could stand in several of them, or at
//! the head of a log (titles, snapshots), are passed over, up to a bound. A file that no sign
//! decides is refused rather than guessed.

use serde_json::Value;

use super::lines::parse;
use super::{Error, Format, Lines};

/// How many lines are looked at before giving up.
const LINES: usize = 200;

/// The kinds of lines that Claude Code writes beside the messages, as far as they are known.
const BESIDE: [&str; 8] = [
    "summary",
    "system",
    "file-history-snapshot",
    "queue-operation",
    "progress",
    "attachment",
    "custom-title",
    "last-prompt",
];

/// Tells the format; nothing is taken from the lines.
pub(super) fn detect(lines: &mut Lines) -> Result<Format, Error> {
    let name = lines.name().to_owned();
    let mut hinted = None;
    for index in 0..LINES {
        let Some((number, line)) = lines.look(index)? else {
            break;
        };
        match parse::<Value>(line) {
            Ok(value) => {
                if let Some(format) = sign(&value) {
                    return Ok(format);
                }
                hinted = hinted.or_else(|| hint(&value));
            }
            // What does not end with its first line is one document over many lines.
            Err(cause) if index == 0 && cause.is_eof() => return detect_document(lines, &name),
            Err(cause) if index == 0 => {
                return Err(Error::of_json(&name, number, "JSON", cause));
            }
            // Something did begin well; the reader says what is wrong with the rest.
            Err(_) => break,
        }
    }
    hinted.ok_or(Error::UnknownFormat { name })
}

fn detect_document(lines: &mut Lines, name: &str) -> Result<Format, Error> {
    let text = lines.look_at_all()?;
    let mut documents = serde_json::Deserializer::from_slice(&text).into_iter::<Value>();
    match documents.next() {
        Some(Ok(document)) => sign(&document).ok_or(Error::UnknownFormat {
            name: name.to_owned(),
        }),
        Some(Err(cause)) => Err(Error::of_json(name, 1, "JSON", cause)),
        None => Err(Error::UnknownFormat {
            name: name.to_owned(),
        }),
    }
}

/// The format that a value can only have.
pub(super) fn sign(value: &Value) -> Option<Format> {
    if let Some(messages) = value.as_array() {
        return dialect(messages);
    }
    if value["steps"].is_array() && value["id"].is_string() {
        return Some(Format::Turns);
    }
    if value["trajectory"].is_array() {
        return Some(Format::SweAgent);
    }
    if let Some(messages) = value["messages"].as_array() {
        // Anthropic's request carries the system prompt beside the messages.
        let of_system = value.get("system").map(|_| Format::Anthropic);
        return of_system.or_else(|| dialect(messages));
    }
    if value["role"].is_string() {
        return dialect_of(value);
    }
    let speaks = value["type"] == "user" || value["type"] == "assistant";
    (speaks && value["message"].is_object()).then_some(Format::ClaudeCode)
}

/// Whose messages these are. A talk without any sign reads the same in both.
fn dialect(messages: &[Value]) -> Option<Format> {
    let speaks = messages.iter().any(|message| message["role"].is_string());
    let first = messages.iter().find_map(dialect_of);
    first.or(speaks.then_some(Format::Openai))
}

fn dialect_of(message: &Value) -> Option<Format> {
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

/// The format that a value fits, where no other line says more: a message without any sign, or what
/// Claude Code writes beside the messages.
fn hint(value: &Value) -> Option<Format> {
    if value["role"].is_string() {
        return Some(Format::Openai);
    }
    let beside = BESIDE.iter().any(|kind| value["type"] == *kind);
    beside.then_some(Format::ClaudeCode)
}
