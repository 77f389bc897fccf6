//! A conversation as a model's API wants it: each call answered exactly once, right after its row and in
//! the order of the calls.
//!
//! A result is moved to its call, however far away it stands; a call without one gets a synthetic error;
//! a result without a call becomes text; a doubled result goes. Rows of one role are merged where the API
//! has one row for each turn of the talk. What comes out is made of pieces of what went in, by their
//! places, so whoever knows the bytes of the pieces can write them down unchanged.
//!
//! Where an API takes rows of the model that follow each other as one, so does this: their results stand
//! after the last of them.
//!
//! What the model's own server runs is answered by it, in a row of the model, and may come later than the
//! results of other calls. Once somebody has spoken, that turn of the model is over, and it will not come:
//! then an error stands right after the call, within its row.

use std::collections::{BTreeMap, BTreeSet};

use super::answers::{Fit, Walk};
use super::{Call, Message, Part, Repair, Role, Row, Standing, What};
use crate::call::Cause;

/// Whose API the conversation is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Api {
    /// Anthropic's Messages: results stand first in the user's next row, and roles take turns.
    Anthropic,
    /// OpenAI's Chat Completions: each result is a row, after the row of its call.
    Chat,
    /// OpenAI's Responses: each call and each result is an item of its own.
    Responses,
}

/// What is done about unanswered calls in the last row of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Frontier {
    /// They are answered like all others: the conversation goes to the API as it is.
    Answer,
    /// They are left alone: somebody may still answer them.
    Leave,
}

/// Where a part stands in the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The row.
    pub row: usize,
    /// Its part.
    pub part: usize,
}

/// A conversation after the repair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct History {
    /// Its rows.
    pub rows: Vec<HistoryRow>,
    /// What was done.
    pub repairs: Vec<Repair>,
}

/// A row of what comes out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryRow {
    /// Who speaks.
    pub role: Role,
    /// The row of the input that it is, or was; none where it is made.
    pub from: Option<usize>,
    /// What it consists of.
    pub pieces: Vec<Piece>,
}

/// A part of what comes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece {
    /// A part of the input, as it is.
    Kept(Place),
    /// A result without a call, as text.
    Orphan(Place),
    /// A synthetic error for this call.
    Synthetic {
        /// The call.
        call: Place,
        /// Why it has no other.
        cause: Cause,
    },
}

impl HistoryRow {
    /// Whether it is the row of the input, unchanged.
    pub fn is_untouched(&self, parts: usize) -> bool {
        let Some(row) = self.from else {
            return false;
        };
        let all = (0..parts).map(|part| Piece::Kept(Place { row, part }));
        self.pieces.iter().copied().eq(all)
    }
}

impl Api {
    /// Whether rows of one role become one.
    const fn merges(self) -> bool {
        match self {
            Api::Anthropic => true,
            Api::Chat | Api::Responses => false,
        }
    }

    /// Whether each result is a row of its own.
    const fn has_rows_for_results(self) -> bool {
        !self.merges()
    }
}

/// Puts a conversation in order for an API. Total, and the second time there is nothing to do.
pub fn repair_history(rows: &[Row<'_, '_>], api: Api, frontier: Frontier) -> History {
    let desk = Desk {
        messages: rows
            .iter()
            .map(|row| (row.index, row.message.as_ref()))
            .collect(),
        api,
        repairs: Vec::new(),
    };
    desk.repair(frontier)
}

/// The calls of rows that the API takes as one.
#[derive(Default)]
struct Batch {
    calls: Vec<Place>,
    /// Whether no row of the model comes after it.
    is_last: bool,
}

struct Desk<'m> {
    messages: BTreeMap<usize, &'m Message<'m>>,
    api: Api,
    repairs: Vec<Repair>,
}

