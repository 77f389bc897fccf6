//! Steps in lists and responses.

use std::collections::BTreeMap;

use onward_core::id::SessionId;
use onward_core::step::{ReviewBy, StepState};
use onward_core::{Json, PlanId, Step as CoreStep, StepId, StepStatus, Timestamp};
use onward_engine::list::StepPage;
use onward_engine::next_step::StepInProgress;
use onward_engine::status::StalledStep;
use onward_engine::step::ProgressResponse as Reported;
use onward_engine::{Sheet, StepLine, StepReport};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::excerpt::{self, is_false, is_zero};
use super::gates::Evidence;
use super::review::Review;

/// How to read the truncated part of a list of steps.
pub(crate) const MORE: &str = "{list_plan_steps} lists more steps; {get_research_context} with \
    `stepId`, `part` and `offset` returns a whole text";

/// A step in a list.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Step {
    step_id: String,
    step_order: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    step_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<u32>,
    /// Orders of the steps it depends on
    #[serde(skip_serializing_if = "Vec::is_empty")]
    depends_on: Vec<u32>,
    #[serde(skip_serializing_if = "is_zero")]
    depends_on_omitted: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    result_summary: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    completed_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<String>,
    /// The step that it redoes
    #[serde(skip_serializing_if = "Option::is_none")]
    supersedes: Option<String>,
    /// The step that redoes it
    #[serde(skip_serializing_if = "Option::is_none")]
    superseded_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Value>")]
    step_execution_report: Option<Json>,
}

impl Step {
    pub(crate) fn new(line: &StepLine, cut: &mut bool) -> Self {
        let summary = line.result_summary.as_deref();
        let failure = line.failure.as_ref().map(ToString::to_string);
        let is_completed = line.status == StepStatus::Completed;
        Self {
            step_id: line.id.to_string(),
            step_order: line.order,
            step_type: Some(line.step_type.as_str()),
            status: Some(line.status.as_str()),
            title: line.title.as_ref().map(super::line),
            attempt: Some(line.attempt),
            depends_on: Vec::new(),
            depends_on_omitted: 0,
            result_summary: summary.map(|text| excerpt::summary(text, cut)),
            reason: failure.map(|text| excerpt::summary(&text, cut)),
            completed_at: line.ended_at.filter(|_| is_completed).map(super::at),
            ended_at: line.ended_at.filter(|_| !is_completed).map(super::at),
            supersedes: line.supersedes.map(|step| step.to_string()),
            superseded_by: line.superseded_by.map(|step| step.to_string()),
            step_execution_report: None,
        }
    }

    /// In a list of steps of one status: without the type, the status and the times, and the
    /// attempt only after a retry.
    pub(super) fn brief(line: &StepLine, cut: &mut bool) -> Self {
        let step = Self::new(line, cut);
        Self {
            step_type: None,
            status: step.status.filter(|_| line.status == StepStatus::Skipped),
            attempt: step.attempt.filter(|attempt| *attempt > 1),
            completed_at: None,
            ended_at: None,
            ..step
        }
    }
}

/// The listed dependencies of a step; the rest is counted.
const MAX_DEPENDENCIES: usize = 50;

/// The orders of the steps that a step depends on, and the number of those that are not listed.
pub(super) fn dependencies(all: &BTreeMap<StepId, Vec<u32>>, step: StepId) -> (Vec<u32>, usize) {
    let orders = all.get(&step).map_or(&[][..], Vec::as_slice);
    let omitted = orders.len().saturating_sub(MAX_DEPENDENCIES);
    let listed = orders.iter().copied().take(MAX_DEPENDENCIES);
    (listed.collect(), omitted)
}

/// Steps of a plan in order.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Steps {
    plan_id: String,
    steps: Vec<Step>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    #[serde(skip_serializing_if = "is_false")]
    truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    more: Option<&'static str>,
}

/// Characters of a list apart from its entries.
const LIST_CHARS: usize = 300;

impl Steps {
    /// A page of at most this many characters.
    pub(crate) fn new(
        plan: PlanId,
        page: &StepPage,
        reports: Vec<StepReport>,
        max_chars: usize,
    ) -> Self {
        let mut cut = false;
        let steps = page.steps.iter().map(|line| {
            let (depends_on, depends_on_omitted) = dependencies(&page.depends_on, line.id);
            Step {
                depends_on,
                depends_on_omitted,
                ..Step::new(line, &mut cut)
            }
        });
        let mut steps: Vec<Step> = steps.collect();
        for report in reports {
            cut |= report.report.is_none();
            let step = page.steps.iter().position(|line| line.id == report.step);
            if let Some(step) = step.and_then(|place| steps.get_mut(place)) {
                step.step_execution_report = report.report;
            }
        }
        let fitting = excerpt::limit_chars(&mut steps, max_chars.saturating_sub(LIST_CHARS));
        let last = steps.last().map(|step| step.step_order);
        let next = if fitting < page.steps.len() {
            last
        } else {
            page.next
        };
        Self {
            plan_id: plan.to_string(),
            steps,
            next_cursor: next.map(|order| order.to_string()),
            truncated: cut,
            more: cut.then_some(excerpt::WHOLE_TEXT),
        }
    }
}

/// The response of `report_step_progress`.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProgressReceipt {
    step_id: String,
    last_progress_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    stalls_at: Option<String>,
    plan_status: &'static str,
    /// The new instructions, if they changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
}

impl ProgressReceipt {
    pub(crate) fn new(reported: &Reported) -> Self {
        Self {
            step_id: reported.step.to_string(),
            last_progress_at: super::at(reported.last_progress_at),
            stalls_at: reported.stalls_at.map(super::at),
            plan_status: reported.plan_status.as_str(),
            instructions: reported.changed_instructions.clone(),
        }
    }
}

