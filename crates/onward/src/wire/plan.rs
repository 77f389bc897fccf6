//! Plan lists and the response of `get_plan_status`.

use onward_core::plan::{Origin, PlanHead, PlanState};
use onward_core::routing::{DEFAULT_PRIORITY, Routing};
use onward_core::step::ReviewBy;
use onward_core::{Counts, PlanId, PlanStatus};
use onward_engine::list::{OpenReview, PlanPage};
use onward_engine::status::Status;
use onward_engine::{Listed, Owner, StepLine};
use schemars::JsonSchema;
use serde::Serialize;

use super::budget::BudgetView;
use super::created::ForkSource;
use super::excerpt::{self, MAX_IDS, is_false, is_zero};
use super::step::{CurrentStep, MORE, StalledStepView, Step};
use crate::output::budget::exhausted_text;

/// How to read a truncated question.
pub(super) const WHOLE_QUESTION: &str =
    "{get_research_context} returns the whole `researchQuestion`";

/// Plans, most recently changed first.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Plans {
    plans: Vec<Plan>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    #[serde(skip_serializing_if = "is_false")]
    truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    more: Option<&'static str>,
}

/// A plan in a list.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Plan {
    plan_id: String,
    name: String,
    research_question: String,
    status: &'static str,
    stalled: bool,
    /// What the plan needs
    attention: &'static str,
    /// Start of that state
    since: String,
    owner: OwnerView,
    progress: u32,
    total_steps: u32,
    updated_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    completed_at: Option<String>,
    /// `agent` if the plan mirrors an agent's own plan or task list.
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<&'static str>,
    /// An unfinished list without recent activity
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    archived: bool,
    #[serde(flatten)]
    routing: RoutingView,
    #[serde(skip_serializing_if = "Option::is_none")]
    budget: Option<BudgetView>,
}

/// The project, the labels and the priority of a plan.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RoutingView {
    #[serde(skip_serializing_if = "Option::is_none")]
    project_key: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    labels: Vec<String>,
    /// Omitted: 5
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<u8>,
}

impl RoutingView {
    pub(super) fn new(routing: &Routing) -> Self {
        let priority = routing.priority;
        Self {
            project_key: routing.project_key.as_ref().map(super::line),
            labels: routing.labels.iter().map(super::line).collect(),
            priority: (priority != DEFAULT_PRIORITY).then_some(priority),
        }
    }
}

/// The origin of a plan that no caller created.
fn origin(head: &PlanHead) -> Option<&'static str> {
    (head.origin == Origin::Agent).then_some(head.origin.as_str())
}

impl Plans {
    pub(crate) fn new(page: &PlanPage) -> Self {
        let mut cut = false;
        let plans = page.plans.iter().map(|listed| Plan::new(listed, &mut cut));
        Self {
            plans: plans.collect(),
            next_cursor: None,
            truncated: cut,
            more: cut.then_some(WHOLE_QUESTION),
        }
    }

    /// Adds the cursor of the next page.
    pub(crate) fn with_cursor(mut self, next: Option<String>) -> Self {
        self.next_cursor = next;
        self
    }

    /// Keeps the first plans whose JSON has at most this many characters, and returns their number.
    pub(crate) fn limit_chars(&mut self, max_chars: usize) -> usize {
        excerpt::limit_chars(&mut self.plans, max_chars)
    }
}

/// Plans, and the agents' own lists without an agent.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlansAndLists {
    #[serde(flatten)]
    plans: Plans,
    unfinished_lists: Vec<Plan>,
}

impl PlansAndLists {
    pub(crate) fn new(plans: &PlanPage, lists: &PlanPage) -> Self {
        let (mut plans, lists) = (Plans::new(plans), Plans::new(lists));
        plans.truncated |= lists.truncated;
        plans.more = plans.more.or(lists.more);
        Self {
            plans,
            unfinished_lists: lists.plans,
        }
    }
}