impl<'m> Desk<'m> {
    fn repair(mut self, frontier: Frontier) -> History {
        let rows = self.lifted();
        let ends = self.batches(&rows);
        let answers = self.matched(&rows);
        self.find_misplaced(&rows, &ends, &answers.of_call);
        let unserved = self.find_unserved(&rows, &answers, frontier);

        let mut out: Vec<HistoryRow> = Vec::new();
        for (index, row) in rows.iter().enumerate() {
            let had = row.pieces.len();
            let pieces: Vec<Piece> = row
                .pieces
                .iter()
                .filter_map(|piece| self.rest(*piece, &answers))
                .collect();
            let lost_all = pieces.len() < had && pieces.iter().all(|piece| self.is_blank(*piece));
            let pieces = served(pieces, &unserved);
            if !lost_all {
                let row = HistoryRow {
                    pieces,
                    ..row.clone()
                };
                self.push(&mut out, row);
            } else if let (Some(from), Some(last)) = (row.from, out.last_mut())
                && self.api.merges()
                && last.from.is_none()
                && last.role == row.role
            {
                // All that it held are the results that stand there: it is that row.
                last.from = Some(from);
            }
            if let Some(batch) = ends.get(&index) {
                let leave = batch.is_last && frontier == Frontier::Leave;
                self.push_results(&mut out, batch, &answers.of_call, leave);
            }
        }
        self.repairs.sort_by_key(|repair| repair.row);
        History {
            rows: out,
            repairs: self.repairs,
        }
    }

    /// The rows of the input, with results that the model itself seems to give in a row after it.
    fn lifted(&self) -> Vec<HistoryRow> {
        let mut rows = Vec::new();
        for (index, message) in &self.messages {
            let places = (0..message.parts.len()).map(|part| Place { row: *index, part });
            let is_answer = |place: &Place| {
                message.role == Role::Assistant
                    && matches!(self.part(*place), Some(Part::Answer(_)))
            };
            let (lifted, kept): (Vec<Place>, Vec<Place>) = places.partition(is_answer);
            if !kept.is_empty() || lifted.is_empty() {
                rows.push(HistoryRow {
                    role: message.role,
                    from: Some(*index),
                    pieces: kept.into_iter().map(Piece::Kept).collect(),
                });
            }
            if !lifted.is_empty() {
                rows.push(HistoryRow {
                    role: Role::User,
                    from: None,
                    pieces: lifted.into_iter().map(Piece::Kept).collect(),
                });
            }
        }
        rows
    }

    /// The batches of calls, by the row after which their results stand.
    fn batches(&self, rows: &[HistoryRow]) -> BTreeMap<usize, Batch> {
        let mut ends = BTreeMap::new();
        let mut batch = Batch::default();
        for (index, row) in rows.iter().enumerate() {
            if row.role != Role::Assistant {
                continue;
            }
            batch.calls.extend(row.pieces.iter().filter_map(|piece| {
                let place = place(*piece);
                matches!(self.part(place), Some(Part::Call(_))).then_some(place)
            }));
            let goes_on = rows
                .get(index + 1)
                .is_some_and(|next| self.is_one_with(next));
            if !goes_on {
                ends.insert(index, std::mem::take(&mut batch));
            }
        }
        if let Some(last) = ends.last_entry() {
            last.into_mut().is_last = true;
        }
        ends.retain(|_, batch| !batch.calls.is_empty());
        ends
    }

    /// Whether a row is one with a row of the model before it.
    fn is_one_with(&self, next: &HistoryRow) -> bool {
        let one = match self.api {
            Api::Anthropic => self.is_plain(next),
            Api::Chat => false,
            Api::Responses => true,
        };
        next.role == Role::Assistant && one
    }

    fn is_plain(&self, row: &HistoryRow) -> bool {
        let message = row.from.and_then(|from| self.messages.get(&from));
        message.is_none_or(|message| message.is_plain)
    }

    /// Gives every result to its call, or to none.
    fn matched(&mut self, rows: &[HistoryRow]) -> Answers {
        let mut answers = Answers::default();
        let mut walk = Walk::default();
        let mut goes_on = false;
        for (index, row) in rows.iter().enumerate() {
            if !goes_on {
                walk.begin_row();
            }
            goes_on = row.role == Role::Assistant
                && rows
                    .get(index + 1)
                    .is_some_and(|next| self.is_one_with(next));
            for piece in &row.pieces {
                let place = place(*piece);
                match self
                    .messages
                    .get(&place.row)
                    .and_then(|m| m.parts.get(place.part))
                {
                    Some(Part::Call(call)) if row.role == Role::Assistant => {
                        walk.call(&call.id, place);
                    }
                    Some(Part::Answer(of)) => match walk.answer(of) {
                        Fit::Answers(call) => {
                            answers.of_call.insert(call, place);
                            answers.placed.insert(place);
                        }
                        Fit::Doubled => {
                            answers.doubled.insert(place);
                            let repair = Repair::of_result(What::Doubled, place.row, of);
                            self.repairs.push(repair);
                        }
                        Fit::Orphan => {
                            answers.orphans.insert(place);
                            let repair = Repair::of_result(What::Orphan, place.row, of);
                            self.repairs.push(repair);
                        }
                    },
                    Some(
                        Part::Call(_)
                        | Part::Text(_)
                        | Part::Hosted(_)
                        | Part::Served(_)
                        | Part::Other,
                    )
                    | None => {}
                }
            }
        }
        answers
    }

