//! Names of plan and step states for display: *stuck* instead of `stalled`, spaces instead of `_`.

use onward_core::{PlanStatus, StepStatus};

pub(crate) const STUCK: &str = "stuck";

pub(crate) const fn plan_label(status: PlanStatus) -> &'static str {
    match status {
        PlanStatus::Planning => "planning",
        PlanStatus::Executing => "executing",
        PlanStatus::AwaitingReview => "awaiting review",
        PlanStatus::Stalled => STUCK,
        PlanStatus::Completed => "completed",
        PlanStatus::Failed => "failed",
    }
}

pub(crate) const fn step_label(status: StepStatus) -> &'static str {
    match status {
        StepStatus::Pending => "pending",
        StepStatus::InProgress => "in progress",
        StepStatus::AwaitingInput => "awaiting review",
        StepStatus::Completed => "completed",
        StepStatus::Skipped => "skipped",
        StepStatus::Failed => "failed",
    }
}