impl Plan {
    fn new(listed: &Listed, cut: &mut bool) -> Self {
        let sheet = &listed.sheet;
        Self {
            plan_id: sheet.head.id.to_string(),
            name: super::line(&sheet.brief.name),
            research_question: excerpt::summary(&sheet.brief.research_question, cut),
            status: sheet.head.status().as_str(),
            stalled: listed.stalled,
            attention: listed.attention.word.as_str(),
            since: super::at(listed.attention.since),
            owner: OwnerView::new(&sheet.owner),
            progress: sheet.head.counts.progress(),
            total_steps: sheet.head.counts.total(),
            updated_at: super::at(sheet.updated_at),
            completed_at: sheet.head.ended_at().map(super::at),
            origin: origin(&sheet.head),
            archived: listed.archived,
            routing: RoutingView::new(&sheet.head.routing),
            budget: (sheet.head.budget.as_ref())
                .map(|budget| BudgetView::new(budget, listed.exhausted.as_ref(), sheet.tokens)),
        }
    }
}

/// The owner of a plan.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OwnerView {
    person: String,
    /// Agent and version
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    directory: Option<String>,
}

impl OwnerView {
    pub(crate) fn new(owner: &Owner) -> Self {
        Self {
            person: super::line(&owner.person),
            client: owner.origin.client.as_ref().map(super::line),
            host: owner.origin.host.as_ref().map(super::line),
            directory: owner.origin.directory.as_ref().map(super::line),
        }
    }
}

/// The number of steps per status.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StepCounts {
    pending: u32,
    in_progress: u32,
    awaiting_input: u32,
    completed: u32,
    skipped: u32,
    failed: u32,
    /// Redone steps, which the other counts do not include.
    #[serde(skip_serializing_if = "is_none")]
    superseded: u32,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes the field by reference"
)]
fn is_none(count: &u32) -> bool {
    *count == 0
}

impl StepCounts {
    fn new(counts: &Counts) -> Self {
        Self {
            pending: counts.pending,
            in_progress: counts.in_progress,
            awaiting_input: counts.awaiting_input,
            completed: counts.completed,
            skipped: counts.skipped,
            failed: counts.failed,
            superseded: counts.superseded,
        }
    }
}

/// The response of `get_plan_status`.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlanStatusView {
    plan_id: String,
    name: String,
    status: &'static str,
    derived_status: &'static str,
    stalled: bool,
    /// What the plan needs
    #[serde(skip_serializing_if = "Option::is_none")]
    attention: Option<&'static str>,
    /// Start of that state
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<OwnerView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stalled_steps: Vec<StalledStepView>,
    progress: u32,
    total_steps: u32,
    counts: StepCounts,
    #[serde(skip_serializing_if = "Option::is_none")]
    current_step: Option<CurrentStep>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pending_reviews: Vec<PendingReview>,
    /// Completed and skipped steps.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    completed_steps: Vec<Step>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pending_steps: Vec<Step>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failed_steps: Vec<Step>,
    #[serde(skip_serializing_if = "is_zero")]
    completed_steps_omitted: usize,
    #[serde(skip_serializing_if = "is_zero")]
    pending_steps_omitted: usize,
    #[serde(skip_serializing_if = "is_zero")]
    failed_steps_omitted: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_stall_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    completed_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    forked_from: Option<ForkSource>,
    /// Ids of the forks of this plan
    #[serde(skip_serializing_if = "Vec::is_empty")]
    forks: Vec<String>,
    #[serde(flatten)]
    routing: RoutingView,
    #[serde(skip_serializing_if = "Option::is_none")]
    budget: Option<BudgetView>,
    /// Omitted: unknown
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<u64>,
    #[serde(skip_serializing_if = "is_false")]
    truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    more: Option<&'static str>,
}

/// A pending review, without its texts.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct PendingReview {
    review_id: String,
    step_id: String,
    step_order: u32,
    scope: &'static str,
    /// Who must decide, if the step requires a review.
    #[serde(skip_serializing_if = "Option::is_none")]
    review_by: Option<&'static str>,
}

