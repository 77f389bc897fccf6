//! `/plans/{id}`: the state of the plan with its actions, the steps as rail, table or graph, one
//! step in detail, the activity in sentences, the files, and the settings. Long lists are paginated.

mod app;
mod branches;
mod graph;
mod inspector;
mod lanes;
mod outcome;
mod rail;
mod tabs;
mod verdict;

use askama::Template;
use axum::extract::Path;
use onward_core::budget::Limit;
use onward_core::policy::OnStall;
use onward_core::role::Permission;
use onward_core::{PlanHead, PlanId, PlanStatus, StepStatus, StepType};
use onward_engine::list::OpenReview;
use onward_engine::status::Status;
use onward_engine::{Caller, Engine, Error, Feedback, StepLine, StepNote};

use super::agent_name::person;
use super::format::{Age, Badge, RelativeTime, ShortId, multiline, one_line};
use super::layout::{Layout, Section, render};
use super::sessions::session_url;
use super::text::Body;
use super::who::Who;
use super::{PageError, PageResult, Visit};
use crate::output::{budget, format};
use branches::{BranchNote, Branches};
use rail::{Rail, Selection, View};
use tabs::{Tab, Tabs};
use verdict::{Facts, Part, Verdict};

pub(crate) use app::APP;
pub(super) use inspector::{Inspector, MINUTE_MS};
pub(super) use outcome::{message, orders_field};
pub(super) use verdict::{prompt, steps_text};

const MAX_QUESTION_CHARS: usize = 2_000;
/// Maximum number of steps in progress that are named.
const MAX_IN_PROGRESS: u32 = 100;
/// Maximum number of ratings and comments.
const MAX_FEEDBACK: u32 = 50;

#[derive(Template)]
#[template(path = "plan.html")]
struct Plan {
    layout: Layout,
    id: String,
    short_id: ShortId,
    name: String,
    /// Unless it repeats the name.
    question: Option<String>,
    badge: Badge,
    /// Further states of steps: "1 working".
    also: Option<String>,
    done: u32,
    total: u32,
    failed: u32,
    who: Who,
    started: Age,
    acted: RelativeTime,
    session: Option<ShortId>,
    /// Message about the action that led here.
    outcome: Option<String>,
    verdict: Verdict,
    actions: PlanActions,
    /// Whether the plan has ended and has an output.
    has_output: bool,
    /// The steps, unless another tab is selected.
    rail: Option<Rail>,
    /// Whether steps are displayed with buttons to move them.
    reordering: bool,
    inspector: Option<Inspector>,
    branches: Vec<BranchNote>,
    branches_taken: usize,
    tabs: Tabs,
    about: Option<About>,
}

struct TabLink {
    name: &'static str,
    slug: &'static str,
    count: Option<String>,
    selected: bool,
}

/// The settings and the description of a plan.
struct About {
    rationale: Option<String>,
    formatting: Option<String>,
    tokens: String,
    /// The limits of the budget and their use.
    budget: Option<String>,
    limits: Vec<(&'static str, &'static str, String, u64)>,
    on_stall: &'static str,
    threshold: String,
    created: RelativeTime,
    step_types: [StepType; 7],
    feedback: Vec<FeedbackRow>,
    /// Id and first step of the plan of which this one is a fork.
    forked_from: Option<(ShortId, u32)>,
    forks: Vec<ShortId>,
    project: String,
    labels: String,
    priority: u8,
}

/// A rating or a comment on the plan.
struct FeedbackRow {
    rating: Option<u32>,
    comment: Option<String>,
    author: String,
    at: RelativeTime,
}

/// Why actions are unavailable.
pub(super) struct PlanActions {
    /// The caller lacks the permission: the button is not rendered.
    pub(super) modify_denied: Option<String>,
    pub(super) cancel_denied: Option<String>,
    /// The plan's state does not allow it: the button is disabled, with this reason.
    pub(super) cancel_blocked: Option<String>,
    pub(super) modify_blocked: Option<String>,
}

