//! The response of `get_next_step`, and the preview of `onward plan next`, which claims nothing.

use onward_core::branch::Action;
use onward_core::step::ReviewBy;
use onward_core::{Json, PlanId, Refusal, Step};
use onward_engine::next_step::{
    AssignedStep, BranchOutline, HeldStep, NextStep as EngineNextStep, StepInProgress, Surroundings,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::budget::ExhaustedView;
use super::dependency::Dependency;
use super::review::{Review, ReviewLinks, StepDecision};
use super::step::InProgress;
use crate::hint::{self, Interface};

/// The next step, or why there is none.
#[derive(Serialize, JsonSchema)]
#[serde(
    tag = "status",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
pub(crate) enum NextStep {
    /// A claimed step.
    StepStarted {
        #[serde(skip_serializing_if = "Option::is_none")]
        plan_id: Option<String>,
        step_id: String,
        step_order: u32,
        step_type: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        instructions: String,
        attempt: u32,
        claim_token: String,
        /// This session already held the step; no other step is ready.
        #[serde(skip_serializing_if = "Option::is_none")]
        resumed: Option<bool>,
        stall_threshold_ms: u64,
        total_steps: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        progress: Option<u32>,
        /// The result must answer each in `evidence`.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        acceptance_criteria: Vec<String>,
        /// The result must match it.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Option<Value>")]
        result_schema: Option<Json>,
        /// Who reviews the result.
        #[serde(skip_serializing_if = "Option::is_none")]
        review_by: Option<&'static str>,
        /// What the result decides, one line per branch.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        branches: Vec<String>,
        /// A user's feedback on the previous step.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        feedback: Vec<String>,
        /// The steps that it depends on.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        dependencies: Vec<Dependency>,
        /// The last decision on this step, the previous one or a dependency.
        #[serde(skip_serializing_if = "Option::is_none")]
        decision: Option<StepDecision>,
        /// The step that it redoes.
        #[serde(skip_serializing_if = "Option::is_none")]
        supersedes: Option<String>,
        /// Other steps that this session holds.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        held: Vec<Held>,
    },
    /// The step that would be claimed. Only `onward plan next` returns it.
    #[schemars(skip)]
    StepReady {
        plan_id: String,
        step_id: String,
        step_order: u32,
        step_type: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        instructions: String,
        attempt: u32,
    },
    PlanComplete {
        #[serde(skip_serializing_if = "Option::is_none")]
        plan_id: Option<String>,
        /// The last action.
        next: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        output_media_type: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        output_formatting_instructions: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        plan_formatting_notes: Option<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        step_formatting_notes: Vec<Notes>,
    },
    PlanFailed {
        #[serde(skip_serializing_if = "Option::is_none")]
        plan_id: Option<String>,
        reason: String,
    },
    AwaitingReview {
        #[serde(skip_serializing_if = "Option::is_none")]
        plan_id: Option<String>,
        review: Review,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        held: Vec<Held>,
    },
    BudgetExhausted {
        #[serde(skip_serializing_if = "Option::is_none")]
        plan_id: Option<String>,
        exhausted: ExhaustedView,
        in_progress_count: u32,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        held: Vec<Held>,
        /// The next action
        hint: String,
    },
    NoPendingSteps {
        #[serde(skip_serializing_if = "Option::is_none")]
        plan_id: Option<String>,
        in_progress_count: u32,
        failed_count: u32,
        blocked_count: u32,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        in_progress: Vec<InProgress>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        held: Vec<Held>,
        /// The next action
        #[serde(skip_serializing_if = "Option::is_none")]
        hint: Option<String>,
    },
}

const NO_STEP_IN_PROJECT: &str = "no step of the project is ready for these labels; retry later, or list its plans with \
     {list_active_plans} and `projectKey`";

/// The next action if all remaining steps wait for failed ones.
const BLOCKED: &str = "the remaining steps wait for a step that failed: redo it with {modify_plan} and `redo_step`, \
     or ask the user to skip it";

/// The next action after a completed plan.
const STORE_OUTPUT: &str = "store the output with `store_research_output`";

/// A step that the calling session holds.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Held {
    step_id: String,
    step_order: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    since: String,
}

