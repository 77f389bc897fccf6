//! Builds the conversations of a log from its lines, and finds their defects.
//!
//! `onward_core::transcript` defines the defects. A result may be in another conversation than its
//! call. A call block that a later line of its row repeats counts once; another call with the same
//! id in the row is renamed, together with its result.

use std::collections::{HashMap, HashSet};

use onward_core::Timestamp;
use onward_core::call::{CallPolicy, CallStatus, CallTimestamp, Cause, Limit};
use onward_core::transcript::{
    Call, CallMatcher, Message, Part, Repair, RepairKind, Resolution, ResultMatch, Role, sanitize,
};

use super::super::{Finding, RepairContext};
use super::{Author, Block, Entry, Log};

/// The defects of a log.
#[derive(Default)]
pub(super) struct Diagnosis {
    pub(super) findings: Vec<Finding>,
    /// Calls that may still get a result.
    pub(super) open_calls: usize,
    /// Interrupted calls by row.
    pub(super) interrupted: Vec<InterruptedRow>,
    /// Results to convert to text: line and block.
    pub(super) orphans: Vec<(usize, usize)>,
    /// Results to remove: line, block, and the line of the first result.
    pub(super) duplicates: Vec<(usize, usize, usize)>,
    /// Lines to remove.
    pub(super) removed_lines: Vec<usize>,
    /// Calls and results with a new id.
    pub(super) renames: Vec<Rename>,
}

/// A call or a result with a new id.
#[derive(Clone)]
pub(super) struct Rename {
    pub(super) line: usize,
    pub(super) block: usize,
    pub(super) id: Box<str>,
}

/// A row with interrupted calls.
pub(super) struct InterruptedRow {
    /// The lines of the row, and the lines with results of its other calls.
    pub(super) cluster: Vec<usize>,
    /// The first line of the next assistant row.
    pub(super) next: Option<usize>,
    pub(super) calls: Vec<InterruptedCall>,
}

/// An interrupted call.
pub(super) struct InterruptedCall {
    /// The line with the call.
    pub(super) line: usize,
    pub(super) id: Box<str>,
    pub(super) cause: Cause,
    pub(super) limit: Limit,
    /// The line and the block of a misplaced result. `None` if the call has no result.
    pub(super) misplaced: Option<(usize, usize)>,
}

/// The last progress of each call, for calls that report progress.
type Progress = HashMap<Box<str>, Timestamp>;

/// A conversation: the main one, or a subagent's.
#[derive(Default)]
struct Thread {
    messages: Vec<Message<'static>>,
    /// The line and the block of each part of each row.
    locations: Vec<Vec<(usize, usize)>>,
    /// The lines of each row, and the lines with its results.
    lines: Vec<Vec<usize>>,
    results: Vec<Vec<usize>>,
    /// Rows by `message.id`.
    rows: HashMap<Box<str>, usize>,
    matcher: CallMatcher<(usize, usize)>,
    /// The line of the result of each call.
    result_lines: HashMap<Box<str>, usize>,
    orphans: Vec<UnmatchedResult>,
    /// With the line of the first result.
    duplicates: Vec<(UnmatchedResult, usize)>,
    /// The calls with results: row and part of the call, line and block of the result.
    matched: Vec<((usize, usize), (usize, usize))>,
    renames: Vec<Rename>,
    /// The line of each renamed call, and its repair.
    duplicate_ids: Vec<(usize, Repair)>,
}

/// A result without an open call.
struct UnmatchedResult {
    line: usize,
    block: usize,
    call_id: Box<str>,
}

pub(super) fn diagnose(log: &mut Log, context: RepairContext) -> Diagnosis {
    let mut threads = build_threads(log);
    match_across_threads(&mut threads);
    let mut diagnosis = Diagnosis::default();
    for thread in &threads {
        thread.diagnose(log, context, &mut diagnosis);
    }
    diagnosis.findings.sort_by_key(|finding| finding.line);
    diagnosis
}