impl PlanActions {
    pub(super) fn new(visit: &Visit, head: &PlanHead) -> Self {
        let status = head.status();
        let finished = || {
            let is_finished = status.is_terminal();
            is_finished.then(|| "The plan has ended.".to_owned())
        };
        let in_review = || {
            let in_review = status == PlanStatus::AwaitingReview;
            in_review.then(|| "Decide the open review first.".to_owned())
        };
        Self {
            modify_denied: visit.denial(Permission::Intervene),
            cancel_denied: visit.denial(Permission::AbandonPlan),
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
    let tab = Tab::from_fields(&visit.fields);
    let branches = Branches::load(engine, &visit.caller, id).await?;
    let selected = match visit.fields.get("step") {
        Some(step) => engine.find_step(&visit.caller, step).await.ok(),
        None => None,
    };
    let rail = match tab {
        Tab::Steps => {
            let selection = Selection::from_fields(&visit.fields, selected);
            Some(rail::load(engine, &visit.caller, &status, &branches, &selection).await?)
        }
        Tab::Activity | Tab::Files | Tab::About => None,
    };
    let inspector = match selected.filter(|_| rail.is_some()) {
        Some(step) => Inspector::load(&visit, id, step).await?,
        None => None,
    };
    let blocked = rail.as_ref().map_or(0, |rail| rail.blocked_by_stuck);
    let review = open_review(&status);
    let verdict = verdict(engine, &visit.caller, &status, review, blocked).await?;
    let also = head
        .counts
        .in_progress
        .saturating_sub(u32::try_from(status.stalled.len()).unwrap_or(u32::MAX));
    let name = format::sanitize_line(&sheet.brief.name);
    let question = multiline(&sheet.brief.research_question, MAX_QUESTION_CHARS);
    let tabs = tabs::load(&visit, tab, &status).await?;
    render(&Plan {
        layout: visit.layout(&sheet.brief.name, Section::Plans).await?,
        id: id.to_string(),
        short_id: ShortId::new(id),
        question: (!question.starts_with(&name)).then_some(question),
        name,
        badge: Badge::attention(status.attention.word),
        also: (also > 0 && !status.stalled.is_empty()).then(|| format!("{also} working")),
        done: head.counts.completed.saturating_add(head.counts.skipped),
        total: head.counts.total(),
        failed: head.counts.failed,
        who: Who::new(&sheet.owner),
        started: Age::new(sheet.created_at, now),
        acted: RelativeTime::new(sheet.acted_at, now),
        session: head.last_session.as_ref().map(|id| {
            let link = session_url(id.as_str());
            ShortId::new(id.as_str()).linked(link)
        }),
        outcome: message(&visit.fields, &status, now),
        verdict,
        actions: PlanActions::new(&visit, head),
        has_output: tabs.has_output && head.ended_at().is_some(),
        reordering: visit.fields.get("reorder").is_some(),
        rail,
        inspector,
        branches_taken: branches.taken(),
        branches: branches.notes(),
        tabs,
        about: match tab {
            Tab::About => Some(About::load(&visit, &status).await?),
            Tab::Steps | Tab::Activity | Tab::Files => None,
        },
    })
}

impl About {
    async fn load(visit: &Visit, status: &Status) -> Result<Self, PageError> {
        let (engine, sheet) = (&visit.site.engine, &status.sheet);
        let (head, brief) = (&sheet.head, &sheet.brief);
        let now = engine.now();
        let text = |text: &Option<String>| {
            let text = text.as_deref();
            text.map(|text| multiline(text, MAX_QUESTION_CHARS))
        };
        let feedback = engine
            .feedback(&visit.caller, head.id, MAX_FEEDBACK)
            .await?;
        let row = |feedback: &Feedback| FeedbackRow {
            rating: feedback.rating,
            comment: text(&feedback.comment),
            author: person(&feedback.actor),
            at: RelativeTime::new(feedback.created_at, now),
        };
        let linked = |plan: PlanId| ShortId::new(plan).linked(format!("/plans/{plan}"));
        Ok(Self {
            rationale: text(&brief.design_rationale),
            formatting: text(&brief.output_formatting_notes),
            project: one_line(head.routing.project_key.as_deref().unwrap_or_default(), 200),
            labels: one_line(&head.routing.labels.join(", "), 2_000),
            priority: head.routing.priority,
            on_stall: on_stall_text(head.on_stall),
            budget: head
                .budget
                .as_ref()
                .map(|budget| budget::use_text(budget, sheet.tokens, now)),
            limits: limit_inputs(head),
            tokens: budget::tokens_text(sheet.tokens),
            threshold: format::duration(onward_core::policy::stall_threshold(
                None,
                None,
                head.stall_threshold,
            )),
            created: RelativeTime::new(sheet.created_at, now),
            step_types: StepType::ALL,
            feedback: feedback.iter().map(row).collect(),
            forked_from: (brief.forked_from).map(|source| (linked(source.plan), source.step_order)),
            forks: status.forks.iter().copied().map(linked).collect(),
        })
    }
}

/// The inputs of the budget form: the field, its label, the current value and the highest one.
fn limit_inputs(head: &PlanHead) -> Vec<(&'static str, &'static str, String, u64)> {
    let limits = head.budget.map(|budget| budget.limits).unwrap_or_default();
    let input = |limit: Limit| {
        let (label, unit) = match limit {
            Limit::Steps => ("Steps that may be assigned", 1),
            Limit::Attempts => ("Attempts of all steps", 1),
            Limit::Duration => ("Minutes since the first claim", 60_000),
            Limit::Tokens => ("Tokens", 1),
        };
        let value = limits.max(limit).map(|max| max.div_ceil(unit).to_string());
        let highest = limit.upper_bound() / unit;
        (limit.as_str(), label, value.unwrap_or_default(), highest)
    };
    Limit::ALL.map(input).to_vec()
}

/// What happens to a step that is stuck.
const fn on_stall_text(action: OnStall) -> &'static str {
    match action {
        OnStall::Mark => "Onward marks it as stuck and notifies you; it stays claimed",
        OnStall::Requeue => "Onward releases it; after the last attempt, it fails",
        OnStall::Fail => "Onward fails it",
        OnStall::Ignore => "Onward shows it as stuck, without a notification; it stays claimed",
    }
}

/// The pending review to decide first: one that stops the plan, or that of the first step.
fn open_review(status: &Status) -> Option<&OpenReview> {
    let stops = |open: &&OpenReview| open.review.scope.stops_plan();
    let stopping = status.reviews.iter().find(stops);
    stopping.or(status.reviews.first())
}

async fn verdict(
    engine: &Engine,
    caller: &Caller,
    status: &Status,
    review: Option<&OpenReview>,
    blocked: usize,
) -> Result<Verdict, Error> {
    let head = &status.sheet.head;
    let working = if head.counts.in_progress > 0 {
        let in_progress = Some(StepStatus::InProgress);
        let steps = engine.list_steps(caller, head.id, in_progress, 0, MAX_IN_PROGRESS);
        steps.await?.steps
    } else {
        Vec::new()
    };
    Ok(Verdict::new(&Facts {
        status,
        working: &working,
        review,
        failed: &status.failed,
        blocked,
        now: engine.now(),
    }))
}

/// The title of a step, or its type.
pub(super) fn step_name(line: &StepLine) -> String {
    let name = line.title.as_deref().unwrap_or(line.step_type.as_str());
    one_line(name, 100)
}

/// A progress report: "43 %, 62 of 212 differences explained".
pub(super) fn note_text(note: &StepNote) -> String {
    let percent = note.percent.map(|percent| format!("{percent} %"));
    let text = note.text.as_deref().map(|text| one_line(text, 160));
    let parts: Vec<String> = percent.into_iter().chain(text).collect();
    parts.join(", ")
}
