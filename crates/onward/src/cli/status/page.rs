//! The overview as text: one section per word, one row per plan, and the command that acts on the
//! first row of a section.
//!
//! The columns of all sections are aligned. On a terminal, names are truncated to its width.

use std::fmt::Write;
use std::path::Path;

use onward_core::Timestamp;
use onward_core::attention::Word;
use onward_core::call::CallStatus;
use onward_core::session::{SessionStatus, SubagentStatus};
use onward_engine::{Address, Listed, SessionLine, session};

use super::Overview;
use crate::cli::Context;
use crate::cli::database::Database;
use crate::cli::step::{drop_command, resume_command};
use crate::config::location;
use crate::failure::Result;
use crate::output::status::{session_label, word_mark};
use crate::output::{Output, Tone, format};
use crate::serving;

/// The words of open plans, in the order of the sections.
const SECTIONS: [(Word, &str); 7] = [
    (Word::Stuck, "STUCK"),
    (Word::NeedsYou, "NEEDS YOU"),
    (Word::NoAgent, "NO AGENT"),
    (Word::Blocked, "BLOCKED"),
    (Word::Working, "WORKING"),
    (Word::NotStarted, "NOT STARTED"),
    (Word::UnfinishedList, "UNFINISHED LISTS"),
];
/// The maximum widths of the columns for details and people.
const MAX_DETAIL: usize = 20;
const MAX_WHO: usize = 12;
/// The minimum width of a name.
const MIN_NAME: usize = 16;

struct Section {
    title: &'static str,
    tone: Tone,
    rows: Vec<Row>,
    /// Rows that are not printed.
    more: usize,
    /// The command for the first row.
    action: Option<String>,
}

struct Row {
    id: String,
    name: String,
    detail: String,
    since: String,
    who: String,
}

/// The widths of the columns.
struct Widths {
    id: usize,
    name: usize,
    detail: usize,
    since: usize,
}

pub(super) async fn render(
    overview: &Overview,
    cx: &Context,
    database: &Database,
    max_rows: usize,
) -> Result<String> {
    let mut sections = Vec::new();
    for (word, title) in SECTIONS {
        sections.extend(section(overview, database, (word, title), max_rows).await?);
    }
    sections.extend(troubled_sessions(overview, database, max_rows));
    let widths = Widths::new(&sections, cx.output.width());
    let mut text = format!("{}\n\n{}\n", headline(cx), counts(overview, cx.output));
    for (index, section) in sections.iter().enumerate() {
        text.push('\n');
        text.push_str(&section.render(&widths, index == 0, cx.output));
    }
    Ok(text)
}

/// Version, database, and the address of a running server. A long path is truncated.
fn headline(cx: &Context) -> String {
    let database = match &cx.config.database {
        Address::File(path) => location::display(Path::new(path)),
        Address::Server(_) => cx.config.database.to_string(),
    };
    let start = format!("Onward {} · ", env!("CARGO_PKG_VERSION"));
    let serving = serving::find(&cx.config.database).map_or_else(String::new, |running| {
        let address = running.address;
        // Without a name, this machine is meant.
        let host = Some(address.ip()).filter(|ip| !ip.is_loopback());
        let host = host.map_or_else(String::new, |ip| ip.to_string());
        format!(" · serving on {host}:{}", address.port())
    });
    let width = cx.output.width().unwrap_or(usize::MAX);
    let width = width.saturating_sub(format::width(&start) + format::width(&serving));
    let database = format::truncate(&format::sanitize_line(&database), width);
    cx.output
        .paint(Some(Tone::Faint), &format!("{start}{database}{serving}"))
}

/// The number of plans per word, without zeros.
fn counts(overview: &Overview, output: Output) -> String {
    let mut parts = Vec::new();
    for (word, _) in SECTIONS {
        let number = overview.count(word);
        if number > 0 {
            let label = match (word, number) {
                (Word::NeedsYou, 1) => "needs you",
                (Word::NeedsYou, _) => "need you",
                (Word::UnfinishedList, 2..) => "unfinished lists",
                _ => word.label(),
            };
            let (_, tone) = word_mark(word);
            parts.push(output.paint(Some(tone), &format!("{number} {label}")));
        }
    }
    let total: u64 = overview.counts.iter().map(|counted| counted.plans).sum();
    if total == 0 {
        return "0 plans".to_owned();
    }
    if parts.is_empty() {
        parts.push("no open plans".to_owned());
    }
    if overview.done_this_week > 0 {
        let done = format!("{} done this week", overview.done_this_week);
        parts.push(output.paint(Some(Tone::Good), &done));
    }
    parts.join("   ")
}

