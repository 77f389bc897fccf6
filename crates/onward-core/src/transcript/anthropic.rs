//! Rows of Anthropic's Messages: results are blocks of the user's rows.
//!
//! Blocks that are run by the server itself (`server_tool_use` and its results) are answered where they
//! stand, within rows of the model. How an error of the server looks is known of some of its tools; the
//! calls of others are left alone.

use std::collections::BTreeMap;

use super::history::{HistoryRow, Piece, Place};
use super::json::{self, Object};
use super::{Call, Message, Part, Role, Standing, open};
use crate::call::Cause;
use crate::call::words::for_model;

/// A row; none where it is none.
pub(super) fn read<'a>(row: &Object<'a>) -> Option<Message<'a>> {
    let role = match row.string("role")?.as_ref() {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        _ => return None,
    };
    let content = row.get("content")?;
    let parts = match json::string(content) {
        Some(text) => vec![Part::Text(text)],
        None => {
            let blocks = row.pieces("content")?;
            blocks.map(|block| part(block, role)).collect()
        }
    };
    Some(Message {
        role,
        parts,
        is_queued: false,
        is_plain: row.has_only(&["role", "content"]),
    })
}

fn part(block: &str, role: Role) -> Part<'_> {
    let Some(block) = Object::of(block) else {
        return Part::Other;
    };
    let part = match block.string("type").as_deref() {
        Some("text") => block.string("text").map(Part::Text),
        Some("tool_use") if role == Role::Assistant => block.string("id").map(|id| {
            Part::Call(Call {
                id,
                tool: block.string("name"),
                input: block.get("input").unwrap_or_default().into(),
                standing: Standing::Open(open()),
            })
        }),
        Some("tool_result") => block.string("tool_use_id").map(Part::Answer),
        Some(kind) if role == Role::Assistant && kind.ends_with("_tool_result") => {
            block.string("tool_use_id").map(Part::Served)
        }
        Some("server_tool_use" | "mcp_tool_use") if role == Role::Assistant => hosted(&block),
        Some(_) | None => None,
    };
    part.unwrap_or(Part::Other)
}

/// A call that the server runs, if it is known how an error of it looks.
fn hosted<'a>(block: &Object<'a>) -> Option<Part<'a>> {
    server_error(block)?;
    Some(Part::Hosted(Call {
        id: block.string("id")?,
        tool: block.string("name"),
        input: block.get("input").unwrap_or_default().into(),
        standing: Standing::Open(open()),
    }))
}

/// How the server says that a call of its own has no result: the rest of the block, after the id.
fn server_error(call: &Object<'_>) -> Option<(String, String)> {
    let kind = call.string("type")?;
    if kind == "mcp_tool_use" {
        let text = json::quoted(&for_model(Cause::OutcomeUnknown, None));
        let content = format!(r#"[{{"type":"text","text":{text}}}],"is_error":true"#);
        return Some(("mcp_tool_result".to_owned(), content));
    }
    let name = call.string("name").filter(|_| kind == "server_tool_use")?;
    let name = match name.as_ref() {
        "web_search"
        | "web_fetch"
        | "code_execution"
        | "bash_code_execution"
        | "text_editor_code_execution" => name.as_ref(),
        "tool_search_tool_regex" | "tool_search_tool_bm25" => "tool_search",
        _ => return None,
    };
    let kind = format!("{name}_tool_result");
    let content = format!(r#"{{"type":"{kind}_error","error_code":"unavailable"}}"#);
    Some((kind, content))
}

/// A row as text. Of a row that was there, everything but the content stays as it was.
pub(super) fn write(row: &HistoryRow, cut: &mut Cut<'_, '_>) -> String {
    let mut blocks = Vec::new();
    for piece in &row.pieces {
        match piece {
            Piece::Kept(place) => blocks.extend(cut.kept(*place)),
            Piece::Orphan(place) => {
                blocks.extend(orphan_as_text(cut.block(*place).unwrap_or_default()));
            }
            Piece::Synthetic { call, cause } => {
                let call = cut.block(*call).and_then(Object::of);
                blocks.push(synthetic(call.as_ref(), *cause));
            }
        }
    }
    let content = format!("[{}]", blocks.join(","));
    let source = row.from.and_then(|from| cut.sources.get(from));
    let span = source.and_then(|source| Object::of(source)?.span("content"));
    match (source, span) {
        (Some(source), Some(span)) => {
            let (before, after) = (source.get(..span.start), source.get(span.end..));
            [
                before.unwrap_or_default(),
                &content,
                after.unwrap_or_default(),
            ]
            .concat()
        }
        (Some(_) | None, _) => {
            let role = match row.role {
                Role::Assistant => "assistant",
                Role::User | Role::Tool | Role::Other => "user",
            };
            format!(r#"{{"role":"{role}","content":{content}}}"#)
        }
    }
}

/// The result of a call that has none.
fn synthetic(call: Option<&Object<'_>>, cause: Cause) -> String {
    let id = call.and_then(|call| call.get("id")).unwrap_or("\"\"");
    if let Some((kind, content)) = call.and_then(server_error) {
        return format!(r#"{{"type":"{kind}","tool_use_id":{id},"content":{content}}}"#);
    }
    let text = json::quoted(&for_model(cause, None));
    format!(r#"{{"type":"tool_result","tool_use_id":{id},"content":{text},"is_error":true}}"#)
}

/// The contents of rows, each cut into its blocks once, however many rows are made of it.
pub(super) struct Cut<'a, 'b> {
    sources: &'b [&'a str],
    contents: BTreeMap<usize, Content<'a>>,
}

enum Content<'a> {
    Text(&'a str),
    Blocks(Vec<&'a str>),
}

impl<'a, 'b> Cut<'a, 'b> {
    pub(super) fn of(sources: &'b [&'a str]) -> Self {
        Self {
            sources,
            contents: BTreeMap::new(),
        }
    }

    fn content(&mut self, row: usize) -> &Content<'a> {
        let source = self.sources.get(row).copied().unwrap_or_default();
        self.contents.entry(row).or_insert_with(|| {
            let content = Object::of(source).and_then(|row| row.get("content"));
            let content = content.unwrap_or_default();
            match json::elements(content) {
                Some(spans) => Content::Blocks(
                    spans
                        .into_iter()
                        .filter_map(|span| content.get(span))
                        .collect(),
                ),
                None => Content::Text(content),
            }
        })
    }

    fn block(&mut self, place: Place) -> Option<&'a str> {
        match self.content(place.row) {
            Content::Text(_) => None,
            Content::Blocks(blocks) => blocks.get(place.part).copied(),
        }
    }

    /// The text of a block; of a content that is a string, a block with it, unless it says nothing.
    fn kept(&mut self, place: Place) -> Option<String> {
        if let Content::Text(content) = self.content(place.row) {
            let says_nothing = json::string(content).is_some_and(|text| text.trim().is_empty());
            return (!says_nothing).then(|| format!(r#"{{"type":"text","text":{content}}}"#));
        }
        self.block(place).map(str::to_owned)
    }
}

/// A block with a result that has no call, as blocks of text; pictures and the like stay what they are.
pub fn orphan_as_text(block: &str) -> Vec<String> {
    let block = Object::of(block);
    let id = block.as_ref().and_then(|block| block.string("tool_use_id"));
    let head = super::orphan_head(&id.unwrap_or_default());
    let content = block
        .and_then(|block| block.get("content"))
        .unwrap_or("\"\"");
    super::with_head(&head, content, "text")
}
