//! Logs of Kimi, Copilot and Gemini: finds calls without a result.
//!
//! Kimi logs are repaired: a `tool.result` record is inserted after the last call or result of the
//! step. The schema of Copilot's log is not documented, and Gemini rewrites its chats, so both are only
//! checked.

use std::collections::{HashMap, HashSet};

use onward_core::transcript::json::{Object, quoted};
use serde_json::Value;

use super::super::event::AgentFormat;
use super::super::gemini::{self, Chat};
use super::super::lines::{Record, Records};
use super::super::{Error, Lines};
use super::conversation::{Conversation, InterruptedCall};
use super::layout::{PlacedLine, arrange};
use super::{Examination, Finding, Fix, RepairContext, read_text};

/// Finds defects of a log with one record per line.
pub(super) fn examine(
    agent: &AgentFormat,
    lines: Lines,
    context: RepairContext,
) -> Result<Examination, Error> {
    let mut records = Records::new(lines, agent.expected);
    let mut conversation = Conversation::of_agent(agent.format.name());
    let mut warnings = Vec::new();
    while let Some(record) = records.next::<Value>()? {
        match record {
            Record::Value { number, value } => {
                conversation.push(number as usize, (agent.parse)(value));
            }
            Record::Skipped(report) => warnings.push(report),
        }
    }
    Ok(findings(agent, &conversation, context, warnings, |record| {
        (Some(record as u64), None)
    })
    .0)
}

/// Finds and repairs defects of a Kimi log.
pub(super) fn examine_kimi(
    agent: &AgentFormat,
    lines: Lines,
    context: RepairContext,
) -> Result<Examination, Error> {
    let name = lines.name().to_owned();
    let text = read_text(lines)?;
    let mut conversation = Conversation::of_agent(agent.format.name());
    let mut warnings = Vec::new();
    let mut rows = HashSet::new();
    for (index, line) in text.lines().enumerate() {
        match serde_json::from_str(line) {
            Ok(record) => {
                conversation.push(index, (agent.parse)(record));
                rows.insert(index);
            }
            Err(_) if line.trim().is_empty() => {}
            Err(cause) => {
                let number = index as u64 + 1;
                let error = Error::from_json(&name, number, agent.expected, cause);
                warnings.push(format!("{error}; kept the line"));
            }
        }
    }
    let (mut examination, interrupted) =
        findings(agent, &conversation, context, warnings, |record| {
            (Some(record as u64 + 1), None)
        });
    if interrupted.is_empty() {
        examination.fix = Fix::None;
        return Ok(examination);
    }
    let lines: Vec<&str> = text.lines().collect();
    let mut new_lines: HashMap<usize, Vec<String>> = HashMap::new();
    for call in &interrupted {
        let line = lines.get(call.place.record).copied().unwrap_or_default();
        let after = new_lines.entry(call.last_record).or_default();
        after.push(kimi_result(line, call));
    }
    let mut placed = Vec::new();
    for index in 0..lines.len() {
        if rows.contains(&index) {
            placed.push(PlacedLine::Kept(index));
        }
        let new = new_lines.remove(&index).into_iter().flatten();
        placed.extend(new.map(PlacedLine::New));
    }
    examination.fix = Fix::Text(arrange(&text, &rows, &placed));
    Ok(examination)
}

/// Finds defects of a Gemini chat.
pub(super) fn examine_gemini(lines: Lines, context: RepairContext) -> Result<Examination, Error> {
    let chat = Chat::read(lines)?;
    let mut conversation = Conversation::of_agent("gemini");
    let mut numbers = Vec::new();
    for (index, message) in chat.messages.into_iter().enumerate() {
        numbers.push(message.line);
        conversation.push(index, gemini::parse(message.value));
    }
    let place = |record: usize| match numbers.get(record).copied().flatten() {
        Some(line) => (Some(line), None),
        None => (None, Some(record)),
    };
    Ok(findings(&gemini::AGENT, &conversation, context, chat.warnings, place).0)
}

/// The findings of a conversation. `place` returns the line and the row of a record.
pub(super) fn findings(
    agent: &AgentFormat,
    conversation: &Conversation,
    context: RepairContext,
    warnings: Vec<String>,
    place: impl Fn(usize) -> (Option<u64>, Option<usize>),
) -> (Examination, Vec<InterruptedCall>) {
    let diagnosis = conversation.diagnose(context);
    let finding = |call: &InterruptedCall| {
        let (line, row) = place(call.place.record);
        Finding {
            line,
            row,
            repair: call.repair.clone(),
        }
    };
    let examination = Examination {
        findings: diagnosis.interrupted.iter().map(finding).collect(),
        open_calls: diagnosis.open_calls,
        warnings,
        fix: Fix::Unsupported(agent.format),
    };
    (examination, diagnosis.interrupted)
}

/// The record with the result of a call, in the format of Kimi.
fn kimi_result(line: &str, call: &InterruptedCall) -> String {
    let record = Object::parse(line);
    let event = record.as_ref().and_then(|record| record.get("event"));
    let event = event.and_then(Object::parse);
    let shared = |key: &str| {
        let value = record.as_ref().and_then(|record| record.get(key));
        value.map_or(String::new(), |value| format!(r#","{key}":{value}"#))
    };
    let parent = event.as_ref().and_then(|event| event.get("uuid"));
    let parent = parent.map_or(String::new(), |uuid| format!(r#""parentUuid":{uuid},"#));
    let id = call.repair.call.as_deref().unwrap_or_default();
    format!(
        r#"{{"type":"context.append_loop_event"{},"event":{{"type":"tool.result",{parent}"toolCallId":{},"result":{{"output":{},"isError":true}}}}{},"onward":{{"synthetic":true,"cause":"{}"}}}}"#,
        shared("agentId"),
        quoted(id),
        quoted(&call.text()),
        shared("time"),
        call.cause(),
    )
}
