//! Repairs conversations with unanswered tool calls, for display and for model APIs.
//!
//! Two pipelines work on one small model of conversations. [`sanitize`] is for displaying or
//! storing a conversation: four passes. [`repair_history`] is for sending it to a model: each call
//! gets exactly one result, directly after its row. Both accept every input, are idempotent and
//! copy only what they change.
//!
//! A row of the model is a message, or an item of the Responses API: its role, texts, calls and
//! results. Any other content is an opaque part that is kept. [`repair_document`] converts the JSON
//! of three APIs to this model and back, and keeps every byte that is not part of a repair.
//!
//! ```
//! use onward_core::transcript::{Api, TrailingCalls, repair_document};
//!
//! let request = r#"{"model":"m","messages":[
//!   {"role":"user","content":"Tides?"},
//!   {"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"tides","arguments":"{}"}}]},
//!   {"role":"user","content":"Well?"}]}"#;
//! let repaired = repair_document(Api::Chat, request, TrailingCalls::Answer);
//! assert_eq!(repaired.repairs[0].to_string(), "message 1: call `a` of `tides` has no result");
//! assert!(repaired.text.contains(r#"{"role":"tool","tool_call_id":"a","content":"Error: The outcome"#));
//! // The repair is idempotent.
//! let again = repair_document(Api::Chat, &repaired.text, TrailingCalls::Answer);
//! assert!(again.repairs.is_empty());
//! ```

mod anthropic;
mod blank_rows;
mod call_matcher;
mod chat;
mod document;
mod duplicate_ids;
mod duplicate_tail;
mod history;
pub mod json;
mod message;
mod open_calls;
mod orphan_result;
mod repair;
mod responses;

use std::borrow::Cow;

use crate::call::CallPolicy;
use crate::time::Timestamp;

pub use anthropic::orphan_as_text;
pub use call_matcher::{CallMatcher, ResultMatch};
pub use document::{
    Repaired, RepairedRow, RepairedRows, repair_document, repair_request, repair_rows,
};
pub use history::{Api, History, HistoryRow, PartIndex, Piece, TrailingCalls, repair_history};
pub use message::{Call, Message, Part, Resolution, Role, Row};
pub use repair::{Repair, RepairKind};

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
    open_calls::interrupt_dangling(&mut rows, &mut repairs);
    open_calls::interrupt_stale(&mut rows, now, policy, &mut repairs);
    (rows, repairs)
}
