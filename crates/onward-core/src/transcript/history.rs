//! Repairs a conversation for a model API: each call gets exactly one result, directly after its
//! row and in the order of the calls.
//!
//! A result is moved to its call; a call without a result gets a synthetic error; a result without
//! a call becomes text; a duplicate result is dropped. Consecutive rows of one role are merged if
//! the API requires alternating roles. The output refers to parts of the input by index, so that
//! unchanged parts keep their bytes. If the API treats consecutive rows of the model as one, their
//! results follow the last of them.
//!
//! The server returns the results of server calls in rows of the model, possibly after the results
//! of other calls. Once the user has written again, a missing server result will not arrive: then
//! an error is inserted directly after the call, in its row.

use std::collections::{BTreeMap, BTreeSet};

use super::call_matcher::{CallMatcher, ResultMatch};
use super::message::{Call, Message, Part, Resolution, Role, Row};
use super::repair::{Repair, RepairKind};
use crate::call::Cause;

/// The target API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Api {
    /// Anthropic's Messages: results come first in the next user row, and roles alternate.
    Anthropic,
    /// OpenAI's Chat Completions: each result is a row after the row of its call.
    Chat,
    /// OpenAI's Responses: each call and each result is a separate item.
    Responses,
}

/// The handling of calls without a result in the last row of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TrailingCalls {
    /// Add synthetic results: the conversation is sent to the API.
    Answer,
    /// Leave the calls open: they may still return.
    Leave,
}

/// The index of a part in the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartIndex {
    /// The row.
    pub row: usize,
    /// Its part.
    pub part: usize,
}

/// A repaired conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct History {
    /// The rows.
    pub rows: Vec<HistoryRow>,
    /// The repairs.
    pub repairs: Vec<Repair>,
}

/// An output row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryRow {
    /// The author.
    pub role: Role,
    /// The input row that it comes from. `None` for a synthetic row.
    pub from: Option<usize>,
    /// The content.
    pub pieces: Vec<Piece>,
}

/// A part of an output row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece {
    /// An unchanged part of the input.
    Kept(PartIndex),
    /// A result without a call, converted to text.
    Orphan(PartIndex),
    /// A synthetic error for this call.
    Synthetic {
        /// The call.
        call: PartIndex,
        /// The cause.
        cause: Cause,
    },
}

impl HistoryRow {
    /// Whether it equals its input row, which has this many parts.
    pub fn is_untouched(&self, parts: usize) -> bool {
        let Some(row) = self.from else {
            return false;
        };
        let all = (0..parts).map(|part| Piece::Kept(PartIndex { row, part }));
        self.pieces.iter().copied().eq(all)
    }
}

impl Api {
    /// Whether consecutive rows of one role are merged.
    const fn merges(self) -> bool {
        match self {
            Api::Anthropic => true,
            Api::Chat | Api::Responses => false,
        }
    }

    /// Whether each result is a separate row.
    const fn has_rows_for_results(self) -> bool {
        !self.merges()
    }
}

/// Repairs a conversation for an API. Never fails, and is idempotent.
pub fn repair_history(rows: &[Row<'_, '_>], api: Api, trailing: TrailingCalls) -> History {
    let history = HistoryRepair {
        messages: rows
            .iter()
            .map(|row| (row.index, row.message.as_ref()))
            .collect(),
        api,
        repairs: Vec::new(),
    };
    history.repair(trailing)
}

/// The calls with the id of an earlier call in the same batch, each with its result.
pub(super) fn duplicate_ids(rows: &[Row<'_, '_>], api: Api) -> Vec<(PartIndex, Option<PartIndex>)> {
    let mut history = HistoryRepair {
        messages: rows
            .iter()
            .map(|row| (row.index, row.message.as_ref()))
            .collect(),
        api,
        repairs: Vec::new(),
    };
    let rows = history.split_rows();
    let batches = history.batches(&rows);
    let mut duplicates = Vec::new();
    for batch in batches.values() {
        let mut ids = BTreeSet::new();
        for at in &batch.calls {
            if let Some(Part::Call(call)) = history.part(*at)
                && !ids.insert(call.id.as_ref())
            {
                duplicates.push((*at, None));
            }
        }
    }
    if !duplicates.is_empty() {
        let matched = history.match_results(&rows);
        for (call, result) in &mut duplicates {
            *result = matched.result_of.get(call).copied();
        }
    }
    duplicates
}

