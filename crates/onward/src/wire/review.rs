//! Open reviews, and the responses of `request_user_review` and `submit_user_decision`.

use std::sync::Arc;

use onward_core::event::Decision;
use onward_core::step::{Review as CoreReview, ReviewBy, ReviewField, StepResult};
use onward_core::{Json, PlanId, Step, StepId, StepStatus};
use onward_engine::Sheet;
use onward_engine::list::OpenReview;
use onward_engine::next_step::StepDecision as EngineStepDecision;
use onward_engine::step::{OpenedReview, ReviewResponse};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::branch::TakenBranch;
use super::gates::Evidence;
use crate::output::format;

/// A review without a decision.
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
    #[serde(skip_serializing_if = "Vec::is_empty")]
    questions: Vec<String>,
    /// Typed questions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fields: Vec<Field>,
    /// Deadline of the decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    due_at: Option<String>,
    /// What happens at the deadline.
    #[serde(skip_serializing_if = "Option::is_none")]
    on_deadline: Option<&'static str>,
    /// The member who should decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    assignee: Option<String>,
    requested_at: String,
    /// What waits for the decision: the plan, or the step and those that depend on it.
    scope: &'static str,
    /// Who must decide, if the step requires a review.
    #[serde(skip_serializing_if = "Option::is_none")]
    review_by: Option<&'static str>,
    /// The result under review.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<ReviewedResult>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    /// Instead of `url`, if no dashboard is running
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
}

/// A typed question.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Field {
    name: String,
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    options: Vec<FieldOption>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Value>")]
    default: Option<Json>,
}

/// A value to choose.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct FieldOption {
    value: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
}

impl Field {
    fn new(field: &ReviewField) -> Self {
        let options = field.options.iter().map(|option| FieldOption {
            value: option.value.clone(),
            title: option.title.clone(),
        });
        Self {
            name: field.name.clone(),
            kind: field.kind.as_str(),
            title: field.title.clone(),
            options: options.collect(),
            default: field.default.clone(),
        }
    }
}

/// A result under review. Its summary is that of the review.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ReviewedResult {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Value>")]
    result: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    evidence: Vec<Evidence>,
}

impl ReviewedResult {
    /// `None` if there is nothing besides the summary.
    fn new(result: &StepResult) -> Option<Self> {
        let view = Self {
            result: result.data.clone(),
            confidence: result.confidence,
            evidence: Evidence::list(&result.evidence),
        };
        let has_more =
            view.result.is_some() || view.confidence.is_some() || !view.evidence.is_empty();
        has_more.then_some(view)
    }
}

impl Review {
    /// Adds the link to the review.
    pub(super) fn set_link(&mut self, links: &ReviewLinks) {
        self.url = links.url(&self.review_id);
        self.command = links.command(&self.review_id);
    }

    /// A review inside a response that already names the plan.
    pub(crate) fn new(step: StepId, review: &CoreReview) -> Self {
        let deadline = review.options.deadline;
        Self {
            review_id: review.id.to_string(),
            plan_id: None,
            plan_name: None,
            step_id: step.to_string(),
            step_order: None,
            title: None,
            summary: review.summary.clone(),
            questions: review.questions.clone(),
            fields: review.options.fields.iter().map(Field::new).collect(),
            due_at: deadline.map(|deadline| super::at(deadline.at)),
            on_deadline: deadline.map(|deadline| deadline.action.as_str()),
            assignee: review.options.assignee.as_ref().map(super::line),
            requested_at: super::at(review.requested_at),
            scope: review.scope.as_str(),
            review_by: review.by.map(ReviewBy::as_str),
            result: review.result.as_deref().and_then(ReviewedResult::new),
            url: None,
            command: None,
        }
    }

    /// A review in a list of reviews of several plans.
    pub(crate) fn list_entry(open: &OpenReview, plan_name: &str) -> Self {
        Self {
            plan_id: Some(PlanId::to_string(&open.plan)),
            plan_name: Some(super::line(plan_name)),
            step_order: Some(open.order),
            title: open.title.as_ref().map(super::line),
            ..Self::new(open.step, &open.review)
        }
    }
}

