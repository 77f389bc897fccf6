//! The responses of `get_step_context` and `get_research_context`.

use onward_core::event::Decision;
use onward_core::step::ReviewBy;
use onward_core::{Json, StepId};
use onward_engine::context::{
    FeedbackEntry, InterruptedStep, OwnStep, PlanContext as EnginePlanContext, ProgressNote,
    SignificantEvent, StepContext as EngineStepContext, StepDetails, StepWithResult,
    TextPage as EngineTextPage,
};
use onward_engine::next_step::BranchOutline;
use onward_engine::{Excerpt, OutputExcerpt, Sheet};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::dependency::Dependency;
use super::excerpt::is_first;
use super::gates::Evidence;
use super::next::branch_line;
use super::review::{Review, ReviewLinks, StepDecision};
use super::step::InProgress;

/// The response of `get_step_context`.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StepContext {
    step: StepView,
    plan: PlanHeading,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    prior_results: Vec<PriorResult>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    dependencies: Vec<Dependency>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    artifacts: Vec<Artifact>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    outputs: Vec<Output>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    feedback: Vec<String>,
    /// The last decision on this step, the previous one or a dependency.
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<StepDecision>,
    truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    more: Option<&'static str>,
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
    #[serde(skip_serializing_if = "Vec::is_empty")]
    depends_on: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    acceptance_criteria: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Value>")]
    result_schema: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    review_by: Option<&'static str>,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    result_summary: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Value>")]
    result: Option<Json>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    evidence: Vec<Evidence>,
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
            title: super::line(output.title),
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
                name: super::line(context.name),
                research_question: context.research_question,
            },
            dependencies: Dependency::list(&context.dependencies),
            prior_results: context.results.into_iter().map(PriorResult::new).collect(),
            artifacts: context.artifacts.into_iter().map(Artifact::new).collect(),
            outputs: context.outputs.into_iter().map(Output::new).collect(),
            feedback: context.feedback,
            decision: context.decision.as_ref().map(StepDecision::new),
            truncated: context.truncated,
            more: context.truncated.then_some(MORE),
        }
    }
}

impl StepView {
    fn new(step: StepDetails) -> Self {
        let gates = step.gates.as_deref();
        Self {
            step_id: step.id.to_string(),
            step_order: step.order,
            step_type: step.step_type.as_str(),
            title: step.title.map(super::line),
            status: step.status.as_str(),
            attempt: step.attempt,
            acceptance_criteria: gates
                .map_or_else(Vec::new, |gates| gates.acceptance_criteria.clone()),
            result_schema: gates.and_then(|gates| gates.result_schema.clone()),
            review_by: gates.and_then(|gates| gates.review_by.map(ReviewBy::as_str)),
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
            evidence: Evidence::list(&completed.evidence),
        }
    }
}

impl Artifact {
    fn new(artifact: Excerpt) -> Self {
        Self {
            artifact_id: artifact.id.to_string(),
            title: super::line(artifact.title),
            artifact_type: artifact.kind,
            excerpt: artifact.excerpt,
            step_id: artifact.step.map(|step| step.to_string()),
        }
    }
}

/// The response of `get_research_context`: the plan, or a page of one of its texts.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Context {
    Plan(Box<PlanContext>),
    Text(TextPage),
}

/// A page of a step's text.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TextPage {
    plan_id: String,
    step_id: String,
    content: String,
    total_chars: usize,
    truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<usize>,
}

impl TextPage {
    pub(crate) fn new(page: EngineTextPage) -> Self {
        Self {
            plan_id: page.plan.to_string(),
            step_id: page.step.to_string(),
            content: page.content,
            total_chars: page.total,
            truncated: page.next.is_some(),
            next_offset: page.next,
        }
    }
}

/// The context for resuming a plan.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlanContext {
    plan: Plan,
    /// Steps that this session holds, with their claims.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    held_steps: Vec<HeldStep>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    steps: Vec<Step>,
    #[serde(skip_serializing_if = "is_zero")]
    steps_omitted: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    artifacts: Vec<Artifact>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    outputs: Vec<Output>,
    #[serde(skip_serializing_if = "Option::is_none")]
    review: Option<Review>,
    /// Steps in progress of other sessions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    interrupted_steps: Vec<Interrupted>,
    /// Notes of `report_step_progress`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<Note>,
    /// Feedback of users.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    feedback: Vec<Feedback>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    recent_events: Vec<Event>,
    truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    more: Option<&'static str>,
    next: String,
}

