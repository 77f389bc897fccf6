//! Rows of OpenAI's Chat Completions API: results are tool rows.
//!
//! Legacy function calls (`function_call`, role `function`) have no ids; results are matched by the
//! function's name.

use super::history::{HistoryRow, PartIndex, Piece};
use super::json::{self, Object};
use super::message::{Call, Message, Part, Resolution, Role, open_timestamp};
use super::orphan_result;
use crate::call::message::for_model;

/// The prefix of function names, so that they cannot collide with ids.
const FUNCTION: &str = "function ";

/// Parses a row. `None` if it has another form.
pub(super) fn read<'a>(row: &Object<'a>) -> Option<Message<'a>> {
    let (role, parts) = match row.string("role")?.as_ref() {
        "user" => (Role::User, content(row)),
        "assistant" => (Role::Assistant, [content(row), calls(row)].concat()),
        "tool" => (Role::Tool, vec![Part::Result(row.string("tool_call_id")?)]),
        "function" => {
            let id = format!("{FUNCTION}{}", row.string("name")?);
            (Role::Tool, vec![Part::Result(id.into())])
        }
        _ => return None,
    };
    Some(Message {
        role,
        parts,
        is_queued: false,
        is_plain: false,
    })
}

fn content<'a>(row: &Object<'a>) -> Vec<Part<'a>> {
    let content = row.get("content").unwrap_or_default();
    if content == "null" {
        return Vec::new();
    }
    if let Some(text) = json::string(content) {
        return vec![Part::Text(text)];
    }
    let Some(blocks) = row.pieces("content") else {
        return vec![Part::Other];
    };
    let part = |block| {
        let block = Object::parse(block)?;
        let is_text = block.string("type")? == "text";
        block.string("text").filter(|_| is_text).map(Part::Text)
    };
    blocks
        .map(|block| part(block).unwrap_or(Part::Other))
        .collect()
}

fn calls<'a>(row: &Object<'a>) -> Vec<Part<'a>> {
    let calls = row.pieces("tool_calls").into_iter().flatten();
    let mut parts: Vec<Part<'a>> = calls
        .map(|call| parse_call(call).map_or(Part::Other, Part::Call))
        .collect();
    if let Some(function) = row.get("function_call").and_then(Object::parse)
        && let Some(name) = function.string("name")
    {
        parts.push(Part::Call(Call {
            id: format!("{FUNCTION}{name}").into(),
            tool: Some(name),
            input: function.get("arguments").unwrap_or_default().into(),
            resolution: Resolution::Open(open_timestamp()),
        }));
    }
    parts
}

fn parse_call(call: &str) -> Option<Call<'_>> {
    let call = Object::parse(call)?;
    let function = call.get("function").or_else(|| call.get("custom"));
    let function = function.and_then(Object::parse);
    let input = function.as_ref().and_then(|function| {
        let arguments = function.get("arguments");
        arguments.or_else(|| function.get("input"))
    });
    Some(Call {
        id: call.string("id")?,
        tool: function.and_then(|function| function.string("name")),
        input: input.unwrap_or_default().into(),
        resolution: Resolution::Open(open_timestamp()),
    })
}

/// The row with another id in a call or a result. `None` for a legacy function, which has no id.
pub(super) fn with_id(source: &str, part: usize, id: &str) -> Option<String> {
    let row = Object::parse(source)?;
    let span = match row.span("tool_call_id") {
        Some(span) => span,
        None => {
            let index = part.checked_sub(content(&row).len())?;
            let call = row.elements("tool_calls")?.get(index)?.clone();
            let id = Object::parse(source.get(call.clone())?)?.span("id")?;
            call.start + id.start..call.start + id.end
        }
    };
    Some(json::splice(source, span, &json::quoted(id)))
}

/// Serializes a synthetic row. User and model rows are never rewritten.
pub(super) fn write(row: &HistoryRow, sources: &[&str], messages: &[Message<'_>]) -> String {
    let written = row.pieces.first().and_then(|piece| match piece {
        Piece::Kept(_) => None,
        Piece::Orphan(index) => orphan(*index, sources),
        Piece::Synthetic { call, cause } => {
            let text = json::quoted(&format!("Error: {}", for_model(*cause, None)));
            let part = messages.get(call.row)?.parts.get(call.part)?;
            let Part::Call(Call { id, .. }) = part else {
                return None;
            };
            Some(match id.strip_prefix(FUNCTION) {
                Some(name) => format!(
                    r#"{{"role":"function","name":{},"content":{text}}}"#,
                    json::quoted(name)
                ),
                None => format!(
                    r#"{{"role":"tool","tool_call_id":{},"content":{text}}}"#,
                    json::quoted(id)
                ),
            })
        }
    });
    let source = || row.from.and_then(|from| sources.get(from)).copied();
    written.unwrap_or_else(|| source().unwrap_or("null").to_owned())
}

/// An orphaned result as a user row.
fn orphan(index: PartIndex, sources: &[&str]) -> Option<String> {
    let row = Object::parse(sources.get(index.row)?)?;
    let id = row.string("tool_call_id").or_else(|| row.string("name"));
    let heading = orphan_result::orphan_heading(&id.unwrap_or_default());
    let content = row.get("content").unwrap_or("\"\"");
    let blocks = orphan_result::with_heading(&heading, content, "text").join(",");
    Some(format!(r#"{{"role":"user","content":[{blocks}]}}"#))
}
