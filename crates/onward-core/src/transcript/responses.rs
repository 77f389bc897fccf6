//! Items of OpenAI's Responses API: each call and each result is a separate item.
//!
//! An item with a `call_id` is a call; if its type ends in `_output`, it is a result. Function
//! calls, custom tools and the local shell get a synthetic result if they have none. The result
//! format of other kinds is unknown, so their calls are not changed.

use super::history::{HistoryRow, PartIndex, Piece};
use super::json::{self, Object};
use super::message::{Call, Message, Part, Resolution, Role, open_timestamp};
use super::orphan_result;
use crate::call::message::for_model;

/// Parses an item. `None` if it has another form.
pub(super) fn read<'a>(item: &Object<'a>) -> Option<Message<'a>> {
    let kind = item.string("type");
    let kind = kind.as_deref().unwrap_or("message");
    let (role, parts) = if kind == "message" {
        let role = match item.string("role")?.as_ref() {
            "user" => Role::User,
            "assistant" => Role::Assistant,
            _ => return None,
        };
        (role, content(item))
    } else if let Some(id) = item.string("call_id") {
        if kind.ends_with("_output") {
            (Role::Tool, vec![Part::Result(id)])
        } else {
            let resolution = match output_type(kind) {
                Some(_) => Resolution::Open(open_timestamp()),
                None => Resolution::Settled,
            };
            let input = item.get("arguments").or_else(|| item.get("input"));
            let call = Call {
                id,
                tool: item.string("name").or_else(|| item.string("type")),
                input: input
                    .or_else(|| item.get("action"))
                    .unwrap_or_default()
                    .into(),
                resolution,
            };
            (Role::Assistant, vec![Part::Call(call)])
        }
    } else if kind.ends_with("_output") {
        return None;
    } else {
        // A thought, or a call that the server executes.
        (Role::Assistant, vec![Part::Other])
    };
    Some(Message {
        role,
        parts,
        is_queued: false,
        is_plain: false,
    })
}

/// The result type of a call type, if results of that type are plain text.
fn output_type(kind: &str) -> Option<&'static str> {
    match kind {
        // Codex returns results of its local shell as function results.
        "function_call" | "local_shell_call" => Some("function_call_output"),
        "custom_tool_call" => Some("custom_tool_call_output"),
        _ => None,
    }
}

fn content<'a>(item: &Object<'a>) -> Vec<Part<'a>> {
    let content = item.get("content").unwrap_or_default();
    if let Some(text) = json::string(content) {
        return vec![Part::Text(text)];
    }
    let Some(blocks) = item.pieces("content") else {
        return vec![Part::Other];
    };
    let part = |block| Object::parse(block)?.string("text").map(Part::Text);
    blocks
        .map(|block| part(block).unwrap_or(Part::Other))
        .collect()
}

/// The item with another id in its call or result.
pub(super) fn with_id(source: &str, id: &str) -> Option<String> {
    let span = Object::parse(source)?.span("call_id")?;
    Some(json::splice(source, span, &json::quoted(id)))
}

/// Serializes a synthetic item. Existing items are never rewritten.
pub(super) fn write(row: &HistoryRow, sources: &[&str]) -> String {
    let written = row.pieces.first().and_then(|piece| match piece {
        Piece::Kept(_) => None,
        Piece::Orphan(index) => orphan(*index, sources),
        Piece::Synthetic { call, cause } => {
            let item = Object::parse(sources.get(call.row)?)?;
            let kind = output_type(item.string("type")?.as_ref())?;
            let text = json::quoted(&format!("Error: {}", for_model(*cause, None)));
            let id = item.get("call_id")?;
            Some(format!(
                r#"{{"type":"{kind}","call_id":{id},"output":{text}}}"#
            ))
        }
    });
    let source = || row.from.and_then(|from| sources.get(from)).copied();
    written.unwrap_or_else(|| source().unwrap_or("null").to_owned())
}

/// An orphaned result as a user message.
fn orphan(index: PartIndex, sources: &[&str]) -> Option<String> {
    let item = Object::parse(sources.get(index.row)?)?;
    let heading = orphan_result::orphan_heading(&item.string("call_id").unwrap_or_default());
    let output = item.get("output").unwrap_or("\"\"");
    let blocks = orphan_result::with_heading(&heading, output, "input_text").join(",");
    Some(format!(
        r#"{{"type":"message","role":"user","content":[{blocks}]}}"#
    ))
}