    /// Says which results do not stand where they belong.
    fn find_misplaced(
        &mut self,
        rows: &[HistoryRow],
        ends: &BTreeMap<usize, Batch>,
        of_call: &BTreeMap<Place, Place>,
    ) {
        for (end, batch) in ends {
            let mut expected = batch.calls.iter().filter_map(|call| of_call.get(call));
            let mine: BTreeSet<&Place> = expected.clone().collect();
            let mut there: BTreeSet<Place> = BTreeSet::new();
            let mut in_order = true;
            for row in rows.iter().skip(end + 1) {
                let results = row.pieces.iter().map(|piece| place(*piece));
                let results =
                    results.take_while(|place| matches!(self.part(*place), Some(Part::Answer(_))));
                let before = there.len();
                let mut seen = 0;
                for result in results {
                    seen += 1;
                    // What goes elsewhere, or becomes text that follows, is in nobody's way.
                    if mine.contains(&result) {
                        in_order &= expected.next() == Some(&result);
                        there.insert(result);
                    }
                }
                let something_else = seen < row.pieces.len() || row.pieces.is_empty();
                let has_room = self.api.has_rows_for_results() || before == there.len();
                if row.role == Role::Assistant || something_else || !has_room {
                    break;
                }
            }
            for call in &batch.calls {
                let Some(answer) = of_call.get(call) else {
                    continue;
                };
                let what = if !there.contains(answer) || self.is_lifted(*answer) {
                    What::Misplaced
                } else if !in_order {
                    What::Reordered
                } else {
                    continue;
                };
                if let Some(Part::Call(found)) = self.part(*call) {
                    let repair = Repair::of_call(what, answer.row, found);
                    self.repairs.push(repair);
                }
            }
        }
    }

    /// Which hosted calls will not be answered by the server any more, because somebody has spoken since.
    fn find_unserved(
        &mut self,
        rows: &[HistoryRow],
        answers: &Answers,
        frontier: Frontier,
    ) -> BTreeSet<Place> {
        let last = rows.iter().rposition(|row| row.role == Role::Assistant);
        let mut served: BTreeSet<&str> = BTreeSet::new();
        let mut waiting: Vec<Place> = Vec::new();
        let mut unserved = Vec::new();
        for (index, row) in rows.iter().enumerate() {
            for place in row.pieces.iter().map(|piece| place(*piece)) {
                match self.part(place) {
                    Some(Part::Served(of)) => drop(served.insert(of)),
                    Some(Part::Hosted(_)) if row.role == Role::Assistant => {
                        let leave = frontier == Frontier::Leave && last == Some(index);
                        waiting.extend((!leave).then_some(place));
                    }
                    Some(Part::Text(text)) if text.trim().is_empty() => {}
                    // Results alone leave the turn of the model open.
                    Some(Part::Answer(_)) if !answers.orphans.contains(&place) => {}
                    Some(_) if row.role == Role::User => unserved.append(&mut waiting),
                    Some(_) | None => {}
                }
            }
        }
        let mut without = BTreeSet::new();
        for place in unserved {
            let Some(Part::Hosted(call)) = self.part(place) else {
                continue;
            };
            if !served.contains(call.id.as_ref()) {
                let repair = Repair::of_call(What::Dangling, place.row, call);
                self.repairs.push(repair);
                without.insert(place);
            }
        }
        without
    }

    /// Whether a result stands in a row of the model.
    fn is_lifted(&self, answer: Place) -> bool {
        let message = self.messages.get(&answer.row);
        message.is_some_and(|message| message.role == Role::Assistant)
    }