impl Held {
    fn list(held: &[HeldStep]) -> Vec<Self> {
        held.iter().map(Self::new).collect()
    }

    fn new(held: &HeldStep) -> Self {
        Self {
            step_id: held.step.to_string(),
            step_order: held.order,
            title: held.title.as_ref().map(super::line),
            since: super::at(held.since),
        }
    }
}

/// A branch in one line: its condition and its action.
pub(super) fn branch_line(outline: &BranchOutline) -> String {
    let BranchOutline { branch, target } = outline;
    let condition = branch.condition.source();
    let action = branch.action.as_str();
    match (&branch.action, target) {
        (Action::SkipTo { .. }, Some(order)) => format!("if {condition}: {action} step {order}"),
        (Action::AddSteps { steps }, _) => format!("if {condition}: {action} ({})", steps.len()),
        (Action::Fail { .. }, _) => format!("if {condition}: {action} the plan"),
        (Action::SkipTo { .. } | Action::Continue, _) => format!("if {condition}: {action}"),
    }
}

/// How the final output should present a step's result.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Notes {
    step_id: String,
    step_order: u32,
    notes: String,
}

impl NextStep {
    /// Without a plan, the step was requested from a project.
    pub(crate) fn new(plan: Option<PlanId>, next: &EngineNextStep) -> Self {
        let plan_id = plan.map(|plan| plan.to_string());
        match next {
            EngineNextStep::Started(assigned) => Self::started(assigned),
            EngineNextStep::Complete(notes) => NextStep::PlanComplete {
                plan_id,
                next: STORE_OUTPUT,
                output_media_type: notes.media_type.clone(),
                output_formatting_instructions: notes.instructions.clone(),
                plan_formatting_notes: notes.plan.clone(),
                step_formatting_notes: notes
                    .steps
                    .iter()
                    .map(|(step, order, notes)| Notes {
                        step_id: step.to_string(),
                        step_order: *order,
                        notes: notes.clone(),
                    })
                    .collect(),
            },
            EngineNextStep::Failed { reason } => NextStep::PlanFailed {
                plan_id,
                reason: reason.to_string(),
            },
            EngineNextStep::AwaitingReview { step, review, held } => NextStep::AwaitingReview {
                plan_id,
                review: Review::new(*step, review),
                held: Held::list(held),
            },
            EngineNextStep::BudgetExhausted {
                exhausted,
                in_progress,
                held,
            } => NextStep::BudgetExhausted {
                plan_id,
                exhausted: ExhaustedView::new(exhausted),
                in_progress_count: *in_progress,
                held: Held::list(held),
                hint: Refusal::BudgetExhausted(*exhausted).hint().to_owned(),
            },
            EngineNextStep::NoPendingSteps {
                in_progress,
                failed,
                blocked,
                working: steps,
                held,
            } => NextStep::NoPendingSteps {
                plan_id,
                in_progress_count: *in_progress,
                failed_count: *failed,
                blocked_count: *blocked,
                in_progress: steps.iter().map(InProgress::new).collect(),
                held: Held::list(held),
                hint: Some(match plan {
                    Some(_) if steps.is_empty() && *blocked > 0 => BLOCKED.to_owned(),
                    Some(_) => no_pending_steps_hint(steps, held),
                    None => NO_STEP_IN_PROJECT.to_owned(),
                }),
            },
        }
    }

    /// Adds the link to a pending review, and names calls of the caller's interface.
    pub(crate) fn for_caller(mut self, interface: Interface, links: &ReviewLinks) -> Self {
        match &mut self {
            NextStep::AwaitingReview { review, .. } => {
                review.set_link(links);
            }
            NextStep::NoPendingSteps {
                hint: Some(hint), ..
            }
            | NextStep::BudgetExhausted { hint, .. } => {
                *hint = hint::render(hint, interface, links.base_url())
            }
            NextStep::StepStarted { .. }
            | NextStep::StepReady { .. }
            | NextStep::PlanComplete { .. }
            | NextStep::PlanFailed { .. }
            | NextStep::NoPendingSteps { hint: None, .. } => {}
        }
        self
    }

