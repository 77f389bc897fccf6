//! Which result belongs to which call: an ordered walk, not a set of ids.
//!
//! Ids may come again: some providers count from one in every turn. So a result belongs to the last row
//! before it that made a call with its id, and in that row to the first such call that has no result.
//! A row that uses an id again ends the wait of the earlier ones. The first result of a call counts; a
//! further one is doubled; one whose call does not come before it has none.

use std::collections::{BTreeMap, VecDeque};

/// A walk over a conversation, in its order. `P` says where a call stands.
#[derive(Debug)]
pub struct Walk<P> {
    row: u64,
    calls: BTreeMap<String, Waiting<P>>,
    superseded: Vec<P>,
}

#[derive(Debug)]
struct Waiting<P> {
    row: u64,
    calls: VecDeque<P>,
}

/// What a result is to the calls before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit<P> {
    /// The result of this call.
    Answers(P),
    /// The result of a call that has one.
    Doubled,
    /// The result of no call.
    Orphan,
}

impl<P> Default for Walk<P> {
    fn default() -> Self {
        Self {
            row: 0,
            calls: BTreeMap::new(),
            superseded: Vec::new(),
        }
    }
}

impl<P> Walk<P> {
    /// The next calls belong to a row of their own.
    pub fn begin_row(&mut self) {
        self.row += 1;
    }

    /// A call.
    pub fn call(&mut self, id: &str, place: P) {
        let Some(waiting) = self.calls.get_mut(id) else {
            let waiting = Waiting {
                row: self.row,
                calls: VecDeque::from([place]),
            };
            self.calls.insert(id.to_owned(), waiting);
            return;
        };
        if waiting.row != self.row {
            waiting.row = self.row;
            self.superseded.extend(waiting.calls.drain(..));
        }
        waiting.calls.push_back(place);
    }

    /// A result.
    pub fn answer(&mut self, of: &str) -> Fit<P> {
        match self.calls.get_mut(of) {
            None => Fit::Orphan,
            Some(waiting) => waiting.calls.pop_front().map_or(Fit::Doubled, Fit::Answers),
        }
    }

    /// The calls that have no result, in no order.
    pub fn unanswered(self) -> impl Iterator<Item = P> {
        let waiting = self.calls.into_values().flat_map(|waiting| waiting.calls);
        self.superseded.into_iter().chain(waiting)
    }
}
