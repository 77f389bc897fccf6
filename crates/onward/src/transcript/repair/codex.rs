//! Codex rollouts: repairs the items of the Responses API in the lines.
//!
//! A compaction replaces the items before it with a list in its own line (`replacement_history`),
//! so each part between compactions is a separate conversation, and the list is its beginning.
//! Codex continues the ordinals of the lines after the last one, so they stay ascending. The whole
//! file is held in memory.

use std::collections::HashSet;
use std::ops::Range;

use onward_core::call::{CallPolicy, CallStatus, CallTimestamp, Limit, is_stale};
use onward_core::transcript::json::{Object, splice};
use onward_core::transcript::{
    Api, Repair, RepairKind, RepairedRow, RepairedRows, TrailingCalls, repair_rows,
};
use serde_json::Value;

use super::super::openai::parse_arguments;
use super::super::{Error, Lines};
use super::layout::{PlacedLine, arrange};
use super::{Examination, Finding, Fix, RepairContext, read_text};

pub(super) fn examine(lines: Lines, context: RepairContext) -> Result<Examination, Error> {
    let name = lines.name().to_owned();
    let text = read_text(lines)?;
    let (segments, warnings) = segments(&name, &text)?;
    let mut findings = Vec::new();
    let mut open_calls = 0;
    let mut placed = Vec::new();
    let mut rows = HashSet::new();
    for (number, segment) in segments.iter().enumerate() {
        let is_last = number + 1 == segments.len();
        let context = Some(context).filter(|_| is_last);
        let (repaired, open) = segment.repair(context);
        open_calls += open;
        rows.extend(segment.rows.iter().map(|row| row.line));
        let found = repaired.repairs.iter().map(|repair| {
            let row = segment.rows.get(repair.row);
            Finding {
                line: row.map(|row| row.line as u64 + 1),
                row: None,
                repair: repair.clone(),
            }
        });
        findings.extend(found);
        segment.place(&repaired, &mut placed);
    }
    let fix = if findings.is_empty() {
        Fix::None
    } else {
        Fix::Text(renumbered(&arrange(&text, &rows, &placed)))
    };
    Ok(Examination {
        findings,
        open_calls,
        warnings,
        fix,
    })
}

/// The items between two compactions.
#[derive(Default)]
struct Segment<'t> {
    /// The compaction before the items.
    compaction: Option<Compaction<'t>>,
    /// The items: first those in the list of the compaction.
    rows: Vec<ItemRow<'t>>,
    /// The number of items in the list of the compaction.
    listed: usize,
}

struct Compaction<'t> {
    line: usize,
    text: &'t str,
    /// The span of the list in the line.
    list: Range<usize>,
}

struct ItemRow<'t> {
    line: usize,
    text: &'t str,
    /// The span of the item in the line.
    item: Range<usize>,
}

impl<'t> ItemRow<'t> {
    fn source(&self) -> &'t str {
        self.text.get(self.item.clone()).unwrap_or_default()
    }
}

/// Splits a rollout at its compactions.
fn segments<'t>(name: &str, text: &'t str) -> Result<(Vec<Segment<'t>>, Vec<String>), Error> {
    let mut segments = Vec::new();
    let mut segment = Segment::default();
    let mut warnings = Vec::new();
    let mut first_error = None;
    let mut has_lines = false;
    for (line, text) in text.lines().enumerate() {
        if let Err(cause) = serde_json::from_str::<serde::de::IgnoredAny>(text) {
            if !text.trim().is_empty() {
                let number = line as u64 + 1;
                let error = Error::from_json(name, number, "a Codex rollout line", cause);
                warnings.push(format!("{error}; kept the line"));
                first_error.get_or_insert(error);
            }
            continue;
        }
        has_lines = true;
        let Some(object) = Object::parse(text) else {
            continue;
        };
        let Some(item) = object.span("payload") else {
            continue;
        };
        match object.string("type").as_deref() {
            Some("response_item") => segment.rows.push(ItemRow { line, text, item }),
            Some("compacted") => {
                segments.push(std::mem::take(&mut segment));
                segment.start_with(line, text, item);
            }
            Some(_) | None => {}
        }
    }
    match first_error.filter(|_| !has_lines) {
        Some(error) => Err(error),
        None => {
            segments.push(segment);
            Ok((segments, warnings))
        }
    }
}

impl<'t> Segment<'t> {
    /// Starts with the list of a compaction.
    fn start_with(&mut self, line: usize, text: &'t str, payload: Range<usize>) {
        let object = text.get(payload.clone()).and_then(Object::parse);
        let list = object.as_ref().and_then(|object| {
            let items = object.elements("replacement_history")?;
            Some((object.span("replacement_history")?, items))
        });
        let Some((list, items)) = list else {
            return;
        };
        let shift = |span: &Range<usize>| payload.start + span.start..payload.start + span.end;
        let items = items.iter().map(shift);
        self.rows = items.map(|item| ItemRow { line, text, item }).collect();
        self.listed = self.rows.len();
        let list = shift(&list);
        self.compaction = Some(Compaction { line, text, list });
    }

