//! Items of OpenAI's Responses: each call and each result stands by itself.
//!
//! An item with a `call_id` is a call, and one whose type also ends in `_output` is a result. Functions,
//! custom tools and the local shell are given a synthetic result where they have none; of other kinds the
//! shape of a result is not known here, so their calls are left as they are.

use super::history::{HistoryRow, Piece, Place};
use super::json::{self, Object};
use super::{Call, Message, Part, Role, Standing, open};
use crate::call::words::for_model;

/// An item; none where it is none.
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
            (Role::Tool, vec![Part::Answer(id)])
        } else {
            let standing = match output_of(kind) {
                Some(_) => Standing::Open(open()),
                None => Standing::Settled,
            };
            let input = item.get("arguments").or_else(|| item.get("input"));
            let call = Call {
                id,
                tool: item.string("name").or_else(|| item.string("type")),
                input: input
                    .or_else(|| item.get("action"))
                    .unwrap_or_default()
                    .into(),
                standing,
            };
            (Role::Assistant, vec![Part::Call(call)])
        }
    } else if kind.ends_with("_output") {
        return None;
    } else {
        // A thought, or a call that the server answers itself.
        (Role::Assistant, vec![Part::Other])
    };
    Some(Message {
        role,
        parts,
        is_queued: false,
        is_plain: false,
    })
}

/// The kind of the result that a kind of call has, where it is a plain text.
fn output_of(kind: &str) -> Option<&'static str> {
    match kind {
        // Codex answers its local shell like a function.
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
    let part = |block| Object::of(block)?.string("text").map(Part::Text);
    blocks
        .map(|block| part(block).unwrap_or(Part::Other))
        .collect()
}

/// An item that was made. Whatever was there is never written anew.
pub(super) fn write(row: &HistoryRow, sources: &[&str]) -> String {
    let written = row.pieces.first().and_then(|piece| match piece {
        Piece::Kept(_) => None,
        Piece::Orphan(place) => orphan(*place, sources),
        Piece::Synthetic { call, cause } => {
            let item = Object::of(sources.get(call.row)?)?;
            let kind = output_of(item.string("type")?.as_ref())?;
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

/// A result without a call, as words of the user.
fn orphan(place: Place, sources: &[&str]) -> Option<String> {
    let item = Object::of(sources.get(place.row)?)?;
    let head = super::orphan_head(&item.string("call_id").unwrap_or_default());
    let output = item.get("output").unwrap_or("\"\"");
    let blocks = super::with_head(&head, output, "input_text").join(",");
    Some(format!(
        r#"{{"type":"message","role":"user","content":[{blocks}]}}"#
    ))
}
