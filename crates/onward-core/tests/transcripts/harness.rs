//! Builders for conversations, and assertions on repairs.

use std::borrow::Cow;

use onward_core::Timestamp;
use onward_core::call::message::for_model;
use onward_core::call::{CallPolicy, CallStatus, CallTimestamp, Cause, Limit};
use onward_core::transcript::{
    Api, Call, Message, Part, Repair, RepairKind, Resolution, Role, Row, TrailingCalls,
    orphan_as_text, repair_document, sanitize,
};
use serde_json::Value;

pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(seconds * 1000)
}

/// A row of the user.
pub(crate) fn user(parts: Vec<Part<'static>>) -> Message<'static> {
    row(Role::User, parts)
}

/// A row of the model.
pub(crate) fn model(parts: Vec<Part<'static>>) -> Message<'static> {
    row(Role::Assistant, parts)
}

pub(crate) fn row(role: Role, parts: Vec<Part<'static>>) -> Message<'static> {
    Message {
        role,
        parts,
        is_queued: false,
        is_plain: true,
    }
}

pub(crate) fn text(text: &'static str) -> Part<'static> {
    Part::Text(text.into())
}

pub(crate) fn call(id: &'static str, resolution: Resolution) -> Part<'static> {
    Part::Call(Call {
        id: id.into(),
        tool: Some("Bash".into()),
        input: "{}".into(),
        resolution,
    })
}

/// Running since second 0, with the default timeout.
pub(crate) fn running() -> CallTimestamp {
    CallTimestamp {
        status: CallStatus::Running,
        started_at: Some(at(0)),
        last_progress_at: None,
        limit: Limit::Unspecified,
        grace: None,
    }
}

pub(crate) fn open(id: &'static str) -> Part<'static> {
    call(id, Resolution::Open(running()))
}

pub(crate) fn sanitized<'m>(
    messages: &'m [Message<'static>],
    now: i64,
) -> (Vec<Row<'m, 'static>>, Vec<Repair>) {
    sanitize(messages, at(now), CallPolicy::default())
}

/// The kind and the row of each repair.
pub(crate) fn kinds_and_rows(repairs: &[Repair]) -> Vec<(RepairKind, usize)> {
    repairs
        .iter()
        .map(|repair| (repair.kind, repair.row))
        .collect()
}

/// Checks that there is nothing to repair and nothing is copied.
#[track_caller]
pub(crate) fn assert_unchanged(messages: &[Message<'static>], now: i64) {
    let (rows, repairs) = sanitized(messages, now);
    assert_eq!(repairs, []);
    assert_eq!(rows.len(), messages.len());
    for (index, row) in rows.iter().enumerate() {
        assert_eq!(row.index, index);
        assert!(
            matches!(&row.message, Cow::Borrowed(message) if std::ptr::eq(*message, &messages[index]))
        );
    }
}

/// The cause of interruption of each call in a row.
pub(crate) fn causes(row: &Row<'_, '_>) -> Vec<Option<Cause>> {
    let calls = row.message.parts.iter().filter_map(|part| match part {
        Part::Call(call) => Some(call.resolution),
        Part::Text(_)
        | Part::Result(_)
        | Part::ServerCall(_)
        | Part::ServerResult(_)
        | Part::Other => None,
    });
    calls
        .map(|resolution| match resolution {
            Resolution::Interrupted(cause) => Some(cause),
            Resolution::Open(_) | Resolution::Settled => None,
        })
        .collect()
}

/// Checks the repaired document and the repairs, and that a second repair changes nothing.
#[track_caller]
pub(crate) fn assert_repaired(
    api: Api,
    document: &str,
    expected: &str,
    repairs: &[(RepairKind, usize)],
) {
    let repaired = repair_document(api, document, TrailingCalls::Answer);
    assert_eq!(repaired.text, expected);
    assert_eq!(kinds_and_rows(&repaired.repairs), repairs);
    let again = repair_document(api, expected, TrailingCalls::Answer);
    assert_eq!(again.repairs, []);
    assert!(matches!(again.text, Cow::Borrowed(_)));
}

/// Checks that a document needs no repair and is not copied.
#[track_caller]
pub(crate) fn assert_document_unchanged(api: Api, document: &str) {
    let repaired = repair_document(api, document, TrailingCalls::Answer);
    assert_eq!(repaired.repairs, []);
    assert!(matches!(repaired.text, Cow::Borrowed(text) if std::ptr::eq(text, document)));
}

/// The synthetic result of a call with an unknown outcome.
pub(crate) fn outcome_unknown() -> String {
    for_model(Cause::OutcomeUnknown, None)
}

/// The heading of a result without a call.
pub(crate) fn orphan_heading(id: &str) -> String {
    let blocks = orphan_as_text(&format!(r#"{{"tool_use_id":"{id}","content":null}}"#));
    let block: Value = serde_json::from_str(&blocks[0]).unwrap();
    block["text"].as_str().unwrap().to_owned()
}
