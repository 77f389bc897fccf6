//! Claude Code session logs: finds calls without a result and adds results for them, and moves
//! results that do not follow their calls.
//!
//! Lines with the same `message.id` are one row, `parentUuid` defines the order, and side chains
//! are separate conversations. To save memory, only a hash of each text and the call id of each
//! result are kept. Calls of the last row may still be running: they are stale after their timeout,
//! counted from the timestamp of their line, unless the session has ended. `threads` builds rows
//! from lines, `edits` plans the changes of the file, and `rewrite` applies them.

mod edits;
mod rewrite;
mod threads;

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use onward_core::Timestamp;
use onward_core::call::Limit;
use serde_json::Value;

use super::super::claude_code::Line;
use super::super::lines::parse;
use super::super::{Error, Lines};
use super::{Examination, Fix, RepairContext};

pub(super) use edits::Edits;
pub(super) use rewrite::{moved_lines, rewrite};

/// Reads a log and finds its defects.
pub(super) fn examine(lines: Lines, context: RepairContext) -> Result<Examination, Error> {
    let (mut log, warnings) = Log::read(lines)?;
    let diagnosis = threads::diagnose(&mut log, context);
    let edits = edits::plan_edits(&log, &diagnosis);
    Ok(Examination {
        findings: diagnosis.findings,
        open_calls: diagnosis.open_calls,
        warnings,
        fix: if edits.is_empty() {
            Fix::None
        } else {
            Fix::Edits(edits)
        },
    })
}

/// The relevant content of a log.
struct Log {
    entries: Vec<Entry>,
    by_uuid: HashMap<Rc<str>, usize>,
    /// The last progress of each call, for calls that report progress.
    progress: HashMap<Box<str>, Timestamp>,
}

/// A line.
struct Entry {
    /// The line number, from 1.
    number: u64,
    uuid: Option<Rc<str>>,
    /// The index of the parent line, if it is in the file.
    parent: Option<usize>,
    author: Author,
    /// `Some` for a line of a side chain, with the agent id if it has one.
    sidechain: Option<Option<Box<str>>>,
    message_id: Option<Box<str>>,
    at: Option<Timestamp>,
    /// The blocks, until they are moved to the row.
    blocks: Vec<Block>,
    /// The number of blocks.
    block_count: usize,
    /// Whether the line contains more than results and blank text.
    has_content: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Author {
    User,
    Assistant,
    /// Lines that are not messages.
    Program,
}

/// A block of a message.
enum Block {
    /// The hash of a text; `None` for a blank one.
    Text(Option<u64>),
    Call {
        id: Box<str>,
        tool: Box<str>,
        input: u64,
        limit: Limit,
    },
    Result(Box<str>),
    Other,
}

impl Log {
    fn read(mut lines: Lines) -> Result<(Log, Vec<String>), Error> {
        let name = lines.name().to_owned();
        let mut log = Log {
            entries: Vec::new(),
            by_uuid: HashMap::new(),
            progress: HashMap::new(),
        };
        let mut parents: Vec<(usize, Box<str>)> = Vec::new();
        let mut warnings = Vec::new();
        let mut text = Vec::new();
        while let Some(number) = lines.next(&mut text)? {
            match parse::<Line>(&text) {
                Ok(line) => log.add_line(number, &line, &mut parents),
                Err(_) if text.last() != Some(&b'\n') => {
                    warnings.push(format!(
                        "`{name}`, line {number}: the last line is truncated"
                    ));
                }
                Err(_) => {
                    warnings.push(format!("`{name}`, line {number}: not JSON; kept unchanged"))
                }
            }
        }
        if log.entries.is_empty() {
            return Err(Error::UnknownFormat { name });
        }
        // Some lines precede their parents.
        for (entry, parent) in parents {
            let parent = log.by_uuid.get(&*parent).copied();
            if let Some(entry) = log.entries.get_mut(entry) {
                entry.parent = parent;
            }
        }
        Ok((log, warnings))
    }

