//! Repairs: the problems found in a conversation and fixed.
//!
//! A repair contains the input row, counted from 0, and the call if it concerns one. Not every
//! repair is an error: the APIs accept results out of order and consecutive rows of one role; they
//! are normalized together with the errors ([`RepairKind::is_error`]).

use std::fmt;

use super::message::Call;
use crate::call::Cause;

/// A repair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repair {
    /// The kind.
    pub kind: RepairKind,
    /// The input row.
    pub row: usize,
    /// The id of the call, if the repair concerns one.
    pub call: Option<String>,
    /// The tool of the call, if known.
    pub tool: Option<String>,
}

/// The kind of a repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RepairKind {
    /// A blank user row was dropped.
    BlankRow,
    /// A last row that repeats the previous one was dropped.
    DuplicateRow,
    /// A call without a result was interrupted because the conversation continued.
    Dangling,
    /// A call without a result was interrupted because it timed out.
    Stale,
    /// A result without a call was converted to text.
    Orphan,
    /// A second result of one call was dropped.
    DuplicateResult,
    /// A call with the id of another call in its row was renamed, together with its result.
    DuplicateId,
    /// A result was moved directly after the row of its call.
    Misplaced,
    /// Results were sorted in the order of their calls.
    Reordered,
    /// Two consecutive rows of one role were merged.
    Merged,
}

impl RepairKind {
    /// All kinds.
    pub const ALL: [RepairKind; 10] = [
        RepairKind::BlankRow,
        RepairKind::DuplicateRow,
        RepairKind::Dangling,
        RepairKind::Stale,
        RepairKind::Orphan,
        RepairKind::DuplicateResult,
        RepairKind::DuplicateId,
        RepairKind::Misplaced,
        RepairKind::Reordered,
        RepairKind::Merged,
    ];

    /// The value in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            RepairKind::BlankRow => "blank_row",
            RepairKind::DuplicateRow => "doubled_row",
            RepairKind::Dangling => "dangling",
            RepairKind::Stale => "stale",
            RepairKind::Orphan => "orphan",
            RepairKind::DuplicateResult => "doubled",
            RepairKind::DuplicateId => "doubled_id",
            RepairKind::Misplaced => "misplaced",
            RepairKind::Reordered => "reordered",
            RepairKind::Merged => "merged",
        }
    }

    /// Whether the problem is an error and not only a matter of form.
    pub const fn is_error(self) -> bool {
        match self {
            RepairKind::BlankRow
            | RepairKind::DuplicateRow
            | RepairKind::Dangling
            | RepairKind::Stale
            | RepairKind::Orphan
            | RepairKind::DuplicateResult
            | RepairKind::DuplicateId
            | RepairKind::Misplaced => true,
            RepairKind::Reordered | RepairKind::Merged => false,
        }
    }

    /// The cause of the interruption, for kinds that interrupt a call.
    pub const fn cause(self) -> Option<Cause> {
        match self {
            RepairKind::Dangling => Some(Cause::OutcomeUnknown),
            RepairKind::Stale => Some(Cause::TimedOut),
            RepairKind::BlankRow
            | RepairKind::DuplicateRow
            | RepairKind::Orphan
            | RepairKind::DuplicateResult
            | RepairKind::DuplicateId
            | RepairKind::Misplaced
            | RepairKind::Reordered
            | RepairKind::Merged => None,
        }
    }
}

impl Repair {
    /// A repair of a row.
    pub fn for_row(kind: RepairKind, row: usize) -> Self {
        Self {
            kind,
            row,
            call: None,
            tool: None,
        }
    }

    /// A repair of a call.
    pub fn for_call(kind: RepairKind, row: usize, call: &Call<'_>) -> Self {
        Self {
            kind,
            row,
            call: Some(call.id.clone().into_owned()),
            tool: call.tool.clone().map(|tool| tool.into_owned()),
        }
    }

    /// A repair of a result of the call with this id.
    pub fn for_result(kind: RepairKind, row: usize, call_id: &str) -> Self {
        Self {
            kind,
            row,
            call: Some(call_id.to_owned()),
            tool: None,
        }
    }

    /// A description of the problem, without the row.
    pub fn message(&self) -> String {
        let id = self.call.as_deref().unwrap_or_default();
        let call = match &self.tool {
            Some(tool) => format!("call `{id}` of `{tool}`"),
            None => format!("call `{id}`"),
        };
        match self.kind {
            RepairKind::BlankRow => "the message is blank".to_owned(),
            RepairKind::DuplicateRow => "the message repeats the previous message".to_owned(),
            RepairKind::Dangling => format!("{call} has no result"),
            RepairKind::Stale => format!("{call} has no result and has timed out"),
            RepairKind::Orphan => format!("the result of `{id}` has no call"),
            RepairKind::DuplicateResult => format!("duplicate result of {call}"),
            RepairKind::DuplicateId => {
                format!("{call} has the same id as another call in its message")
            }
            RepairKind::Misplaced => format!("the result of {call} is not directly after the call"),
            RepairKind::Reordered => {
                format!("the result of {call} is not in the order of the calls")
            }
            RepairKind::Merged => {
                "the message has the same role as the previous message".to_owned()
            }
        }
    }
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "message {}: {}", self.row, self.message())
    }
}
