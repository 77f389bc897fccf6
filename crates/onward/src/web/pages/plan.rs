//! `/plans/{id}`: where a plan stands, what stopped and what helps, the steps against time, and a tab
//! for everything else there is to know. Long lists are shown a window at a time.

mod tabs;

use std::time::Duration;

use askama::Template;
use axum::extract::Path;
use onward_core::plan::PlanState;
use onward_core::role::Permission;
use onward_core::{PlanHead, PlanId, PlanStatus, StepStatus, StepType, Timestamp};
use onward_engine::StepLine;
use onward_engine::status::{StalledStep, Status};

use super::frame::{Frame, Section, render};
use super::show::{Badge, When, gist, text};
use super::{Failed, Page, Visit};
use crate::output::words;
use tabs::{Tab, Tabs};

/// How much of a question is shown.
const QUESTION: usize = 2_000;
/// How many silent steps are told of before one asks for the rest.
const FIRST: usize = 3;
/// How many steps in progress are looked up by name.
const WORKING: u32 = 100;

#[derive(Template)]
#[template(path = "plan.html")]
struct Plan {
    frame: Frame,
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
    created: When,
    updated: When,
    ended: Option<When>,
    session: Option<String>,
    review: Option<String>,
    stall: Option<Stall>,
    acts: Acts,
    kinds: [StepType; 7],
    links: Vec<Link>,
    tabs: Tabs,
}

struct Link {
    name: &'static str,
    word: &'static str,
    chosen: bool,
}

/// What stopped.
struct Stall {
    steps: Vec<Silent>,
    more: bool,
    marked: Option<When>,
}

/// A step that nobody hears of.
struct Silent {
    id: String,
    order: u32,
    name: String,
    session: Option<String>,
    elapsed: String,
    threshold: String,
    since: String,
}

/// What can be done, and why not.
pub(super) struct Acts {
    /// Why this reader may not: then there is no button, and this is said once.
    pub(super) may_not_modify: Option<String>,
    pub(super) may_not_abandon: Option<String>,
    /// Why nobody can at the moment: then the button is there, and this beside it.
    pub(super) why_not_resume: Option<String>,
    pub(super) why_not_abandon: Option<String>,
    pub(super) why_not_modify: Option<String>,
}

impl Acts {
    pub(super) fn of(visit: &Visit, head: &PlanHead) -> Self {
        let status = head.status();
        let over = || {
            let word = status.as_str();
            status.is_terminal().then(|| format!("the plan is {word}"))
        };
        let not_stalled =
            || (status != PlanStatus::Stalled).then(|| "the plan is not stalled".to_owned());
        let in_review = || {
            let waits = status == PlanStatus::AwaitingReview;
            waits.then(|| "the plan waits for a review: decide that first".to_owned())
        };
        Self {
            may_not_modify: visit.why_not(Permission::Intervene),
            may_not_abandon: visit.why_not(Permission::AbandonPlan),
            why_not_resume: not_stalled(),
            why_not_abandon: over(),
            why_not_modify: over().or_else(in_review),
        }
    }
}

/// The plan that an address names; one that cannot be an id is not found either.
pub(super) async fn named(visit: &Visit, id: &str) -> Result<PlanId, Failed> {
    Ok(visit.site.engine.find_plan(&visit.caller, id).await?)
}

pub(super) async fn show(visit: Visit, Path(id): Path<String>) -> Page {
    let engine = &visit.site.engine;
    let id = named(&visit, &id).await?;
    let status = engine.status(&visit.caller, id, None).await?;
    let now = engine.now();
    let (sheet, head) = (&status.sheet, &status.sheet.head);
    let in_progress = Some(StepStatus::InProgress);
    let working = match status.stalled.is_empty() {
        true => Vec::new(),
        false => {
            let working = engine.list_steps(&visit.caller, id, in_progress, 0, WORKING);
            working.await?.steps
        }
    };
    let tab = Tab::of(&visit.fields);
    let stored = head.status();
    let mut reason = None;
    if let PlanState::Failed { reason: why, .. } = &head.state {
        reason = Some(text(&why.to_string(), QUESTION));
    }
    let mut review = None;
    if let PlanState::AwaitingReview { review: asked, .. } = &head.state {
        review = Some(asked.to_string());
    }
    render(&Plan {
        frame: visit.frame(&sheet.brief.name, Section::Plans).await?,
        id: id.to_string(),
        name: words::line(&sheet.brief.name),
        question: text(&sheet.brief.research_question, QUESTION),
        badge: Badge::plan(stored),
        derived: (status.derived != stored && !stored.is_terminal())
            .then(|| Badge::plan(status.derived)),
        reason,
        progress: head.counts.progress(),
        done: head.counts.completed.saturating_add(head.counts.skipped),
        total: head.counts.total(),
        failed: head.counts.failed,
        created: When::new(sheet.created_at, now),
        updated: When::new(sheet.updated_at, now),
        ended: ended_at(&head.state).map(|at| When::new(at, now)),
        session: head.last_session.as_ref().map(|id| gist(id.as_str(), 60)),
        review,
        stall: stall(&status, &working, now),
        acts: Acts::of(&visit, head),
        kinds: StepType::ALL,
        links: tab.links(),
        tabs: tabs::read(&visit, tab, &status).await?,
    })
}

fn stall(status: &Status, working: &[StepLine], now: Timestamp) -> Option<Stall> {
    let mut marked = None;
    if let PlanState::Stalled { marked_at } = &status.sheet.head.state {
        marked = Some(When::new(*marked_at, now));
    }
    if status.stalled.is_empty() && marked.is_none() {
        return None;
    }
    let silent = |stalled: &StalledStep| {
        let line = working.iter().find(|line| line.id == stalled.step);
        let name = line.map_or_else(String::new, name_of);
        let session = line.and_then(|line| line.session.as_ref());
        Silent {
            id: stalled.step.to_string(),
            order: stalled.order,
            name,
            session: session.map(|id| gist(id.as_str(), 60)),
            elapsed: words::span(stalled.elapsed),
            threshold: words::span(whole(stalled.threshold)),
            since: words::instant(stalled.since),
        }
    };
    let most = usize::try_from(onward_engine::status::SHOWN).unwrap_or(usize::MAX);
    Some(Stall {
        steps: status.stalled.iter().map(silent).collect(),
        more: status.stalled.len() >= most,
        marked,
    })
}

/// When a plan ended, if it has.
fn ended_at(state: &PlanState) -> Option<Timestamp> {
    match state {
        PlanState::Completed { ended_at } | PlanState::Failed { ended_at, .. } => Some(*ended_at),
        PlanState::Planning
        | PlanState::Executing
        | PlanState::AwaitingReview { .. }
        | PlanState::Stalled { .. } => None,
    }
}

/// A threshold as one would say it.
fn whole(span: Duration) -> Duration {
    match span.as_secs() {
        0 => span,
        seconds => Duration::from_secs(seconds),
    }
}

/// What people call a step.
pub(super) fn name_of(line: &StepLine) -> String {
    let name = line.title.as_deref().unwrap_or(line.step_type.as_str());
    gist(name, 100)
}
