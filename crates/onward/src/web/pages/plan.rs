//! `/plans/{id}`: status, stuck steps, actions, and one tab per kind of data. Long lists are
//! paginated.

mod tabs;

use std::time::Duration;

use askama::Template;
use axum::extract::Path;
use onward_core::plan::PlanState;
use onward_core::role::Permission;
use onward_core::{PlanHead, PlanId, PlanStatus, StepStatus, StepType, Timestamp};
use onward_engine::StepLine;
use onward_engine::status::{StalledStep, Status};

use super::format::{Badge, RelativeTime, multiline, one_line};
use super::layout::{Layout, Section, render};
use super::{PageError, PageResult, Visit};
use crate::output::format;
use tabs::{Tab, Tabs};

const MAX_QUESTION_CHARS: usize = 2_000;
/// Stuck steps that are displayed without expanding the list.
const VISIBLE_STUCK_STEPS: usize = 3;
/// Maximum number of steps in progress whose names are loaded.
const MAX_IN_PROGRESS: u32 = 100;

#[derive(Template)]
#[template(path = "plan.html")]
struct Plan {
    layout: Layout,
    id: String,
    name: String,
    question: String,
    badge: Badge,
    derived: Option<Badge>,
    reason: Option<String>,
    progress: u32,
    done: u32,
    total: u32,
    failed: u32,
    created: RelativeTime,
    updated: RelativeTime,
    ended: Option<RelativeTime>,
    session: Option<String>,
    review: Option<String>,
    stall: Option<Stall>,
    actions: PlanActions,
    step_types: [StepType; 7],
    links: Vec<TabLink>,
    tabs: Tabs,
}

struct TabLink {
    name: &'static str,
    slug: &'static str,
    selected: bool,
}

/// The stall of a plan.
struct Stall {
    steps: Vec<StuckStep>,
    /// Whether the list of steps is truncated.
    more: bool,
    /// When the plan was marked as stalled.
    marked: Option<RelativeTime>,
}

/// A step in progress past its threshold.
struct StuckStep {
    id: String,
    order: u32,
    name: String,
    session: Option<String>,
    elapsed: String,
    threshold: String,
    since: String,
}

/// Why actions are unavailable.
pub(super) struct PlanActions {
    /// The caller lacks the permission: the button is not rendered.
    pub(super) modify_denied: Option<String>,
    pub(super) cancel_denied: Option<String>,
    /// The plan's state does not allow it: the button is disabled, with this reason.
    pub(super) resume_blocked: Option<String>,
    pub(super) cancel_blocked: Option<String>,
    pub(super) modify_blocked: Option<String>,
}

impl PlanActions {
    pub(super) fn new(visit: &Visit, head: &PlanHead) -> Self {
        let status = head.status();
        let finished = || {
            let is_finished = status.is_terminal();
            is_finished.then(|| format!("The plan is already {status}."))
        };
        let not_stalled =
            || (status != PlanStatus::Stalled).then(|| "The plan is not stuck.".to_owned());
        let in_review = || {
            let in_review = status == PlanStatus::AwaitingReview;
            in_review.then(|| "Decide the open review first.".to_owned())
        };
        Self {
            modify_denied: visit.denial(Permission::Intervene),
            cancel_denied: visit.denial(Permission::AbandonPlan),
            resume_blocked: not_stalled(),
            cancel_blocked: finished(),
            modify_blocked: finished().or_else(in_review),
        }
    }
}

/// The plan with the id, or unique id prefix, in the URL.
pub(super) async fn find_plan(visit: &Visit, id: &str) -> Result<PlanId, PageError> {
    Ok(visit.site.engine.find_plan(&visit.caller, id).await?)
}

pub(super) async fn show(visit: Visit, Path(id): Path<String>) -> PageResult {
    let engine = &visit.site.engine;
    let id = find_plan(&visit, &id).await?;
    let status = engine.status(&visit.caller, id, None).await?;
    let now = engine.now();
    let (sheet, head) = (&status.sheet, &status.sheet.head);
    let working = if status.stalled.is_empty() {
        Vec::new()
    } else {
        let in_progress = Some(StepStatus::InProgress);
        let steps = engine.list_steps(&visit.caller, id, in_progress, 0, MAX_IN_PROGRESS);
        steps.await?.steps
    };
    let tab = Tab::from_fields(&visit.fields);
    let stored = head.status();
    let mut reason = None;
    if let PlanState::Failed {
        reason: failure, ..
    } = &head.state
    {
        reason = Some(multiline(&failure.to_string(), MAX_QUESTION_CHARS));
    }
    let mut review = None;
    if let PlanState::AwaitingReview { review: id, .. } = &head.state {
        review = Some(id.to_string());
    }
    render(&Plan {
        layout: visit.layout(&sheet.brief.name, Section::Plans).await?,
        id: id.to_string(),
        name: format::sanitize_line(&sheet.brief.name),
        question: multiline(&sheet.brief.research_question, MAX_QUESTION_CHARS),
        badge: Badge::plan(stored),
        derived: (status.derived != stored && !stored.is_terminal())
            .then(|| Badge::plan(status.derived)),
        reason,
        progress: head.counts.progress(),
        done: head.counts.completed.saturating_add(head.counts.skipped),
        total: head.counts.total(),
        failed: head.counts.failed,
        created: RelativeTime::new(sheet.created_at, now),
        updated: RelativeTime::new(sheet.updated_at, now),
        ended: head.ended_at().map(|at| RelativeTime::new(at, now)),
        session: head
            .last_session
            .as_ref()
            .map(|id| one_line(id.as_str(), 60)),
        review,
        stall: stall(&status, &working, now),
        actions: PlanActions::new(&visit, head),
        step_types: StepType::ALL,
        links: tab.links(),
        tabs: tabs::load(&visit, tab, &status).await?,
    })
}

fn stall(status: &Status, working: &[StepLine], now: Timestamp) -> Option<Stall> {
    let mut marked = None;
    if let PlanState::Stalled { marked_at } = &status.sheet.head.state {
        marked = Some(RelativeTime::new(*marked_at, now));
    }
    if status.stalled.is_empty() && marked.is_none() {
        return None;
    }
    let stuck_step = |stalled: &StalledStep| {
        let line = working.iter().find(|line| line.id == stalled.step);
        let name = line.map_or_else(String::new, step_name);
        let session = line.and_then(|line| line.session.as_ref());
        StuckStep {
            id: stalled.step.to_string(),
            order: stalled.order,
            name,
            session: session.map(|id| one_line(id.as_str(), 60)),
            elapsed: format::duration(stalled.elapsed),
            threshold: format::duration(whole_seconds(stalled.threshold)),
            since: format::timestamp(stalled.since),
        }
    };
    let limit = usize::try_from(onward_engine::status::MAX_LISTED).unwrap_or(usize::MAX);
    Some(Stall {
        steps: status.stalled.iter().map(stuck_step).collect(),
        more: status.stalled.len() >= limit,
        marked,
    })
}

/// Drops fractions of a second.
fn whole_seconds(span: Duration) -> Duration {
    match span.as_secs() {
        0 => span,
        seconds => Duration::from_secs(seconds),
    }
}

/// The title of a step, or its type.
pub(super) fn step_name(line: &StepLine) -> String {
    let name = line.title.as_deref().unwrap_or(line.step_type.as_str());
    one_line(name, 100)
}
