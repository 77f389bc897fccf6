//! From lines to rows: the conversations of a log, and what is wrong with each.
//!
//! What counts as wrong is the core's to say. A result that stands in another conversation than its call
//! is taken for what it is. A block that is written twice in one row is one call.

use std::collections::HashMap;

use onward_core::Timestamp;
use onward_core::call::{CallPolicy, CallStatus, CallTimestamp, Cause, Limit};
use onward_core::transcript::{
    Call, Fit, Message, Part, Repair, Role, Standing, Walk, What, sanitize,
};

use super::super::{Finding, Moment};
use super::{Block, Entry, Log, Speaker};

/// What is wrong with a log.
#[derive(Default)]
pub(super) struct Diagnosis {
    pub(super) findings: Vec<Finding>,
    /// Calls that may still be answered.
    pub(super) open: usize,
    /// Calls that are given up, row by row.
    pub(super) given_up: Vec<Unanswered>,
    /// Results that become text: the line, and the block of it.
    pub(super) orphans: Vec<(usize, usize)>,
    /// Results that go: the line, its block, and the line of the first result.
    pub(super) doubled: Vec<(usize, usize, usize)>,
    /// Lines that go.
    pub(super) dropped: Vec<usize>,
}

/// A row with calls that are given up.
pub(super) struct Unanswered {
    /// Its lines, and those that answer its other calls.
    pub(super) cluster: Vec<usize>,
    /// The first line of the row that comes after it.
    pub(super) next: Option<usize>,
    pub(super) calls: Vec<GivenUp>,
}

/// A call that is given up.
pub(super) struct GivenUp {
    /// The line that makes it.
    pub(super) line: usize,
    pub(super) id: Box<str>,
    pub(super) cause: Cause,
    pub(super) limit: Limit,
}

/// The last sign of life of calls that report.
type Progress = HashMap<Box<str>, Timestamp>;

/// One conversation: the session's own, or a subagent's.
#[derive(Default)]
struct Thread {
    messages: Vec<Message<'static>>,
    /// For each row and part the line and the block.
    places: Vec<Vec<(usize, usize)>>,
    /// For each row its lines, and those with its results.
    lines: Vec<Vec<usize>>,
    results: Vec<Vec<usize>>,
    /// Rows by `message.id`.
    rows: HashMap<Box<str>, usize>,
    walk: Walk<(usize, usize)>,
    /// The line of the last result of each call.
    answered: HashMap<Box<str>, usize>,
    orphans: Vec<Stray>,
    /// With the line of the first result.
    doubled: Vec<(Stray, usize)>,
}

/// A result that answers nothing.
struct Stray {
    line: usize,
    block: usize,
    of: Box<str>,
}

pub(super) fn diagnose(log: &mut Log, moment: Moment) -> Diagnosis {
    let mut threads = threads(log);
    adopt(&mut threads);
    let mut diagnosis = Diagnosis::default();
    for thread in &threads {
        thread.diagnose(log, moment, &mut diagnosis);
    }
    diagnosis.findings.sort_by_key(|finding| finding.line);
    diagnosis
}

fn threads(log: &mut Log) -> Vec<Thread> {
    let mut threads = vec![Thread::default()];
    let mut agents: HashMap<Box<str>, usize> = HashMap::new();
    let mut of_line = vec![0; log.entries.len()];
    for index in log.order() {
        let entry = &mut log.entries[index];
        let blocks = std::mem::take(&mut entry.blocks);
        let next = threads.len();
        let thread = match &entry.side {
            None => 0,
            Some(Some(agent)) => *agents.entry(agent.clone()).or_insert(next),
            // Older logs do not name the agent; then its lines are those of its first one.
            Some(None) => {
                let parent = entry.parent.map_or(0, |parent| of_line[parent]);
                if parent == 0 { next } else { parent }
            }
        };
        if thread == next {
            threads.push(Thread::default());
        }
        of_line[index] = thread;
        threads[thread].take(&log.progress, index, entry, blocks);
    }
    threads
}

/// Gives results without a call to the conversation that made it.
fn adopt(threads: &mut [Thread]) {
    let mut calls: HashMap<String, Vec<(usize, usize, usize)>> = HashMap::new();
    if threads.iter().all(|thread| thread.orphans.is_empty()) || threads.len() == 1 {
        return;
    }
    for (number, thread) in threads.iter().enumerate() {
        for (row, message) in thread.messages.iter().enumerate() {
            for (part, piece) in message.parts.iter().enumerate() {
                if let Part::Call(call) = piece {
                    let places = calls.entry(call.id.to_string()).or_default();
                    places.push((number, row, part));
                }
            }
        }
    }
    for number in 0..threads.len() {
        let orphans = std::mem::take(&mut threads[number].orphans);
        for orphan in orphans {
            let Some(places) = calls.get(&*orphan.of) else {
                threads[number].orphans.push(orphan);
                continue;
            };
            for (thread, row, part) in places {
                threads[*thread].settle((*row, *part), orphan.line);
            }
        }
    }
}

