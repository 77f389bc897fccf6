//! The response of `submit_step_result`.

use onward_core::PlanStatus;
use onward_core::branch::BranchVerdict;
use onward_engine::next_step::NextStep as EngineNextStep;
use onward_engine::submit::SubmitResponse;
use schemars::JsonSchema;
use serde::Serialize;

use super::branch::TakenBranch;
use super::next::NextStep;
use super::review::ReviewLinks;
use crate::hint::Interface;

/// With a claimed `nextStep`, the response omits the step's id, which the call names; and `nextStep`
/// does not repeat the plan's id and progress.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SubmittedResult {
    #[serde(skip_serializing_if = "Option::is_none")]
    step_id: Option<String>,
    step_status: &'static str,
    /// The review of the result, if the step requires one.
    #[serde(skip_serializing_if = "Option::is_none")]
    review_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    /// Instead of `url`, if no dashboard is running
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    plan_id: String,
    plan_status: &'static str,
    progress: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    branches: Vec<BranchEvaluation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    branch_taken: Option<TakenBranch>,
    next: &'static str,
    /// The instructions changed while the step was in progress; the result is accepted as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions_changed: Option<bool>,
    /// The new instructions.
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_step: Option<NextStep>,
}

/// An evaluated branch.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct BranchEvaluation {
    branch_id: String,
    condition_expression: String,
    matched: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl SubmittedResult {
    pub(crate) fn new(
        submitted: &SubmitResponse,
        interface: Interface,
        links: &ReviewLinks,
    ) -> Self {
        let claims_next = matches!(submitted.next_step, Some(EngineNextStep::Started(_)));
        let next = match submitted.plan_status {
            PlanStatus::Planning | PlanStatus::Executing | PlanStatus::Stalled if claims_next => {
                "submit_step_result"
            }
            PlanStatus::Planning | PlanStatus::Executing | PlanStatus::Stalled => "get_next_step",
            PlanStatus::AwaitingReview => "await_review",
            PlanStatus::Completed => "plan_complete",
            PlanStatus::Failed => "plan_failed",
        };
        let review_id = submitted.review.map(|review| review.to_string());
        let next_step = submitted.next_step.as_ref();
        let changed = submitted.changed_instructions.as_ref();
        // Repeated values cost the agent in every step of the loop.
        Self {
            step_id: (!claims_next).then(|| submitted.step.to_string()),
            step_status: submitted.step_status.as_str(),
            url: review_id.as_ref().and_then(|review| links.url(review)),
            command: review_id.as_ref().and_then(|review| links.command(review)),
            review_id,
            plan_id: submitted.plan.to_string(),
            plan_status: submitted.plan_status.as_str(),
            progress: submitted.progress,
            branches: submitted
                .verdicts
                .iter()
                .map(BranchEvaluation::new)
                .collect(),
            branch_taken: submitted.taken_branch.as_ref().map(TakenBranch::new),
            next,
            instructions_changed: changed.is_some().then_some(true),
            instructions: changed.cloned(),
            next_step: next_step.map(|next| {
                let next = NextStep::new(Some(submitted.plan), next).for_caller(interface, links);
                next.without_plan()
            }),
        }
    }
}

impl BranchEvaluation {
    fn new(verdict: &BranchVerdict) -> Self {
        Self {
            branch_id: verdict.branch.to_string(),
            condition_expression: verdict.condition.clone(),
            matched: verdict.matched,
            error: verdict.error.clone(),
        }
    }
}
