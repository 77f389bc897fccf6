//! How a test says a conversation, and what it is told about it.

use std::borrow::Cow;

use onward_core::Timestamp;
use onward_core::call::{CallPolicy, CallStatus, CallTimestamp, Cause, Limit};
use onward_core::transcript::{
    Api, Call, Frontier, Message, Part, Repair, Role, Row, Standing, What, repair_document,
    sanitize,
};

pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(seconds * 1000)
}

/// A row of a person.
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

pub(crate) fn call(id: &'static str, standing: Standing) -> Part<'static> {
    Part::Call(Call {
        id: id.into(),
        tool: Some("Bash".into()),
        input: "{}".into(),
        standing,
    })
}

/// Running since second 0.
pub(crate) fn running() -> CallTimestamp {
    CallTimestamp {
        status: CallStatus::Running,
        started_at: Some(at(0)),
        last_progress_at: None,
        limit: Limit::Unsaid,
    }
}

pub(crate) fn open(id: &'static str) -> Part<'static> {
    call(id, Standing::Open(running()))
}

pub(crate) fn clean<'m>(
    messages: &'m [Message<'static>],
    now: i64,
) -> (Vec<Row<'m, 'static>>, Vec<Repair>) {
    sanitize(messages, at(now), CallPolicy::default())
}

/// What was wrong, and in which row.
pub(crate) fn found(repairs: &[Repair]) -> Vec<(What, usize)> {
    repairs
        .iter()
        .map(|repair| (repair.what, repair.row))
        .collect()
}

/// Nothing was wrong, and nothing was copied.
#[track_caller]
pub(crate) fn is_untouched(messages: &[Message<'static>], now: i64) {
    let (rows, repairs) = clean(messages, now);
    assert_eq!(repairs, []);
    assert_eq!(rows.len(), messages.len());
    for (index, row) in rows.iter().enumerate() {
        assert_eq!(row.index, index);
        assert!(
            matches!(&row.message, Cow::Borrowed(message) if std::ptr::eq(*message, &messages[index]))
        );
    }
}

/// How the calls of a row stand.
pub(crate) fn standings(row: &Row<'_, '_>) -> Vec<Option<Cause>> {
    let calls = row.message.parts.iter().filter_map(|part| match part {
        Part::Call(call) => Some(call.standing),
        Part::Text(_) | Part::Answer(_) | Part::Hosted(_) | Part::Served(_) | Part::Other => None,
    });
    calls
        .map(|standing| match standing {
            Standing::Interrupted(cause) => Some(cause),
            Standing::Open(_) | Standing::Settled => None,
        })
        .collect()
}

/// Repairs a document; `expected` is what comes out, and what was wrong.
#[track_caller]
pub(crate) fn repairs_to(api: Api, document: &str, expected: &str, wrong: &[(What, usize)]) {
    let repaired = repair_document(api, document, Frontier::Answer);
    assert_eq!(repaired.text, expected);
    assert_eq!(found(&repaired.repairs), wrong);
    let again = repair_document(api, expected, Frontier::Answer);
    assert_eq!(again.repairs, []);
    assert!(matches!(again.text, Cow::Borrowed(_)));
}

/// Nothing is wrong with a document, and nothing is copied.
#[track_caller]
pub(crate) fn stays(api: Api, document: &str) {
    let repaired = repair_document(api, document, Frontier::Answer);
    assert_eq!(repaired.repairs, []);
    assert!(matches!(repaired.text, Cow::Borrowed(text) if std::ptr::eq(text, document)));
}

pub(crate) const UNKNOWN: &str = "The outcome of this call is unknown: it had begun, and no result was \
    received. Check what it did before making it again; only a call that merely reads may simply be \
    repeated.";
