//! `onward plan log`: the audit trail of a plan, or of all plans, in sentences, oldest event first.
//!
//! Steps are identified by their current position, removed steps by their id. On a terminal, the
//! date is a heading and repeated authors are omitted; in a pipe, every line is complete.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt::Write;
use std::ops::Range;
use std::time::Duration;

use clap::{ArgGroup, Args};
use onward_core::{PlanId, StepId, Timestamp};
use onward_engine::audit::{ALL_TIMES, AuditEntry};
use onward_engine::{Caller, Engine};

use super::list::time;
use crate::cli::Context;
use crate::cli::database::Database;
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::trail::{Trail, author};
use crate::output::{Tone, format};
use crate::wire::event::{Audit, Events};

/// Rows per query.
const PAGE_SIZE: u32 = 1_000;
/// The maximum width of the column with the author.
const MAX_AUTHOR: usize = 22;

/// Show the audit trail of a plan, oldest event first
#[derive(Args)]
#[command(group(ArgGroup::new("start").args(["today", "since"])))]
pub(crate) struct Log {
    /// Plan: id, unique prefix of the id, or words of its name
    #[arg(value_name = "PLAN", required_unless_present = "all")]
    id: Option<String>,
    /// The events of all plans; requires `--since` or `--today`
    #[arg(long, conflicts_with = "id", requires = "start")]
    all: bool,
    /// Only events of today
    #[arg(long)]
    today: bool,
    /// Only events since this time, such as `2026-07-28T09:00:00Z`
    #[arg(long, value_name = "TIME", value_parser = time)]
    since: Option<Timestamp>,
    /// Only events before this time
    #[arg(long, value_name = "TIME", value_parser = time)]
    until: Option<Timestamp>,
    /// Maximum number of events of all plans
    #[arg(long, value_name = "N", default_value_t = 1_000, requires = "all", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
}

/// A line of the log.
struct Line {
    date: String,
    at: String,
    author: String,
    /// In the log of all plans: the plan.
    plan: Option<String>,
    sentence: String,
}

/// Longest day: with the change to winter time.
const DAY: Duration = Duration::from_secs(25 * 60 * 60);

impl Log {
    /// The times of the selected events. Of `--today` a little more.
    fn times(&self, now: Timestamp) -> Range<Timestamp> {
        let day = i64::try_from(DAY.as_millis()).unwrap_or(i64::MAX);
        let today = || Timestamp::from_millis(now.as_millis().saturating_sub(day));
        let since = self.since.or_else(|| self.today.then(today));
        since.unwrap_or(ALL_TIMES.start)..self.until.unwrap_or(ALL_TIMES.end)
    }

    fn is_shown(&self, at: Timestamp, now: Timestamp, cx: &Context) -> bool {
        self.times(now).contains(&at) && (!self.today || cx.output.zone().is_same_day(at, now))
    }
}

pub(super) async fn run(args: &Log, cx: &Context) -> Result {
    let database = Database::open(cx).await?;
    let (lines, has_more) = match &args.id {
        Some(id) => (one_plan(args, id, &database, cx).await?, false),
        None => all_plans(args, &database, cx).await?,
    };
    let Some(lines) = lines else {
        return Ok(Exit::Done);
    };
    cx.output.print(&render(&lines, cx))?;
    if lines.is_empty() {
        cx.output.note("no events in this time span");
    } else if has_more {
        let limit = args.limit.saturating_mul(5);
        cx.output.note(&format!(
            "showing the first {} events (use `--limit {limit}` for more)",
            args.limit
        ));
    }
    Ok(Exit::Done)
}

/// The lines about one plan; `None` if JSON was printed.
async fn one_plan(
    args: &Log,
    id: &str,
    database: &Database,
    cx: &Context,
) -> Result<Option<Vec<Line>>> {
    let Database {
        engine,
        caller,
        now,
    } = database;
    let plan = database.find_plan(id).await?;
    let mut events = read_events(engine, caller, plan).await?;
    if cx.output.json {
        events.retain(|event| args.is_shown(event.entry.at, *now, cx));
        cx.output.print_json(&Audit::new(plan, events))?;
        return Ok(None);
    }
    let mut trail = Trail::new(read_steps(engine, caller, plan).await?);
    // Also for the events that are not shown: sentences refer to earlier events.
    let lines = events.iter().filter_map(|event| {
        let line = line(event, None, &mut trail, cx)?;
        args.is_shown(event.entry.at, *now, cx).then_some(line)
    });
    Ok(Some(lines.collect()))
}

/// The lines about all plans, and whether there are more events; `None` if JSON was printed.
async fn all_plans(
    args: &Log,
    database: &Database,
    cx: &Context,
) -> Result<(Option<Vec<Line>>, bool)> {
    let Database {
        engine,
        caller,
        now,
    } = database;
    let limit = usize::try_from(args.limit).unwrap_or(usize::MAX);
    let mut events: Vec<(PlanId, AuditEntry)> = Vec::new();
    let mut last = None;
    // One more, which is not shown.
    while events.len() <= limit {
        let page = engine.audit_between(caller, args.times(*now), last, PAGE_SIZE, None);
        let page = page.await?;
        let Some((plan, event)) = page.last() else {
            break;
        };
        last = Some((*plan, event.entry.seq));
        let shown = page.into_iter();
        events.extend(shown.filter(|(_, event)| args.is_shown(event.entry.at, *now, cx)));
    }
    let has_more = events.len() > limit;
    events.truncate(limit);
    if cx.output.json {
        let events = Events::new(events).truncated(has_more);
        cx.output.print_json(&events)?;
        return Ok((None, has_more));
    }
    let mut trails: HashMap<PlanId, (String, Trail)> = HashMap::new();
    let mut lines = Vec::new();
    for (plan, event) in &events {
        let (name, trail) = match trails.entry(*plan) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let steps = read_steps(engine, caller, *plan).await?;
                let id = database.short_plan(*plan).await?;
                new.insert((id, Trail::new(steps)))
            }
        };
        lines.extend(line(event, Some(name), trail, cx));
    }
    Ok((Some(lines), has_more))
}

/// The line of an event, if it has one.
fn line(event: &AuditEntry, plan: Option<&str>, trail: &mut Trail, cx: &Context) -> Option<Line> {
    let entry = &event.entry;
    let sentence = trail.sentence(&entry.event, entry.at)?;
    let (zone, session) = (cx.output.zone(), entry.author.session.as_ref());
    Some(Line {
        date: zone.date(entry.at),
        at: if cx.output.width().is_some() {
            zone.clock(entry.at)
        } else {
            zone.date_time(entry.at)
        },
        author: author(&entry.author.name, session.map(|session| session.as_str())),
        plan: plan.map(str::to_owned),
        sentence: format::sanitize_line(&sentence),
    })
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
        let plan = match &line.plan {
            Some(plan) => format!("{}  ", cx.output.paint(Some(Tone::Faint), plan)),
            None => String::new(),
        };
        let sentence = match columns {
            Some(columns) => {
                let plan_width = line
                    .plan
                    .as_deref()
                    .map_or(0, |plan| format::width(plan) + 2);
                let used = format::width(&line.at) + width + plan_width + 4;
                format::truncate(&line.sentence, columns.saturating_sub(used).max(20))
            }
            None => line.sentence.clone(),
        };
        let at = cx.output.paint(Some(Tone::Faint), &line.at);
        let _ = writeln!(text, "{at}  {author}{padding}  {plan}{sentence}");
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
