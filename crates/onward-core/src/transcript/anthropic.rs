//! Rows of Anthropic's Messages API: results are blocks in user rows.
//!
//! Results of server tools (`server_tool_use`) are in rows of the model, after their calls. The
//! form of an error result is known for some server tools; calls of others are not changed.

use std::collections::BTreeMap;

use super::history::{HistoryRow, PartIndex, Piece};
use super::json::{self, Object};
use super::message::{Call, Message, Part, Resolution, Role, open_timestamp};
use super::orphan_result;
use crate::call::Cause;
use crate::call::message::for_model;

/// Parses a row. `None` if it has another form.
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
    let Some(block) = Object::parse(block) else {
        return Part::Other;
    };
    let part = match block.string("type").as_deref() {
        Some("text") => block.string("text").map(Part::Text),
        Some("tool_use") if role == Role::Assistant => block.string("id").map(|id| {
            Part::Call(Call {
                id,
                tool: block.string("name"),
                input: block.get("input").unwrap_or_default().into(),
                resolution: Resolution::Open(open_timestamp()),
            })
        }),
        Some("tool_result") => block.string("tool_use_id").map(Part::Result),
        Some(kind) if role == Role::Assistant && kind.ends_with("_tool_result") => {
            block.string("tool_use_id").map(Part::ServerResult)
        }
        Some("server_tool_use" | "mcp_tool_use") if role == Role::Assistant => server_call(&block),
        Some(_) | None => None,
    };
    part.unwrap_or(Part::Other)
}

/// A server call, if the form of its error result is known.
fn server_call<'a>(block: &Object<'a>) -> Option<Part<'a>> {
    server_error(block)?;
    Some(Part::ServerCall(Call {
        id: block.string("id")?,
        tool: block.string("name"),
        input: block.get("input").unwrap_or_default().into(),
        resolution: Resolution::Open(open_timestamp()),
    }))
}

/// The type and content of the error result of a server call.
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

/// Serializes a row. For an existing row, only the content changes.
pub(super) fn write(row: &HistoryRow, cache: &mut BlockCache<'_, '_>) -> String {
    let mut blocks = Vec::new();
    for piece in &row.pieces {
        match piece {
            Piece::Kept(index) => blocks.extend(cache.kept(*index)),
            Piece::Orphan(index) => {
                blocks.extend(orphan_as_text(cache.block(*index).unwrap_or_default()));
            }
            Piece::Synthetic { call, cause } => {
                let call = cache.block(*call).and_then(Object::parse);
                blocks.push(synthetic(call.as_ref(), *cause));
            }
        }
    }
    let content = format!("[{}]", blocks.join(","));
    let source = row.from.and_then(|from| cache.sources.get(from));
    let span = source.and_then(|source| Object::parse(source)?.span("content"));
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

/// The row with another id in a call or a result.
pub(super) fn with_id(source: &str, part: usize, id: &str) -> Option<String> {
    let content = Object::parse(source)?.span("content")?;
    let blocks = source.get(content.clone())?;
    let block = json::elements(blocks)?.into_iter().nth(part)?;
    let object = Object::parse(blocks.get(block.clone())?)?;
    let span = object.span("tool_use_id").or_else(|| object.span("id"))?;
    let offset = content.start + block.start;
    Some(json::splice(
        source,
        offset + span.start..offset + span.end,
        &json::quoted(id),
    ))
}

/// The synthetic result of a call.
fn synthetic(call: Option<&Object<'_>>, cause: Cause) -> String {
    let id = call.and_then(|call| call.get("id")).unwrap_or("\"\"");
    if let Some((kind, content)) = call.and_then(server_error) {
        return format!(r#"{{"type":"{kind}","tool_use_id":{id},"content":{content}}}"#);
    }
    let text = json::quoted(&for_model(cause, None));
    format!(r#"{{"type":"tool_result","tool_use_id":{id},"content":{text},"is_error":true}}"#)
}

/// Caches the blocks of rows, so that each row is split once.
pub(super) struct BlockCache<'a, 'b> {
    sources: &'b [&'a str],
    contents: BTreeMap<usize, Content<'a>>,
}

enum Content<'a> {
    Text(&'a str),
    Blocks(Vec<&'a str>),
}

impl<'a, 'b> BlockCache<'a, 'b> {
    pub(super) fn new(sources: &'b [&'a str]) -> Self {
        Self {
            sources,
            contents: BTreeMap::new(),
        }
    }

    fn content(&mut self, row: usize) -> &Content<'a> {
        let source = self.sources.get(row).copied().unwrap_or_default();
        self.contents.entry(row).or_insert_with(|| {
            let content = Object::parse(source).and_then(|row| row.get("content"));
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

    fn block(&mut self, index: PartIndex) -> Option<&'a str> {
        match self.content(index.row) {
            Content::Text(_) => None,
            Content::Blocks(blocks) => blocks.get(index.part).copied(),
        }
    }

    /// The source of a block. String content becomes a text block, unless it is blank.
    fn kept(&mut self, index: PartIndex) -> Option<String> {
        if let Content::Text(content) = self.content(index.row) {
            let is_blank = json::string(content).is_some_and(|text| text.trim().is_empty());
            return (!is_blank).then(|| format!(r#"{{"type":"text","text":{content}}}"#));
        }
        self.block(index).map(str::to_owned)
    }
}

/// Converts an orphaned result block to text blocks. Images and other blocks are kept.
pub fn orphan_as_text(block: &str) -> Vec<String> {
    let block = Object::parse(block);
    let id = block.as_ref().and_then(|block| block.string("tool_use_id"));
    let heading = orphan_result::orphan_heading(&id.unwrap_or_default());
    let content = block
        .and_then(|block| block.get("content"))
        .unwrap_or("\"\"");
    orphan_result::with_heading(&heading, content, "text")
}
