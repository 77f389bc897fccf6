//! The model of a conversation: rows with a role, and parts that are texts, calls or results.

use std::borrow::Cow;

use crate::call::{CallStatus, CallTimestamp, Cause, Limit};

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

/// An open call from a stored conversation, which contains no timestamps.
pub(super) fn open_timestamp() -> CallTimestamp {
    CallTimestamp {
        status: CallStatus::Running,
        started_at: None,
        last_progress_at: None,
        limit: Limit::Unspecified,
        grace: None,
    }
}
