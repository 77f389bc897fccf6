//! What was wrong with a conversation, and so what was done to it.
//!
//! A finding names the row of the input, counted from 0, and the call where it is about one. Not all of
//! it is an error: results in another order than their calls, and two rows of one role, are accepted by
//! the APIs; they are put in order along with what is not ([`What::is_wrong`]).

use std::fmt;

use super::Call;
use crate::call::Cause;

/// One thing that was put right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repair {
    /// What it was.
    pub what: What,
    /// In which row of the input.
    pub row: usize,
    /// The id of the call that it is about.
    pub call: Option<String>,
    /// The tool of that call, where it is known.
    pub tool: Option<String>,
}

/// What can be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum What {
    /// A user's row with nothing in it; it goes.
    BlankRow,
    /// The last row repeats the one before; it goes.
    DoubledRow,
    /// A call without a result, although the conversation went on; it is given up.
    Dangling,
    /// A call without a result, past its time; it is given up.
    Stale,
    /// A result without a call; it becomes text.
    Orphan,
    /// A second result of one call; it goes.
    Doubled,
    /// A result that does not stand right after the row of its call; it is moved there.
    Misplaced,
    /// Results in another order than their calls; they are put in order.
    Reordered,
    /// Two rows of one role in a row; they become one.
    Merged,
}

impl What {
    /// Everything that can be wrong.
    pub const ALL: [What; 9] = [
        What::BlankRow,
        What::DoubledRow,
        What::Dangling,
        What::Stale,
        What::Orphan,
        What::Doubled,
        What::Misplaced,
        What::Reordered,
        What::Merged,
    ];

    /// The word for it, on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            What::BlankRow => "blank_row",
            What::DoubledRow => "doubled_row",
            What::Dangling => "dangling",
            What::Stale => "stale",
            What::Orphan => "orphan",
            What::Doubled => "doubled",
            What::Misplaced => "misplaced",
            What::Reordered => "reordered",
            What::Merged => "merged",
        }
    }

    /// Whether a conversation with it is broken, and not merely untidy.
    pub const fn is_wrong(self) -> bool {
        match self {
            What::BlankRow
            | What::DoubledRow
            | What::Dangling
            | What::Stale
            | What::Orphan
            | What::Doubled
            | What::Misplaced => true,
            What::Reordered | What::Merged => false,
        }
    }

    /// For which cause a call is given up, where one is.
    pub const fn cause(self) -> Option<Cause> {
        match self {
            What::Dangling => Some(Cause::OutcomeUnknown),
            What::Stale => Some(Cause::TimedOut),
            What::BlankRow
            | What::DoubledRow
            | What::Orphan
            | What::Doubled
            | What::Misplaced
            | What::Reordered
            | What::Merged => None,
        }
    }
}

impl Repair {
    /// About a row.
    pub fn of_row(what: What, row: usize) -> Self {
        Self {
            what,
            row,
            call: None,
            tool: None,
        }
    }

    /// About a call.
    pub fn of_call(what: What, row: usize, call: &Call<'_>) -> Self {
        Self {
            what,
            row,
            call: Some(call.id.clone().into_owned()),
            tool: call.tool.clone().map(|tool| tool.into_owned()),
        }
    }

    /// About a result of the call with this id.
    pub fn of_result(what: What, row: usize, of: &str) -> Self {
        Self {
            what,
            row,
            call: Some(of.to_owned()),
            tool: None,
        }
    }

    /// What is wrong, without the place.
    pub fn says(&self) -> String {
        let id = self.call.as_deref().unwrap_or_default();
        let call = match &self.tool {
            Some(tool) => format!("the call `{id}` of `{tool}`"),
            None => format!("the call `{id}`"),
        };
        match self.what {
            What::BlankRow => "there is nothing in it".to_owned(),
            What::DoubledRow => "it repeats the row before".to_owned(),
            What::Dangling => format!("{call} has no result"),
            What::Stale => format!("{call} has no result, and is past its time"),
            What::Orphan => format!("a result of `{id}`, which was not called"),
            What::Doubled => format!("a second result of {call}"),
            What::Misplaced => format!("the result of {call} does not stand right after it"),
            What::Reordered => format!("the result of {call} is not in the order of the calls"),
            What::Merged => "it has the role of the row before".to_owned(),
        }
    }
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "row {}: {}", self.row, self.says())
    }
}
