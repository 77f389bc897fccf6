//! What changes in a log: lines that go, blocks that change, lines that are new, and whose parents change
//! with that.
//!
//! A new line stands after the last line of its row, or after the one from which the conversation went
//! on, and becomes the parent of what followed: whoever walks up from the end of the session meets the
//! result on the way. A line that goes hands its children to its parent. Ids are made of those that are
//! there, so the same log gives the same bytes every time.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use onward_core::call::{Cause, Limit};

use super::Log;
use super::threads::{Diagnosis, Unanswered};

/// What changes, by the number of the line.
#[derive(Default)]
pub(crate) struct Edits(pub(super) HashMap<u64, Edit>);

/// What changes in a line, and after it.
#[derive(Default)]
pub(super) struct Edit {
    pub(super) goes: bool,
    /// Another parent; `Some(None)` is none at all.
    pub(super) parent: Option<Option<Rc<str>>>,
    /// Blocks that become text.
    pub(super) as_text: Vec<usize>,
    /// Blocks that go.
    pub(super) gone: Vec<usize>,
    /// New lines after it.
    pub(super) after: Vec<NewLine>,
}

/// A line that answers a call.
pub(super) struct NewLine {
    pub(super) uuid: Rc<str>,
    pub(super) parent: Option<Rc<str>>,
    /// The line that made the call.
    pub(super) source: Option<Rc<str>>,
    pub(super) call: Box<str>,
    pub(super) cause: Cause,
    pub(super) limit: Limit,
}

impl Edits {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

pub(super) fn plan(log: &Log, diagnosis: &Diagnosis) -> Edits {
    let mut planner = Planner {
        log,
        parents: log.entries.iter().map(|entry| entry.parent).collect(),
        edits: Edits::default(),
        gone: HashMap::new(),
        tails: HashMap::new(),
        fresh: HashSet::new(),
        position: vec![0; log.entries.len()],
    };
    for (position, line) in log.order().into_iter().enumerate() {
        planner.position[line] = position;
    }
    for (line, block) in &diagnosis.orphans {
        planner.edit(*line).as_text.push(*block);
    }
    planner.drop_lines(diagnosis);
    for row in &diagnosis.given_up {
        planner.answer(row);
    }
    planner.hand_on();
    planner.edits
}

struct Planner<'l> {
    log: &'l Log,
    /// The parents as they become.
    parents: Vec<Option<usize>>,
    edits: Edits,
    /// Lines that go, with who takes their children.
    gone: HashMap<usize, Option<usize>>,
    /// The last new line after a line, and the lines that must not follow it.
    tails: HashMap<usize, (Rc<str>, HashSet<usize>)>,
    fresh: HashSet<Rc<str>>,
    /// Where each line stands in the order of the conversation.
    position: Vec<usize>,
}

