//! Steps in lists and answers.

use onward_core::id::SessionId;
use onward_core::{PlanId, Timestamp};
use onward_engine::StepLine;
use onward_engine::list::StepPage;
use onward_engine::next::Working;
use onward_engine::status::StalledStep;
use onward_engine::step::Progressed as Reported;
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
    #[serde(skip_serializing_if = "Option::is_none")]
    result_summary: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<String>,
}

impl Step {
    pub(crate) fn of(line: &StepLine) -> Self {
        Self {
            step_id: line.id.to_string(),
            step_order: line.order,
            step_type: line.step_type.as_str(),
            status: line.status.as_str(),
            title: line.title.clone(),
            attempt: line.attempt,
            result_summary: line.result_summary.clone(),
            reason: line.failure.as_ref().map(ToString::to_string),
            ended_at: line.ended_at.map(super::at),
        }
    }
}

/// Steps of a plan, in their order.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Steps {
    plan_id: String,
    steps: Vec<Step>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

impl Steps {
    pub(crate) fn of(plan: PlanId, page: &StepPage) -> Self {
        Self {
            plan_id: plan.to_string(),
            steps: page.steps.iter().map(Step::of).collect(),
            next_cursor: page.next.map(|order| order.to_string()),
        }
    }
}

/// A sign of life that was recorded.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Progressed {
    step_id: String,
    last_progress_at: String,
    stalls_at: Option<String>,
    plan_status: &'static str,
}

impl Progressed {
    pub(crate) fn of(reported: &Reported) -> Self {
        Self {
            step_id: reported.step.to_string(),
            last_progress_at: super::at(reported.last_progress_at),
            stalls_at: reported.stalls_at.map(super::at),
            plan_status: reported.plan_status.as_str(),
        }
    }
}

/// The step that somebody works on, or that waits for a person.
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
    pub(crate) fn of(line: &StepLine) -> Self {
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

/// A step past its threshold.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Stalled {
    step_id: String,
    step_order: u32,
    elapsed_ms: u64,
    threshold_ms: u64,
    since: String,
}

impl Stalled {
    pub(crate) fn of(step: &StalledStep) -> Self {
        Self {
            step_id: step.step.to_string(),
            step_order: step.order,
            elapsed_ms: super::ms(step.elapsed),
            threshold_ms: super::ms(step.threshold),
            since: super::at(step.since),
        }
    }
}

/// A step that somebody works on.
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
    /// Says nothing of how long it is silent, so that two of them can be compared.
    pub(crate) fn forget_time(&mut self) {
        self.elapsed_ms = 0;
    }

    pub(crate) fn of(working: &Working) -> Self {
        Self {
            step_id: working.step.to_string(),
            step_order: working.order,
            title: None,
            elapsed_ms: super::ms(working.elapsed),
            stalled: working.stalled,
            session_id: working.session.as_ref().map(SessionId::to_string),
        }
    }

    /// Out of a list; silent since the given instant.
    pub(crate) fn of_line(line: &StepLine, since: Timestamp, now: Timestamp) -> Self {
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
