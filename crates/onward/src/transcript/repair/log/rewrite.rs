//! A log written anew, line by line: what does not change is copied as it is.

use std::io::{self, BufRead, Write};

use onward_core::call::CallPolicy;
use onward_core::call::words::for_model;
use onward_core::transcript::json::{self, Object, quoted};
use onward_core::transcript::orphan_as_text;

use super::super::super::Lines;
use super::edits::{Edit, Edits, NewLine};

/// What a new line takes from the one that it stands after.
const SHARED: [&str; 9] = [
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

/// Copies a log with its edits.
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
                edited(text, edit, out)?;
            }
        }
    }
    Ok(())
}

fn edited(line: &str, edit: &Edit, out: &mut dyn Write) -> io::Result<()> {
    let text = line.trim_end_matches(['\n', '\r']);
    let end = match line.get(text.len()..) {
        Some("") | None => "\n",
        Some(end) => end,
    };
    if !edit.goes {
        let changed = with_parent(&with_blocks(text, edit), edit);
        write!(out, "{changed}{end}")?;
    }
    let before = Object::of(text);
    for new in &edit.after {
        write!(out, "{}{end}", answer(before.as_ref(), new))?;
    }
    Ok(())
}

fn with_parent(line: &str, edit: &Edit) -> String {
    let Some(parent) = &edit.parent else {
        return line.to_owned();
    };
    let parent = parent.as_deref().map_or("null".to_owned(), quoted);
    let span = Object::of(line).and_then(|object| object.span("parentUuid"));
    match span {
        Some(span) => spliced(line, span, &parent),
        None => line.to_owned(),
    }
}

fn with_blocks(line: &str, edit: &Edit) -> String {
    if edit.as_text.is_empty() && edit.gone.is_empty() {
        return line.to_owned();
    }
    let changed = || {
        let message = Object::of(line)?.span("message")?;
        let content = Object::of(line.get(message.clone())?)?.span("content")?;
        let content = message.start + content.start..message.start + content.end;
        let text = line.get(content.clone())?;
        let mut blocks: Vec<String> = Vec::new();
        for (index, span) in json::elements(text)?.into_iter().enumerate() {
            let block = text.get(span)?;
            if edit.as_text.contains(&index) {
                blocks.extend(orphan_as_text(block));
            } else if !edit.gone.contains(&index) {
                blocks.push(block.to_owned());
            }
        }
        let blocks = format!("[{}]", blocks.join(","));
        Some(spliced(line, content, &blocks))
    };
    changed().unwrap_or_else(|| line.to_owned())
}

fn spliced(text: &str, span: std::ops::Range<usize>, instead: &str) -> String {
    let (before, after) = (text.get(..span.start), text.get(span.end..));
    [
        before.unwrap_or_default(),
        instead,
        after.unwrap_or_default(),
    ]
    .concat()
}

/// The line that answers a call, as Claude Code would write it.
fn answer(before: Option<&Object<'_>>, new: &NewLine) -> String {
    let text = for_model(new.cause, CallPolicy::default().timeout(new.limit));
    let or_null = |uuid: Option<&str>| uuid.map_or("null".to_owned(), quoted);
    let mut members = vec![format!(
        r#""parentUuid":{}"#,
        or_null(new.parent.as_deref())
    )];
    let shared = |key: &str| before.and_then(|before| before.get(key));
    for key in SHARED {
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
