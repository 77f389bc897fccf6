//! Repairs conversations with unanswered tool calls, for display and for model APIs.
//!
//! Two pipelines work on one small model of messages. [`sanitize`] is for displaying or storing a
//! conversation: four passes, one file each. [`repair_history`] is for sending it to a model: each
//! call gets exactly one result, directly after its row. Both accept every input, are idempotent
//! and copy only what they change.
//!
//! The model contains the role of a row, its texts, calls and results; any other content is an
//! opaque part that is kept. [`repair_document`] converts the JSON of three APIs to this model and
//! back, and keeps every byte that is not part of a repair.
//!
//! ```
//! use onward_core::transcript::{Api, TrailingCalls, repair_document};
//!
//! let request = r#"{"model":"m","messages":[
//!   {"role":"user","content":"Tides?"},
//!   {"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"tides","arguments":"{}"}}]},
//!   {"role":"user","content":"Well?"}]}"#;
//! let repaired = repair_document(Api::Chat, request, TrailingCalls::Answer);
//! assert_eq!(repaired.repairs[0].to_string(), "row 1: call `a` of `tides` has no result");
//! assert!(repaired.text.contains(r#"{"role":"tool","tool_call_id":"a","content":"Error: The outcome"#));
//! // The repair is idempotent.
//! let again = repair_document(Api::Chat, &repaired.text, TrailingCalls::Answer);
//! assert!(again.repairs.is_empty());
//! ```

mod anthropic;
mod blank_rows;
mod call_matcher;
mod chat;
mod dangling_calls;
mod document;
mod duplicate_tail;
mod history;
pub mod json;
mod repair;
mod responses;
mod stale_calls;

use std::borrow::Cow;

use crate::call::{CallPolicy, CallStatus, CallTimestamp, Cause, Limit};
use crate::time::Timestamp;

pub use anthropic::orphan_as_text;
pub use call_matcher::{CallMatcher, ResultMatch};
pub use document::{Repaired, repair_document};
pub use history::{Api, History, HistoryRow, PartIndex, Piece, TrailingCalls, repair_history};
pub use repair::{Repair, RepairKind};

/// A row of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message<'a> {
    /// The author.
    pub role: Role,
    /// The content, in order.
    pub parts: Vec<Part<'a>>,
    /// Whether it is queued for sending. A queued row never counts as blank.
    pub is_queued: bool,
    /// Whether it consists only of role and parts, so that it can be merged with another row.
    pub is_plain: bool,
}

/// The author of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// The user, or a program that writes in the user's role.
    User,
    /// The model.
    Assistant,
    /// A tool, in APIs with separate rows for results.
    Tool,
    /// The system, a developer or an unknown role. Never changed.
    Other,
}

/// A part of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part<'a> {
    /// Text.
    Text(Cow<'a, str>),
    /// A tool call.
    Call(Call<'a>),
    /// The result of the call with this id.
    Result(Cow<'a, str>),
    /// A call that the API server executes. Its result is in a row of the model.
    ServerCall(Call<'a>),
    /// The result of the server call with this id.
    ServerResult(Cow<'a, str>),
    /// Any other content, such as an attachment or a thought. It is kept.
    Other,
}

/// A tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call<'a> {
    /// The id from the model. It may be reused in a later row.
    pub id: Cow<'a, str>,
    /// The tool's name. `None` for a call that was synthesized for a result.
    pub tool: Option<Cow<'a, str>>,
    /// The input in its original spelling.
    pub input: Cow<'a, str>,
    /// Whether the call has a result.
    pub resolution: Resolution,
}

/// Whether a call has a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolution {
    /// No result yet.
    Open(CallTimestamp),
    /// It has a result or needs none.
    Settled,
    /// It was interrupted and will not get a result.
    Interrupted(Cause),
}

/// A row after a pass: the index in the input, and a copy only if it was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row<'m, 'a> {
    /// The index in the input.
    pub index: usize,
    /// The row.
    pub message: Cow<'m, Message<'a>>,
}

/// Sanitizes a conversation for display: drops blank rows and a duplicate tail, and interrupts
/// calls that will not return. Returns the rows and the repairs.
pub fn sanitize<'m, 'a>(
    messages: &'m [Message<'a>],
    now: Timestamp,
    policy: CallPolicy,
) -> (Vec<Row<'m, 'a>>, Vec<Repair>) {
    let mut repairs = Vec::new();
    let mut rows = messages.iter().enumerate().map(|(index, message)| Row {
        index,
        message: Cow::Borrowed(message),
    });
    let mut rows = blank_rows::drop(rows.by_ref().collect(), &mut repairs);
    duplicate_tail::drop(&mut rows, &mut repairs);
    dangling_calls::interrupt_all(&mut rows, &mut repairs);
    stale_calls::interrupt_all(&mut rows, now, policy, &mut repairs);
    (rows, repairs)
}

/// Interrupts the open calls of a row for which `why` returns a reason. Copies the row
/// only then.
fn interrupt_calls(
    row: &mut Row<'_, '_>,
    why: impl Fn(&CallTimestamp) -> Option<RepairKind>,
    repairs: &mut Vec<Repair>,
) {
    for part in 0..row.message.parts.len() {
        let Some(Part::Call(call)) = row.message.parts.get(part) else {
            continue;
        };
        let Resolution::Open(times) = call.resolution else {
            continue;
        };
        let Some(kind) = why(&times) else { continue };
        repairs.push(Repair::for_call(kind, row.index, call));
        let cause = kind.cause().unwrap_or(Cause::OutcomeUnknown);
        if let Some(Part::Call(call)) = row.message.to_mut().parts.get_mut(part) {
            call.resolution = Resolution::Interrupted(cause);
        }
    }
}

/// An open call from a stored conversation, which contains no timestamps.
fn open_timestamp() -> CallTimestamp {
    CallTimestamp {
        status: CallStatus::Running,
        started_at: None,
        last_progress_at: None,
        limit: Limit::Unspecified,
    }
}

/// The heading of a result without a call when it is converted to text.
fn orphan_heading(id: &str) -> String {
    format!("[Result of `{id}`, a tool call that is not part of this conversation]")
}

/// A result's content as blocks, with a heading. Blocks that are objects are kept; everything else
/// becomes text.
fn with_heading(heading: &str, content: &str, kind: &str) -> Vec<String> {
    let block = |text: &str| format!(r#"{{"type":"{kind}","text":{}}}"#, json::quoted(text));
    if content == "null" {
        return vec![block(heading)];
    }
    if let Some(text) = json::string(content) {
        return vec![block(format!("{heading}\n{text}").trim_end())];
    }
    let Some(spans) = json::elements(content) else {
        return vec![block(&format!("{heading}\n{content}"))];
    };
    let mut blocks = vec![block(heading)];
    for element in spans.into_iter().filter_map(|span| content.get(span)) {
        blocks.push(match json::Object::parse(element) {
            Some(_) => element.to_owned(),
            None => block(&json::string(element).unwrap_or(element.into())),
        });
    }
    blocks
}
