//! Open reviews, and what a decision led to.

use onward_core::step::Review as Open;
use onward_core::{PlanId, StepId};
use onward_engine::list::OpenReview;
use onward_engine::step::Reviewed;
use schemars::JsonSchema;
use serde::Serialize;

/// A question that a person has not answered yet.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Review {
    review_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan_name: Option<String>,
    step_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    step_order: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    summary: String,
    questions: Vec<String>,
    requested_at: String,
}

impl Review {
    /// As an answer that names the plan already holds it.
    pub(crate) fn of(step: StepId, review: &Open) -> Self {
        Self {
            review_id: review.id.to_string(),
            plan_id: None,
            plan_name: None,
            step_id: step.to_string(),
            step_order: None,
            title: None,
            summary: review.summary.clone(),
            questions: review.questions.clone(),
            requested_at: super::at(review.requested_at),
        }
    }

    /// As a list of all of them holds it.
    pub(crate) fn listed(open: &OpenReview, plan_name: &str) -> Self {
        Self {
            plan_id: Some(PlanId::to_string(&open.plan)),
            plan_name: Some(plan_name.to_owned()),
            step_order: Some(open.order),
            title: open.title.clone(),
            ..Self::of(open.step, &open.review)
        }
    }
}

/// What a decision led to.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Decided {
    step_id: String,
    step_status: &'static str,
    plan_id: String,
    plan_status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
}

impl Decided {
    pub(crate) fn of(reviewed: &Reviewed) -> Self {
        Self {
            step_id: reviewed.step.to_string(),
            step_status: reviewed.step_status.as_str(),
            plan_id: reviewed.plan.to_string(),
            plan_status: reviewed.plan_status.as_str(),
            instructions: reviewed.instructions.clone(),
        }
    }
}
