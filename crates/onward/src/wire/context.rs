//! The responses of `get_step_context` and `get_research_context`.

use onward_core::StepId;
use onward_core::id::SessionId;
use onward_engine::context::{
    PlanContext as EnginePlanContext, StepContext as EngineStepContext, StepDetails, StepWithResult,
};
use onward_engine::{Excerpt, OutputExcerpt, Recent, Sheet};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::review::Review;
use super::step::InProgress;

/// The response of `get_step_context`.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StepContext {
    step: StepView,
    plan: PlanHeading,
    prior_results: Vec<PriorResult>,
    artifacts: Vec<Artifact>,
    outputs: Vec<Output>,
    feedback: Vec<String>,
    truncated: bool,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct StepView {
    step_id: String,
    step_order: u32,
    step_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    status: &'static str,
    attempt: u32,
    instructions: String,
    depends_on: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct PlanHeading {
    plan_id: String,
    name: String,
    research_question: String,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct PriorResult {
    step_id: String,
    step_order: u32,
    step_type: &'static str,
    result_summary: Option<String>,
    confidence: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Artifact {
    artifact_id: String,
    title: String,
    artifact_type: String,
    excerpt: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    step_id: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Output {
    output_id: String,
    title: String,
    version: u32,
    media_type: String,
    excerpt: String,
    created_at: String,
}

impl Output {
    fn new(output: OutputExcerpt) -> Self {
        Self {
            output_id: output.id.to_string(),
            title: output.title,
            version: output.version,
            media_type: output.media_type,
            excerpt: output.excerpt,
            created_at: super::at(output.created_at),
        }
    }
}

impl StepContext {
    pub(crate) fn new(context: EngineStepContext) -> Self {
        Self {
            step: StepView::new(context.step),
            plan: PlanHeading {
                plan_id: context.plan.to_string(),
                name: context.name,
                research_question: context.research_question,
            },
            prior_results: context.results.into_iter().map(PriorResult::new).collect(),
            artifacts: context.artifacts.into_iter().map(Artifact::new).collect(),
            outputs: context.outputs.into_iter().map(Output::new).collect(),
            feedback: context.feedback,
            truncated: context.truncated,
        }
    }
}

impl StepView {
    fn new(step: StepDetails) -> Self {
        Self {
            step_id: step.id.to_string(),
            step_order: step.order,
            step_type: step.step_type.as_str(),
            title: step.title,
            status: step.status.as_str(),
            attempt: step.attempt,
            instructions: step.instructions,
            depends_on: step.depends_on.iter().map(StepId::to_string).collect(),
        }
    }
}

impl PriorResult {
    fn new(completed: StepWithResult) -> Self {
        Self {
            step_id: completed.step.id.to_string(),
            step_order: completed.step.order,
            step_type: completed.step.step_type.as_str(),
            result_summary: completed.summary,
            confidence: completed.step.confidence,
            result: completed.data,
        }
    }
}

impl Artifact {
    fn new(artifact: Excerpt) -> Self {
        Self {
            artifact_id: artifact.id.to_string(),
            title: artifact.title,
            artifact_type: artifact.kind,
            excerpt: artifact.excerpt,
            step_id: artifact.step.map(|step| step.to_string()),
        }
    }
}

/// The response of `get_research_context`.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlanContext {
    plan: Plan,
    steps: Vec<Step>,
    #[serde(skip_serializing_if = "is_zero")]
    steps_omitted: u32,
    artifacts: Vec<Artifact>,
    outputs: Vec<Output>,
    #[serde(skip_serializing_if = "Option::is_none")]
    review: Option<Review>,
    interrupted_steps: Vec<InProgress>,
    recent_events: Vec<Event>,
    truncated: bool,
    next: String,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Plan {
    plan_id: String,
    name: String,
    research_question: String,
    status: &'static str,
    progress: u32,
    total_steps: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan_design_rationale: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_formatting_notes: Option<String>,
    created_at: String,
    updated_at: String,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Step {
    step_id: String,
    step_order: u32,
    step_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    status: &'static str,
    attempt: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    result_summary: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Event {
    seq: u64,
    at: String,
    event_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    step_id: Option<String>,
    actor: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Value>,
}

impl PlanContext {
    pub(crate) fn new(context: EnginePlanContext, base_url: Option<&str>) -> Self {
        let review = context.review.map(|(step, review)| {
            let mut review = Review::new(step, &review);
            review.set_url(base_url);
            review
        });
        Self {
            plan: Plan::new(context.sheet),
            steps: context.steps.into_iter().map(Step::new).collect(),
            steps_omitted: context.steps_omitted,
            artifacts: context.artifacts.into_iter().map(Artifact::new).collect(),
            outputs: context.outputs.into_iter().map(Output::new).collect(),
            review,
            interrupted_steps: context.interrupted.iter().map(InProgress::new).collect(),
            recent_events: context.recent.into_iter().map(Event::new).collect(),
            truncated: context.truncated,
            next: context.next,
        }
    }
}

impl Plan {
    fn new(sheet: Sheet) -> Self {
        let Sheet {
            head,
            brief,
            created_at,
            updated_at,
        } = sheet;
        Self {
            plan_id: head.id.to_string(),
            name: brief.name,
            research_question: brief.research_question,
            status: head.status().as_str(),
            progress: head.counts.progress(),
            total_steps: head.counts.total(),
            plan_design_rationale: brief.design_rationale,
            output_formatting_notes: brief.output_formatting_notes,
            created_at: super::at(created_at),
            updated_at: super::at(updated_at),
        }
    }
}

impl Step {
    fn new(completed: StepWithResult) -> Self {
        let step = completed.step;
        Self {
            step_id: step.id.to_string(),
            step_order: step.order,
            step_type: step.step_type.as_str(),
            title: step.title,
            status: step.status.as_str(),
            attempt: step.attempt,
            result_summary: completed.summary,
            confidence: step.confidence,
            result: completed.data,
            reason: step.failure.as_ref().map(ToString::to_string),
        }
    }
}

impl Event {
    fn new(recent: Recent) -> Self {
        Self {
            seq: recent.seq,
            at: super::at(recent.at),
            event_type: recent.name,
            step_id: recent.step.map(|step| step.to_string()),
            actor: recent.actor,
            session_id: recent.session.as_ref().map(SessionId::to_string),
            details: recent.details,
        }
    }
}
