//! Plans the changes of a log: removed lines, changed blocks, new lines and changed parents.
//!
//! A new line follows the last line of its row, or the line from which the conversation continues,
//! and becomes the parent of the lines after it, so the path from the last line to the root
//! contains the result. The children of a removed line get its parent. New ids are derived from
//! existing ones, so the same log always produces the same bytes.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use onward_core::call::{Cause, Limit};

use super::Log;
use super::threads::{Diagnosis, InterruptedRow};

/// The edits by line number.
#[derive(Default)]
pub(crate) struct Edits(pub(super) HashMap<u64, Edit>);

/// The changes of a line, and the lines inserted after it.
#[derive(Default)]
pub(super) struct Edit {
    pub(super) removed: bool,
    /// The new parent; `Some(None)` removes the parent.
    pub(super) parent: Option<Option<Rc<str>>>,
    /// Blocks to convert to text.
    pub(super) as_text: Vec<usize>,
    /// Blocks to remove.
    pub(super) removed_blocks: Vec<usize>,
    /// Blocks of calls and results with a new id.
    pub(super) renamed: Vec<(usize, Box<str>)>,
    /// Lines to insert after this one.
    pub(super) new_lines: Vec<NewLine>,
}

/// A new line with the result of a call.
pub(super) struct NewLine {
    pub(super) uuid: Rc<str>,
    pub(super) parent: Option<Rc<str>>,
    /// The line with the call.
    pub(super) source: Option<Rc<str>>,
    pub(super) call: Box<str>,
    pub(super) cause: Cause,
    pub(super) limit: Limit,
    /// The line number and the block of an existing result.
    pub(super) moved: Option<(u64, usize)>,
}

impl Edits {
    /// The numbers of the lines with results that are moved.
    pub(super) fn moved_lines(&self) -> HashSet<u64> {
        let new_lines = self.0.values().flat_map(|edit| &edit.new_lines);
        let moved = new_lines.filter_map(|new| new.moved);
        moved.map(|(number, _)| number).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

pub(super) fn plan_edits(log: &Log, diagnosis: &Diagnosis) -> Edits {
    let mut planner = Planner {
        log,
        parents: log.entries.iter().map(|entry| entry.parent).collect(),
        edits: Edits::default(),
        removed: HashMap::new(),
        tails: HashMap::new(),
        new_uuids: HashSet::new(),
        positions: vec![0; log.entries.len()],
    };
    for (position, line) in log.order().into_iter().enumerate() {
        planner.positions[line] = position;
    }
    for (line, block) in &diagnosis.orphans {
        planner.edit(*line).as_text.push(*block);
    }
    for rename in &diagnosis.renames {
        let renamed = (rename.block, rename.id.clone());
        planner.edit(rename.line).renamed.push(renamed);
    }
    planner.remove_lines(diagnosis);
    for row in &diagnosis.interrupted {
        planner.insert_results(row);
    }
    planner.relink_children();
    planner.edits
}

struct Planner<'l> {
    log: &'l Log,
    /// The parent of each line after the edits.
    parents: Vec<Option<usize>>,
    edits: Edits,
    /// The removed lines, with the new parents of their children.
    removed: HashMap<usize, Option<usize>>,
    /// The last line inserted after each line, and the lines that must not become its children.
    tails: HashMap<usize, (Rc<str>, HashSet<usize>)>,
    new_uuids: HashSet<Rc<str>>,
    /// The position of each line in conversation order.
    positions: Vec<usize>,
}

impl Planner<'_> {
    fn edit(&mut self, line: usize) -> &mut Edit {
        let number = self.log.entries[line].number;
        self.edits.0.entry(number).or_default()
    }

    /// Removes blocks and lines, and relinks the children of removed lines.
    fn remove_lines(&mut self, diagnosis: &Diagnosis) {
        for line in &diagnosis.removed_lines {
            self.edit(*line).removed = true;
            self.removed.insert(*line, self.parents[*line]);
        }
        let calls = diagnosis.interrupted.iter().flat_map(|row| &row.calls);
        for (line, block) in calls.filter_map(|call| call.misplaced) {
            if self.remove_block(line, block) {
                self.removed.insert(line, self.parents[line]);
            }
        }
        for (line, block, first) in &diagnosis.duplicates {
            if self.remove_block(*line, *block) {
                // The first result must stay an ancestor of the following lines.
                let parent = if self
                    .nearest_ancestor(*line, &HashSet::from([*first]))
                    .is_some()
                {
                    self.parents[*line]
                } else {
                    Some(*first)
                };
                self.removed.insert(*line, parent);
            }
        }
        if self.removed.is_empty() {
            return;
        }
        for line in 0..self.parents.len() {
            let Some(parent) =
                self.parents[line].filter(|parent| self.removed.contains_key(parent))
            else {
                continue;
            };
            let mut ancestor = Some(parent);
            for _ in 0..self.removed.len() {
                match ancestor.and_then(|ancestor| self.removed.get(&ancestor)) {
                    Some(next) => ancestor = *next,
                    None => break,
                }
            }
            self.parents[line] = ancestor;
            if !self.removed.contains_key(&line) {
                let uuid = ancestor.and_then(|ancestor| self.log.entries[ancestor].uuid.clone());
                self.edit(line).parent = Some(uuid);
            }
        }
    }

