//! A plan file in JSON: the arguments of the tool as one object.

use jsonc_parser::ast::Value as Node;
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::Value;

use super::lines::{LineIndex, Lines, inside};
use super::{FileIssue, PlanFile};

pub(super) fn parse(text: &str) -> Result<PlanFile, Vec<FileIssue>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let value = serde_json::from_str(text)
        .map_err(|error| vec![FileIssue::new(error.line(), without_position(&error))])?;
    let Value::Object(arguments) = value else {
        return Err(vec![FileIssue::new(1, "the file is not a JSON object")]);
    };
    let index = LineIndex::new(text);
    let mut lines = Lines::default();
    let mut duplicates = Vec::new();
    // The text is valid, so its tree can be built.
    let parsed = parse_to_ast(text, &CollectOptions::default(), &ParseOptions::default());
    if let Some(node) = parsed.ok().and_then(|parsed| parsed.value) {
        record(&node, "", &index, &mut lines, &mut duplicates);
    }
    if duplicates.is_empty() {
        Ok(PlanFile { arguments, lines })
    } else {
        Err(duplicates)
    }
}

/// The message of a syntax error; its line is reported separately.
fn without_position(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    let message = message.strip_suffix(&position).unwrap_or(&message);
    format!("invalid JSON: {message}, column {}", error.column())
}

/// Records the line of each field, and fields that occur twice.
fn record<'n>(
    node: &'n Node<'n>,
    path: &str,
    index: &LineIndex,
    lines: &mut Lines,
    duplicates: &mut Vec<FileIssue>,
) {
    lines.set(path, index.line(node.range().start));
    match node {
        Node::Object(object) => {
            let mut names = std::collections::HashSet::new();
            for property in &object.properties {
                let name = property.name.as_str();
                let path = inside(path, name);
                let line = index.line(property.range.start);
                if !names.insert(name) {
                    let message = format!("`{path}` is set twice");
                    duplicates.push(FileIssue::new(line, message));
                }
                record(&property.value, &path, index, lines, duplicates);
                lines.set(path, line);
            }
        }
        Node::Array(array) => {
            for (at, element) in array.elements.iter().enumerate() {
                record(element, &format!("{path}[{at}]"), index, lines, duplicates);
            }
        }
        Node::StringLit(_) | Node::NumberLit(_) | Node::BooleanLit(_) | Node::NullKeyword(_) => {}
    }
}
