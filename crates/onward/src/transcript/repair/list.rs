//! Messages of an API in a file: one document, a document on each line, or a message on each line.
//!
//! A document is a list of messages or a request with one in it; documents on lines are conversations of
//! their own, messages on lines are one. The whole file is in memory: what an API takes is not large.

use onward_core::transcript::json;
use onward_core::transcript::{Api, Frontier, Repair, repair_document};
use serde_json::Value;

use super::super::{Error, detect};
use super::{Examined, Finding, Remedy};

pub(super) fn examine(name: &str, text: String, api: Option<Api>) -> Result<Examined, Error> {
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let whole: serde_json::Result<Value> = serde_json::from_str(&text);
    let (values, first) = match whole {
        Ok(value) => (vec![value], 1),
        Err(cause) if lines.len() < 2 => {
            return Err(Error::of_json(name, 1, "messages", cause));
        }
        Err(_) => (parsed(name, &text)?, 0),
    };
    let api = match api.or_else(|| api_of(&values)) {
        Some(api) => api,
        None => {
            return Err(Error::UnknownFormat {
                name: name.to_owned(),
            });
        }
    };
    let is_message = |value: &Value| value["role"].is_string() || is_item(value);
    let (repaired, findings) = if values.iter().all(is_message) {
        messages(&text, &lines, api)
    } else if first == 1 {
        let repaired = repair_document(api, &text, Frontier::Answer);
        let findings = repaired
            .repairs
            .into_iter()
            .map(|repair| of_row(repair, None));
        (repaired.text.into_owned(), findings.collect())
    } else {
        documents(&text, api)
    };
    Ok(Examined {
        remedy: if repaired == text {
            Remedy::None
        } else {
            Remedy::Text(repaired)
        },
        findings,
        open: 0,
        warnings: Vec::new(),
    })
}

fn of_row(repair: Repair, line: Option<u64>) -> Finding {
    Finding {
        line,
        row: Some(repair.row),
        repair,
    }
}

fn parsed(name: &str, text: &str) -> Result<Vec<Value>, Error> {
    let mut values = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim().is_empty() {
            continue;
        }
        let value = serde_json::from_str(line);
        values.push(value.map_err(|cause| Error::of_json(name, number, "messages", cause))?);
    }
    Ok(values)
}

/// A message on each line: one conversation, which is a list but for its brackets and commas.
fn messages(text: &str, lines: &[&str], api: Api) -> (String, Vec<Finding>) {
    let list = format!("[{}]", lines.join("\n,"));
    let repaired = repair_document(api, &list, Frontier::Answer);
    if repaired.repairs.is_empty() {
        return (text.to_owned(), Vec::new());
    }
    let numbers: Vec<u64> = (1..)
        .zip(text.lines())
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(number, _)| number)
        .collect();
    let findings = repaired.repairs.iter().cloned().map(|repair| {
        let line = numbers.get(repair.row).copied();
        of_row(repair, line)
    });
    let findings = findings.collect();
    let spans = json::elements(&repaired.text).unwrap_or_default();
    let rows = spans.into_iter().filter_map(|span| repaired.text.get(span));
    let rows: Vec<&str> = rows.map(str::trim).collect();
    let end = if text.ends_with('\n') { "\n" } else { "" };
    (format!("{}{end}", rows.join("\n")), findings)
}

/// A document on each line: conversations of their own.
fn documents(text: &str, api: Api) -> (String, Vec<Finding>) {
    let mut out = String::with_capacity(text.len());
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        let content = line.trim_end_matches(['\n', '\r']);
        let repaired = repair_document(api, content, Frontier::Answer);
        out.push_str(&repaired.text);
        out.push_str(line.get(content.len()..).unwrap_or_default());
        let found = repaired.repairs.into_iter();
        findings.extend(found.map(|repair| of_row(repair, Some(number))));
    }
    (out, findings)
}

/// Whose messages these are. A talk without any sign reads the same in two of them.
fn api_of(values: &[Value]) -> Option<Api> {
    let of_responses = |value: &Value| {
        let list = value.as_array().or_else(|| value["input"].as_array());
        is_item(value) || list.is_some_and(|list| list.iter().any(is_item))
    };
    if values.iter().any(of_responses) {
        return Some(Api::Responses);
    }
    let mut signs = values.iter().filter_map(detect::sign);
    let message = values.iter().any(|value| value["role"].is_string());
    match signs.next() {
        Some(super::Format::Anthropic) => Some(Api::Anthropic),
        Some(super::Format::Openai) => Some(Api::Chat),
        Some(super::Format::Turns | super::Format::SweAgent | super::Format::ClaudeCode) => None,
        None => message.then_some(Api::Chat),
    }
}

/// Whether a value can only be an item of Responses.
fn is_item(value: &Value) -> bool {
    let kind = value["type"].as_str().unwrap_or_default();
    let is_call = kind.ends_with("_call") || kind.ends_with("_call_output");
    let is_message = kind == "message" && value["role"].is_string();
    is_message || kind == "reasoning" || (is_call && value["call_id"].is_string())
}
