//! opencode sessions: an export (`opencode export`), or the database with all sessions.
//!
//! A message has a role and parts. A tool part contains the call together with its state: pending,
//! running, completed or error. Each session of the database is a separate conversation.

use std::path::Path;

use onward_engine::opencode::{OpencodeMessage, visit_messages};
use serde_json::Value;

use super::event::{AgentFormat, Entry, Event, EventReader, millis, string};
use super::external_change::AgentTools;
use super::messages::is_user_prompt;
use super::{Error, Format, Lines, Visitor, detect};

pub(super) const AGENT: AgentFormat = AgentFormat {
    format: Format::Opencode,
    expected: "an opencode session",
    parse,
    tools: AgentTools {
        edit: &["apply_patch", "edit", "multiedit", "patch", "write"],
        read: &[
            "codesearch",
            "glob",
            "grep",
            "list",
            "lsp",
            "question",
            "read",
            "skill",
            "todoread",
            "todowrite",
            "webfetch",
            "websearch",
        ],
        shell: &["bash"],
    },
};

/// Whether a value is an exported session.
pub(super) fn is_export(value: &Value) -> bool {
    let is_message = |message: &Value| message["info"].is_object() && message["parts"].is_array();
    let messages = value["messages"].as_array();
    value["info"]["id"].is_string()
        && messages.is_some_and(|messages| messages.iter().all(is_message))
}

/// Reads an exported session.
pub(super) fn read(mut lines: Lines, visit: &mut Visitor<'_>) -> Result<(), Error> {
    let name = lines.name().to_owned();
    let mut export = detect::whole(&mut lines)?
        .map_err(|cause| Error::from_json(&name, 1, AGENT.expected, cause))?;
    let Some(Value::Array(messages)) = export.get_mut("messages").map(Value::take) else {
        return Err(Error::NoMessages { name, number: 1 });
    };
    let mut reader = EventReader::new(&AGENT, name, visit);
    for message in messages {
        if reader.push(parse(message)).is_break() {
            return Ok(());
        }
    }
    // This is the last turn, so the returned value does not matter.
    let _ = reader.end_turn();
    Ok(())
}

/// Reads all sessions of the database.
pub(super) fn read_store(path: &Path, visit: &mut Visitor<'_>) -> Result<(), Error> {
    let name = path.display().to_string();
    let mut reader = EventReader::new(&AGENT, name.clone(), visit);
    let mut session = String::new();
    let read = visit_messages(path, &mut |message| {
        if session != message.session {
            session.clone_from(&message.session);
            reader.start_conversation(format!("{name}@{session}"))?;
        }
        match stored_message(&message) {
            Some(message) => reader.push(parse(message)),
            None => reader.warn(format!(
                "`{name}`, session `{session}`: skipped a message that is not JSON"
            )),
        }
    });
    read.map_err(|cause| Error::Store { cause })?;
    // This is the last turn, so the returned value does not matter.
    let _ = reader.end_turn();
    Ok(())
}

/// A stored message in the form of an export.
pub(super) fn stored_message(message: &OpencodeMessage) -> Option<Value> {
    let info: Value = serde_json::from_str(&message.data).ok()?;
    let parts = message.parts.iter();
    let parts: serde_json::Result<Vec<Value>> =
        parts.map(|part| serde_json::from_str(&part.data)).collect();
    Some(serde_json::json!({ "info": info, "parts": parts.ok()? }))
}

pub(super) fn parse(message: Value) -> Entry {
    let info = &message["info"];
    let parts = message["parts"].as_array().map_or(&[][..], Vec::as_slice);
    let events = match info["role"].as_str() {
        Some("user") => {
            let is_prompt = parts.iter().any(is_prompt);
            is_prompt.then_some(Event::Prompt).into_iter().collect()
        }
        Some("assistant") => response(parts),
        Some(_) | None => Vec::new(),
    };
    Entry {
        events,
        at: millis(&info["time"]["created"]),
    }
}

fn is_prompt(part: &Value) -> bool {
    let is_text = part["type"] == "text" && part["synthetic"] != true;
    (is_text && part["text"].as_str().is_some_and(is_user_prompt)) || part["type"] == "file"
}

fn response(parts: &[Value]) -> Vec<Event> {
    let mut events = vec![Event::Step];
    for part in parts {
        // Older versions store several steps in a message.
        if part["type"] == "step-start" && events.len() > 1 {
            events.push(Event::Step);
        }
        if part["type"] == "text" || part["type"] == "reasoning" {
            events.push(Event::Text(string(&part["text"])));
        }
        if part["type"] != "tool" {
            continue;
        }
        let state = &part["state"];
        let id = string(&part["callID"]);
        events.push(Event::Call {
            id: id.clone(),
            tool: string(&part["tool"]),
            input: state["input"].clone(),
        });
        let (ok, output) = match state["status"].as_str() {
            Some("completed") => {
                let code = state["metadata"]["exit"].as_i64();
                (code.is_none_or(|code| code == 0), &state["output"])
            }
            Some("error") => (false, &state["error"]),
            Some(_) | None => continue,
        };
        events.push(Event::Result {
            id,
            ok: Some(ok),
            output: string(output),
        });
    }
    events
}