impl Planner<'_> {
    fn edit(&mut self, line: usize) -> &mut Edit {
        let number = self.log.entries[line].number;
        self.edits.0.entry(number).or_default()
    }

    /// Blocks and lines that go, and their children to somebody else.
    fn drop_lines(&mut self, diagnosis: &Diagnosis) {
        for line in &diagnosis.dropped {
            self.edit(*line).goes = true;
            self.gone.insert(*line, self.parents[*line]);
        }
        for (line, block, first) in &diagnosis.doubled {
            self.edit(*line).gone.push(*block);
            let number = self.log.entries[*line].number;
            let gone = self.edits.0.get(&number).map_or(0, |edit| edit.gone.len());
            if gone == self.log.entries[*line].size {
                self.edit(*line).goes = true;
                // The first result must stay on the way up from whatever follows.
                let parent = if self.leads_up(*line, &HashSet::from([*first])).is_some() {
                    self.parents[*line]
                } else {
                    Some(*first)
                };
                self.gone.insert(*line, parent);
            }
        }
        if self.gone.is_empty() {
            return;
        }
        for line in 0..self.parents.len() {
            let Some(parent) = self.parents[line].filter(|parent| self.gone.contains_key(parent))
            else {
                continue;
            };
            let mut heir = Some(parent);
            for _ in 0..self.gone.len() {
                match heir.and_then(|heir| self.gone.get(&heir)) {
                    Some(next) => heir = *next,
                    None => break,
                }
            }
            self.parents[line] = heir;
            if !self.gone.contains_key(&line) {
                let uuid = heir.and_then(|heir| self.log.entries[heir].uuid.clone());
                self.edit(line).parent = Some(uuid);
            }
        }
    }

    /// The nearest of some lines on the way up from one, itself included.
    fn leads_up(&self, line: usize, to: &HashSet<usize>) -> Option<usize> {
        // Parents come first, so above the first of them there is nothing to find.
        let first = to.iter().map(|line| self.position[*line]).min()?;
        let mut next = Some(line).filter(|line| self.position[*line] >= first);
        while let Some(line) = next {
            if to.contains(&line) {
                return Some(line);
            }
            // A circle of parents leads nowhere.
            let is_above = |parent: &usize| self.position[*parent] < self.position[line];
            next = self.parents[line].filter(is_above);
            next = next.filter(|parent| self.position[*parent] >= first);
        }
        None
    }

    /// Answers the calls of a row.
    fn answer(&mut self, row: &Unanswered) {
        let cluster: HashSet<usize> = row
            .cluster
            .iter()
            .copied()
            .filter(|line| !self.gone.contains_key(line))
            .collect();
        let way = row.next.and_then(|next| self.leads_up(next, &cluster));
        // Where the conversation went on from before the call, it left the call behind.
        let made = row.calls.iter().map(|call| self.position[call.line]).max();
        let way = way.filter(|line| Some(self.position[*line]) >= made);
        let last = || {
            cluster
                .iter()
                .copied()
                .max_by_key(|line| self.position[*line])
        };
        let Some(anchor) = way.or_else(last) else {
            return;
        };
        for call in &row.calls {
            let log = self.log;
            let source = log.entries[call.line].uuid.clone();
            let parent = match self.tails.get(&anchor) {
                Some((tail, _)) => Some(Rc::clone(tail)),
                None => log.entries[anchor].uuid.clone(),
            };
            let uuid = self.fresh_uuid(source.as_deref().unwrap_or_default(), &call.id);
            let tail = self
                .tails
                .entry(anchor)
                .or_insert((Rc::clone(&uuid), HashSet::new()));
            tail.0 = Rc::clone(&uuid);
            tail.1.extend(&cluster);
            self.edit(anchor).after.push(NewLine {
                uuid,
                parent,
                source,
                call: call.id.clone(),
                cause: call.cause,
                limit: call.limit,
            });
        }
    }

    /// What followed a line that has new ones after it follows the last of these.
    fn hand_on(&mut self) {
        for line in 0..self.parents.len() {
            let tail = self.parents[line].and_then(|parent| self.tails.get(&parent));
            let Some((tail, cluster)) = tail else {
                continue;
            };
            if !cluster.contains(&line) && !self.gone.contains_key(&line) {
                let tail = Rc::clone(tail);
                self.edit(line).parent = Some(Some(tail));
            }
        }
    }

    /// An id that is in no log but this one, made of what it answers.
    fn fresh_uuid(&mut self, source: &str, call: &str) -> Rc<str> {
        let mut number = 0u32;
        loop {
            let uuid: Rc<str> = uuid_of(&format!("{source}\n{call}\n{number}")).into();
            if !self.log.by_uuid.contains_key(&uuid) && self.fresh.insert(Rc::clone(&uuid)) {
                return uuid;
            }
            number += 1;
        }
    }
}

/// A UUID of version 8, whose bits are our own: FNV-1a with 128 bits.
fn uuid_of(text: &str) -> String {
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