fn build_threads(log: &mut Log) -> Vec<Thread> {
    let mut threads = vec![Thread::default()];
    let mut agents: HashMap<Box<str>, usize> = HashMap::new();
    let mut thread_of_line = vec![0; log.entries.len()];
    for index in log.order() {
        let entry = &mut log.entries[index];
        let blocks = std::mem::take(&mut entry.blocks);
        let next = threads.len();
        let thread = match &entry.sidechain {
            None => 0,
            Some(Some(agent)) => *agents.entry(agent.clone()).or_insert(next),
            // Older logs have no agent id: a line belongs to the thread of its parent.
            Some(None) => {
                let parent = entry.parent.map_or(0, |parent| thread_of_line[parent]);
                if parent == 0 { next } else { parent }
            }
        };
        if thread == next {
            threads.push(Thread::default());
        }
        thread_of_line[index] = thread;
        threads[thread].add_line(&log.progress, index, entry, blocks);
    }
    threads
}

/// Matches results without a call to the calls of other conversations.
fn match_across_threads(threads: &mut [Thread]) {
    let mut calls: HashMap<String, Vec<(usize, usize, usize)>> = HashMap::new();
    if threads.iter().all(|thread| thread.orphans.is_empty()) || threads.len() == 1 {
        return;
    }
    for (number, thread) in threads.iter().enumerate() {
        for (row, message) in thread.messages.iter().enumerate() {
            for (part, content) in message.parts.iter().enumerate() {
                if let Part::Call(call) = content {
                    let locations = calls.entry(call.id.to_string()).or_default();
                    locations.push((number, row, part));
                }
            }
        }
    }
    for number in 0..threads.len() {
        let orphans = std::mem::take(&mut threads[number].orphans);
        for orphan in orphans {
            let Some(locations) = calls.get(&*orphan.call_id) else {
                threads[number].orphans.push(orphan);
                continue;
            };
            for (thread, row, part) in locations {
                threads[*thread].settle_call((*row, *part), orphan.line);
            }
        }
    }
}