impl PendingReview {
    fn new(open: &OpenReview) -> Self {
        Self {
            review_id: open.id.to_string(),
            step_id: open.step.to_string(),
            step_order: open.order,
            scope: open.review.scope.as_str(),
            review_by: open.review.by.map(ReviewBy::as_str),
        }
    }
}

/// The output of `onward plan show --json`: all fields, also without a value, and the plan's
/// settings.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlanDetails {
    plan_id: String,
    name: String,
    research_question: String,
    status: &'static str,
    derived_status: &'static str,
    stalled: bool,
    attention: &'static str,
    since: String,
    owner: OwnerView,
    stalled_steps: Vec<StalledStepView>,
    progress: u32,
    total_steps: u32,
    counts: StepCounts,
    current_step: Option<CurrentStep>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pending_reviews: Vec<PendingReview>,
    completed_steps: Vec<Step>,
    pending_steps: Vec<Step>,
    failed_steps: Vec<Step>,
    #[serde(skip_serializing_if = "is_zero")]
    completed_steps_omitted: usize,
    #[serde(skip_serializing_if = "is_zero")]
    pending_steps_omitted: usize,
    #[serde(skip_serializing_if = "is_zero")]
    failed_steps_omitted: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_stall_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    completed_at: Option<String>,
    on_stall: &'static str,
    on_dependency_failure: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    stall_threshold_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan_design_rationale: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_formatting_notes: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    forked_from: Option<ForkSource>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    forks: Vec<String>,
    #[serde(flatten)]
    routing: RoutingView,
    #[serde(skip_serializing_if = "Option::is_none")]
    budget: Option<BudgetView>,
    /// `null`: unknown
    tokens: Option<u64>,
    created_at: String,
    updated_at: String,
}

impl PlanDetails {
    pub(crate) fn new(status: &Status) -> Self {
        let (sheet, brief) = (&status.sheet, &status.sheet.brief);
        let view = PlanStatusView::new(status);
        let counts = &sheet.head.counts;
        let omitted = |all: u32, lines: &[StepLine]| {
            usize::try_from(all)
                .unwrap_or(usize::MAX)
                .saturating_sub(lines.len())
        };
        let mut cut = false;
        let mut steps = |lines: &[StepLine]| -> Vec<Step> {
            lines.iter().map(|line| Step::new(line, &mut cut)).collect()
        };
        Self {
            plan_id: sheet.head.id.to_string(),
            name: view.name,
            research_question: brief.research_question.clone(),
            status: view.status,
            derived_status: status.derived.as_str(),
            stalled: view.stalled,
            attention: status.attention.word.as_str(),
            since: super::at(status.attention.since),
            owner: OwnerView::new(&sheet.owner),
            stalled_steps: view.stalled_steps,
            progress: view.progress,
            total_steps: view.total_steps,
            counts: StepCounts::new(counts),
            current_step: view.current_step,
            pending_reviews: view.pending_reviews,
            completed_steps: steps(&status.completed),
            pending_steps: steps(&status.pending),
            failed_steps: steps(&status.failed),
            completed_steps_omitted: omitted(counts.completed + counts.skipped, &status.completed),
            pending_steps_omitted: omitted(counts.pending, &status.pending),
            failed_steps_omitted: omitted(counts.failed, &status.failed),
            next_stall_at: view.next_stall_at,
            reason: view.reason,
            completed_at: view.completed_at,
            on_stall: sheet.head.on_stall.as_str(),
            on_dependency_failure: sheet.head.on_dependency_failure.as_str(),
            stall_threshold_ms: sheet.head.stall_threshold.map(super::ms),
            plan_design_rationale: brief.design_rationale.clone(),
            output_formatting_notes: brief.output_formatting_notes.clone(),
            origin: origin(&sheet.head),
            forked_from: view.forked_from,
            forks: view.forks,
            routing: view.routing,
            budget: view.budget,
            tokens: view.tokens,
            created_at: super::at(sheet.created_at),
            updated_at: super::at(sheet.updated_at),
        }
    }
}

