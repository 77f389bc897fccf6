//! API messages in a file: one document, one document per line, or one message per line.
//!
//! A document is a list of messages, or a request with one. Each document is a conversation; all
//! messages on lines are one. The whole file is held in memory.

use onward_core::transcript::json;
use onward_core::transcript::{Api, Repair, TrailingCalls, repair_document};
use serde_json::Value;

use super::super::{Error, detect};
use super::{Examination, Finding, Fix};

pub(super) fn examine(name: &str, text: String, api: Option<Api>) -> Result<Examination, Error> {
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let whole: serde_json::Result<Value> = serde_json::from_str(&text);
    let (values, first) = match whole {
        Ok(value) => (vec![value], 1),
        Err(cause) if lines.len() < 2 => {
            return Err(Error::from_json(name, 1, "messages", cause));
        }
        Err(_) => (parse_lines(name, &text)?, 0),
    };
    let api = match api.or_else(|| detect_api(&values)) {
        Some(api) => api,
        None => {
            return Err(Error::UnknownFormat {
                name: name.to_owned(),
            });
        }
    };
    let is_message = |value: &Value| value["role"].is_string() || is_item(value);
    let (repaired, findings) = if values.iter().all(is_message) {
        repair_messages(&text, &lines, api)
    } else if first == 1 {
        let repaired = repair_document(api, &text, TrailingCalls::Answer);
        let findings = repaired
            .repairs
            .into_iter()
            .map(|repair| finding(repair, None));
        (repaired.text.into_owned(), findings.collect())
    } else {
        repair_documents(&text, api)
    };
    Ok(Examination {
        fix: if repaired == text {
            Fix::None
        } else {
            Fix::Text(repaired)
        },
        findings,
        open_calls: 0,
        warnings: Vec::new(),
    })
}

fn finding(repair: Repair, line: Option<u64>) -> Finding {
    Finding {
        line,
        row: Some(repair.row),
        repair,
    }
}

fn parse_lines(name: &str, text: &str) -> Result<Vec<Value>, Error> {
    let mut values = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim().is_empty() {
            continue;
        }
        let value = serde_json::from_str(line);
        values.push(value.map_err(|cause| Error::from_json(name, number, "messages", cause))?);
    }
    Ok(values)
}

/// Repairs one conversation with one message per line, treated as a list.
fn repair_messages(text: &str, lines: &[&str], api: Api) -> (String, Vec<Finding>) {
    let list = format!("[{}]", lines.join("\n,"));
    let repaired = repair_document(api, &list, TrailingCalls::Answer);
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
        finding(repair, line)
    });
    let findings = findings.collect();
    let spans = json::elements(&repaired.text).unwrap_or_default();
    let rows = spans.into_iter().filter_map(|span| repaired.text.get(span));
    let rows: Vec<&str> = rows.map(str::trim).collect();
    let end = if text.ends_with('\n') { "\n" } else { "" };
    (format!("{}{end}", rows.join("\n")), findings)
}

/// Repairs one conversation per line.
fn repair_documents(text: &str, api: Api) -> (String, Vec<Finding>) {
    let mut out = String::with_capacity(text.len());
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        let content = line.trim_end_matches(['\n', '\r']);
        let repaired = repair_document(api, content, TrailingCalls::Answer);
        out.push_str(&repaired.text);
        out.push_str(line.get(content.len()..).unwrap_or_default());
        let found = repaired.repairs.into_iter();
        findings.extend(found.map(|repair| finding(repair, Some(number))));
    }
    (out, findings)
}

/// The API of the messages. Plain messages are the same in Chat and Anthropic; they count as Chat.
fn detect_api(values: &[Value]) -> Option<Api> {
    let is_responses = |value: &Value| {
        let list = value.as_array().or_else(|| value["input"].as_array());
        is_item(value) || list.is_some_and(|list| list.iter().any(is_item))
    };
    if values.iter().any(is_responses) {
        return Some(Api::Responses);
    }
    let mut formats = values.iter().filter_map(detect::definite_format);
    let has_message = values.iter().any(|value| value["role"].is_string());
    match formats.next() {
        Some(super::Format::Anthropic) => Some(Api::Anthropic),
        Some(super::Format::Openai) => Some(Api::Chat),
        Some(super::Format::Turns | super::Format::ClaudeCode) => None,
        None => has_message.then_some(Api::Chat),
    }
}

/// Whether a value occurs only in Responses.
fn is_item(value: &Value) -> bool {
    let kind = value["type"].as_str().unwrap_or_default();
    let is_call = kind.ends_with("_call") || kind.ends_with("_call_output");
    let is_message = kind == "message" && value["role"].is_string();
    is_message || kind == "reasoning" || (is_call && value["call_id"].is_string())
}
