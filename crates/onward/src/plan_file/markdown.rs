//! A plan file in Markdown.
//!
//! TOML between `+++` lines has the fields of the plan. The `#` heading is the name, and the text
//! below it the question. Each `##` heading is a step: the heading is the title, a `toml` code
//! block directly below it has the other fields, and the rest of the text is the instructions,
//! unchanged. Deeper headings belong to the text. `write.rs` writes the same format.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Parser, Tag};
use serde_json::{Map, Value};

use super::lines::{LineIndex, Lines, inside};
use super::toml::Reader;
use super::{FileIssue, PlanFile};

/// The line before and after the front matter.
pub(super) const FENCE: &str = "+++";
/// The language of the code block with the fields of a step.
pub(super) const FIELDS_LANGUAGE: &str = "toml";
/// The type of a step that sets none.
pub(super) const DEFAULT_STEP_TYPE: &str = "custom";

/// A heading and the text up to the next one.
#[derive(Debug, PartialEq, Eq)]
struct Section {
    is_plan: bool,
    /// Byte range of the heading.
    heading: Range<usize>,
    /// The content of the code block with the fields.
    fields: Option<Range<usize>>,
    text: Range<usize>,
}

pub(super) fn parse(text: &str) -> Result<PlanFile, Vec<FileIssue>> {
    let index = LineIndex::new(text);
    let mut lines = Lines::default();
    lines.set("", 1);
    let mut issues = Vec::new();
    let (front_matter, body) = front_matter(text).map_err(|issue| vec![issue])?;
    let mut reader = Reader {
        index: &index,
        lines: &mut lines,
        offset: front_matter.start,
    };
    let mut arguments = match reader.read(slice(text, &front_matter), "") {
        Ok(fields) => fields,
        Err(issue) => {
            issues.push(issue);
            Map::new()
        }
    };
    if arguments.remove("steps").is_some() {
        let line = reader.lines.get("steps").unwrap_or(1);
        let message = "`steps` cannot be set in the front matter; write a `##` heading per step";
        issues.push(FileIssue::new(line, message));
    }
    let sections = sections(text, body.clone());
    let first = sections
        .first()
        .map_or(body.end, |section| section.heading.start);
    let (before, at) = trimmed(text, &(body.start..first));
    if !before.is_empty() {
        let message = "text before the first heading; write it below `# NAME` or in a step";
        issues.push(FileIssue::new(index.line(at), message));
    }
    let mut steps = Vec::new();
    for (position, section) in sections.iter().enumerate() {
        let line = index.line(section.heading.start);
        if !section.is_plan {
            reader.offset = 0;
            match step(text, section, steps.len(), &mut reader) {
                Ok(step) => steps.push(Value::Object(step)),
                Err(issue) => issues.push(issue),
            }
        } else if position > 0 {
            let message = "the `#` heading must be the first and only one; use `##` for a step and \
                           `###` in its text";
            issues.push(FileIssue::new(line, message));
        } else {
            let question = ("researchQuestion", trimmed(text, &section.text));
            for (field, part) in [("name", heading(text, section)), question] {
                let line = (line, &index);
                set(&mut arguments, reader.lines, "", (field, part), line)
                    .unwrap_or_else(|issue| issues.push(issue));
            }
        }
    }
    if sections.iter().all(|section| section.is_plan) && issues.is_empty() {
        let line = index.line(text.trim_end().len());
        issues.push(FileIssue::new(
            line,
            "no steps; write a `##` heading per step",
        ));
    }
    if !issues.is_empty() {
        return Err(issues);
    }
    arguments.insert("steps".to_owned(), steps.into());
    Ok(PlanFile { arguments, lines })
}

/// The byte ranges of the front matter without its fences, and of the rest.
fn front_matter(text: &str) -> Result<(Range<usize>, Range<usize>), FileIssue> {
    let start = text.len() - text.trim_start_matches('\u{feff}').len();
    let body = text.get(start..).unwrap_or_default();
    let mut offset = start;
    let mut opened = None;
    for line in body.split_inclusive('\n') {
        let end = offset + line.len();
        match (line.trim_end(), opened) {
            (FENCE, None) => opened = Some(end),
            (FENCE, Some(opened)) => return Ok((opened..offset, end..text.len())),
            ("---", None) => {
                let message = "the front matter must be TOML between `+++` lines, not YAML \
                               between `---` lines";
                return Err(FileIssue::new(1, message));
            }
            (_, None) => return Ok((start..start, start..text.len())),
            (_, Some(_)) => {}
        }
        offset = end;
    }
    match opened {
        Some(_) => Err(FileIssue::new(
            1,
            "the front matter has no closing `+++` line",
        )),
        None => Ok((start..start, start..text.len())),
    }
}

