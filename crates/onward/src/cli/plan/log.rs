//! `onward plan log`: the audit trail of a plan in sentences, oldest event first.
//!
//! Steps are identified by their current position, removed steps by their id. On a terminal, the
//! date is a heading and repeated authors are omitted; in a pipe, every line is complete.

use std::fmt::Write;

use clap::Args;
use onward_core::{PlanId, StepId};
use onward_engine::audit::AuditEntry;
use onward_engine::{Caller, Engine};

use crate::cli::Context;
use crate::cli::database::Database;
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::trail::{Trail, author};
use crate::output::{Tone, format};
use crate::wire::event::Audit;

/// Rows per query.
const PAGE_SIZE: u32 = 1_000;
/// The maximum width of the column with the author.
const MAX_AUTHOR: usize = 22;

/// Show the audit trail of a plan, oldest event first
#[derive(Args)]
pub(crate) struct Log {
    /// Plan: id, unique prefix of the id, or words of its name
    #[arg(value_name = "PLAN")]
    id: String,
    /// Only events of today
    #[arg(long)]
    today: bool,
}

/// A line of the log.
struct Line {
    date: String,
    at: String,
    author: String,
    sentence: String,
}

pub(super) async fn run(args: &Log, cx: &Context) -> Result {
    let database = Database::open(cx).await?;
    let Database {
        engine,
        caller,
        now,
    } = &database;
    let plan = database.find_plan(&args.id).await?;
    let mut events = read_events(engine, caller, plan).await?;
    let zone = cx.output.zone();
    if cx.output.json {
        events.retain(|event| !args.today || zone.is_same_day(event.entry.at, *now));
        cx.output.print_json(&Audit::new(plan, events))?;
        return Ok(Exit::Done);
    }
    let mut trail = Trail::new(read_steps(engine, caller, plan).await?);
    let on_terminal = cx.output.width().is_some();
    let mut lines = Vec::new();
    for AuditEntry { entry, .. } in &events {
        let sentence = trail.sentence(&entry.event, entry.at);
        let is_shown = !args.today || zone.is_same_day(entry.at, *now);
        let Some(sentence) = sentence.filter(|_| is_shown) else {
            continue;
        };
        let session = entry.author.session.as_ref();
        lines.push(Line {
            date: zone.date(entry.at),
            at: if on_terminal {
                zone.clock(entry.at)
            } else {
                zone.date_time(entry.at)
            },
            author: author(&entry.author.name, session.map(|session| session.as_str())),
            sentence: format::sanitize_line(&sentence),
        });
    }
    cx.output.print(&render(&lines, cx))?;
    if lines.is_empty() {
        cx.output
            .note("no events today; omit `--today` to list all events");
    }
    Ok(Exit::Done)
}

fn render(lines: &[Line], cx: &Context) -> String {
    let width = lines.iter().map(|line| format::width(&line.author)).max();
    let width = width.unwrap_or(0).min(MAX_AUTHOR);
    let columns = cx.output.width();
    let (mut date, mut last_author) = (None, None);
    let mut text = String::new();
    for line in lines {
        let is_new_day = date.replace(&line.date) != Some(&line.date);
        if columns.is_some() && is_new_day {
            let heading = cx.output.paint(Some(Tone::Heading), &line.date);
            let _ = writeln!(text, "{heading}");
        }
        let is_repeated = last_author.replace(&line.author) == Some(&line.author);
        let author = if columns.is_some() && is_repeated && !is_new_day {
            ""
        } else {
            &line.author
        };
        let author = format::truncate(author, width);
        let padding = " ".repeat(width.saturating_sub(format::width(&author)));
        let sentence = match columns {
            Some(columns) => {
                let used = format::width(&line.at) + width + 4;
                format::truncate(&line.sentence, columns.saturating_sub(used).max(20))
            }
            None => line.sentence.clone(),
        };
        let at = cx.output.paint(Some(Tone::Faint), &line.at);
        let _ = writeln!(text, "{at}  {author}{padding}  {sentence}");
    }
    text
}

async fn read_events(engine: &Engine, caller: &Caller, plan: PlanId) -> Result<Vec<AuditEntry>> {
    let mut events: Vec<AuditEntry> = Vec::new();
    loop {
        let after = events.last().map_or(0, |last| last.entry.seq);
        let page = engine.audit_trail(caller, plan, after, PAGE_SIZE).await?;
        if page.is_empty() {
            return Ok(events);
        }
        events.extend(page);
    }
}

/// The current position and the title of each step.
async fn read_steps(
    engine: &Engine,
    caller: &Caller,
    plan: PlanId,
) -> Result<Vec<(StepId, u32, Option<String>)>> {
    let mut steps = Vec::new();
    let mut after = Some(0);
    while let Some(position) = after {
        let page = engine
            .list_steps(caller, plan, None, position, PAGE_SIZE)
            .await?;
        let page_steps = page.steps.into_iter();
        steps.extend(page_steps.map(|line| (line.id, line.order, line.title)));
        after = page.next;
    }
    Ok(steps)
}
