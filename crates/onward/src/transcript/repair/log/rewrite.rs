//! Writes a log with its edits. Unchanged lines are copied byte for byte.

use std::collections::HashMap;
use std::io::{self, BufRead, Write};
use std::ops::Range;
use std::rc::Rc;

use onward_core::call::CallPolicy;
use onward_core::call::message::for_model;
use onward_core::transcript::json::{self, Object, quoted, splice};
use onward_core::transcript::orphan_as_text;

use super::super::super::Lines;
use super::edits::{Edit, Edits, NewLine};

/// The fields that a new line copies from the line before it.
const COPIED_FIELDS: [&str; 9] = [
    "isSidechain",
    "agentId",
    "userType",
    "entrypoint",
    "cwd",
    "sessionId",
    "version",
    "gitBranch",
    "slug",
];

/// The texts of the lines with results that are moved.
pub(crate) fn moved_lines(lines: Lines, edits: &Edits) -> io::Result<HashMap<u64, String>> {
    let mut moved = HashMap::new();
    let mut wanted = edits.moved_lines();
    let mut input = lines.into_bytes();
    let mut number = 0;
    while !wanted.is_empty() {
        let mut line = Vec::new();
        if input.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        number += 1;
        if wanted.remove(&number) {
            let text = String::from_utf8(line).map_err(io::Error::other)?;
            moved.insert(number, text.trim_end_matches(['\n', '\r']).to_owned());
        }
    }
    Ok(moved)
}

/// Copies a log and applies the edits.
pub(crate) fn rewrite(
    lines: Lines,
    moved: &HashMap<u64, String>,
    edits: &Edits,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut input = lines.into_bytes();
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        match edits.0.get(&number) {
            None => out.write_all(&line)?,
            Some(edit) => {
                let text = std::str::from_utf8(&line).map_err(io::Error::other)?;
                write_edited(text, edit, moved, out)?;
            }
        }
    }
    Ok(())
}

fn write_edited(
    line: &str,
    edit: &Edit,
    moved: &HashMap<u64, String>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let text = line.trim_end_matches(['\n', '\r']);
    let end = match line.get(text.len()..) {
        Some("") | None => "\n",
        Some(end) => end,
    };
    if !edit.removed {
        let changed = with_parent(&with_blocks(text, edit), edit.parent.as_ref());
        write!(out, "{changed}{end}")?;
    }
    let before = Object::parse(text);
    for new in &edit.new_lines {
        let source = new.moved.as_ref();
        let source = source.and_then(|(number, block)| Some((moved.get(number)?, *block)));
        let text = match source {
            Some((source, block)) => moved_line(source, block, new),
            None => result_line(before.as_ref(), new),
        };
        write!(out, "{text}{end}")?;
    }
    Ok(())
}

/// The line of a result with only that block, in another place.
fn moved_line(source: &str, block: usize, new: &NewLine) -> String {
    let content = content_span(source);
    let blocks = content.clone().and_then(|span| source.get(span));
    let count = blocks
        .and_then(json::elements)
        .map_or(0, |blocks| blocks.len());
    let edit = Edit {
        removed_blocks: (0..count).filter(|index| *index != block).collect(),
        renamed: vec![(block, new.call.clone())],
        ..Edit::default()
    };
    let line = with_parent(&with_blocks(source, &edit), Some(&new.parent));
    match Object::parse(&line).and_then(|object| object.span("uuid")) {
        Some(span) => splice(&line, span, &quoted(&new.uuid)),
        None => line,
    }
}

/// The span of the content of the message in a line.
fn content_span(line: &str) -> Option<Range<usize>> {
    let message = Object::parse(line)?.span("message")?;
    let content = Object::parse(line.get(message.clone())?)?.span("content")?;
    Some(message.start + content.start..message.start + content.end)
}

/// The block of a call or a result with another id.
fn with_id(block: &str, id: &str) -> String {
    let object = Object::parse(block);
    let span = object.and_then(|object| object.span("tool_use_id").or_else(|| object.span("id")));
    match span {
        Some(span) => splice(block, span, &quoted(id)),
        None => block.to_owned(),
    }
}

fn with_parent(line: &str, parent: Option<&Option<Rc<str>>>) -> String {
    let Some(parent) = parent else {
        return line.to_owned();
    };
    let parent = parent.as_deref().map_or("null".to_owned(), quoted);
    let span = Object::parse(line).and_then(|object| object.span("parentUuid"));
    match span {
        Some(span) => splice(line, span, &parent),
        None => line.to_owned(),
    }
}

fn with_blocks(line: &str, edit: &Edit) -> String {
    if edit.as_text.is_empty() && edit.removed_blocks.is_empty() && edit.renamed.is_empty() {
        return line.to_owned();
    }
    let changed = || {
        let content = content_span(line)?;
        let text = line.get(content.clone())?;
        let mut blocks: Vec<String> = Vec::new();
        // The results of a message come before its texts.
        let mut texts: Vec<String> = Vec::new();
        for (index, span) in json::elements(text)?.into_iter().enumerate() {
            let block = text.get(span)?;
            if edit.as_text.contains(&index) {
                texts.extend(orphan_as_text(block));
            } else if !edit.removed_blocks.contains(&index) {
                let renamed = edit.renamed.iter().find(|(renamed, _)| *renamed == index);
                blocks.push(match renamed {
                    Some((_, id)) => with_id(block, id),
                    None => block.to_owned(),
                });
            }
        }
        let is_result = |block: &String| {
            Object::parse(block).is_some_and(|block| block.get("tool_use_id").is_some())
        };
        let results = blocks
            .iter()
            .rposition(is_result)
            .map_or(0, |last| last + 1);
        blocks.splice(results..results, texts);
        let blocks = format!("[{}]", blocks.join(","));
        Some(splice(line, content, &blocks))
    };
    changed().unwrap_or_else(|| line.to_owned())
}

/// The line with the result of a call, in the format of Claude Code.
fn result_line(before: Option<&Object<'_>>, new: &NewLine) -> String {
    let text = for_model(new.cause, CallPolicy::default().timeout(new.limit));
    let or_null = |uuid: Option<&str>| uuid.map_or("null".to_owned(), quoted);
    let mut members = vec![format!(
        r#""parentUuid":{}"#,
        or_null(new.parent.as_deref())
    )];
    let shared = |key: &str| before.and_then(|before| before.get(key));
    for key in COPIED_FIELDS {
        members.extend(shared(key).map(|value| format!(r#""{key}":{value}"#)));
    }
    members.push(format!(
        r#""type":"user","message":{{"role":"user","content":[{{"type":"tool_result","content":{},"is_error":true,"tool_use_id":{}}}]}}"#,
        quoted(&text),
        quoted(&new.call),
    ));
    members.push(format!(r#""uuid":{}"#, quoted(&new.uuid)));
    members.extend(shared("timestamp").map(|at| format!(r#""timestamp":{at}"#)));
    members.push(format!(
        r#""toolUseResult":{}"#,
        quoted(&format!("Error: {text}"))
    ));
    if new.source.is_some() {
        members.push(format!(
            r#""sourceToolAssistantUUID":{}"#,
            or_null(new.source.as_deref())
        ));
    }
    members.push(format!(
        r#""onward":{{"synthetic":true,"cause":"{}"}}"#,
        new.cause
    ));
    format!("{{{}}}", members.join(","))
}
