//! Writes a log with its edits. Unchanged lines are copied byte for byte.

use std::io::{self, BufRead, Write};

use onward_core::call::CallPolicy;
use onward_core::call::message::for_model;
use onward_core::transcript::json::{self, Object, quoted};
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

/// Copies a log and applies the edits.
pub(crate) fn rewrite(lines: Lines, edits: &Edits, out: &mut dyn Write) -> io::Result<()> {
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
                write_edited(text, edit, out)?;
            }
        }
    }
    Ok(())
}

fn write_edited(line: &str, edit: &Edit, out: &mut dyn Write) -> io::Result<()> {
    let text = line.trim_end_matches(['\n', '\r']);
    let end = match line.get(text.len()..) {
        Some("") | None => "\n",
        Some(end) => end,
    };
    if !edit.removed {
        let changed = with_parent(&with_blocks(text, edit), edit);
        write!(out, "{changed}{end}")?;
    }
    let before = Object::parse(text);
    for new in &edit.new_lines {
        write!(out, "{}{end}", result_line(before.as_ref(), new))?;
    }
    Ok(())
}

fn with_parent(line: &str, edit: &Edit) -> String {
    let Some(parent) = &edit.parent else {
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
    if edit.as_text.is_empty() && edit.removed_blocks.is_empty() {
        return line.to_owned();
    }
    let changed = || {
        let message = Object::parse(line)?.span("message")?;
        let content = Object::parse(line.get(message.clone())?)?.span("content")?;
        let content = message.start + content.start..message.start + content.end;
        let text = line.get(content.clone())?;
        let mut blocks: Vec<String> = Vec::new();
        for (index, span) in json::elements(text)?.into_iter().enumerate() {
            let block = text.get(span)?;
            if edit.as_text.contains(&index) {
                blocks.extend(orphan_as_text(block));
            } else if !edit.removed_blocks.contains(&index) {
                blocks.push(block.to_owned());
            }
        }
        let blocks = format!("[{}]", blocks.join(","));
        Some(splice(line, content, &blocks))
    };
    changed().unwrap_or_else(|| line.to_owned())
}

fn splice(text: &str, span: std::ops::Range<usize>, replacement: &str) -> String {
    let (before, after) = (text.get(..span.start), text.get(span.end..));
    [
        before.unwrap_or_default(),
        replacement,
        after.unwrap_or_default(),
    ]
    .concat()
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
