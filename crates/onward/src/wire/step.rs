//! Steps in lists and responses.

use std::collections::BTreeMap;

use onward_core::id::SessionId;
use onward_core::{PlanId, StepId, Timestamp};
use onward_engine::StepLine;
use onward_engine::list::StepPage;
use onward_engine::next_step::StepInProgress;
use onward_engine::status::StalledStep;
use onward_engine::step::ProgressResponse as Reported;
use schemars::JsonSchema;
use serde::Serialize;

/// A step in a list.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Step {
    step_id: String,
    step_order: u32,
    step_type: &'static str,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    attempt: u32,
    /// Orders of the steps it depends on
    #[serde(skip_serializing_if = "Vec::is_empty")]
    depends_on: Vec<u32>,
    #[serde(skip_serializing_if = "is_zero")]
    depends_on_omitted: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    result_summary: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<String>,
}

impl Step {
    pub(crate) fn new(line: &StepLine) -> Self {
        Self {
            step_id: line.id.to_string(),
            step_order: line.order,
            step_type: line.step_type.as_str(),
            status: line.status.as_str(),
            title: line.title.clone(),
            attempt: line.attempt,
            depends_on: Vec::new(),
            depends_on_omitted: 0,
            result_summary: line.result_summary.clone(),
            reason: line.failure.as_ref().map(ToString::to_string),
            ended_at: line.ended_at.map(super::at),
        }
    }
}

/// The listed dependencies of a step; the rest is counted.
const MAX_DEPENDENCIES: usize = 50;

/// The orders of the steps that a step depends on, and the number of those that are not listed.
pub(super) fn dependencies(all: &BTreeMap<StepId, Vec<u32>>, step: StepId) -> (Vec<u32>, u32) {
    let orders = all.get(&step).map_or(&[][..], Vec::as_slice);
    let omitted = orders.len().saturating_sub(MAX_DEPENDENCIES);
    let listed = orders.iter().copied().take(MAX_DEPENDENCIES);
    (listed.collect(), u32::try_from(omitted).unwrap_or(u32::MAX))
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Steps of a plan in order.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Steps {
    plan_id: String,
    steps: Vec<Step>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

impl Steps {
    pub(crate) fn new(plan: PlanId, page: &StepPage) -> Self {
        let step = |line: &StepLine| {
            let (depends_on, depends_on_omitted) = dependencies(&page.depends_on, line.id);
            Step {
                depends_on,
                depends_on_omitted,
                ..Step::new(line)
            }
        };
        Self {
            plan_id: plan.to_string(),
            steps: page.steps.iter().map(step).collect(),
            next_cursor: page.next.map(|order| order.to_string()),
        }
    }
}

/// The response of `report_step_progress`.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProgressReceipt {
    step_id: String,
    last_progress_at: String,
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
    started_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_progress_at: Option<String>,
    attempt: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
}

impl CurrentStep {
    pub(crate) fn new(line: &StepLine) -> Self {
        Self {
            step_id: line.id.to_string(),
            step_order: line.order,
            step_type: line.step_type.as_str(),
            status: line.status.as_str(),
            title: line.title.clone(),
            started_at: line.started_at.map(super::at),
            last_progress_at: line.last_progress_at.map(super::at),
            attempt: line.attempt,
            session_id: line.session.as_ref().map(SessionId::to_string),
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

    /// From a list entry whose last activity was at `since`.
    pub(crate) fn from_line(line: &StepLine, since: Timestamp, now: Timestamp) -> Self {
        Self {
            step_id: line.id.to_string(),
            step_order: line.order,
            title: line.title.clone(),
            elapsed_ms: super::ms(now.since(since)),
            stalled: line.stalls_at.is_some_and(|at| now > at),
            session_id: line.session.as_ref().map(SessionId::to_string),
        }
    }
}
