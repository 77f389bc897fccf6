//! Plan lists and the response of `get_plan_status`.

use onward_core::Counts;
use onward_core::plan::PlanState;
use onward_engine::list::PlanPage;
use onward_engine::status::Status;
use onward_engine::{Listed, StepLine};
use schemars::JsonSchema;
use serde::Serialize;

use super::step::{CurrentStep, StalledStepView, Step};

/// Plans, most recently changed first.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Plans {
    plans: Vec<Plan>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// A plan in a list.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Plan {
    plan_id: String,
    name: String,
    research_question: String,
    status: &'static str,
    stalled: bool,
    progress: u32,
    total_steps: u32,
    updated_at: String,
}

impl Plans {
    pub(crate) fn new(page: &PlanPage) -> Self {
        Self {
            plans: page.plans.iter().map(Plan::new).collect(),
            next_cursor: None,
        }
    }

    /// Adds the cursor of the next page.
    pub(crate) fn with_cursor(mut self, next: Option<String>) -> Self {
        self.next_cursor = next;
        self
    }
}

impl Plan {
    fn new(listed: &Listed) -> Self {
        let sheet = &listed.sheet;
        Self {
            plan_id: sheet.head.id.to_string(),
            name: sheet.brief.name.clone(),
            research_question: sheet.brief.research_question.clone(),
            status: sheet.head.status().as_str(),
            stalled: listed.stalled,
            progress: sheet.head.counts.progress(),
            total_steps: sheet.head.counts.total(),
            updated_at: super::at(sheet.updated_at),
        }
    }
}

/// The number of steps per status.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StepCounts {
    pending: u32,
    in_progress: u32,
    awaiting_input: u32,
    completed: u32,
    skipped: u32,
    failed: u32,
}

impl StepCounts {
    fn new(counts: &Counts) -> Self {
        Self {
            pending: counts.pending,
            in_progress: counts.in_progress,
            awaiting_input: counts.awaiting_input,
            completed: counts.completed,
            skipped: counts.skipped,
            failed: counts.failed,
        }
    }
}

/// The response of `get_plan_status`.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlanStatusView {
    plan_id: String,
    name: String,
    research_question: String,
    status: &'static str,
    derived_status: &'static str,
    stalled: bool,
    stalled_steps: Vec<StalledStepView>,
    progress: u32,
    total_steps: u32,
    counts: StepCounts,
    current_step: Option<CurrentStep>,
    completed_steps: Vec<Step>,
    pending_steps: Vec<Step>,
    failed_steps: Vec<Step>,
    #[serde(skip_serializing_if = "is_zero")]
    completed_steps_omitted: u32,
    #[serde(skip_serializing_if = "is_zero")]
    pending_steps_omitted: u32,
    #[serde(skip_serializing_if = "is_zero")]
    failed_steps_omitted: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_stall_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    on_stall: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    stall_threshold_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan_design_rationale: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_formatting_notes: Option<String>,
    created_at: String,
    updated_at: String,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl PlanStatusView {
    pub(crate) fn new(status: &Status) -> Self {
        let (head, brief) = (&status.sheet.head, &status.sheet.brief);
        let counts = &head.counts;
        let steps = |lines: &[StepLine]| lines.iter().map(Step::new).collect();
        let omitted = |all: u32, lines: &[StepLine]| {
            all.saturating_sub(u32::try_from(lines.len()).unwrap_or(u32::MAX))
        };
        let reason = match &head.state {
            PlanState::Failed { reason, .. } => Some(reason.to_string()),
            PlanState::Planning
            | PlanState::Executing
            | PlanState::AwaitingReview { .. }
            | PlanState::Stalled { .. }
            | PlanState::Completed { .. } => None,
        };
        let done = counts.completed.saturating_add(counts.skipped);
        Self {
            plan_id: head.id.to_string(),
            name: brief.name.clone(),
            research_question: brief.research_question.clone(),
            status: head.status().as_str(),
            derived_status: status.derived.as_str(),
            stalled: !status.stalled.is_empty(),
            stalled_steps: status.stalled.iter().map(StalledStepView::new).collect(),
            progress: counts.progress(),
            total_steps: counts.total(),
            counts: StepCounts::new(counts),
            current_step: status.current.as_ref().map(CurrentStep::new),
            completed_steps: steps(&status.completed),
            pending_steps: steps(&status.pending),
            failed_steps: steps(&status.failed),
            completed_steps_omitted: omitted(done, &status.completed),
            pending_steps_omitted: omitted(counts.pending, &status.pending),
            failed_steps_omitted: omitted(counts.failed, &status.failed),
            next_stall_at: status.next_stall_at.map(super::at),
            reason,
            on_stall: head.on_stall.as_str(),
            stall_threshold_ms: head.stall_threshold.map(super::ms),
            plan_design_rationale: brief.design_rationale.clone(),
            output_formatting_notes: brief.output_formatting_notes.clone(),
            created_at: super::at(status.sheet.created_at),
            updated_at: super::at(status.sheet.updated_at),
        }
    }
}

/// The plan after a change such as `abandon` or `resume`.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChangedPlan {
    pub(crate) plan_id: String,
    pub(crate) name: String,
    pub(crate) status: &'static str,
}