/// The first step that is in progress or under review.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CurrentStep {
    step_id: String,
    step_order: u32,
    step_type: &'static str,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_progress_at: Option<String>,
    attempt: u32,
}

impl CurrentStep {
    pub(crate) fn new(line: &StepLine) -> Self {
        Self {
            step_id: line.id.to_string(),
            step_order: line.order,
            step_type: line.step_type.as_str(),
            status: line.status.as_str(),
            title: line.title.as_ref().map(super::line),
            started_at: line.started_at.map(super::at),
            last_progress_at: line.last_progress_at.map(super::at),
            attempt: line.attempt,
        }
    }
}

/// A stalled step.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StalledStepView {
    step_id: String,
    step_order: u32,
    elapsed_ms: u64,
    threshold_ms: u64,
    since: String,
}

impl StalledStepView {
    pub(crate) fn new(step: &StalledStep) -> Self {
        Self {
            step_id: step.step.to_string(),
            step_order: step.order,
            elapsed_ms: super::ms(step.elapsed),
            threshold_ms: super::ms(step.threshold),
            since: super::at(step.since),
        }
    }
}

/// A step in progress.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InProgress {
    step_id: String,
    step_order: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    elapsed_ms: u64,
    stalled: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
}

impl InProgress {
    /// Resets the elapsed time, so that two values can be compared.
    pub(crate) fn clear_elapsed(&mut self) {
        self.elapsed_ms = 0;
    }

    pub(crate) fn new(in_progress: &StepInProgress) -> Self {
        Self {
            step_id: in_progress.step.to_string(),
            step_order: in_progress.order,
            title: None,
            elapsed_ms: super::ms(in_progress.elapsed),
            stalled: in_progress.stalled,
            session_id: in_progress.session.as_ref().map(SessionId::to_string),
        }
    }

    pub(crate) fn from_line(line: &StepLine, now: Timestamp) -> Self {
        Self {
            step_id: line.id.to_string(),
            step_order: line.order,
            title: line.title.as_ref().map(super::line),
            elapsed_ms: super::ms(now.since(line.timestamp().reference())),
            stalled: line.is_stalled(now),
            session_id: line.session.as_ref().map(SessionId::to_string),
        }
    }
}

/// A step with its complete texts, as `onward step show --json` prints it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StepDetails {
    plan_id: String,
    plan_name: String,
    plan_status: &'static str,
    step_id: String,
    step_order: u32,
    step_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    status: &'static str,
    stalled: bool,
    attempt: u32,
    max_attempts: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    labels: Vec<String>,
    priority: u8,
    /// Omitted: unknown
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<u64>,
    /// The step's own threshold
    #[serde(skip_serializing_if = "Option::is_none")]
    stall_threshold_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_progress_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stalls_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<String>,
    #[serde(skip_serializing_if = "<[u32]>::is_empty")]
    depends_on: Vec<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    supersedes: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    superseded_by: Option<String>,
    instructions: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    result_schema: Option<Json>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    acceptance_criteria: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    review_by: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    review: Option<Review>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result_summary: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Json>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    evidence: Vec<Evidence>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl StepDetails {
    pub(crate) fn new(
        plan: &Sheet,
        step: &CoreStep,
        line: &StepLine,
        depends_on: &[u32],
        tokens: Option<u64>,
        now: Timestamp,
    ) -> Self {
        let (result, review) = match &step.state {
            StepState::Completed { result, .. } => (Some(result), None),
            StepState::AwaitingInput { review, .. } => (None, Some(review)),
            StepState::Pending { .. }
            | StepState::InProgress(_)
            | StepState::Skipped { .. }
            | StepState::Failed { .. } => (None, None),
        };
        let gates = step.spec.gates.as_deref();
        Self {
            plan_id: plan.head.id.to_string(),
            plan_name: super::line(&plan.brief.name),
            plan_status: plan.head.status().as_str(),
            tokens,
            step_id: line.id.to_string(),
            step_order: line.order,
            step_type: line.step_type.as_str(),
            title: line.title.as_ref().map(super::line),
            status: line.status.as_str(),
            stalled: line.is_stalled(now),
            attempt: line.attempt,
            max_attempts: step.spec.max_attempts,
            labels: step.spec.labels.clone(),
            priority: step.spec.priority,
            stall_threshold_ms: (step.spec.stall_threshold)
                .map(|span| u64::try_from(span.as_millis()).unwrap_or(u64::MAX)),
            session_id: line.session.as_ref().map(SessionId::to_string),
            started_at: line.started_at.map(super::at),
            last_progress_at: line.last_progress_at.map(super::at),
            stalls_at: line.stalls_at.map(super::at),
            ended_at: line.ended_at.map(super::at),
            depends_on: depends_on.to_vec(),
            supersedes: line.supersedes.map(|step| step.to_string()),
            superseded_by: line.superseded_by.map(|step| step.to_string()),
            instructions: step.spec.instructions.clone(),
            result_schema: gates.and_then(|gates| gates.result_schema.clone()),
            acceptance_criteria: gates
                .map_or_else(Vec::new, |gates| gates.acceptance_criteria.clone()),
            review_by: gates.and_then(|gates| gates.review_by.map(ReviewBy::as_str)),
            review: review.map(|review| Review::new(line.id, review)),
            result_summary: result.map(|result| result.summary.clone()),
            data: result.and_then(|result| result.data.clone()),
            evidence: result.map_or_else(Vec::new, |result| Evidence::list(&result.evidence)),
            reason: line.failure.as_ref().map(ToString::to_string),
        }
    }
}
