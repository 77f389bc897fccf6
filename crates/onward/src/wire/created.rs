//! The response of `create_research_plan`.

use onward_core::plan::ForkedFrom;
use onward_core::step::NewStep;
use onward_core::{PlanStatus, StepId};
use onward_engine::create::NewPlan;
use onward_engine::similar;
use schemars::JsonSchema;
use serde::Serialize;

use super::excerpt::{MAX_IDS, is_zero};
use super::review::ReviewLinks;
use crate::output::format;

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CreatedPlan {
    plan_id: String,
    name: String,
    research_question: String,
    status: &'static str,
    step_count: usize,
    steps: Vec<Step>,
    #[serde(skip_serializing_if = "is_zero")]
    steps_omitted: usize,
    /// The step that `get_next_step` returns first.
    #[serde(skip_serializing_if = "Option::is_none")]
    first_step: Option<FirstStep>,
    #[serde(skip_serializing_if = "Option::is_none")]
    skill_execution_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    forked_from: Option<ForkSource>,
    /// Steps that a fork took over with their results
    #[serde(skip_serializing_if = "is_zero")]
    steps_taken_over: usize,
    /// The review in which a person approves the plan
    #[serde(skip_serializing_if = "Option::is_none")]
    approval: Option<Approval>,
    /// Ended plans with a similar question
    #[serde(skip_serializing_if = "Vec::is_empty")]
    similar_plans: Vec<SimilarPlan>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

/// An ended plan with a similar question.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SimilarPlan {
    plan_id: String,
    name: String,
    status: &'static str,
    /// Number of results
    results: u32,
}

/// The pending approval of a plan.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Approval {
    review_id: String,
    step_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    /// Instead of `url`, if no dashboard is running
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
}

/// The source of a fork.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ForkSource {
    plan_id: String,
    step_order: u32,
}

impl ForkSource {
    pub(super) fn new(source: &ForkedFrom) -> Self {
        Self {
            plan_id: source.plan.to_string(),
            step_order: source.step_order,
        }
    }
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Step {
    step_id: String,
    step_order: u32,
    step_type: &'static str,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct FirstStep {
    #[serde(flatten)]
    step: Step,
    instructions: String,
}

impl CreatedPlan {
    pub(crate) fn new(plan: &NewPlan, links: &ReviewLinks) -> Self {
        let created = &plan.created;
        let step = |(order, step): (u32, &NewStep)| Step {
            step_id: step.id.to_string(),
            step_order: order,
            step_type: step.step_type.as_str(),
        };
        let orders = || (1..).zip(&created.steps);
        let is_done = |step: &StepId| plan.taken_over.contains(step);
        let first =
            orders().find(|(_, step)| !is_done(&step.id) && step.depends_on.iter().all(is_done));
        let approval = plan.approval.map(|(review, step)| {
            let review_id = review.to_string();
            Approval {
                url: links.url(&review_id),
                command: links.command(&review_id),
                review_id,
                step_id: step.to_string(),
            }
        });
        let status = if approval.is_some() {
            PlanStatus::AwaitingReview
        } else if plan.taken_over.is_empty() {
            PlanStatus::Planning
        } else {
            PlanStatus::Executing
        };
        Self {
            plan_id: created.plan.to_string(),
            name: created.brief.name.clone(),
            research_question: created.brief.research_question.clone(),
            status: status.as_str(),
            step_count: created.steps.len(),
            steps: orders().take(MAX_IDS).map(step).collect(),
            steps_omitted: created.steps.len().saturating_sub(MAX_IDS),
            first_step: first.map(|first| FirstStep {
                step: step(first),
                instructions: first.1.instructions.clone(),
            }),
            skill_execution_id: plan.skill.map(|skill| skill.to_string()),
            forked_from: created.brief.forked_from.as_ref().map(ForkSource::new),
            steps_taken_over: plan.taken_over.len(),
            approval,
            similar_plans: plan.similar.iter().map(SimilarPlan::new).collect(),
            hint: reuse(&plan.similar),
        }
    }
}

impl SimilarPlan {
    fn new(plan: &similar::SimilarPlan) -> Self {
        Self {
            plan_id: plan.plan.to_string(),
            name: super::line(plan.name.clone()),
            status: plan.status.as_str(),
            results: plan.results,
        }
    }
}

fn reuse(similar: &[similar::SimilarPlan]) -> Option<String> {
    let results: u32 = similar.iter().map(|plan| plan.results).sum();
    let results = format::count(results, "result", "results");
    (!similar.is_empty()).then(|| {
        format!(
            "{results} of ended plans with a similar question can be reused: call `search_sources` \
             before you do a step again"
        )
    })
}