impl Thread {
    fn add_line(&mut self, progress: &Progress, index: usize, entry: &Entry, blocks: Vec<Block>) {
        let role = match entry.author {
            Author::User => Role::User,
            Author::Assistant => Role::Assistant,
            Author::Program => return,
        };
        let existing = entry
            .message_id
            .as_ref()
            .filter(|_| role == Role::Assistant);
        let existing = existing.and_then(|id| self.rows.get(id).copied());
        let row = existing.unwrap_or_else(|| {
            self.matcher.start_row();
            self.messages.push(Message {
                role,
                parts: Vec::new(),
                is_queued: false,
                is_plain: true,
            });
            self.locations.push(Vec::new());
            self.lines.push(Vec::new());
            self.results.push(Vec::new());
            let row = self.messages.len() - 1;
            if let Some(id) = entry
                .message_id
                .as_ref()
                .filter(|_| role == Role::Assistant)
            {
                self.rows.insert(id.clone(), row);
            }
            row
        });
        self.lines[row].push(index);
        // Logs have many rows, most with one part: avoid spare capacity.
        self.messages[row].parts.reserve_exact(blocks.len());
        self.locations[row].reserve_exact(blocks.len());
        for (block, content) in blocks.into_iter().enumerate() {
            let part = self.part(progress, entry.at, row, (index, block), content);
            self.messages[row].parts.push(part);
            self.locations[row].push((index, block));
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
                let position = self.messages[row].parts.len();
                let input = format!("{input:x}");
                if self.is_repeated_block(row, line, &id, &tool, &input) {
                    return Part::Other;
                }
                self.matcher.add_call(&id, (row, position));
                let id = self.unique_id(row, (line, block), id, &tool);
                Part::Call(Call {
                    resolution: Resolution::Open(CallTimestamp {
                        status: CallStatus::Running,
                        started_at,
                        last_progress_at: progress.get(&id).copied(),
                        limit,
                        grace: None,
                    }),
                    id: String::from(id).into(),
                    tool: Some(String::from(tool).into()),
                    input: input.into(),
                })
            }
            Block::Result(call_id) => {
                match self.matcher.match_result(&call_id) {
                    ResultMatch::Matched(call) => {
                        self.result_lines.insert(call_id.clone(), line);
                        self.settle_call(call, line);
                        self.matched.push((call, (line, block)));
                        if let Some(Part::Call(call)) = self.messages[call.0].parts.get(call.1)
                            && *call.id != *call_id
                        {
                            let id = (*call.id).into();
                            self.renames.push(Rename { line, block, id });
                        }
                    }
                    ResultMatch::Duplicate => {
                        let first = self.result_lines.get(&call_id).copied().unwrap_or(line);
                        let call_id = call_id.clone();
                        self.duplicates.push((
                            UnmatchedResult {
                                line,
                                block,
                                call_id,
                            },
                            first,
                        ));
                    }
                    ResultMatch::Orphan => {
                        let call_id = call_id.clone();
                        self.orphans.push(UnmatchedResult {
                            line,
                            block,
                            call_id,
                        });
                    }
                }
                Part::Result(String::from(call_id).into())
            }
        }
    }

    /// Whether an earlier line of the row contains the same call.
    fn is_repeated_block(
        &self,
        row: usize,
        line: usize,
        id: &str,
        tool: &str,
        input: &str,
    ) -> bool {
        let parts = self.messages[row].parts.iter().zip(&self.locations[row]);
        parts.into_iter().any(|(part, (other, _))| {
            let is_same = matches!(part, Part::Call(call)
                if *call.id == *id && call.tool.as_deref() == Some(tool) && call.input == input);
            is_same && *other != line
        })
    }

    /// The id of a call, or a new one if another call of the row has it.
    fn unique_id(
        &mut self,
        row: usize,
        (line, block): (usize, usize),
        id: Box<str>,
        tool: &str,
    ) -> Box<str> {
        let parts = &self.messages[row].parts;
        let is_used = |id: &str| {
            let mut parts = parts.iter();
            parts.any(|part| matches!(part, Part::Call(call) if *call.id == *id))
        };
        if !is_used(&id) {
            return id;
        }
        let candidates = (2..).map(|number: u32| format!("{id}_{number}"));
        let Some(unused) = candidates.into_iter().find(|id| !is_used(id)) else {
            return id;
        };
        let repair = Repair {
            tool: Some(tool.to_owned()),
            ..Repair::for_result(RepairKind::DuplicateId, row, &id)
        };
        self.duplicate_ids.push((line, repair));
        let id: Box<str> = unused.into();
        self.renames.push(Rename {
            line,
            block,
            id: id.clone(),
        });
        id
    }

    /// Whether the conversation continued between the row of a call and its result.
    fn is_misplaced(&self, log: &Log, as_text: &HashSet<usize>, row: usize, result: usize) -> bool {
        let sidechain = &log.entries[result].sidechain;
        let mut next = log.entries[result].parent;
        // The number of steps is limited, because parents can form a cycle.
        for _ in 0..log.entries.len() {
            let Some(line) = next.filter(|line| !self.lines[row].contains(line)) else {
                return false;
            };
            let entry = &log.entries[line];
            let is_continued = match entry.author {
                Author::Assistant => true,
                Author::User => entry.has_content || as_text.contains(&line),
                Author::Program => false,
            };
            if is_continued && entry.sidechain == *sidechain {
                return true;
            }
            next = entry.parent;
        }
        false
    }

    /// Records the line with the result of a call.
    fn settle_call(&mut self, (row, part): (usize, usize), line: usize) {
        let parts = self.messages.get_mut(row).map(|row| &mut row.parts);
        if let Some(Part::Call(call)) = parts.and_then(|parts| parts.get_mut(part)) {
            call.resolution = Resolution::Settled;
            self.results[row].push(line);
        }
    }

    fn diagnose(&self, log: &Log, context: RepairContext, diagnosis: &mut Diagnosis) {
        let mut found = |line: usize, repair: Repair| {
            diagnosis.findings.push(Finding {
                line: log.entries.get(line).map(|entry| entry.number),
                row: None,
                repair,
            });
        };
        for result in &self.orphans {
            found(
                result.line,
                Repair::for_result(RepairKind::Orphan, 0, &result.call_id),
            );
        }
        for (result, _) in &self.duplicates {
            found(
                result.line,
                Repair::for_result(RepairKind::DuplicateResult, 0, &result.call_id),
            );
        }
        for (line, repair) in &self.duplicate_ids {
            found(*line, repair.clone());
        }
        diagnosis.renames.extend(self.renames.iter().cloned());
        let as_text: HashSet<usize> = self.orphans.iter().map(|result| result.line).collect();
        let misplaced: HashMap<(usize, usize), (usize, usize)> = self
            .matched
            .iter()
            .filter(|((row, _), (line, _))| self.is_misplaced(log, &as_text, *row, *line))
            .copied()
            .collect();
        let moved: HashSet<usize> = misplaced.values().map(|(line, _)| *line).collect();
        let orphans = self
            .orphans
            .iter()
            .map(|result| (result.line, result.block));
        diagnosis.orphans.extend(orphans);
        let duplicates = self.duplicates.iter();
        let duplicates = duplicates.map(|(result, first)| (result.line, result.block, *first));
        diagnosis.duplicates.extend(duplicates);

        let (rows, repairs) = sanitize(&self.messages, context.now, CallPolicy::default());
        for repair in repairs {
            // Calls are reported below, with their lines.
            if let RepairKind::BlankRow | RepairKind::DuplicateRow = repair.kind {
                let lines = &self.lines[repair.row];
                diagnosis.removed_lines.extend(lines);
                if let Some(line) = lines.first() {
                    found(*line, repair);
                }
            }
        }
        for (number, row) in rows.iter().enumerate() {
            let mut calls = Vec::new();
            for (part, content) in row.message.parts.iter().enumerate() {
                let Part::Call(call) = content else { continue };
                let (line, _) = self.locations[row.index][part];
                if call.resolution == Resolution::Settled {
                    let Some(result) = misplaced.get(&(row.index, part)) else {
                        continue;
                    };
                    let repair = Repair::for_call(RepairKind::Misplaced, row.index, call);
                    found(result.0, repair);
                    calls.push(InterruptedCall {
                        line,
                        id: (*call.id).into(),
                        cause: Cause::OutcomeUnknown,
                        limit: Limit::Unspecified,
                        misplaced: Some(*result),
                    });
                    continue;
                }
                let Some((cause, kind)) = context.repair_of(call.resolution) else {
                    diagnosis.open_calls += 1;
                    continue;
                };
                found(line, Repair::for_call(kind, row.index, call));
                let limit = match self.messages[row.index].parts.get(part) {
                    Some(Part::Call(Call {
                        resolution: Resolution::Open(times),
                        ..
                    })) => times.limit,
                    Some(_) | None => Limit::Unspecified,
                };
                calls.push(InterruptedCall {
                    line,
                    id: (*call.id).into(),
                    cause,
                    limit,
                    misplaced: None,
                });
            }
            if !calls.is_empty() {
                let mut after = rows.iter().skip(number + 1);
                let next = after.find(|row| row.message.role == Role::Assistant);
                diagnosis.interrupted.push(InterruptedRow {
                    cluster: {
                        let results = self.results[row.index].iter();
                        // A result must not follow other content of the user.
                        let in_place = results.filter(|line| {
                            let has_content = log.entries[**line].has_content;
                            !moved.contains(line) && !has_content && !as_text.contains(line)
                        });
                        self.lines[row.index]
                            .iter()
                            .chain(in_place)
                            .copied()
                            .collect()
                    },
                    next: next.and_then(|next| self.lines[next.index].first().copied()),
                    calls,
                });
            }
        }
    }
}
