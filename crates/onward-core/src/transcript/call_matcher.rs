//! Matches results to calls in the order of a conversation.
//!
//! Ids may be reused: some providers count from one in every turn. So a result belongs to the last
//! preceding row with a call of its id, and in that row to the first such call without a result.
//! Reusing an id ends the wait of earlier calls with it. The first result of a call counts; further
//! ones are duplicates. A result without a preceding call is an orphan.

use std::collections::{BTreeMap, VecDeque};

/// Matches results to calls. `P` identifies the position of a call.
#[derive(Debug)]
pub struct CallMatcher<P> {
    row: u64,
    calls: BTreeMap<String, Waiting<P>>,
    superseded: Vec<P>,
}

#[derive(Debug)]
struct Waiting<P> {
    row: u64,
    calls: VecDeque<P>,
}

/// The relation of a result to the preceding calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultMatch<P> {
    /// The result of this call.
    Matched(P),
    /// The result of a call that has one.
    Duplicate,
    /// The result of no call.
    Orphan,
}

impl<P> Default for CallMatcher<P> {
    fn default() -> Self {
        Self {
            row: 0,
            calls: BTreeMap::new(),
            superseded: Vec::new(),
        }
    }
}

impl<P> CallMatcher<P> {
    /// Starts a new row of calls.
    pub fn start_row(&mut self) {
        self.row += 1;
    }

    /// Adds a call to the current row.
    pub fn add_call(&mut self, id: &str, position: P) {
        let Some(waiting) = self.calls.get_mut(id) else {
            let waiting = Waiting {
                row: self.row,
                calls: VecDeque::from([position]),
            };
            self.calls.insert(id.to_owned(), waiting);
            return;
        };
        if waiting.row != self.row {
            waiting.row = self.row;
            self.superseded.extend(waiting.calls.drain(..));
        }
        waiting.calls.push_back(position);
    }

    /// Matches the next result with this call id.
    pub fn match_result(&mut self, id: &str) -> ResultMatch<P> {
        match self.calls.get_mut(id) {
            None => ResultMatch::Orphan,
            Some(waiting) => waiting
                .calls
                .pop_front()
                .map_or(ResultMatch::Duplicate, ResultMatch::Matched),
        }
    }

    /// The calls without a result, in no particular order.
    pub fn unanswered(self) -> impl Iterator<Item = P> {
        let waiting = self.calls.into_values().flat_map(|waiting| waiting.calls);
        self.superseded.into_iter().chain(waiting)
    }
}