/// The sections of the body. Only `#` and `##` headings outside of lists, quotes and code count.
fn sections(text: &str, body: Range<usize>) -> Vec<Section> {
    let source = slice(text, &body);
    let absolute = |range: Range<usize>| range.start + body.start..range.end + body.start;
    let mut sections: Vec<Section> = Vec::new();
    let mut depth = 0_usize;
    // Whether the last block was a heading, and the code block after it.
    let (mut follows_heading, mut in_fields) = (false, false);
    for (event, range) in Parser::new(source).into_offset_iter() {
        let range = absolute(range);
        match event {
            Event::Start(tag) => {
                if depth == 0 {
                    let is_fields = follows_heading && is_fields_block(&tag);
                    follows_heading = false;
                    if let Some(is_plan) = is_plan_heading(&tag, slice(text, &range)) {
                        if let Some(last) = sections.last_mut() {
                            last.text.end = range.start;
                        }
                        follows_heading = !is_plan;
                        sections.push(Section {
                            is_plan,
                            text: range.end..body.end,
                            heading: range,
                            fields: None,
                        });
                    } else if let Some(section) = sections.last_mut().filter(|_| is_fields) {
                        in_fields = true;
                        section.text.start = range.end;
                        section.fields = Some(range.start..range.start);
                    }
                }
                depth += 1;
            }
            Event::End(_) => {
                depth = depth.saturating_sub(1);
                in_fields &= depth > 0;
            }
            Event::Text(_) => {
                let fields = sections.last_mut().and_then(|last| last.fields.as_mut());
                if let Some(fields) = fields.filter(|_| in_fields) {
                    if fields.start == fields.end {
                        fields.start = range.start;
                    }
                    fields.end = range.end;
                }
            }
            Event::Rule => follows_heading = false,
            // Inside of a block, or in extensions that are not enabled.
            Event::Code(_)
            | Event::Html(_)
            | Event::InlineHtml(_)
            | Event::InlineMath(_)
            | Event::DisplayMath(_)
            | Event::FootnoteReference(_)
            | Event::SoftBreak
            | Event::HardBreak
            | Event::TaskListMarker(_) => {}
        }
    }
    sections
}

/// Whether a heading names the plan or a step; `None` for other blocks. A paragraph above a line of
/// dashes is not a heading here, because authors write such lines as separators.
fn is_plan_heading(tag: &Tag<'_>, source: &str) -> Option<bool> {
    let Tag::Heading { level, .. } = tag else {
        return None;
    };
    let is_plan = *level == HeadingLevel::H1;
    let counts = is_plan || *level == HeadingLevel::H2;
    (counts && source.trim_start().starts_with('#')).then_some(is_plan)
}

fn is_fields_block(tag: &Tag<'_>) -> bool {
    let Tag::CodeBlock(CodeBlockKind::Fenced(info)) = tag else {
        return false;
    };
    info.split_whitespace().next() == Some(FIELDS_LANGUAGE)
}

fn step(
    text: &str,
    section: &Section,
    position: usize,
    reader: &mut Reader<'_>,
) -> Result<Map<String, Value>, FileIssue> {
    let path = format!("steps[{position}]");
    let line = reader.index.line(section.heading.start);
    reader.lines.set(path.as_str(), line);
    let mut fields = Map::new();
    if let Some(range) = &section.fields {
        reader.offset = range.start;
        fields = reader.read(slice(text, range), &path)?;
    }
    let instructions = ("instructions", trimmed(text, &section.text));
    for part in [("title", heading(text, section)), instructions] {
        set(&mut fields, reader.lines, &path, part, (line, reader.index))?;
    }
    fields
        .entry("stepType")
        .or_insert_with(|| DEFAULT_STEP_TYPE.into());
    Ok(fields)
}

/// Sets a field from a text with its offset. An empty text is a missing field, which is reported at
/// the line of the heading. TOML must not set the field, too.
fn set(
    fields: &mut Map<String, Value>,
    lines: &mut Lines,
    path: &str,
    (field, (text, offset)): (&str, (String, usize)),
    (heading, index): (usize, &LineIndex),
) -> Result<(), FileIssue> {
    let path = inside(path, field);
    match (text.is_empty(), fields.contains_key(field)) {
        (true, true) => {}
        (true, false) => lines.set(path, heading),
        (false, true) => {
            let message = format!("`{path}` is set twice, in TOML and as text");
            return Err(FileIssue::new(index.line(offset), message));
        }
        (false, false) => {
            lines.set(path, index.line(offset));
            fields.insert(field.to_owned(), text.into());
        }
    }
    Ok(())
}

/// The text of a heading without its marks, and the offset of the heading.
fn heading(text: &str, section: &Section) -> (String, usize) {
    let line = slice(text, &section.heading).trim();
    let line = line.trim_start_matches('#').trim();
    let open = line.trim_end_matches('#');
    let is_closed = open.is_empty() || open.ends_with([' ', '\t']);
    let name = if is_closed { open.trim_end() } else { line };
    (name.to_owned(), section.heading.start)
}

/// A text without blank lines around it and with `\n` as line break, and its offset.
fn trimmed(text: &str, range: &Range<usize>) -> (String, usize) {
    let part = slice(text, range);
    let mut start = range.start;
    let mut rest = part;
    // Keeps the indentation of the first line.
    while let Some((line, after)) = rest.split_once('\n') {
        if !line.trim().is_empty() {
            break;
        }
        start += line.len() + 1;
        rest = after;
    }
    (rest.trim_end().replace("\r\n", "\n"), start)
}

fn slice<'t>(text: &'t str, range: &Range<usize>) -> &'t str {
    text.get(range.clone()).unwrap_or_default()
}