    /// Removes the plan's id and progress, inside a response that has them.
    pub(super) fn without_plan(mut self) -> Self {
        if let NextStep::StepStarted { progress, .. } = &mut self {
            *progress = None;
        }
        match &mut self {
            NextStep::StepStarted { plan_id, .. }
            | NextStep::PlanComplete { plan_id, .. }
            | NextStep::PlanFailed { plan_id, .. }
            | NextStep::AwaitingReview { plan_id, .. }
            | NextStep::BudgetExhausted { plan_id, .. }
            | NextStep::NoPendingSteps { plan_id, .. } => *plan_id = None,
            NextStep::StepReady { .. } => {}
        }
        self
    }

    fn started(assigned: &AssignedStep) -> Self {
        let Surroundings {
            branches,
            feedback,
            decision,
        } = &assigned.surroundings;
        let gates = assigned.gates.as_deref();
        NextStep::StepStarted {
            plan_id: Some(assigned.plan.to_string()),
            step_id: assigned.step.to_string(),
            step_order: assigned.order,
            step_type: assigned.step_type.as_str(),
            title: assigned.title.as_ref().map(super::line),
            instructions: assigned.instructions.clone(),
            attempt: assigned.attempt,
            claim_token: assigned.token.as_str().to_owned(),
            resumed: assigned.resumed.then_some(true),
            stall_threshold_ms: super::ms(assigned.stall_threshold),
            total_steps: assigned.total,
            progress: Some(assigned.progress),
            acceptance_criteria: gates
                .map_or_else(Vec::new, |gates| gates.acceptance_criteria.clone()),
            result_schema: gates.and_then(|gates| gates.result_schema.clone()),
            review_by: gates.and_then(|gates| gates.review_by.map(ReviewBy::as_str)),
            branches: branches.iter().map(branch_line).collect(),
            feedback: feedback.clone(),
            dependencies: Dependency::list(&assigned.dependencies),
            decision: decision.as_ref().map(StepDecision::new),
            supersedes: assigned.supersedes.map(|step| step.to_string()),
            held: Held::list(&assigned.held),
        }
    }

    pub(crate) fn ready(plan: PlanId, step: &Step) -> Self {
        NextStep::StepReady {
            plan_id: plan.to_string(),
            step_id: step.id().to_string(),
            step_order: step.order,
            step_type: step.spec.step_type.as_str(),
            title: step.spec.title.as_ref().map(super::line),
            instructions: step.spec.instructions.clone(),
            attempt: step.attempt(),
        }
    }
}

/// The next action when no step is ready: take over a stalled step, submit the result of the caller's
/// own step, or wait for the agent of another one.
fn no_pending_steps_hint(steps: &[StepInProgress], held: &[HeldStep]) -> String {
    let stalled = steps.iter().find(|step| step.stalled);
    if let Some(StepInProgress { order, .. }) = stalled {
        return format!("take over step {order}: {{get_next_step}} with `includeStalled: true`");
    }
    if let Some(HeldStep { order, .. }) = held.first() {
        return format!(
            "a subagent of this session may be working on step {order}: submit its result with \
             {{submit_step_result}} when it is done"
        );
    }
    let first = steps
        .iter()
        .filter_map(|step| Some((step.stalls_at?, step)));
    let Some((stalls_at, step)) = first.min_by_key(|(stalls_at, _)| *stalls_at) else {
        return "get the status of each step from {get_plan_status}".to_owned();
    };
    let holder = match &step.session {
        Some(session) => format!("session `{session}`"),
        None => "another agent".to_owned(),
    };
    format!(
        "{holder} has claimed step {}: wait with {{get_next_step}} and `waitMs: 60000`, or after {} \
         take it over with `includeStalled: true`",
        step.order,
        super::at(stalls_at),
    )
}
