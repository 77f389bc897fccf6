//! `onward status`: stuck plans, pending reviews and steps in progress.
//!
//! Reads all open plans, page by page, because stuck plans are at the end of the list, which is
//! sorted by the last update.

use std::fmt::Write;

use clap::Args;
use onward_core::{PlanStatus, StepStatus, Timestamp};
use onward_engine::list::{OpenReview, PlanQuery};
use onward_engine::{Listed, PlanCount, Sheet, StepLine};
use serde::Serialize;

use super::database::Database;
use super::plan::tone;
use super::{Context, NO_PLANS};
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::status::{STUCK, plan_label};
use crate::output::table::{Cell, Table};
use crate::output::{Tone, format};
use crate::wire::review::Review;
use crate::wire::step::InProgress;

/// Plans per query.
const PAGE_SIZE: u32 = 500;
/// Steps per plan.
const MAX_STEPS: u32 = 50;
const MAX_REVIEWS: u32 = 50;

/// Show stuck plans, pending reviews and steps in progress
#[derive(Args)]
pub(crate) struct Status {}

/// The current state of all open plans.
pub(super) struct Overview {
    counts: Vec<PlanCount>,
    /// Plans that are marked as stalled, or that have a step past its limit.
    stalled: Vec<Sheet>,
    in_progress: Vec<(Sheet, Vec<StepLine>)>,
    reviews: Vec<(OpenReview, String)>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OverviewJson {
    plans: PlanCounts,
    stalled: Vec<StalledPlan>,
    reviews: Vec<Review>,
    in_progress: Vec<StepInProgress>,
}

/// The number of plans in each status.
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
struct StalledPlan {
    plan_id: String,
    name: String,
    status: &'static str,
    updated_at: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StepInProgress {
    plan_id: String,
    name: String,
    #[serde(flatten)]
    step: InProgress,
}

pub(super) async fn run(cx: &Context) -> Result {
    let database = Database::open(cx).await?;
    let overview = read(&database).await?;
    if cx.output.json {
        cx.output
            .print_json(&OverviewJson::new(&overview, database.now))?;
        return Ok(Exit::Done);
    }
    cx.output.print(&render(&overview, cx, database.now))?;
    if overview.counts.is_empty() {
        cx.output.note(NO_PLANS);
    }
    Ok(Exit::Done)
}

pub(super) async fn read(database: &Database) -> Result<Overview> {
    let Database { engine, caller, .. } = database;
    let mut overview = Overview {
        counts: engine.count_plans(caller).await?,
        stalled: Vec::new(),
        in_progress: Vec::new(),
        reviews: Vec::new(),
    };
    let mut cursor = None;
    loop {
        let query = PlanQuery {
            limit: PAGE_SIZE,
            after: cursor,
            ..PlanQuery::default()
        };
        let page = engine.list_plans(caller, query).await?;
        for Listed { sheet, stalled } in page.plans {
            let head = &sheet.head;
            if stalled || head.status() == PlanStatus::Stalled {
                overview.stalled.push(sheet.clone());
            }
            if head.counts.in_progress > 0 {
                let in_progress = Some(StepStatus::InProgress);
                let steps = engine
                    .list_steps(caller, head.id, in_progress, 0, MAX_STEPS)
                    .await?;
                overview.in_progress.push((sheet, steps.steps));
            }
        }
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    for review in engine.open_reviews(caller, MAX_REVIEWS).await? {
        let name = engine.sheet(caller, review.plan).await?.brief.name;
        overview.reviews.push((review, name));
    }
    Ok(overview)
}

/// One line of JSON.
pub(super) fn json(overview: &Overview, now: Timestamp) -> String {
    format!("{}\n", format::json(&OverviewJson::new(overview, now)))
}

/// The overview without elapsed times, to detect changes.
pub(super) fn fingerprint(overview: &Overview, now: Timestamp) -> String {
    let mut json = OverviewJson::new(overview, now);
    for step in &mut json.in_progress {
        step.step.clear_elapsed();
    }
    format::json(&json)
}

/// The last update of a step in progress.
fn last_activity(line: &StepLine) -> Timestamp {
    let since = line.started_at.unwrap_or(line.updated_at);
    line.last_progress_at
        .map_or(since, |progress| progress.max(since))
}

pub(super) fn render(overview: &Overview, cx: &Context, now: Timestamp) -> String {
    let mut text = String::new();
    let total: u64 = overview.counts.iter().map(|counted| counted.plans).sum();
    let mut counts = format::count(total, "plan", "plans");
    for status in PlanStatus::ALL {
        let counted = overview
            .counts
            .iter()
            .find(|counted| counted.status == status);
        if let Some(PlanCount { plans, .. }) = counted.filter(|counted| counted.plans > 0) {
            let label = cx.output.paint(tone(status), plan_label(status));
            let _ = write!(counts, ", {plans} {label}");
        }
    }
    let _ = writeln!(text, "{counts}");
    if !overview.stalled.is_empty() {
        let mut table = Table::new(&["", "", ""]);
        for sheet in &overview.stalled {
            let updated = format!("updated {}", format::ago(now, sheet.updated_at));
            table.row([
                format::short_id(sheet.head.id).into(),
                Cell::toned(updated, Some(Tone::Bad)),
                (&sheet.brief.name).into(),
            ]);
        }
        let _ = write!(text, "\n{STUCK}\n{}", table.render(cx.output, "  "));
    }
    if !overview.reviews.is_empty() {
        let mut table = Table::new(&["", "", "", ""]);
        for (review, name) in &overview.reviews {
            table.row([
                format::short_id(review.plan).into(),
                format!("step {}", review.order).into(),
                format!("requested {}", format::ago(now, review.review.requested_at)).into(),
                format!("{name}: {}", review.review.summary).into(),
            ]);
        }
        let _ = write!(text, "\npending reviews\n{}", table.render(cx.output, "  "));
    }
    if !overview.in_progress.is_empty() {
        let _ = write!(
            text,
            "\nin progress\n{}",
            in_progress(overview, now).render(cx.output, "  ")
        );
    }
    text
}

fn in_progress(overview: &Overview, now: Timestamp) -> Table {
    let mut table = Table::new(&["", "", "", ""]);
    for (sheet, lines) in &overview.in_progress {
        for line in lines {
            let stuck = line.stalls_at.is_some_and(|at| now > at);
            let since = now.since(last_activity(line));
            let (activity, tone) = if stuck {
                let text = format!("no update for {}", format::duration(since));
                (text, Some(Tone::Bad))
            } else {
                (format!("updated {}", format::elapsed(since)), None)
            };
            let title = line.title.as_deref();
            let title = title.map_or(String::new(), |title| format!(": {title}"));
            table.row([
                format::short_id(sheet.head.id).into(),
                format!("step {}", line.order).into(),
                Cell::toned(activity, tone),
                format!("{}{title}", sheet.brief.name).into(),
            ]);
        }
    }
    table
}

impl OverviewJson {
    fn new(overview: &Overview, now: Timestamp) -> Self {
        let number = |status| {
            let found = overview
                .counts
                .iter()
                .find(|counted| counted.status == status);
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
        let stalled = |sheet: &Sheet| StalledPlan {
            plan_id: sheet.head.id.to_string(),
            name: sheet.brief.name.clone(),
            status: sheet.head.status().as_str(),
            updated_at: sheet.updated_at.to_string(),
        };
        let in_progress = overview.in_progress.iter().flat_map(|(sheet, lines)| {
            lines.iter().map(move |line| StepInProgress {
                plan_id: sheet.head.id.to_string(),
                name: sheet.brief.name.clone(),
                step: InProgress::from_line(line, last_activity(line), now),
            })
        });
        Self {
            plans,
            stalled: overview.stalled.iter().map(stalled).collect(),
            reviews: overview
                .reviews
                .iter()
                .map(|(open, name)| Review::list_entry(open, name))
                .collect(),
            in_progress: in_progress.collect(),
        }
    }
}
