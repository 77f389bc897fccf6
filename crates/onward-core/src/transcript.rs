//! A conversation with calls that will never answer, put right: for people, and for a model's API.
//!
//! Two pipelines over one small model of messages. [`sanitize`] is for whoever shows or stores a
//! conversation: four passes, one file each. [`repair_history`] is for whoever sends it to a model: each
//! call is answered exactly once, right after its row. Both are total (no history is too strange), they
//! change nothing the second time, and what they do not touch they do not copy.
//!
//! The model knows the role of a row, its texts, calls and results; everything else is a part that is
//! kept and not looked at. [`repair_document`] maps the JSON of three APIs to it and back, and every byte
//! that is not part of a repair comes out as it went in.
//!
//! ```
//! use onward_core::transcript::{Api, Frontier, repair_document};
//!
//! let request = r#"{"model":"m","messages":[
//!   {"role":"user","content":"Tides?"},
//!   {"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"tides","arguments":"{}"}}]},
//!   {"role":"user","content":"Well?"}]}"#;
//! let repaired = repair_document(Api::Chat, request, Frontier::Answer);
//! assert_eq!(repaired.repairs[0].to_string(), "row 1: the call `a` of `tides` has no result");
//! assert!(repaired.text.contains(r#"{"role":"tool","tool_call_id":"a","content":"Error: The outcome"#));
//! // Nothing is left to do.
//! let again = repair_document(Api::Chat, &repaired.text, Frontier::Answer);
//! assert!(again.repairs.is_empty());
//! ```

mod answers;
mod anthropic;
mod blank_rows;
mod chat;
mod dangling_calls;
mod document;
mod doubled_tail;
mod history;
pub mod json;
mod repair;
mod responses;
mod stale_calls;

use std::borrow::Cow;

use crate::call::{CallPolicy, CallStatus, CallTimestamp, Cause, Limit};
use crate::time::Timestamp;

pub use answers::{Fit, Walk};
pub use anthropic::orphan_as_text;
pub use document::{Repaired, repair_document};
pub use history::{Api, Frontier, History, HistoryRow, Piece, Place, repair_history};
pub use repair::{Repair, What};

/// One row of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message<'a> {
    /// Who speaks.
    pub role: Role,
    /// What is said and done, in its order.
    pub parts: Vec<Part<'a>>,
    /// Whether it waits to be sent: then it is no blank row, whatever it holds.
    pub is_queued: bool,
    /// Whether there is nothing to it beside role and parts, so that it may be merged with another.
    pub is_plain: bool,
}

/// Who speaks in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// A person, or whoever speaks to the model in their place.
    User,
    /// The model.
    Assistant,
    /// A tool, where results have rows of their own.
    Tool,
    /// The system, a developer, or somebody that is not known: never touched.
    Other,
}

/// A part of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part<'a> {
    /// Words.
    Text(Cow<'a, str>),
    /// A call of a tool.
    Call(Call<'a>),
    /// The result of the call with this id.
    Answer(Cow<'a, str>),
    /// A call that the model's own server runs. Its result stands in a row of the model.
    Hosted(Call<'a>),
    /// The result of the hosted call with this id.
    Served(Cow<'a, str>),
    /// Whatever else it is: an attachment, a thought. It is kept.
    Other,
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call<'a> {
    /// As the model named it. It may come again in a later row.
    pub id: Cow<'a, str>,
    /// Which tool; none where a call was made up for a result that had none.
    pub tool: Option<Cow<'a, str>>,
    /// What it was asked, as it is written.
    pub input: Cow<'a, str>,
    /// Whether it was answered.
    pub standing: Standing,
}

/// Whether a call was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Not yet.
    Open(CallTimestamp),
    /// Yes; or nobody needs to.
    Settled,
    /// It will not be.
    Interrupted(Cause),
}

/// A row after a pass: which one of the input it is, and a copy only where something was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row<'m, 'a> {
    /// Its place in the input.
    pub index: usize,
    /// What it says.
    pub message: Cow<'m, Message<'a>>,
}

/// Puts a conversation right for whoever shows it: drops blank rows and a doubled tail, and gives up the
/// calls that will not answer. Says what was done.
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
    doubled_tail::drop(&mut rows, &mut repairs);
    dangling_calls::give_up_all(&mut rows, &mut repairs);
    stale_calls::give_up_all(&mut rows, now, policy, &mut repairs);
    (rows, repairs)
}

/// Gives up the calls of a row for which `why` finds a reason; a row without any is not copied.
fn give_up(
    row: &mut Row<'_, '_>,
    why: impl Fn(&CallTimestamp) -> Option<What>,
    repairs: &mut Vec<Repair>,
) {
    for part in 0..row.message.parts.len() {
        let Some(Part::Call(call)) = row.message.parts.get(part) else {
            continue;
        };
        let Standing::Open(times) = call.standing else {
            continue;
        };
        let Some(what) = why(&times) else { continue };
        repairs.push(Repair::of_call(what, row.index, call));
        let cause = what.cause().unwrap_or(Cause::OutcomeUnknown);
        if let Some(Part::Call(call)) = row.message.to_mut().parts.get_mut(part) {
            call.standing = Standing::Interrupted(cause);
        }
    }
}

/// A call of which a saved conversation says only that it was made.
fn open() -> CallTimestamp {
    CallTimestamp {
        status: CallStatus::Running,
        started_at: None,
        last_progress_at: None,
        limit: Limit::Unsaid,
    }
}

/// What stands before a result without a call, where it becomes text.
fn orphan_head(id: &str) -> String {
    format!("[Result of `{id}`, a tool call that is not part of this conversation]")
}

/// A result's content as blocks, the head before it. Blocks that are objects stay what they are;
/// everything else is text.
fn with_head(head: &str, content: &str, kind: &str) -> Vec<String> {
    let block = |text: &str| format!(r#"{{"type":"{kind}","text":{}}}"#, json::quoted(text));
    if content == "null" {
        return vec![block(head)];
    }
    if let Some(text) = json::string(content) {
        return vec![block(format!("{head}\n{text}").trim_end())];
    }
    let Some(spans) = json::elements(content) else {
        return vec![block(&format!("{head}\n{content}"))];
    };
    let mut blocks = vec![block(head)];
    for element in spans.into_iter().filter_map(|span| content.get(span)) {
        blocks.push(match json::Object::of(element) {
            Some(_) => element.to_owned(),
            None => block(&json::string(element).unwrap_or(element.into())),
        });
    }
    blocks
}
