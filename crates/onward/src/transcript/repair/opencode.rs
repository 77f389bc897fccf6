//! opencode sessions: replaces the state of calls that will not get a result by an error.
//!
//! A call and its result are one part, so results can be neither misplaced nor orphaned. Calls with
//! the id of another call in their message are renamed. Exports are changed in the text, parts of
//! the database by `onward_engine::opencode`.

use std::collections::HashSet;
use std::ops::{ControlFlow, Range};
use std::path::Path;

use onward_core::transcript::json::{Object, quoted, splice};
use onward_engine::opencode::{OpencodePart, PartChange, visit_messages};
use serde_json::Value;

use super::super::opencode::{AGENT, parse, stored_message};
use super::super::{Error, Lines};
use super::conversation::{CallPlace, Conversation};
use super::{Examination, Finding, Fix, RepairContext, event_log, read_text};

/// Finds and repairs defects of an exported session.
pub(super) fn examine(lines: Lines, context: RepairContext) -> Result<Examination, Error> {
    let name = lines.name().to_owned();
    let text = read_text(lines)?;
    let export: Value = serde_json::from_str(&text)
        .map_err(|cause| Error::from_json(&name, 1, "an opencode session", cause))?;
    let Some(messages) = export["messages"].as_array() else {
        return Err(Error::NoMessages { name, number: 1 });
    };
    let mut conversation = Conversation::of_agent("opencode");
    for (index, message) in messages.iter().enumerate() {
        conversation.push(index, parse(message.clone()));
    }
    let (mut examination, repairs) = diagnose(&conversation, context);
    let mut repaired = text;
    // From the end, so that the places before a change stay valid.
    for (place, repair) in repairs.iter().rev() {
        let ids = call_ids(messages.get(place.record));
        let changed = tool_span(&repaired, *place).and_then(|span| {
            let part = repair.apply(repaired.get(span.clone())?, &ids)?;
            Some(splice(&repaired, span, &part))
        });
        repaired = changed.unwrap_or(repaired);
    }
    examination.fix = if repairs.is_empty() {
        Fix::None
    } else {
        Fix::Text(repaired)
    };
    Ok(examination)
}

/// Finds and repairs defects of all sessions of a database.
pub(super) fn examine_store(path: &Path, context: RepairContext) -> Result<Examination, Error> {
    let mut store = StoreExamination {
        context,
        session: String::new(),
        conversation: Conversation::of_agent("opencode"),
        messages: Vec::new(),
        examination: Examination::clean(Vec::new()),
        changes: Vec::new(),
    };
    let name = path.display().to_string();
    let read = visit_messages(path, &mut |message| {
        if store.session != message.session {
            store.end_session();
            store.session.clone_from(&message.session);
        }
        let Some(value) = stored_message(&message) else {
            let session = &message.session;
            store.examination.warnings.push(format!(
                "`{name}`, session `{session}`: skipped a message that is not JSON"
            ));
            return ControlFlow::Continue(());
        };
        let tools = message
            .parts
            .into_iter()
            .zip(value["parts"].as_array().into_iter().flatten());
        let tools = tools.filter(|(_, part)| part["type"] == "tool");
        store.messages.push(StoredMessage {
            ids: call_ids(Some(&value)),
            tools: tools.map(|(part, _)| part).collect(),
        });
        let index = store.messages.len() - 1;
        store.conversation.push(index, parse(value));
        ControlFlow::Continue(())
    });
    read.map_err(|cause| Error::Store { cause })?;
    store.end_session();
    store.examination.fix = if store.changes.is_empty() {
        Fix::None
    } else {
        Fix::Parts(store.changes)
    };
    Ok(store.examination)
}

struct StoreExamination {
    context: RepairContext,
    session: String,
    conversation: Conversation,
    messages: Vec<StoredMessage>,
    examination: Examination,
    changes: Vec<PartChange>,
}

struct StoredMessage {
    ids: HashSet<String>,
    tools: Vec<OpencodePart>,
}