/// The response of `submit_user_decision`.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DecisionOutcome {
    step_id: String,
    step_status: &'static str,
    plan_id: String,
    plan_status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    branch_taken: Option<TakenBranch>,
    /// Why the plan failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl DecisionOutcome {
    pub(crate) fn new(reviewed: &ReviewResponse) -> Self {
        Self {
            step_id: reviewed.step.to_string(),
            step_status: reviewed.step_status.as_str(),
            plan_id: reviewed.plan.to_string(),
            plan_status: reviewed.plan_status.as_str(),
            instructions: reviewed.instructions.clone(),
            branch_taken: reviewed.taken_branch.as_ref().map(TakenBranch::new),
            reason: reviewed.failure.as_ref().map(ToString::to_string),
        }
    }
}

/// The response of `request_user_review`.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReviewOutcome {
    review_id: String,
    step_id: String,
    step_status: &'static str,
    plan_id: String,
    plan_status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    /// Instead of `url`, if no dashboard is running
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
}

impl ReviewOutcome {
    /// The review is open.
    pub(crate) fn pending(asked: &OpenedReview, links: &ReviewLinks) -> Self {
        let review_id = asked.review.to_string();
        Self {
            url: links.url(&review_id),
            command: links.command(&review_id),
            review_id,
            step_id: asked.step.to_string(),
            step_status: StepStatus::AwaitingInput.as_str(),
            plan_id: asked.plan.to_string(),
            plan_status: asked.plan_status.as_str(),
            decision: None,
            instructions: None,
        }
    }

    /// The current state, with the decision if it is known.
    pub(crate) fn current(
        review_id: String,
        plan: &Sheet,
        step: &Step,
        decision: Option<Decision>,
        links: &ReviewLinks,
    ) -> Self {
        let instructions = decision.filter(|decision| *decision == Decision::Modify);
        Self {
            url: links.url(&review_id),
            command: links.command(&review_id),
            review_id,
            step_id: step.id().to_string(),
            step_status: step.status().as_str(),
            plan_id: plan.head.id.to_string(),
            plan_status: plan.head.status().as_str(),
            decision: decision.map(Decision::as_str),
            instructions: instructions.map(|_| step.spec.instructions.clone()),
        }
    }

    /// The user decided in an elicitation form.
    pub(crate) fn decided(
        review_id: String,
        decision: Decision,
        reviewed: &ReviewResponse,
    ) -> Self {
        Self {
            url: None,
            command: None,
            review_id,
            step_id: reviewed.step.to_string(),
            step_status: reviewed.step_status.as_str(),
            plan_id: reviewed.plan.to_string(),
            plan_status: reviewed.plan_status.as_str(),
            decision: Some(decision.as_str()),
            instructions: reviewed.instructions.clone(),
        }
    }
}

/// A decision on a review, for the agent that continues.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StepDecision {
    step_id: String,
    step_order: u32,
    decision: &'static str,
    /// By the name of the field.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Value>")]
    answers: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    feedback: Option<String>,
}

impl StepDecision {
    pub(super) fn new(source: &EngineStepDecision) -> Self {
        let decided = &source.decided;
        Self {
            step_id: source.step.to_string(),
            step_order: source.order,
            decision: decided.decision.as_str(),
            answers: decided.answers.clone(),
            feedback: decided.remark().map(str::to_owned),
        }
    }
}

/// How a user opens a review.
pub(crate) enum ReviewLinks {
    /// On the dashboard with this base URL.
    Page(Arc<str>),
    /// With the command line: `onward` with the options that select the database.
    Command(Arc<str>),
    None,
}

impl ReviewLinks {
    pub(crate) fn base_url(&self) -> Option<&str> {
        match self {
            ReviewLinks::Page(base) => Some(base),
            ReviewLinks::Command(_) | ReviewLinks::None => None,
        }
    }

    pub(crate) fn url(&self, review_id: &str) -> Option<String> {
        let base = self.base_url()?.trim_end_matches('/');
        Some(format!("{base}/reviews/{review_id}"))
    }

    pub(crate) fn command(&self, review_id: &str) -> Option<String> {
        match self {
            ReviewLinks::Command(onward) => Some(format!(
                "{onward} review show {}",
                format::short_id(review_id)
            )),
            ReviewLinks::Page(_) | ReviewLinks::None => None,
        }
    }
}
