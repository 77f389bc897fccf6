//! Claude Code's session logs: the calls that were never answered, and the lines that answer them.
//!
//! Lines that share a `message.id` are one row, `parentUuid` gives the order, and side chains are
//! conversations of their own. Of each line only what the rules look at is kept, so a long log needs
//! little memory: texts are hashes, and results only the ids of their calls.
//!
//! Calls of the last row may still be answered: they are judged by the clock, from the line's own time
//! and the call's own timeout, unless somebody says that the session is over. `threads` makes rows of
//! lines, `edits` says what changes in the file, `rewrite` changes it.

mod edits;
mod rewrite;
mod threads;

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use onward_core::Timestamp;
use onward_core::call::Limit;
use serde::Deserialize;
use serde_json::Value;

use super::super::lines::parse;
use super::super::{Error, Lines};
use super::{Examined, Moment, Remedy};

pub(super) use edits::Edits;
pub(super) use rewrite::rewrite;

/// Reads a log, and says what is wrong with it.
pub(super) fn examine(lines: Lines, moment: Moment) -> Result<Examined, Error> {
    let (mut log, warnings) = Log::read(lines)?;
    let diagnosis = threads::diagnose(&mut log, moment);
    let edits = edits::plan(&log, &diagnosis);
    Ok(Examined {
        findings: diagnosis.findings,
        open: diagnosis.open,
        warnings,
        remedy: if edits.is_empty() {
            Remedy::None
        } else {
            Remedy::Edits(edits)
        },
    })
}

/// A log, as far as the rules look at it.
struct Log {
    entries: Vec<Entry>,
    by_uuid: HashMap<Rc<str>, usize>,
    /// The last sign of life of calls that report.
    progress: HashMap<Box<str>, Timestamp>,
}

/// A line.
struct Entry {
    /// Its number in the file, from 1.
    number: u64,
    uuid: Option<Rc<str>>,
    /// The line before it in its conversation, where that is in the file.
    parent: Option<usize>,
    speaker: Speaker,
    /// The side chain that it says it belongs to.
    side: Option<Option<Box<str>>>,
    message: Option<Box<str>>,
    at: Option<Timestamp>,
    /// What it says, until its row has it.
    blocks: Vec<Block>,
    /// How many blocks it has.
    size: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Speaker {
    User,
    Assistant,
    /// What the program itself writes between the messages.
    Program,
}

/// A block of a message.
enum Block {
    /// The hash of a text; none where it is blank.
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

/// A line as it is written. What is of another kind than expected is missing, not an error.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    #[serde(default, rename = "type")]
    kind: Value,
    #[serde(default)]
    uuid: Value,
    #[serde(default)]
    parent_uuid: Value,
    #[serde(default)]
    is_sidechain: Value,
    #[serde(default)]
    agent_id: Value,
    #[serde(default)]
    timestamp: Value,
    #[serde(default, rename = "toolUseID")]
    tool_use_id: Value,
    #[serde(default, rename = "parentToolUseID")]
    parent_tool_use_id: Value,
    #[serde(default)]
    message: Value,
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
                Ok(line) => log.take(number, &line, &mut parents),
                Err(_) if text.last() != Some(&b'\n') => {
                    warnings.push(format!("`{name}`, line {number}: the last line is torn"));
                }
                Err(_) => warnings.push(format!(
                    "`{name}`, line {number}: no JSON, and left as it is"
                )),
            }
        }
        if log.entries.is_empty() {
            return Err(Error::UnknownFormat { name });
        }
        // Some lines stand before their parents.
        for (entry, parent) in parents {
            let parent = log.by_uuid.get(&*parent).copied();
            if let Some(entry) = log.entries.get_mut(entry) {
                entry.parent = parent;
            }
        }
        Ok((log, warnings))
    }

    fn take(&mut self, number: u64, line: &Line, parents: &mut Vec<(usize, Box<str>)>) {
        let at: Option<Timestamp> = line.timestamp.as_str().and_then(|at| at.parse().ok());
        for id in [&line.tool_use_id, &line.parent_tool_use_id] {
            if let (Some(id), Some(at)) = (id.as_str(), at) {
                let last = self.progress.entry(id.into()).or_insert(at);
                *last = at.max(*last);
            }
        }
        let uuid: Option<Rc<str>> = line.uuid.as_str().map(Rc::from);
        // A session that was resumed can hold its lines twice.
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
            Some("user") if line.message.is_object() => Speaker::User,
            Some("assistant") if line.message.is_object() => Speaker::Assistant,
            Some(_) | None => Speaker::Program,
        };
        let blocks = match speaker {
            Speaker::User | Speaker::Assistant => blocks(&line.message, speaker),
            Speaker::Program => Vec::new(),
        };
        let side = (line.is_sidechain == true).then(|| line.agent_id.as_str().map(Box::from));
        self.entries.push(Entry {
            number,
            uuid,
            parent,
            speaker,
            side,
            message: line.message["id"].as_str().map(Box::from),
            at,
            size: blocks.len(),
            blocks,
        });
    }

    /// The lines in the order of the conversation: each after its parent, else as they stand.
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
            // In a circle of parents the line that closes it counts as the first.
            if let Some(place) = next.and_then(|next| chain.iter().position(|line| *line == next)) {
                order.push(chain.remove(place));
            }
            order.extend(chain.drain(..).rev());
        }
        order
    }
}

fn blocks(message: &Value, speaker: Speaker) -> Vec<Block> {
    let Some(list) = message["content"].as_array() else {
        return message["content"].as_str().map(text).into_iter().collect();
    };
    let block = |block: &Value| {
        let id = |key: &str| block[key].as_str().map(Box::<str>::from);
        let tool = block["name"].as_str().unwrap_or_default();
        match block["type"].as_str() {
            Some("text") => block["text"].as_str().map(text),
            Some("tool_use") if speaker == Speaker::Assistant => id("id").map(|id| Block::Call {
                id,
                tool: tool.into(),
                input: hash(&block["input"].to_string()),
                limit: Limit::of_call(tool, &block["input"]),
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