    /// Repairs the items. In the last segment, calls may still be running: they are kept unless
    /// they have timed out. Also returns the number of those calls.
    fn repair(&self, context: Option<RepairContext>) -> (RepairedRows, usize) {
        let sources: Vec<&str> = self.rows.iter().map(ItemRow::source).collect();
        let all = repair_rows(Api::Responses, &sources, TrailingCalls::Answer);
        let Some(context) = context.filter(|context| !context.session_ended) else {
            return (all, 0);
        };
        let kept = repair_rows(Api::Responses, &sources, TrailingCalls::Leave);
        let is_trailing = |repair: &&Repair| {
            repair.kind == RepairKind::Dangling && !kept.repairs.contains(repair)
        };
        let open = all.repairs.iter().filter(is_trailing);
        let running = open.filter(|repair| !self.has_timed_out(repair.row, context));
        match running.count() {
            0 => (all, 0),
            running => (kept, running),
        }
    }

    fn has_timed_out(&self, row: usize, context: RepairContext) -> bool {
        let Some(row) = self.rows.get(row) else {
            return false;
        };
        let at = Object::parse(row.text).and_then(|line| line.string("timestamp"));
        let item: Value = serde_json::from_str(row.source()).unwrap_or_default();
        let tool = item["name"].as_str().unwrap_or_default();
        let call = CallTimestamp {
            status: CallStatus::Running,
            started_at: at.and_then(|at| at.parse().ok()),
            last_progress_at: None,
            limit: Limit::for_call("codex", tool, &parse_arguments(&item["arguments"])),
            grace: None,
        };
        is_stale(&call, context.now, CallPolicy::default())
    }

    /// Adds the lines of the repaired items.
    fn place(&self, repaired: &RepairedRows, placed: &mut Vec<PlacedLine>) {
        let is_listed = |row: &RepairedRow| row.from.is_some_and(|from| from < self.listed);
        let listed = repaired.rows.iter().rposition(is_listed);
        let (list, rows) = repaired.rows.split_at(listed.map_or(0, |last| last + 1));
        if let Some(compaction) = &self.compaction {
            let unchanged = list.len() == self.listed
                && list
                    .iter()
                    .enumerate()
                    .all(|(index, row)| row.text.is_none() && row.from == Some(index));
            placed.push(if unchanged {
                PlacedLine::Kept(compaction.line)
            } else {
                let items: Vec<&str> = list.iter().map(|row| self.text(row)).collect();
                let items = format!("[{}]", items.join(","));
                let text = splice(compaction.text, compaction.list.clone(), &items);
                PlacedLine::Changed(compaction.line, text)
            });
        }
        let mut before: Option<&ItemRow<'_>> = self.rows.first();
        for row in rows {
            let item = row.from.and_then(|from| self.rows.get(from));
            placed.push(match (item, &row.text) {
                (Some(item), None) => PlacedLine::Kept(item.line),
                (Some(item), Some(text)) => {
                    PlacedLine::Changed(item.line, splice(item.text, item.item.clone(), text))
                }
                (None, text) => PlacedLine::New(new_line(before, text.as_deref())),
            });
            before = item.or(before);
        }
    }

    fn text<'a>(&'a self, row: &'a RepairedRow) -> &'a str {
        let source = || {
            row.from
                .and_then(|from| self.rows.get(from))
                .map(ItemRow::source)
        };
        row.text.as_deref().or_else(source).unwrap_or_default()
    }
}

/// A line with a new item, at the time of the item before it. The ordinal is set by `renumbered`.
fn new_line(before: Option<&ItemRow<'_>>, item: Option<&str>) -> String {
    let line = before.and_then(|row| Object::parse(row.text));
    let line = line.as_ref();
    let at = line.and_then(|line| line.get("timestamp"));
    let at = at.map_or(String::new(), |at| format!(r#""timestamp":{at},"#));
    let ordinal = line.and_then(|line| line.get("ordinal"));
    let ordinal = ordinal.map_or("", |_| r#""ordinal":0,"#);
    let item = item.unwrap_or("null");
    format!(
        r#"{{{at}{ordinal}"type":"response_item","payload":{item},"onward":{{"synthetic":true}}}}"#
    )
}

/// The lines with ascending ordinals. An ordinal that is greater than the previous one is kept.
fn renumbered(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut last: Option<u64> = None;
    for line in text.split_inclusive('\n') {
        let span = Object::parse(line).and_then(|object| object.span("ordinal"));
        let ordinal = span.as_ref().and_then(|span| line.get(span.clone()));
        let ordinal: Option<u64> = ordinal.and_then(|ordinal| ordinal.parse().ok());
        match (ordinal, last, span) {
            (Some(ordinal), Some(previous), Some(span)) if ordinal <= previous => {
                let next = previous.saturating_add(1);
                out.push_str(&splice(line, span, &next.to_string()));
                last = Some(next);
            }
            (ordinal, _, _) => {
                out.push_str(line);
                last = ordinal.or(last);
            }
        }
    }
    out
}
