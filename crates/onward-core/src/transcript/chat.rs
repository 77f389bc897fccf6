//! Rows of OpenAI's Chat Completions: results are rows of the tool.
//!
//! The calls that came before tools (`function_call`, role `function`) know no ids: their results are
//! matched by the name of the function.

use super::history::{HistoryRow, Piece, Place};
use super::json::{self, Object};
use super::{Call, Message, Part, Role, Standing, open};
use crate::call::words::for_model;

/// What stands before the name of an old function, so that no id is taken for it.
const FUNCTION: &str = "function ";

/// A row; none where it is none.
pub(super) fn read<'a>(row: &Object<'a>) -> Option<Message<'a>> {
    let (role, parts) = match row.string("role")?.as_ref() {
        "user" => (Role::User, content(row)),
        "assistant" => (Role::Assistant, [content(row), calls(row)].concat()),
        "tool" => (Role::Tool, vec![Part::Answer(row.string("tool_call_id")?)]),
        "function" => {
            let id = format!("{FUNCTION}{}", row.string("name")?);
            (Role::Tool, vec![Part::Answer(id.into())])
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
        let block = Object::of(block)?;
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
        .map(|call| call_of(call).map_or(Part::Other, Part::Call))
        .collect();
    if let Some(old) = row.get("function_call").and_then(Object::of)
        && let Some(name) = old.string("name")
    {
        parts.push(Part::Call(Call {
            id: format!("{FUNCTION}{name}").into(),
            tool: Some(name),
            input: old.get("arguments").unwrap_or_default().into(),
            standing: Standing::Open(open()),
        }));
    }
    parts
}

fn call_of(call: &str) -> Option<Call<'_>> {
    let call = Object::of(call)?;
    let function = call.get("function").or_else(|| call.get("custom"));
    let function = function.and_then(Object::of);
    let input = function.as_ref().and_then(|function| {
        let arguments = function.get("arguments");
        arguments.or_else(|| function.get("input"))
    });
    Some(Call {
        id: call.string("id")?,
        tool: function.and_then(|function| function.string("name")),
        input: input.unwrap_or_default().into(),
        standing: Standing::Open(open()),
    })
}

/// A row that was made. Rows of people and of the model are never written anew.
pub(super) fn write(row: &HistoryRow, sources: &[&str], messages: &[Message<'_>]) -> String {
    let written = row.pieces.first().and_then(|piece| match piece {
        Piece::Kept(_) => None,
        Piece::Orphan(place) => orphan(*place, sources),
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

/// A result without a call, as words of the user.
fn orphan(place: Place, sources: &[&str]) -> Option<String> {
    let row = Object::of(sources.get(place.row)?)?;
    let id = row.string("tool_call_id").or_else(|| row.string("name"));
    let head = super::orphan_head(&id.unwrap_or_default());
    let content = row.get("content").unwrap_or("\"\"");
    let blocks = super::with_head(&head, content, "text").join(",");
    Some(format!(r#"{{"role":"user","content":[{blocks}]}}"#))
}