/// The number of steps in each list of a plan that has more.
const MAX_STEPS: usize = 10;

impl PlanStatusView {
    pub(crate) fn new(status: &Status) -> Self {
        let (head, brief) = (&status.sheet.head, &status.sheet.brief);
        let counts = &head.counts;
        let mut cut = false;
        let mut steps = |lines: &[StepLine], all: u32| {
            let all = usize::try_from(all).unwrap_or(usize::MAX);
            let most = if all > MAX_IDS { MAX_STEPS } else { MAX_IDS };
            let steps = lines.iter().take(most);
            let steps: Vec<Step> = steps.map(|line| Step::brief(line, &mut cut)).collect();
            let omitted = all.saturating_sub(steps.len());
            cut |= omitted > 0;
            (steps, omitted)
        };
        let done = counts.completed.saturating_add(counts.skipped);
        let (completed_steps, completed_steps_omitted) = steps(&status.completed, done);
        let (pending_steps, pending_steps_omitted) = steps(&status.pending, counts.pending);
        let (failed_steps, failed_steps_omitted) = steps(&status.failed, counts.failed);
        let reason = match &head.state {
            PlanState::Failed { reason, .. } => Some(reason.to_string()),
            PlanState::Stalled { .. } => status.exhausted.as_ref().map(|exhausted| {
                let limit = exhausted_text(exhausted);
                format!("the budget is exhausted: {limit}")
            }),
            PlanState::Planning
            | PlanState::Executing
            | PlanState::AwaitingReview { .. }
            | PlanState::Completed { .. } => None,
        };
        Self {
            plan_id: head.id.to_string(),
            name: super::line(&brief.name),
            status: head.status().as_str(),
            derived_status: status.derived.as_str(),
            stalled: !status.stalled.is_empty() || status.stopped_by_budget,
            attention: Some(status.attention.word.as_str()),
            since: Some(super::at(status.attention.since)),
            owner: Some(OwnerView::new(&status.sheet.owner)),
            stalled_steps: status.stalled.iter().map(StalledStepView::new).collect(),
            progress: counts.progress(),
            total_steps: counts.total(),
            counts: StepCounts::new(counts),
            current_step: status.current.as_ref().map(CurrentStep::new),
            pending_reviews: status.reviews.iter().map(PendingReview::new).collect(),
            completed_steps,
            pending_steps,
            failed_steps,
            completed_steps_omitted,
            pending_steps_omitted,
            failed_steps_omitted,
            next_stall_at: status.next_stall_at.map(super::at),
            reason,
            completed_at: head.ended_at().map(super::at),
            forked_from: brief.forked_from.as_ref().map(ForkSource::new),
            forks: status.forks.iter().map(PlanId::to_string).collect(),
            routing: RoutingView::new(&status.sheet.head.routing),
            budget: (head.budget.as_ref()).map(|budget| {
                BudgetView::new(budget, status.exhausted.as_ref(), status.sheet.tokens)
            }),
            tokens: status.sheet.tokens,
            truncated: cut,
            more: cut.then_some(MORE),
        }
    }

    /// Omits the fields that only people need: every field costs an agent tokens.
    pub(crate) fn for_agents(self) -> Self {
        Self {
            attention: None,
            since: None,
            owner: None,
            ..self
        }
    }
}

/// The plan after a change such as `abandon` or `resume`.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChangedPlan {
    plan_id: String,
    name: String,
    status: &'static str,
}

impl ChangedPlan {
    pub(crate) fn new(plan: PlanId, name: String, status: PlanStatus) -> Self {
        Self {
            plan_id: plan.to_string(),
            name,
            status: status.as_str(),
        }
    }
}