    /// Whether a piece is text that says nothing.
    fn is_blank(&self, piece: Piece) -> bool {
        match piece {
            Piece::Kept(place) => {
                matches!(self.part(place), Some(Part::Text(text)) if text.trim().is_empty())
            }
            Piece::Orphan(_) | Piece::Synthetic { .. } => false,
        }
    }

    /// What stays of a piece where it stands.
    fn rest(&self, piece: Piece, answers: &Answers) -> Option<Piece> {
        let place = place(piece);
        if answers.placed.contains(&place) || answers.doubled.contains(&place) {
            None
        } else if answers.orphans.contains(&place) {
            Some(Piece::Orphan(place))
        } else {
            Some(piece)
        }
    }

    fn push_results(
        &mut self,
        out: &mut Vec<HistoryRow>,
        batch: &Batch,
        of_call: &BTreeMap<Place, Place>,
        leave: bool,
    ) {
        let mut pieces = Vec::new();
        for place in &batch.calls {
            if let Some(answer) = of_call.get(place) {
                pieces.push(Piece::Kept(*answer));
            } else if let (false, Some(call)) = (leave, self.waiting(*place)) {
                let cause = match call.standing {
                    Standing::Interrupted(cause) => cause,
                    Standing::Open(_) | Standing::Settled => Cause::OutcomeUnknown,
                };
                let repair = Repair::of_call(What::Dangling, place.row, call);
                let call = *place;
                pieces.push(Piece::Synthetic { call, cause });
                self.repairs.push(repair);
            }
        }
        if self.api.has_rows_for_results() {
            for piece in pieces {
                let from = match piece {
                    Piece::Kept(answer) => Some(answer.row),
                    Piece::Orphan(_) | Piece::Synthetic { .. } => None,
                };
                out.push(HistoryRow {
                    role: Role::Tool,
                    from,
                    pieces: vec![piece],
                });
            }
        } else if !pieces.is_empty() {
            out.push(HistoryRow {
                role: Role::User,
                from: None,
                pieces,
            });
        }
    }

    /// The call at a place, if it waits for a result.
    fn waiting(&self, place: Place) -> Option<&'m Call<'m>> {
        match self.part(place) {
            Some(Part::Call(call)) if call.standing != Standing::Settled => Some(call),
            Some(
                Part::Call(_)
                | Part::Text(_)
                | Part::Answer(_)
                | Part::Hosted(_)
                | Part::Served(_)
                | Part::Other,
            )
            | None => None,
        }
    }

    /// Adds a row, or makes it one with the last.
    fn push(&mut self, out: &mut Vec<HistoryRow>, row: HistoryRow) {
        let merges = self.api.merges() && matches!(row.role, Role::User | Role::Assistant);
        let Some(last) = out
            .last_mut()
            .filter(|last| merges && last.role == row.role)
        else {
            out.push(row);
            return;
        };
        match (last.from, row.from) {
            // The results are put in front of what follows them: it is that row.
            (None, from) => {
                last.from = from;
                last.pieces.extend(row.pieces);
            }
            (Some(_), None) => last.pieces.extend(row.pieces),
            (Some(_), Some(from)) if self.is_plain(&row) => {
                last.pieces.extend(row.pieces);
                self.repairs.push(Repair::of_row(What::Merged, from));
            }
            (Some(_), Some(_)) => out.push(row),
        }
    }

    fn part(&self, place: Place) -> Option<&'m Part<'m>> {
        self.messages.get(&place.row)?.parts.get(place.part)
    }
}

/// With an error after each hosted call that will not be answered.
fn served(pieces: Vec<Piece>, unserved: &BTreeSet<Place>) -> Vec<Piece> {
    if unserved.is_empty() {
        return pieces;
    }
    let mut out = Vec::with_capacity(pieces.len());
    for piece in pieces {
        out.push(piece);
        let call = place(piece);
        if unserved.contains(&call) {
            let cause = Cause::OutcomeUnknown;
            out.push(Piece::Synthetic { call, cause });
        }
    }
    out
}

/// What became of the results.
#[derive(Default)]
struct Answers {
    /// Calls with the result of each.
    of_call: BTreeMap<Place, Place>,
    placed: BTreeSet<Place>,
    doubled: BTreeSet<Place>,
    orphans: BTreeSet<Place>,
}

fn place(piece: Piece) -> Place {
    match piece {
        Piece::Kept(place) | Piece::Orphan(place) => place,
        Piece::Synthetic { call, .. } => call,
    }
}
