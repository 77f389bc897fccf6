//! Gemini CLI chats: JSON lines, or one JSON document in older versions.
//!
//! A message is written again whenever it changes, so the last line with its id counts. `$rewindTo`
//! removes a message and those after it, and `$set` can replace all messages. The calls of a model
//! response contain their results.

use std::ops::ControlFlow;

use serde_json::Value;

use super::event::{AgentFormat, Entry, Event, EventReader, string};
use super::external_change::AgentTools;
use super::lines::{Record, Records};
use super::messages::text;
use super::{Error, Format, Lines, Visitor, detect};

pub(super) const AGENT: AgentFormat = AgentFormat {
    format: Format::Gemini,
    expected: "a Gemini chat record",
    parse,
    tools: AgentTools {
        edit: &["edit", "replace", "write_file"],
        read: &[
            "glob",
            "google_web_search",
            "grep_search",
            "list_directory",
            "read_file",
            "read_many_files",
            "search_file_content",
            "web_fetch",
            "write_todos",
        ],
        shell: &["run_shell_command"],
    },
};

/// Whether a value is a chat, or a line of one.
pub(super) fn is_record(value: &Value) -> bool {
    let is_chat = value["sessionId"].is_string() && value["projectHash"].is_string();
    let is_response = value["type"] == "gemini" && value["id"].is_string();
    is_chat || is_response || value["$rewindTo"].is_string() || value["$set"].is_object()
}

pub(super) fn read(lines: Lines, visit: &mut Visitor<'_>) -> Result<(), Error> {
    let chat = Chat::read(lines)?;
    let mut reader = EventReader::new(&AGENT, chat.name, visit);
    let read = |reader: &mut EventReader<'_, '_>| {
        for warning in chat.warnings {
            reader.warn(warning)?;
        }
        for message in chat.messages {
            reader.push(parse(message.value))?;
        }
        reader.end_turn()
    };
    match read(&mut reader) {
        ControlFlow::Continue(()) | ControlFlow::Break(()) => Ok(()),
    }
}

/// The messages of a chat.
pub(super) struct Chat {
    pub(super) name: String,
    pub(super) messages: Vec<ChatMessage>,
    pub(super) warnings: Vec<String>,
}

pub(super) struct ChatMessage {
    /// The line of its last version, for a chat with one record per line.
    pub(super) line: Option<u64>,
    pub(super) value: Value,
}

impl Chat {
    pub(super) fn read(mut lines: Lines) -> Result<Self, Error> {
        let mut chat = Chat {
            name: lines.name().to_owned(),
            messages: Vec::new(),
            warnings: Vec::new(),
        };
        if let Some(document) = detect::document(&mut lines)? {
            chat.add(document, None);
            return Ok(chat);
        }
        let mut records = Records::new(lines, AGENT.expected);
        while let Some(record) = records.next::<Value>()? {
            match record {
                Record::Value { number, value } => chat.add(value, Some(number)),
                Record::Skipped(report) => chat.warnings.push(report),
            }
        }
        Ok(chat)
    }

    fn add(&mut self, mut record: Value, line: Option<u64>) {
        if let Some(id) = record["$rewindTo"].as_str() {
            let kept = self.position(id).unwrap_or(0);
            self.messages.truncate(kept);
            return;
        }
        let set = record.get_mut("$set").map(Value::take);
        let is_update = set.is_some();
        let mut record = set.unwrap_or(record);
        if let Some(Value::Array(messages)) = record.get_mut("messages").map(Value::take) {
            if is_update {
                self.messages.clear();
            }
            for value in messages {
                self.messages.push(ChatMessage { line, value });
            }
            return;
        }
        if is_update || !record["id"].is_string() {
            return;
        }
        let existing = record["id"].as_str().and_then(|id| self.position(id));
        let message = ChatMessage {
            line,
            value: record,
        };
        match existing.and_then(|index| self.messages.get_mut(index)) {
            Some(existing) => *existing = message,
            None => self.messages.push(message),
        }
    }

    fn position(&self, id: &str) -> Option<usize> {
        let mut messages = self.messages.iter();
        // The changed message is usually the last one.
        messages.rposition(|message| message.value["id"] == id)
    }
}

pub(super) fn parse(message: Value) -> Entry {
    let events = match message["type"].as_str() {
        Some("user") => {
            let is_prompt = is_prompt(&text(&message["content"]));
            is_prompt.then_some(Event::Prompt).into_iter().collect()
        }
        Some("gemini") => response(&message),
        Some(_) | None => Vec::new(),
    };
    Entry {
        events,
        at: message["timestamp"].as_str().and_then(|at| at.parse().ok()),
    }
}

/// Whether a user message is sent to the model and is not written by Gemini CLI.
fn is_prompt(text: &str) -> bool {
    let text = text.trim();
    let prefixes = [
        "/",
        "?",
        "<session_context>",
        "<hook_context>",
        "{\"functionResponse\"",
    ];
    !text.is_empty() && !prefixes.iter().any(|prefix| text.starts_with(prefix))
}

fn response(message: &Value) -> Vec<Event> {
    let text = text(&message["content"]).into_owned();
    let mut events = vec![Event::Step, Event::Text(text)];
    for call in message["toolCalls"].as_array().into_iter().flatten() {
        events.push(Event::Call {
            id: string(&call["id"]),
            tool: string(&call["name"]),
            input: call["args"].clone(),
        });
        if !call["result"].is_null() {
            events.push(Event::Result {
                id: string(&call["id"]),
                ok: call["status"].as_str().map(|status| status == "success"),
                output: output(&call["result"]),
            });
        }
    }
    events
}

/// The text of a result: the output or error in each function response.
fn output(result: &Value) -> String {
    let parts = result
        .as_array()
        .map_or(std::slice::from_ref(result), Vec::as_slice);
    let part = |part: &Value| {
        let response = &part["functionResponse"]["response"];
        let texts = [&response["output"], &response["error"], &part["text"], part];
        let text = texts.iter().find_map(|text| text.as_str());
        text.map_or_else(|| part.to_string(), str::to_owned)
    };
    parts.iter().map(part).collect::<Vec<_>>().join("\n")
}