impl StoreExamination {
    fn end_session(&mut self) {
        let next = Conversation::of_agent("opencode");
        let conversation = std::mem::replace(&mut self.conversation, next);
        let (examination, repairs) = diagnose(&conversation, self.context);
        self.examination.open_calls += examination.open_calls;
        self.examination.findings.extend(examination.findings);
        let messages = std::mem::take(&mut self.messages);
        for (place, repair) in repairs {
            let Some(message) = messages.get(place.record) else {
                continue;
            };
            let Some(part) = message.tools.get(place.call) else {
                continue;
            };
            // A part can have two defects.
            let existing = self.changes.iter().position(|change| change.id == part.id);
            let source = existing.map_or(&part.data, |index| &self.changes[index].after);
            let Some(after) = repair.apply(source, &message.ids) else {
                continue;
            };
            match existing {
                Some(index) => self.changes[index].after = after,
                None => self.changes.push(PartChange {
                    id: part.id.clone(),
                    before: part.data.clone(),
                    after,
                }),
            }
        }
    }
}

/// The change of a part.
enum PartRepair {
    /// The call failed with this text.
    Interrupt(String),
    /// The call gets another id.
    Rename,
}

/// The findings of a session, and the changes of its parts by place.
fn diagnose(
    conversation: &Conversation,
    context: RepairContext,
) -> (Examination, Vec<(CallPlace, PartRepair)>) {
    let row = |record: usize| (None, Some(record));
    let (mut examination, interrupted) =
        event_log::findings(&AGENT, conversation, context, Vec::new(), row);
    let mut repairs = Vec::new();
    for call in interrupted {
        repairs.push((call.place, PartRepair::Interrupt(call.text())));
    }
    for (place, repair) in &conversation.duplicate_ids {
        examination.findings.push(Finding {
            line: None,
            row: Some(place.record),
            repair: repair.clone(),
        });
        repairs.push((*place, PartRepair::Rename));
    }
    repairs.sort_by_key(|(place, _)| (place.record, place.call));
    examination.findings.sort_by_key(|finding| finding.row);
    (examination, repairs)
}

impl PartRepair {
    /// The part after the repair.
    fn apply(&self, part: &str, ids: &HashSet<String>) -> Option<String> {
        let object = Object::parse(part)?;
        match self {
            PartRepair::Interrupt(text) => {
                let state = interrupted_state(object.get("state")?, text)?;
                Some(splice(part, object.span("state")?, &state))
            }
            PartRepair::Rename => {
                let id = object.string("callID")?;
                let number = (2..).find(|number| !ids.contains(&format!("{id}_{number}")))?;
                let id = quoted(&format!("{id}_{number}"));
                Some(splice(part, object.span("callID")?, &id))
            }
        }
    }
}

/// The state of a failed call with the input and the metadata of the call.
fn interrupted_state(state: &str, text: &str) -> Option<String> {
    let state = Object::parse(state)?;
    let time = state.get("time").and_then(Object::parse);
    let start = time
        .as_ref()
        .and_then(|time| time.get("start"))
        .unwrap_or("0");
    let metadata = state.get("metadata");
    let metadata = metadata.map_or(String::new(), |value| format!(r#","metadata":{value}"#));
    Some(format!(
        r#"{{"status":"error","input":{},"error":{}{metadata},"time":{{"start":{start},"end":{start}}}}}"#,
        state.get("input").unwrap_or("{}"),
        quoted(text),
    ))
}

/// The ids of the calls in a message.
fn call_ids(message: Option<&Value>) -> HashSet<String> {
    let parts = message.and_then(|message| message["parts"].as_array());
    let parts = parts.into_iter().flatten();
    let ids = parts.filter_map(|part| part["callID"].as_str());
    ids.map(str::to_owned).collect()
}

/// The span of a tool part in an export.
fn tool_span(text: &str, place: CallPlace) -> Option<Range<usize>> {
    let export = Object::parse(text)?;
    let message = export.elements("messages")?.get(place.record)?.clone();
    let object = Object::parse(text.get(message.clone())?)?;
    let spans = object.elements("parts")?.iter();
    let mut tools = spans
        .map(|part| message.start + part.start..message.start + part.end)
        .filter(|part| {
            let part = text.get(part.clone()).and_then(Object::parse);
            part.is_some_and(|part| part.string("type").as_deref() == Some("tool"))
        });
    tools.nth(place.call)
}