/// The calls of consecutive rows that the API treats as one.
#[derive(Default)]
struct Batch {
    calls: Vec<PartIndex>,
    /// Whether no row of the model follows.
    is_last: bool,
}

struct HistoryRepair<'m> {
    messages: BTreeMap<usize, &'m Message<'m>>,
    api: Api,
    repairs: Vec<Repair>,
}

impl<'m> HistoryRepair<'m> {
    fn repair(mut self, trailing: TrailingCalls) -> History {
        let rows = self.split_rows();
        let ends = self.batches(&rows);
        let matched = self.match_results(&rows);
        self.find_misplaced(&rows, &ends, &matched.result_of);
        let unanswered = self.find_unanswered_server_calls(&rows, &matched, trailing);

        let mut out: Vec<HistoryRow> = Vec::new();
        for (index, row) in rows.iter().enumerate() {
            let had = row.pieces.len();
            let pieces: Vec<Piece> = row
                .pieces
                .iter()
                .filter_map(|piece| self.remaining_piece(*piece, &matched))
                .collect();
            let lost_all = pieces.len() < had && pieces.iter().all(|piece| self.is_blank(*piece));
            let pieces = with_server_errors(pieces, &unanswered);
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
                // The row contained only results that are now in the last output row.
                last.from = Some(from);
            }
            if let Some(batch) = ends.get(&index) {
                let leave = batch.is_last && trailing == TrailingCalls::Leave;
                self.push_results(&mut out, batch, &matched.result_of, leave);
            }
        }
        self.repairs.sort_by_key(|repair| repair.row);
        History {
            rows: out,
            repairs: self.repairs,
        }
    }

    /// The input rows. Results inside a model row are moved to a new row after it.
    fn split_rows(&self) -> Vec<HistoryRow> {
        let mut rows = Vec::new();
        for (index, message) in &self.messages {
            let indexes = (0..message.parts.len()).map(|part| PartIndex { row: *index, part });
            let is_result = |at: &PartIndex| {
                message.role == Role::Assistant && matches!(self.part(*at), Some(Part::Result(_)))
            };
            let (results, kept): (Vec<PartIndex>, Vec<PartIndex>) = indexes.partition(is_result);
            if !kept.is_empty() || results.is_empty() {
                rows.push(HistoryRow {
                    role: message.role,
                    from: Some(*index),
                    pieces: kept.into_iter().map(Piece::Kept).collect(),
                });
            }
            if !results.is_empty() {
                rows.push(HistoryRow {
                    role: Role::User,
                    from: None,
                    pieces: results.into_iter().map(Piece::Kept).collect(),
                });
            }
        }
        rows
    }

    /// The batches of calls, keyed by the row that their results follow.
    fn batches(&self, rows: &[HistoryRow]) -> BTreeMap<usize, Batch> {
        let mut ends = BTreeMap::new();
        let mut batch = Batch::default();
        for (index, row) in rows.iter().enumerate() {
            if row.role != Role::Assistant {
                continue;
            }
            batch.calls.extend(row.pieces.iter().filter_map(|piece| {
                let at = part_index(*piece);
                matches!(self.part(at), Some(Part::Call(_))).then_some(at)
            }));
            let continues = rows
                .get(index + 1)
                .is_some_and(|next| self.continues_turn(next));
            if !continues {
                ends.insert(index, std::mem::take(&mut batch));
            }
        }
        if let Some(last) = ends.last_entry() {
            last.into_mut().is_last = true;
        }
        ends.retain(|_, batch| !batch.calls.is_empty());
        ends
    }

    /// Whether the API treats this row and a preceding model row as one.
    fn continues_turn(&self, next: &HistoryRow) -> bool {
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

    /// Matches every result to its call.
    fn match_results(&mut self, rows: &[HistoryRow]) -> MatchedResults {
        let mut matched = MatchedResults::default();
        let mut matcher = CallMatcher::default();
        let mut continues = false;
        for (index, row) in rows.iter().enumerate() {
            if !continues {
                matcher.start_row();
            }
            continues = row.role == Role::Assistant
                && rows
                    .get(index + 1)
                    .is_some_and(|next| self.continues_turn(next));
            for piece in &row.pieces {
                let at = part_index(*piece);
                match self
                    .messages
                    .get(&at.row)
                    .and_then(|m| m.parts.get(at.part))
                {
                    Some(Part::Call(call)) if row.role == Role::Assistant => {
                        matcher.add_call(&call.id, at);
                    }
                    Some(Part::Result(of)) => match matcher.match_result(of) {
                        ResultMatch::Matched(call) => {
                            matched.result_of.insert(call, at);
                            matched.placed.insert(at);
                        }
                        ResultMatch::Duplicate => {
                            matched.duplicates.insert(at);
                            let repair =
                                Repair::for_result(RepairKind::DuplicateResult, at.row, of);
                            self.repairs.push(repair);
                        }
                        ResultMatch::Orphan => {
                            matched.orphans.insert(at);
                            let repair = Repair::for_result(RepairKind::Orphan, at.row, of);
                            self.repairs.push(repair);
                        }
                    },
                    Some(
                        Part::Call(_)
                        | Part::Text(_)
                        | Part::ServerCall(_)
                        | Part::ServerResult(_)
                        | Part::Other,
                    )
                    | None => {}
                }
            }
        }
        matched
    }

    /// Records the results that are misplaced or out of order.
    fn find_misplaced(
        &mut self,
        rows: &[HistoryRow],
        ends: &BTreeMap<usize, Batch>,
        result_of: &BTreeMap<PartIndex, PartIndex>,
    ) {
        for (end, batch) in ends {
            let mut expected = batch.calls.iter().filter_map(|call| result_of.get(call));
            let own: BTreeSet<&PartIndex> = expected.clone().collect();
            let mut in_place: BTreeSet<PartIndex> = BTreeSet::new();
            let mut in_order = true;
            for row in rows.iter().skip(end + 1) {
                let results = row.pieces.iter().map(|piece| part_index(*piece));
                let results =
                    results.take_while(|at| matches!(self.part(*at), Some(Part::Result(_))));
                let before = in_place.len();
                let mut seen = 0;
                for result in results {
                    seen += 1;
                    // Results of other calls are moved or become text later, so they can be
                    // ignored.
                    if own.contains(&result) {
                        in_order &= expected.next() == Some(&result);
                        in_place.insert(result);
                    }
                }
                let has_other_parts = seen < row.pieces.len() || row.pieces.is_empty();
                let has_room = self.api.has_rows_for_results() || before == in_place.len();
                if row.role == Role::Assistant || has_other_parts || !has_room {
                    break;
                }
            }
            for call in &batch.calls {
                let Some(result) = result_of.get(call) else {
                    continue;
                };
                let kind = if !in_place.contains(result) || self.is_in_model_row(*result) {
                    RepairKind::Misplaced
                } else if !in_order {
                    RepairKind::Reordered
                } else {
                    continue;
                };
                if let Some(Part::Call(found)) = self.part(*call) {
                    let repair = Repair::for_call(kind, result.row, found);
                    self.repairs.push(repair);
                }
            }
        }
    }

    /// The server calls without a result that are followed by user input.
    fn find_unanswered_server_calls(
        &mut self,
        rows: &[HistoryRow],
        matched: &MatchedResults,
        trailing: TrailingCalls,
    ) -> BTreeSet<PartIndex> {
        let last = rows.iter().rposition(|row| row.role == Role::Assistant);
        let mut answered: BTreeSet<&str> = BTreeSet::new();
        let mut open: Vec<PartIndex> = Vec::new();
        let mut closed = Vec::new();
        for (index, row) in rows.iter().enumerate() {
            for at in row.pieces.iter().map(|piece| part_index(*piece)) {
                match self.part(at) {
                    Some(Part::ServerResult(of)) => drop(answered.insert(of)),
                    Some(Part::ServerCall(_)) if row.role == Role::Assistant => {
                        let leave = trailing == TrailingCalls::Leave && last == Some(index);
                        open.extend((!leave).then_some(at));
                    }
                    Some(Part::Text(text)) if text.trim().is_empty() => {}
                    // A row with only results does not end the turn of the model.
                    Some(Part::Result(_)) if !matched.orphans.contains(&at) => {}
                    Some(_) if row.role == Role::User => closed.append(&mut open),
                    Some(_) | None => {}
                }
            }
        }
        let mut unanswered = BTreeSet::new();
        for at in closed {
            let Some(Part::ServerCall(call)) = self.part(at) else {
                continue;
            };
            if !answered.contains(call.id.as_ref()) {
                let repair = Repair::for_call(RepairKind::Dangling, at.row, call);
                self.repairs.push(repair);
                unanswered.insert(at);
            }
        }
        unanswered
    }

    /// Whether a result is in a row of the model.
    fn is_in_model_row(&self, result: PartIndex) -> bool {
        let message = self.messages.get(&result.row);
        message.is_some_and(|message| message.role == Role::Assistant)
    }

    /// Whether a piece is blank text.
    fn is_blank(&self, piece: Piece) -> bool {
        match piece {
            Piece::Kept(at) => {
                matches!(self.part(at), Some(Part::Text(text)) if text.trim().is_empty())
            }
            Piece::Orphan(_) | Piece::Synthetic { .. } => false,
        }
    }

    /// The piece that remains at this position, if any.
    fn remaining_piece(&self, piece: Piece, matched: &MatchedResults) -> Option<Piece> {
        let at = part_index(piece);
        if matched.placed.contains(&at) || matched.duplicates.contains(&at) {
            None
        } else if matched.orphans.contains(&at) {
            Some(Piece::Orphan(at))
        } else {
            Some(piece)
        }
    }

    fn push_results(
        &mut self,
        out: &mut Vec<HistoryRow>,
        batch: &Batch,
        result_of: &BTreeMap<PartIndex, PartIndex>,
        leave: bool,
    ) {
        let mut pieces = Vec::new();
        for at in &batch.calls {
            if let Some(result) = result_of.get(at) {
                pieces.push(Piece::Kept(*result));
            } else if let (false, Some(call)) = (leave, self.unanswered_call(*at)) {
                let cause = match call.resolution {
                    Resolution::Interrupted(cause) => cause,
                    Resolution::Open(_) | Resolution::Settled => Cause::OutcomeUnknown,
                };
                let repair = Repair::for_call(RepairKind::Dangling, at.row, call);
                let call = *at;
                pieces.push(Piece::Synthetic { call, cause });
                self.repairs.push(repair);
            }
        }
        if self.api.has_rows_for_results() {
            for piece in pieces {
                let from = match piece {
                    Piece::Kept(result) => Some(result.row),
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

    /// The call at this index, if it needs a result.
    fn unanswered_call(&self, at: PartIndex) -> Option<&'m Call<'m>> {
        match self.part(at) {
            Some(Part::Call(call)) if call.resolution != Resolution::Settled => Some(call),
            Some(
                Part::Call(_)
                | Part::Text(_)
                | Part::Result(_)
                | Part::ServerCall(_)
                | Part::ServerResult(_)
                | Part::Other,
            )
            | None => None,
        }
    }

    /// Appends a row or merges it with the last one.
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
            // The synthetic results become the beginning of the following row.
            (None, from) => {
                last.from = from;
                last.pieces.extend(row.pieces);
            }
            (Some(_), None) => last.pieces.extend(row.pieces),
            (Some(_), Some(from)) if self.is_plain(&row) => {
                last.pieces.extend(row.pieces);
                self.repairs.push(Repair::for_row(RepairKind::Merged, from));
            }
            (Some(_), Some(_)) => out.push(row),
        }
    }

    fn part(&self, at: PartIndex) -> Option<&'m Part<'m>> {
        self.messages.get(&at.row)?.parts.get(at.part)
    }
}

/// Inserts an error after each server call without a result.
fn with_server_errors(pieces: Vec<Piece>, unanswered: &BTreeSet<PartIndex>) -> Vec<Piece> {
    if unanswered.is_empty() {
        return pieces;
    }
    let mut out = Vec::with_capacity(pieces.len());
    for piece in pieces {
        out.push(piece);
        let call = part_index(piece);
        if unanswered.contains(&call) {
            let cause = Cause::OutcomeUnknown;
            out.push(Piece::Synthetic { call, cause });
        }
    }
    out
}

/// The results by their match.
#[derive(Default)]
struct MatchedResults {
    /// Calls with the result of each.
    result_of: BTreeMap<PartIndex, PartIndex>,
    placed: BTreeSet<PartIndex>,
    duplicates: BTreeSet<PartIndex>,
    orphans: BTreeSet<PartIndex>,
}

fn part_index(piece: Piece) -> PartIndex {
    match piece {
        Piece::Kept(at) | Piece::Orphan(at) => at,
        Piece::Synthetic { call, .. } => call,
    }
}
