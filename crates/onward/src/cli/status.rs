//! `onward status`: what is going on, on one screen.
//!
//! Every open plan is looked at, a page at a time: what has stopped is by its nature what changed
//! longest ago.

use std::fmt::Write;

use clap::Args;
use onward_core::{PlanStatus, StepStatus, Timestamp};
use onward_engine::list::{OpenReview, PlanQuery};
use onward_engine::{Listed, PlanCount, Sheet, StepLine};
use serde::Serialize;

use super::Context;
use super::database::Database;
use super::plan::tone;
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::table::{Cell, Table};
use crate::output::{Tone, words};
use crate::wire::review::Review;
use crate::wire::step::InProgress;

/// How many plans are looked at at once.
const PIECE: u32 = 500;
/// How many steps of one plan are shown.
const STEPS: u32 = 50;
/// How many reviews are shown.
const REVIEWS: u32 = 50;

/// Show what is going on: what is worked on, what has stopped, what waits for you
#[derive(Args)]
pub(crate) struct Status {}

/// What is going on.
pub(super) struct Going {
    counts: Vec<PlanCount>,
    /// Plans that are marked, or that have a silent step.
    stalled: Vec<Sheet>,
    working: Vec<(Sheet, Vec<StepLine>)>,
    reviews: Vec<(OpenReview, String)>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    plans: PlanCounts,
    stalled: Vec<Stopped>,
    reviews: Vec<Review>,
    in_progress: Vec<Working>,
}

