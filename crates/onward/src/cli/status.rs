//! `onward status`, and `onward` without a command: plans that need a person, and work in progress.
//!
//! A plan appears once, under the word that `attention` decides. Reads all open plans, page by page,
//! because stuck plans are at the end of the list, which is sorted by the last action.
//! `status/page.rs` renders it.

mod page;

use std::collections::BTreeMap;
use std::time::Duration;

use clap::Args;
use onward_core::attention::Word;
use onward_core::{PlanId, PlanStatus, StepStatus, Timestamp};
use onward_engine::list::{OpenReview, PlanQuery};
use onward_engine::{AttentionCount, Listed, PlanCount, SessionLine, StepLine, session};
use serde::Serialize;

use super::database::{Database, exists};
use super::{Context, NO_PLANS, help};
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::format;
use crate::wire::plan::OwnerView;
use crate::wire::review::Review;
use crate::wire::step::InProgress;

/// Plans per query.
const PAGE_SIZE: u32 = 500;
/// Steps per plan.
const MAX_STEPS: u32 = 50;
const MAX_REVIEWS: u32 = 50;
/// The most recent sessions, of which those in trouble are printed.
const MAX_SESSIONS: u32 = 100;
const WEEK: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// Rows per section of `onward` without a command.
const BRIEF_ROWS: usize = 4;
/// Rows per section of `onward status`.
const MAX_ROWS: usize = 50;

/// Show what needs attention and what agents are working on
#[derive(Args)]
pub(crate) struct Status {}