    /// Removes a block, and the line if no block is left. Returns whether the line is removed.
    fn remove_block(&mut self, line: usize, block: usize) -> bool {
        let block_count = self.log.entries[line].block_count;
        let edit = self.edit(line);
        edit.removed_blocks.push(block);
        edit.removed = edit.removed || edit.removed_blocks.len() == block_count;
        edit.removed
    }

    /// The nearest of the candidates among a line and its ancestors.
    fn nearest_ancestor(&self, line: usize, candidates: &HashSet<usize>) -> Option<usize> {
        // Parents come first, so the search ends at the first candidate.
        let first = candidates.iter().map(|line| self.positions[*line]).min()?;
        let mut next = Some(line).filter(|line| self.positions[*line] >= first);
        while let Some(line) = next {
            if candidates.contains(&line) {
                return Some(line);
            }
            // Stop at a cycle of parents.
            let is_above = |parent: &usize| self.positions[*parent] < self.positions[line];
            next = self.parents[line].filter(is_above);
            next = next.filter(|parent| self.positions[*parent] >= first);
        }
        None
    }

    /// Inserts results for the interrupted calls of a row.
    fn insert_results(&mut self, row: &InterruptedRow) {
        let cluster: HashSet<usize> = row
            .cluster
            .iter()
            .copied()
            .filter(|line| !self.removed.contains_key(line))
            .collect();
        let on_path = row
            .next
            .and_then(|next| self.nearest_ancestor(next, &cluster));
        // A conversation that continues from a line before the call has abandoned the call.
        let last_call = row.calls.iter().map(|call| self.positions[call.line]).max();
        let on_path = on_path.filter(|line| Some(self.positions[*line]) >= last_call);
        let last = || {
            cluster
                .iter()
                .copied()
                .max_by_key(|line| self.positions[*line])
        };
        let Some(anchor) = on_path.or_else(last) else {
            return;
        };
        for call in &row.calls {
            let log = self.log;
            let source = log.entries[call.line].uuid.clone();
            let parent = match self.tails.get(&anchor) {
                Some((tail, _)) => Some(Rc::clone(tail)),
                None => log.entries[anchor].uuid.clone(),
            };
            let uuid = match call.misplaced.and_then(|(line, _)| self.kept_uuid(line)) {
                Some(uuid) => uuid,
                None => self.fresh_uuid(source.as_deref().unwrap_or_default(), &call.id),
            };
            let tail = self
                .tails
                .entry(anchor)
                .or_insert((Rc::clone(&uuid), HashSet::new()));
            tail.0 = Rc::clone(&uuid);
            tail.1.extend(&cluster);
            self.edit(anchor).new_lines.push(NewLine {
                uuid,
                parent,
                source,
                call: call.id.clone(),
                cause: call.cause,
                limit: call.limit,
                moved: call
                    .misplaced
                    .map(|(line, block)| (log.entries[line].number, block)),
            });
        }
    }

    /// The UUID of a line that contains nothing but a moved result.
    fn kept_uuid(&self, line: usize) -> Option<Rc<str>> {
        let entry = &self.log.entries[line];
        entry.uuid.clone().filter(|_| entry.block_count == 1)
    }

    /// Makes the children of a line with insertions children of the last inserted line.
    fn relink_children(&mut self) {
        for line in 0..self.parents.len() {
            let tail = self.parents[line].and_then(|parent| self.tails.get(&parent));
            let Some((tail, cluster)) = tail else {
                continue;
            };
            if !cluster.contains(&line) && !self.removed.contains_key(&line) {
                let tail = Rc::clone(tail);
                self.edit(line).parent = Some(Some(tail));
            }
        }
    }

    /// A new UUID, derived from the line and the call.
    fn fresh_uuid(&mut self, source: &str, call: &str) -> Rc<str> {
        let mut number = 0u32;
        loop {
            let uuid: Rc<str> = uuid_from(&format!("{source}\n{call}\n{number}")).into();
            if !self.log.by_uuid.contains_key(&uuid) && self.new_uuids.insert(Rc::clone(&uuid)) {
                return uuid;
            }
            number += 1;
        }
    }
}

/// A UUID of version 8 (custom bits): the 128-bit FNV-1a hash of a text.
fn uuid_from(text: &str) -> String {
    let hash = text.bytes().fold(
        0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128,
        |hash, byte| {
            (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
        },
    );
    let version = (hash & !(0xf << 76)) | (0x8 << 76);
    let bits = (version & !(0x3 << 62)) | (0x2 << 62);
    let hex = format!("{bits:032x}");
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    let parts = [
        part(0, 8),
        part(8, 12),
        part(12, 16),
        part(16, 20),
        part(20, 32),
    ];
    parts.join("-")
}