/// How many plans are in each status.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PlanCounts {
    planning: u64,
    executing: u64,
    awaiting_review: u64,
    stalled: u64,
    completed: u64,
    failed: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Stopped {
    plan_id: String,
    name: String,
    status: &'static str,
    updated_at: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Working {
    plan_id: String,
    name: String,
    #[serde(flatten)]
    step: InProgress,
}

pub(super) async fn run(cx: &Context) -> Result {
    let database = Database::open(cx).await?;
    let going = look(&database).await?;
    if cx.output.json {
        cx.output.print_json(&Answer::of(&going, database.now))?;
        return Ok(Exit::Done);
    }
    cx.output.print(&screen(&going, cx, database.now))?;
    if going.counts.is_empty() {
        cx.output
            .say("no plans yet; an agent makes one with `create_research_plan`");
    }
    Ok(Exit::Done)
}

pub(super) async fn look(database: &Database) -> Result<Going> {
    let Database { engine, caller, .. } = database;
    let mut going = Going {
        counts: engine.count_plans(caller).await?,
        stalled: Vec::new(),
        working: Vec::new(),
        reviews: Vec::new(),
    };
    let mut behind = None;
    loop {
        let query = PlanQuery {
            limit: PIECE,
            behind,
            ..PlanQuery::default()
        };
        let page = engine.list_plans(caller, query).await?;
        for Listed { sheet, stalled } in page.plans {
            let head = &sheet.head;
            if stalled || head.status() == PlanStatus::Stalled {
                going.stalled.push(sheet.clone());
            }
            if head.counts.in_progress > 0 {
                let in_progress = Some(StepStatus::InProgress);
                let steps = engine
                    .list_steps(caller, head.id, in_progress, 0, STEPS)
                    .await?;
                going.working.push((sheet, steps.steps));
            }
        }
        behind = page.next;
        if behind.is_none() {
            break;
        }
    }
    for review in engine.open_reviews(caller, REVIEWS).await? {
        let name = engine.sheet(caller, review.plan).await?.brief.name;
        going.reviews.push((review, name));
    }
    Ok(going)
}

/// The same as one line of JSON.
pub(super) fn json(going: &Going, now: Timestamp) -> String {
    format!("{}\n", words::json(&Answer::of(going, now)))
}

/// What is going on but for how long ago that was: where this is the same, nothing has changed.
pub(super) fn essence(going: &Going, now: Timestamp) -> String {
    let mut answer = Answer::of(going, now);
    for working in &mut answer.in_progress {
        working.step.forget_time();
    }
    words::json(&answer)
}

/// When a step last showed that it is alive.
fn silent_since(line: &StepLine) -> Timestamp {
    let since = line.started_at.unwrap_or(line.updated_at);
    line.last_progress_at
        .map_or(since, |progress| progress.max(since))
}

pub(super) fn screen(going: &Going, cx: &Context, now: Timestamp) -> String {
    let mut text = String::new();
    let total: u64 = going.counts.iter().map(|counted| counted.plans).sum();
    let mut counts = words::count(total, "plan", "plans");
    for status in PlanStatus::ALL {
        let counted = going.counts.iter().find(|counted| counted.status == status);
        if let Some(PlanCount { plans, .. }) = counted.filter(|counted| counted.plans > 0) {
            let word = cx.output.paint(tone(status), status.as_str());
            let _ = write!(counts, ", {plans} {word}");
        }
    }
    let _ = writeln!(text, "{counts}");
    if !going.stalled.is_empty() {
        let mut table = Table::new(&["", "", "", ""]);
        for sheet in &going.stalled {
            let status = sheet.head.status();
            table.row([
                words::short(sheet.head.id).into(),
                Cell::toned(status.as_str(), tone(status)),
                words::ago(now, sheet.updated_at).into(),
                (&sheet.brief.name).into(),
            ]);
        }
        let _ = write!(text, "\nstalled\n{}", table.render(cx.output, "  "));
    }
    if !going.reviews.is_empty() {
        let mut table = Table::new(&["", "", "", ""]);
        for (review, name) in &going.reviews {
            table.row([
                words::short(review.plan).into(),
                format!("step {}", review.order).into(),
                words::ago(now, review.review.requested_at).into(),
                format!("{name}: {}", review.review.summary).into(),
            ]);
        }
        let _ = write!(
            text,
            "\nwaiting for a decision\n{}",
            table.render(cx.output, "  ")
        );
    }
    if !going.working.is_empty() {
        let _ = write!(
            text,
            "\nin progress\n{}",
            working(going, now).render(cx.output, "  ")
        );
    }
    text
}

fn working(going: &Going, now: Timestamp) -> Table {
    let mut table = Table::new(&["", "", "", ""]);
    for (sheet, lines) in &going.working {
        for line in lines {
            let silent = line.stalls_at.is_some_and(|at| now > at);
            let since = now.since(silent_since(line));
            let (life, tone) = match silent {
                true => (
                    format!("silent for {}", words::span(since)),
                    Some(Tone::Bad),
                ),
                false => (format!("sign of life {}", words::since(since)), None),
            };
            let title = line.title.as_deref();
            let title = title.map_or(String::new(), |title| format!(": {title}"));
            table.row([
                words::short(sheet.head.id).into(),
                format!("step {}", line.order).into(),
                Cell::toned(life, tone),
                format!("{}{title}", sheet.brief.name).into(),
            ]);
        }
    }
    table
}

impl Answer {
    fn of(going: &Going, now: Timestamp) -> Self {
        let number = |status| {
            let found = going.counts.iter().find(|counted| counted.status == status);
            found.map_or(0, |counted| counted.plans)
        };
        let plans = PlanCounts {
            planning: number(PlanStatus::Planning),
            executing: number(PlanStatus::Executing),
            awaiting_review: number(PlanStatus::AwaitingReview),
            stalled: number(PlanStatus::Stalled),
            completed: number(PlanStatus::Completed),
            failed: number(PlanStatus::Failed),
        };
        let stopped = |sheet: &Sheet| Stopped {
            plan_id: sheet.head.id.to_string(),
            name: sheet.brief.name.clone(),
            status: sheet.head.status().as_str(),
            updated_at: sheet.updated_at.to_string(),
        };
        let working = going.working.iter().flat_map(|(sheet, lines)| {
            lines.iter().map(move |line| Working {
                plan_id: sheet.head.id.to_string(),
                name: sheet.brief.name.clone(),
                step: InProgress::of_line(line, silent_since(line), now),
            })
        });
        Self {
            plans,
            stalled: going.stalled.iter().map(stopped).collect(),
            reviews: going
                .reviews
                .iter()
                .map(|(open, name)| Review::listed(open, name))
                .collect(),
            in_progress: working.collect(),
        }
    }
}