    fn add_line(&mut self, number: u64, line: &Line, parents: &mut Vec<(usize, Box<str>)>) {
        let at: Option<Timestamp> = line.timestamp.as_str().and_then(|at| at.parse().ok());
        for id in [&line.tool_use_id, &line.parent_tool_use_id] {
            if let (Some(id), Some(at)) = (id.as_str(), at) {
                let last = self.progress.entry(id.into()).or_insert(at);
                *last = at.max(*last);
            }
        }
        let uuid: Option<Rc<str>> = line.uuid.as_str().map(Rc::from);
        // A resumed session may contain its lines twice.
        if uuid
            .as_ref()
            .is_some_and(|uuid| self.by_uuid.contains_key(uuid))
        {
            return;
        }
        let index = self.entries.len();
        if let Some(uuid) = &uuid {
            self.by_uuid.insert(Rc::clone(uuid), index);
        }
        let mut parent = None;
        if let Some(uuid) = line.parent_uuid.as_str() {
            parent = self.by_uuid.get(uuid).copied();
            if parent.is_none() {
                parents.push((index, uuid.into()));
            }
        }
        let speaker = match line.kind.as_str() {
            Some("user") if line.message.is_object() => Author::User,
            Some("assistant") if line.message.is_object() => Author::Assistant,
            Some(_) | None => Author::Program,
        };
        let blocks = match speaker {
            Author::User | Author::Assistant => blocks(&line.message, speaker),
            Author::Program => Vec::new(),
        };
        let is_content = |block: &Block| {
            matches!(
                block,
                Block::Text(Some(_)) | Block::Call { .. } | Block::Other
            )
        };
        let has_content = blocks.iter().any(is_content);
        let side = (line.is_sidechain == true).then(|| line.agent_id.as_str().map(Box::from));
        self.entries.push(Entry {
            number,
            uuid,
            parent,
            author: speaker,
            sidechain: side,
            message_id: line.message["id"].as_str().map(Box::from),
            at,
            block_count: blocks.len(),
            has_content,
            blocks,
        });
    }

    /// The lines in conversation order: each after its parent, otherwise in file order.
    fn order(&self) -> Vec<usize> {
        let mut order = Vec::with_capacity(self.entries.len());
        let mut seen = vec![false; self.entries.len()];
        let mut chain = Vec::new();
        for index in 0..self.entries.len() {
            let mut next = Some(index);
            while let Some(index) = next.filter(|index| !seen[*index]) {
                seen[index] = true;
                chain.push(index);
                next = self.entries[index].parent;
            }
            // In a cycle of parents, the line that closes it comes first.
            if let Some(position) =
                next.and_then(|next| chain.iter().position(|line| *line == next))
            {
                order.push(chain.remove(position));
            }
            order.extend(chain.drain(..).rev());
        }
        order
    }
}

fn blocks(message: &Value, speaker: Author) -> Vec<Block> {
    let Some(list) = message["content"].as_array() else {
        return message["content"].as_str().map(text).into_iter().collect();
    };
    let block = |block: &Value| {
        let id = |key: &str| block[key].as_str().map(Box::<str>::from);
        let tool = block["name"].as_str().unwrap_or_default();
        match block["type"].as_str() {
            Some("text") => block["text"].as_str().map(text),
            Some("tool_use") if speaker == Author::Assistant => id("id").map(|id| Block::Call {
                id,
                tool: tool.into(),
                input: hash(&block["input"].to_string()),
                limit: Limit::for_call("claude-code", tool, &block["input"]),
            }),
            Some("tool_result") => id("tool_use_id").map(Block::Result),
            Some(_) | None => None,
        }
    };
    list.iter()
        .map(|value| block(value).unwrap_or(Block::Other))
        .collect()
}

fn text(text: &str) -> Block {
    Block::Text((!text.trim().is_empty()).then(|| hash(text)))
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}
