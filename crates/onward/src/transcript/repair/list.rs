//! API messages in a file: one document, one document per line, or one message per line.
//!
//! A document is a list of messages, or a request with one. Each document is a conversation; all
//! messages on lines are one. An invalid line is reported and kept. The whole file is held in
//! memory.

use std::collections::HashSet;

use onward_core::transcript::{Api, Repair, TrailingCalls, repair_document, repair_rows};
use serde_json::Value;

use super::super::responses::is_item;
use super::super::{Error, Lines};
use super::layout::{PlacedLine, arrange};
use super::{Examination, Finding, Fix, read_text};

pub(super) fn examine(lines: Lines, api: Api) -> Result<Examination, Error> {
    let name = lines.name().to_owned();
    let text = read_text(lines)?;
    let whole: serde_json::Result<Value> = serde_json::from_str(&text);
    let (repaired, findings, warnings) = match whole {
        Ok(value) if !is_message(&value) => {
            let repaired = repair_document(api, &text, TrailingCalls::Answer);
            let repairs = repaired.repairs.into_iter();
            let findings = repairs.map(|repair| finding(repair, None)).collect();
            (repaired.text.into_owned(), findings, Vec::new())
        }
        Ok(_) => repair_messages(&text, &[0], api, Vec::new()),
        Err(cause) => {
            let (values, warnings) = parse_lines(&name, &text);
            if values.is_empty() || text.lines().count() < 2 {
                return Err(Error::from_json(&name, 1, "messages", cause));
            }
            let indexes: Vec<usize> = values.iter().map(|(index, _)| *index).collect();
            if values.iter().all(|(_, value)| is_message(value)) {
                repair_messages(&text, &indexes, api, warnings)
            } else {
                repair_documents(&text, &indexes, api, warnings)
            }
        }
    };
    Ok(Examination {
        fix: if repaired == text {
            Fix::None
        } else {
            Fix::Text(repaired)
        },
        findings,
        open_calls: 0,
        warnings,
    })
}

fn is_message(value: &Value) -> bool {
    value["role"].is_string() || is_item(value)
}

fn finding(repair: Repair, line: Option<u64>) -> Finding {
    Finding {
        line,
        row: Some(repair.row),
        repair,
    }
}

/// The valid lines with their indexes, and the reports about the others.
fn parse_lines(name: &str, text: &str) -> (Vec<(usize, Value)>, Vec<String>) {
    let mut values = Vec::new();
    let mut warnings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        match serde_json::from_str(line) {
            Ok(value) => values.push((index, value)),
            Err(_) if line.trim().is_empty() => {}
            Err(cause) => {
                let error = Error::from_json(name, index as u64 + 1, "messages", cause);
                warnings.push(format!("{error}; kept the line"));
            }
        }
    }
    (values, warnings)
}

type Repairs = (String, Vec<Finding>, Vec<String>);

/// Repairs one conversation with one message on each of these lines.
fn repair_messages(text: &str, indexes: &[usize], api: Api, warnings: Vec<String>) -> Repairs {
    let lines: Vec<&str> = text.lines().collect();
    let line = |index: &usize| lines.get(*index).copied().unwrap_or_default().trim();
    let sources: Vec<&str> = indexes.iter().map(line).collect();
    let repaired = repair_rows(api, &sources, TrailingCalls::Answer);
    if repaired.repairs.is_empty() {
        return (text.to_owned(), Vec::new(), warnings);
    }
    let placed = repaired.rows.into_iter().map(|row| {
        let index = row.from.and_then(|from| indexes.get(from).copied());
        match (index, row.text) {
            (Some(index), None) => PlacedLine::Kept(index),
            (Some(index), Some(text)) => PlacedLine::Changed(index, text),
            (None, text) => PlacedLine::New(text.unwrap_or_default()),
        }
    });
    let placed: Vec<PlacedLine> = placed.collect();
    let findings = repaired.repairs.into_iter().map(|repair| {
        let line = indexes.get(repair.row).map(|index| *index as u64 + 1);
        finding(repair, line)
    });
    let rows: HashSet<usize> = indexes.iter().copied().collect();
    (arrange(text, &rows, &placed), findings.collect(), warnings)
}

/// Repairs one conversation on each of these lines.
fn repair_documents(text: &str, indexes: &[usize], api: Api, warnings: Vec<String>) -> Repairs {
    let mut out = String::with_capacity(text.len());
    let mut findings = Vec::new();
    for (index, line) in text.split_inclusive('\n').enumerate() {
        if indexes.binary_search(&index).is_err() {
            out.push_str(line);
            continue;
        }
        let content = line.trim_end_matches(['\n', '\r']);
        let repaired = repair_document(api, content, TrailingCalls::Answer);
        out.push_str(&repaired.text);
        out.push_str(line.get(content.len()..).unwrap_or_default());
        let found = repaired.repairs.into_iter();
        findings.extend(found.map(|repair| finding(repair, Some(index as u64 + 1))));
    }
    (out, findings, warnings)
}