async fn section(
    overview: &Overview,
    database: &Database,
    (word, title): (Word, &'static str),
    max_rows: usize,
) -> Result<Option<Section>> {
    let plans = overview.plans.iter();
    let mut plans: Vec<&Listed> = plans
        .filter(|listed| listed.attention.word == word)
        .collect();
    if word == Word::UnfinishedList {
        // The latest is the one to continue.
        plans.reverse();
    }
    let Some(first) = plans.first() else {
        return Ok(None);
    };
    let mut rows = Vec::new();
    for listed in plans.iter().take(max_rows) {
        let id = database.short_plan(listed.sheet.head.id).await?;
        rows.push(row(overview, database, listed, &id));
    }
    let id = database.short_plan(first.sheet.head.id).await?;
    let action = match word {
        Word::Stuck if first.is_stopped_by_budget() => {
            Some(format!("raise: onward plan budget {id}"))
        }
        Word::Stuck => match overview.stuck_steps(first, database.now)[..] {
            [step] => Some(format!("release: onward step release {id}/{}", step.order)),
            _ => Some(format!("release: onward step release {id}")),
        },
        Word::NeedsYou => Some(format!("decide: onward review show {id}")),
        Word::NoAgent | Word::NotStarted => Some(format!("resume: {}", resume_command(&id))),
        Word::Blocked => Some(format!("see: onward plan show {id}")),
        Word::UnfinishedList => {
            let (resume, drop) = (resume_command(&id), drop_command(&id));
            Some(format!("continue: {resume} · drop: {drop}"))
        }
        Word::Working | Word::Done | Word::DoneWithFailures | Word::Failed | Word::Cancelled => {
            None
        }
    };
    let (_, tone) = word_mark(word);
    Ok(Some(Section {
        title,
        tone,
        more: plans.len().saturating_sub(rows.len()),
        rows,
        action,
    }))
}

fn row(overview: &Overview, database: &Database, listed: &Listed, id: &str) -> Row {
    let (head, now) = (&listed.sheet.head, database.now);
    let counts = &head.counts;
    let steps = overview.in_progress.get(&head.id);
    let (mut id, mut detail) = (id.to_owned(), String::new());
    match listed.attention.word {
        Word::Stuck if listed.is_stopped_by_budget() => detail = "budget".to_owned(),
        Word::Stuck => {
            let stuck = overview.stuck_steps(listed, now);
            if let Some(first) = stuck.first() {
                id = format!("{id}/{}", first.order);
            }
            if stuck.len() > 1 {
                let more = u64::try_from(stuck.len() - 1).unwrap_or(u64::MAX);
                detail = format!("+{}", format::count(more, "step", "steps"));
            }
        }
        Word::NeedsYou => {
            let mut reviews = overview.reviews.iter();
            if let Some((open, _)) = reviews.find(|(open, _)| open.plan == head.id) {
                id = format!("{id}/{}", open.order);
                detail = match u64::try_from(open.review.asked().count()).unwrap_or(u64::MAX) {
                    0 => "approval".to_owned(),
                    number => format::count(number, "question", "questions"),
                };
            }
        }
        Word::Working => {
            let latest = steps.and_then(|steps| steps.iter().max_by_key(|line| line.started_at));
            if let Some(line) = latest {
                id = format!("{id}/{}", line.order);
                detail = progress(line);
            }
            if detail.is_empty() {
                detail = done(counts);
            }
        }
        Word::UnfinishedList => detail = done(counts),
        Word::NoAgent | Word::Blocked | Word::NotStarted => {
            detail = format!("{} pending", counts.pending);
            if counts.failed > 0 {
                let _ = write!(detail, ", {} failed", counts.failed);
            }
        }
        Word::Done | Word::DoneWithFailures | Word::Failed | Word::Cancelled => {}
    }
    Row {
        id,
        name: format::sanitize_line(&listed.sheet.brief.name),
        detail,
        since: format::age(now.since(listed.attention.since)),
        who: format::person(&listed.sheet.owner.person),
    }
}

/// Percentage and note of the last progress report.
fn progress(line: &onward_engine::StepLine) -> String {
    let Some(note) = &line.note else {
        return String::new();
    };
    let percent = note.percent.map(|percent| format!("{percent:.0} %"));
    let text = note.text.as_deref().map(format::sanitize_line);
    let parts: Vec<String> = percent.into_iter().chain(text).collect();
    parts.join(", ")
}

fn done(counts: &onward_core::Counts) -> String {
    let done = counts.completed.saturating_add(counts.skipped);
    format!("{done} of {} done", counts.total())
}

fn troubled_sessions(overview: &Overview, database: &Database, max_rows: usize) -> Option<Section> {
    let first = overview.sessions.first()?;
    let rows: Vec<Row> = overview
        .sessions
        .iter()
        .take(max_rows)
        .map(|line| session_row(line, database))
        .collect();
    let id = format::short_id(format::sanitize_line(&first.session.id));
    Some(Section {
        title: "SESSIONS IN TROUBLE",
        tone: Tone::Alert,
        more: overview.sessions.len().saturating_sub(rows.len()),
        rows,
        action: Some(format!("see: onward session show {id}")),
    })
}

fn session_row(line: &SessionLine, database: &Database) -> Row {
    let (status, since) = session::status(line, database.now);
    let dead = line.calls.iter().rev();
    let mut dead = dead.filter(|call| call.status() == CallStatus::Interrupted);
    let detail = match (status, dead.next()) {
        (SessionStatus::DeadCall, Some(call)) => {
            let input = format::sanitize_line(&call.input);
            format!("killed: {} {input}", format::sanitize_line(&call.tool))
        }
        (SessionStatus::StaleSubagent, _) => stale_subagents(line, database.now),
        _ => session_label(status).to_owned(),
    };
    let directory = line.session.directory.as_deref().unwrap_or_default();
    Row {
        id: format::short_id(format::sanitize_line(&line.session.id)),
        name: format::sanitize_line(&location::display(Path::new(directory))),
        detail,
        since: format::age(database.now.since(since)),
        who: line
            .session
            .actor
            .as_deref()
            .map_or(String::new(), format::person),
    }
}

/// The number of stale subagents. The column has no space for their names.
fn stale_subagents(line: &SessionLine, now: Timestamp) -> String {
    let subagents = session::subagents(line, now);
    let stale = subagents.iter();
    let stale = stale.filter(|one| one.status == SubagentStatus::Stale);
    format!("{}/{} subagents stale", stale.count(), subagents.len())
}

impl Widths {
    fn new(sections: &[Section], columns: Option<usize>) -> Self {
        let rows = || sections.iter().flat_map(|section| &section.rows);
        let widest = |cell: fn(&Row) -> &str| rows().map(|row| format::width(cell(row))).max();
        let id = widest(|row| &row.id).unwrap_or(0);
        let since = widest(|row| &row.since).unwrap_or(0).max("SINCE".len());
        let who = widest(|row| &row.who).unwrap_or(0).clamp(3, MAX_WHO);
        let detail = widest(|row| &row.detail).unwrap_or(0).min(MAX_DETAIL);
        let name = widest(|row| &row.name).unwrap_or(0);
        let name = match columns {
            // A margin of one column, and two columns between the others.
            Some(columns) => columns
                .saturating_sub(1 + id + 2 + 2 + detail + 2 + since + 2 + who)
                .clamp(MIN_NAME, name.max(MIN_NAME)),
            None => name.min(format::MAX_SUMMARY),
        };
        // The titles are in the columns of ids and names.
        let longest = sections.iter().map(|section| section.title.len()).max();
        let name = name.max(longest.unwrap_or(0).saturating_sub(id + 3));
        Self {
            id,
            name,
            detail,
            since,
        }
    }
}

impl Section {
    /// With the names of the columns, if it is the first section.
    fn render(&self, widths: &Widths, is_first: bool, output: Output) -> String {
        let Widths {
            id,
            name,
            detail,
            since,
        } = *widths;
        let indent = 1 + id + 2 + name + 2 + detail + 2;
        let padding = " ".repeat(indent.saturating_sub(self.title.len()));
        let title = output.paint(Some(Tone::Heading), self.title);
        let names = output.paint(Some(Tone::Faint), &format!("{:<since$}  WHO", "SINCE"));
        let mut text = if is_first {
            format!("{title}{padding}{names}\n")
        } else {
            format!("{title}\n")
        };
        for row in &self.rows {
            let id_cell = output.paint(Some(self.tone), &padded(&row.id, id));
            let line = format!(
                " {id_cell}  {}  {}  {}  {}",
                padded(&row.name, name),
                padded(&row.detail, detail),
                padded(&row.since, since),
                format::truncate(&row.who, MAX_WHO),
            );
            let _ = writeln!(text, "{}", line.trim_end());
        }
        let more = (self.more > 0).then(|| format!("… {} more", self.more));
        let parts: Vec<String> = more.into_iter().chain(self.action.clone()).collect();
        if !parts.is_empty() {
            let line = output.paint(Some(Tone::Faint), &parts.join(" · "));
            let _ = writeln!(text, " {:id$}  {line}", "");
        }
        text
    }
}

/// A text, truncated or padded to a number of columns.
fn padded(text: &str, columns: usize) -> String {
    let text = format::truncate(text, columns);
    let padding = columns.saturating_sub(format::width(&text));
    format!("{text}{}", " ".repeat(padding))
}