impl Thread {
    fn take(&mut self, progress: &Progress, index: usize, entry: &Entry, blocks: Vec<Block>) {
        let role = match entry.speaker {
            Speaker::User => Role::User,
            Speaker::Assistant => Role::Assistant,
            Speaker::Program => return,
        };
        let known = entry.message.as_ref().filter(|_| role == Role::Assistant);
        let known = known.and_then(|id| self.rows.get(id).copied());
        let row = known.unwrap_or_else(|| {
            self.walk.begin_row();
            self.messages.push(Message {
                role,
                parts: Vec::new(),
                is_queued: false,
                is_plain: true,
            });
            self.places.push(Vec::new());
            self.lines.push(Vec::new());
            self.results.push(Vec::new());
            let row = self.messages.len() - 1;
            if let Some(id) = entry.message.as_ref().filter(|_| role == Role::Assistant) {
                self.rows.insert(id.clone(), row);
            }
            row
        });
        self.lines[row].push(index);
        // There are many rows, and most have one part.
        self.messages[row].parts.reserve_exact(blocks.len());
        self.places[row].reserve_exact(blocks.len());
        for (block, content) in blocks.into_iter().enumerate() {
            let part = self.part(progress, entry.at, row, (index, block), content);
            self.messages[row].parts.push(part);
            self.places[row].push((index, block));
        }
    }

    fn part(
        &mut self,
        progress: &Progress,
        started_at: Option<Timestamp>,
        row: usize,
        (line, block): (usize, usize),
        content: Block,
    ) -> Part<'static> {
        match content {
            Block::Other => Part::Other,
            Block::Text(None) => Part::Text("".into()),
            Block::Text(Some(hash)) => Part::Text(format!("{hash:x}").into()),
            Block::Call {
                id,
                tool,
                input,
                limit,
            } => {
                let parts = &self.messages[row].parts;
                let again = |part: &Part<'_>| matches!(part, Part::Call(call) if *call.id == *id);
                if parts.iter().any(again) {
                    return Part::Other;
                }
                self.walk.call(&id, (row, parts.len()));
                Part::Call(Call {
                    standing: Standing::Open(CallTimestamp {
                        status: CallStatus::Running,
                        started_at,
                        last_progress_at: progress.get(&id).copied(),
                        limit,
                    }),
                    id: String::from(id).into(),
                    tool: Some(String::from(tool).into()),
                    input: format!("{input:x}").into(),
                })
            }
            Block::Result(of) => {
                match self.walk.answer(&of) {
                    Fit::Answers(call) => {
                        self.answered.insert(of.clone(), line);
                        self.settle(call, line);
                    }
                    Fit::Doubled => {
                        let first = self.answered.get(&of).copied().unwrap_or(line);
                        let of = of.clone();
                        self.doubled.push((Stray { line, block, of }, first));
                    }
                    Fit::Orphan => {
                        let of = of.clone();
                        self.orphans.push(Stray { line, block, of });
                    }
                }
                Part::Answer(String::from(of).into())
            }
        }
    }

    /// A call has its result, in this line.
    fn settle(&mut self, (row, part): (usize, usize), line: usize) {
        let parts = self.messages.get_mut(row).map(|row| &mut row.parts);
        if let Some(Part::Call(call)) = parts.and_then(|parts| parts.get_mut(part)) {
            call.standing = Standing::Settled;
            self.results[row].push(line);
        }
    }

    fn diagnose(&self, log: &Log, moment: Moment, diagnosis: &mut Diagnosis) {
        let mut found = |line: usize, repair: Repair| {
            diagnosis.findings.push(Finding {
                line: log.entries.get(line).map(|entry| entry.number),
                row: None,
                repair,
            });
        };
        for stray in &self.orphans {
            found(stray.line, Repair::of_result(What::Orphan, 0, &stray.of));
        }
        for (stray, _) in &self.doubled {
            found(stray.line, Repair::of_result(What::Doubled, 0, &stray.of));
        }
        let orphans = self.orphans.iter().map(|stray| (stray.line, stray.block));
        diagnosis.orphans.extend(orphans);
        let doubled = self.doubled.iter();
        let doubled = doubled.map(|(stray, first)| (stray.line, stray.block, *first));
        diagnosis.doubled.extend(doubled);

        let (rows, repairs) = sanitize(&self.messages, moment.now, CallPolicy::default());
        for repair in repairs {
            // The calls are told below, with their lines.
            if let What::BlankRow | What::DoubledRow = repair.what {
                let lines = &self.lines[repair.row];
                diagnosis.dropped.extend(lines);
                if let Some(line) = lines.first() {
                    found(*line, repair);
                }
            }
        }
        for (number, row) in rows.iter().enumerate() {
            let mut calls = Vec::new();
            for (part, content) in row.message.parts.iter().enumerate() {
                let Part::Call(call) = content else { continue };
                let (cause, what) = match call.standing {
                    Standing::Settled => continue,
                    Standing::Interrupted(Cause::TimedOut) => (Cause::TimedOut, What::Stale),
                    Standing::Interrupted(cause) => (cause, What::Dangling),
                    Standing::Open(_) if moment.is_over => (Cause::OutcomeUnknown, What::Dangling),
                    Standing::Open(_) => {
                        diagnosis.open += 1;
                        continue;
                    }
                };
                let (line, _) = self.places[row.index][part];
                found(line, Repair::of_call(what, row.index, call));
                let limit = match self.messages[row.index].parts.get(part) {
                    Some(Part::Call(Call {
                        standing: Standing::Open(times),
                        ..
                    })) => times.limit,
                    Some(_) | None => Limit::Unsaid,
                };
                calls.push(GivenUp {
                    line,
                    id: (*call.id).into(),
                    cause,
                    limit,
                });
            }
            if !calls.is_empty() {
                let mut after = rows.iter().skip(number + 1);
                let next = after.find(|row| row.message.role == Role::Assistant);
                diagnosis.given_up.push(Unanswered {
                    cluster: [&self.lines[row.index][..], &self.results[row.index]].concat(),
                    next: next.and_then(|next| self.lines[next.index].first().copied()),
                    calls,
                });
            }
        }
    }
}
