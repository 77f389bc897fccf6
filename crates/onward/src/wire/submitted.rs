//! What a result led to: the answer of `submit_step_result`.

use onward_core::branch::{Effect, Verdict};
use onward_core::id::BranchId;
use onward_core::{PlanStatus, StepId, StepStatus};
use onward_engine::submit::Submitted as Done;
use schemars::JsonSchema;
use serde::Serialize;

use super::next::NextStep;

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Submitted {
    step_id: String,
    step_status: &'static str,
    plan_id: String,
    plan_status: &'static str,
    progress: u32,
    branches: Vec<Tried>,
    #[serde(skip_serializing_if = "Option::is_none")]
    branch_taken: Option<Taken>,
    next: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_step: Option<NextStep>,
}

/// A branch that was tried.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Tried {
    branch_id: String,
    condition_expression: String,
    matched: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// The branch that was true, and what it did.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Taken {
    branch_id: String,
    action: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped_step_ids: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    added_step_ids: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl Submitted {
    pub(crate) fn of(done: &Done, base_url: Option<&str>) -> Self {
        let next = match done.plan_status {
            PlanStatus::Planning | PlanStatus::Executing | PlanStatus::Stalled => "get_next_step",
            PlanStatus::AwaitingReview => "await_review",
            PlanStatus::Completed => "plan_complete",
            PlanStatus::Failed => "plan_failed",
        };
        let next_step = done.next_step.as_ref();
        Self {
            step_id: done.step.to_string(),
            step_status: StepStatus::Completed.as_str(),
            plan_id: done.plan.to_string(),
            plan_status: done.plan_status.as_str(),
            progress: done.progress,
            branches: done.verdicts.iter().map(Tried::of).collect(),
            branch_taken: done.taken.as_ref().map(Taken::of),
            next,
            next_step: next_step.map(|next| NextStep::of(done.plan, next).linked(base_url)),
        }
    }
}

impl Tried {
    fn of(verdict: &Verdict) -> Self {
        Self {
            branch_id: verdict.branch.to_string(),
            condition_expression: verdict.condition.clone(),
            matched: verdict.matched,
            error: verdict.error.clone(),
        }
    }
}

impl Taken {
    fn of((branch, effect): &(BranchId, Effect)) -> Self {
        let mut taken = Self {
            branch_id: branch.to_string(),
            action: effect.action(),
            skipped_step_ids: None,
            added_step_ids: None,
            reason: None,
        };
        match effect {
            Effect::Continued => {}
            Effect::Skipped { steps, .. } => {
                taken.skipped_step_ids = Some(steps.iter().map(StepId::to_string).collect());
            }
            Effect::Added { steps } => {
                let ids = steps.iter().map(|step| step.id.to_string());
                taken.added_step_ids = Some(ids.collect());
            }
            Effect::FailedPlan { reason } => taken.reason.clone_from(reason),
            Effect::Nothing { why } => taken.reason = Some(why.to_string()),
        }
        taken
    }
}