/// How to read the truncated part of a context.
pub(super) const MORE: &str = "`maxChars` up to 40000 returns more; {get_research_context} with `stepId`, \
    `part` and `offset` returns a whole text, {get_artifact} a whole artifact or output";

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct HeldStep {
    step_id: String,
    step_order: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    instructions: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    acceptance_criteria: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    branches: Vec<String>,
    claim_token: String,
    attempt: u32,
    since: String,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Interrupted {
    #[serde(flatten)]
    in_progress: InProgress,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    branches: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Note {
    #[serde(skip_serializing_if = "Option::is_none")]
    step_order: Option<u32>,
    at: String,
    note: String,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Feedback {
    #[serde(skip_serializing_if = "Option::is_none")]
    step_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<&'static str>,
    text: String,
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
    #[serde(skip_serializing_if = "is_first")]
    attempt: u32,
    /// For the next pending steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    branches: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result_summary: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Value>")]
    result: Option<Json>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    evidence: Vec<Evidence>,
    /// For the next pending steps.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    acceptance_criteria: Vec<String>,
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
    step_order: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

fn lines(outlines: &[BranchOutline]) -> Vec<String> {
    outlines.iter().map(branch_line).collect()
}

impl PlanContext {
    pub(crate) fn new(context: EnginePlanContext, links: &ReviewLinks) -> Self {
        let review = context.review.map(|(step, review)| {
            let mut review = Review::new(step, &review);
            review.set_link(links);
            review
        });
        let mut steps: Vec<Step> = context.steps.into_iter().map(Step::new).collect();
        for focus in context.next_steps {
            let id = focus.id.to_string();
            if let Some(step) = steps.iter_mut().find(|step| step.step_id == id) {
                step.branches = lines(&focus.branches);
                step.instructions = Some(focus.instructions);
                step.acceptance_criteria = focus.criteria;
            }
        }
        Self {
            plan: Plan::new(context.sheet),
            held_steps: context.own.into_iter().map(HeldStep::new).collect(),
            steps,
            steps_omitted: context.steps_omitted,
            artifacts: context.artifacts.into_iter().map(Artifact::new).collect(),
            outputs: context.outputs.into_iter().map(Output::new).collect(),
            review,
            interrupted_steps: context
                .interrupted
                .into_iter()
                .map(Interrupted::new)
                .collect(),
            notes: context.notes.into_iter().map(Note::new).collect(),
            feedback: context.feedback.into_iter().map(Feedback::new).collect(),
            recent_events: context.recent.into_iter().map(Event::new).collect(),
            truncated: context.truncated,
            more: context.truncated.then_some(MORE),
            next: context.next,
        }
    }
}

impl HeldStep {
    fn new(own: OwnStep) -> Self {
        Self {
            step_id: own.focus.id.to_string(),
            step_order: own.order,
            title: own.title.map(super::line),
            branches: lines(&own.focus.branches),
            acceptance_criteria: own.focus.criteria,
            instructions: own.focus.instructions,
            claim_token: own.token.as_str().to_owned(),
            attempt: own.attempt,
            since: super::at(own.since),
        }
    }
}

impl Interrupted {
    fn new(step: InterruptedStep) -> Self {
        let (instructions, branches) = match step.focus {
            Some(focus) => (Some(focus.instructions), lines(&focus.branches)),
            None => (None, Vec::new()),
        };
        Self {
            in_progress: InProgress::new(&step.in_progress),
            instructions,
            branches,
        }
    }
}

impl Note {
    fn new(note: ProgressNote) -> Self {
        Self {
            step_order: note.order,
            at: super::at(note.at),
            note: note.note,
        }
    }
}

impl Feedback {
    fn new(feedback: FeedbackEntry) -> Self {
        Self {
            step_id: feedback.step.map(|step| step.to_string()),
            decision: feedback.decision.map(Decision::as_str),
            text: feedback.text,
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
            ..
        } = sheet;
        Self {
            plan_id: head.id.to_string(),
            name: super::line(brief.name),
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
            title: step.title.map(super::line),
            status: step.status.as_str(),
            attempt: step.attempt,
            instructions: None,
            branches: Vec::new(),
            result_summary: completed.summary,
            confidence: step.confidence,
            result: completed.data,
            evidence: Evidence::list(&completed.evidence),
            acceptance_criteria: Vec::new(),
            reason: step.failure.as_ref().map(ToString::to_string),
        }
    }
}

impl Event {
    fn new(event: SignificantEvent) -> Self {
        Self {
            seq: event.seq,
            at: super::at(event.at),
            event_type: event.name,
            step_order: event.order,
            detail: event.detail,
        }
    }
}