/// The current state of all open plans.
pub(super) struct Overview {
    counts: Vec<PlanCount>,
    words: Vec<AttentionCount>,
    /// Open plans, sorted by their word, the longest in that state first.
    plans: Vec<Listed>,
    /// The steps in progress of each plan.
    in_progress: BTreeMap<PlanId, Vec<StepLine>>,
    reviews: Vec<(OpenReview, String)>,
    /// Sessions in trouble.
    sessions: Vec<SessionLine>,
    done_this_week: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OverviewJson {
    plans: PlanCounts,
    /// The number of plans per word.
    attention: BTreeMap<&'static str, u64>,
    needs_you: Vec<PlanItem>,
    /// Agents' own lists without an agent, the latest first.
    unfinished_lists: Vec<PlanItem>,
    stalled: Vec<StalledPlan>,
    reviews: Vec<Review>,
    in_progress: Vec<StepInProgress>,
    sessions_in_trouble: Vec<SessionItem>,
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

/// A plan that needs a person.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PlanItem {
    plan_id: String,
    name: String,
    attention: &'static str,
    since: String,
    owner: OwnerView,
    stuck_steps: Vec<u32>,
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

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SessionItem {
    session_id: String,
    agent: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    directory: Option<String>,
    status: &'static str,
    since: String,
}

/// `onward` without a command: the status, or a welcome if there is no database yet.
pub(super) async fn run_or_welcome(cx: &Context) -> Result {
    if !exists(cx) && !cx.output.json {
        cx.output.print(&welcome())?;
        return Ok(Exit::Done);
    }
    let database = Database::open(cx).await?;
    let overview = read(&database).await?;
    let has_plans = overview.counts.iter().any(|counted| counted.plans > 0);
    if cx.output.json {
        cx.output.print(&json(&overview, database.now))?;
    } else if has_plans {
        cx.output
            .print(&page::render(&overview, cx, &database, BRIEF_ROWS).await?)?;
    } else {
        cx.output.print(&welcome())?;
    }
    Ok(Exit::Done)
}

fn welcome() -> String {
    format!(
        "{}\n\n\
         Connect an agent:    onward install claude-code\n\
         Try it first:        onward demo\n\
         Open the dashboard:  onward serve --open\n\
         All commands:        onward --help\n",
        help::title()
    )
}

pub(super) async fn run(cx: &Context) -> Result {
    let database = Database::open(cx).await?;
    let overview = read(&database).await?;
    if cx.output.json {
        cx.output.print(&json(&overview, database.now))?;
        return Ok(Exit::Done);
    }
    cx.output.print(&render(&overview, cx, &database).await?)?;
    if overview.counts.is_empty() {
        cx.output.note(NO_PLANS);
    }
    Ok(Exit::Done)
}

pub(super) async fn render(
    overview: &Overview,
    cx: &Context,
    database: &Database,
) -> Result<String> {
    page::render(overview, cx, database, MAX_ROWS).await
}

pub(super) async fn read(database: &Database) -> Result<Overview> {
    let Database {
        engine,
        caller,
        now,
    } = database;
    let mut overview = Overview {
        counts: engine.count_plans(caller).await?,
        words: engine.count_attention(caller).await?,
        plans: read_plans(database, None).await?,
        in_progress: BTreeMap::new(),
        reviews: Vec::new(),
        sessions: engine.list_sessions(caller, MAX_SESSIONS).await?,
        done_this_week: 0,
    };
    for listed in &overview.plans {
        let head = &listed.sheet.head;
        if head.counts.in_progress > 0 {
            let in_progress = Some(StepStatus::InProgress);
            let steps = engine
                .list_steps(caller, head.id, in_progress, 0, MAX_STEPS)
                .await?;
            overview.in_progress.insert(head.id, steps.steps);
        }
    }
    let is_trouble = |line: &SessionLine| session::status(line, *now).0.is_trouble();
    overview.sessions.retain(is_trouble);
    for review in engine.open_reviews(caller, MAX_REVIEWS).await? {
        let name = engine.sheet(caller, review.plan).await?.brief.name;
        overview.reviews.push((review, name));
    }
    let recent = read_plans(database, Some(PlanStatus::Completed)).await?;
    overview.done_this_week = u64::try_from(recent.len()).unwrap_or(u64::MAX);
    Ok(overview)
}

/// All open plans, sorted by urgency; or the plans that reached a final status in the last week.
async fn read_plans(database: &Database, ended: Option<PlanStatus>) -> Result<Vec<Listed>> {
    let Database {
        engine,
        caller,
        now,
    } = database;
    let mut plans: Vec<Listed> = Vec::new();
    let mut cursor = None;
    loop {
        let query = PlanQuery {
            limit: PAGE_SIZE,
            after: cursor,
            status: ended,
            ..PlanQuery::default()
        };
        let page = engine.list_plans(caller, query).await?;
        plans.extend(page.plans);
        cursor = page.next;
        // The list is sorted by the last action, so the rest is older.
        let is_recent = |listed: &Listed| now.since(listed.sheet.acted_at) < WEEK;
        if cursor.is_none() || (ended.is_some() && !plans.last().is_some_and(is_recent)) {
            break;
        }
    }
    if ended.is_some() {
        plans.retain(|listed| now.since(listed.attention.since) < WEEK);
    }
    plans.sort_by_key(|listed| (listed.attention.word, listed.attention.since));
    Ok(plans)
}

impl Overview {
    fn count(&self, word: Word) -> u64 {
        let found = self.words.iter().find(|counted| counted.word == word);
        found.map_or(0, |counted| counted.plans)
    }

    /// The steps of a plan that are past their limit.
    fn stuck_steps(&self, listed: &Listed, now: Timestamp) -> Vec<&StepLine> {
        let head = &listed.sheet.head;
        let steps = self.in_progress.get(&head.id);
        let steps = steps.filter(|_| head.origin.reports_inactivity());
        let steps = steps.map_or(&[][..], Vec::as_slice);
        steps.iter().filter(|line| line.is_stalled(now)).collect()
    }
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
        let item = |listed: &Listed| PlanItem {
            plan_id: listed.sheet.head.id.to_string(),
            name: listed.sheet.brief.name.clone(),
            attention: listed.attention.word.as_str(),
            since: listed.attention.since.to_string(),
            owner: OwnerView::new(&listed.sheet.owner),
            stuck_steps: overview
                .stuck_steps(listed, now)
                .iter()
                .map(|line| line.order)
                .collect(),
        };
        let stalled = |listed: &Listed| StalledPlan {
            plan_id: listed.sheet.head.id.to_string(),
            name: listed.sheet.brief.name.clone(),
            status: listed.sheet.head.status().as_str(),
            updated_at: listed.sheet.updated_at.to_string(),
        };
        let is_stalled =
            |listed: &&Listed| listed.stalled || listed.sheet.head.status() == PlanStatus::Stalled;
        let in_progress = overview.plans.iter().flat_map(|listed| {
            let steps = overview.in_progress.get(&listed.sheet.head.id);
            steps.into_iter().flatten().map(|line| StepInProgress {
                plan_id: listed.sheet.head.id.to_string(),
                name: listed.sheet.brief.name.clone(),
                step: InProgress::from_line(line, now),
            })
        });
        let needs_person = |listed: &&Listed| listed.attention.word.needs_person();
        Self {
            plans,
            attention: Word::ALL
                .iter()
                .map(|word| (word.as_str(), overview.count(*word)))
                .collect(),
            needs_you: overview
                .plans
                .iter()
                .filter(needs_person)
                .map(item)
                .collect(),
            unfinished_lists: overview
                .plans
                .iter()
                .rev()
                .filter(|listed| listed.attention.word == Word::UnfinishedList)
                .map(item)
                .collect(),
            stalled: overview
                .plans
                .iter()
                .filter(is_stalled)
                .map(stalled)
                .collect(),
            reviews: overview
                .reviews
                .iter()
                .map(|(open, name)| Review::list_entry(open, name))
                .collect(),
            in_progress: in_progress.collect(),
            sessions_in_trouble: overview
                .sessions
                .iter()
                .map(|line| SessionItem::new(line, now))
                .collect(),
        }
    }
}

impl SessionItem {
    fn new(line: &SessionLine, now: Timestamp) -> Self {
        let (status, since) = session::status(line, now);
        Self {
            session_id: line.session.id.clone(),
            agent: line.session.agent.clone(),
            directory: line.session.directory.clone(),
            status: status.as_str(),
            since: since.to_string(),
        }
    }
}
