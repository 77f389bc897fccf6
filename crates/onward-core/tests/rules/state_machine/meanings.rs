//! The meaning of every status and event, for the generated document.

use onward_core::{PlanStatus, StepStatus};

pub(super) const fn plan_meaning(status: PlanStatus) -> &'static str {
    match status {
        PlanStatus::Planning => "No step has been claimed.",
        PlanStatus::Executing => {
            "At least one step has been claimed or has ended, or the start was approved."
        }
        PlanStatus::AwaitingReview => {
            "A review of scope `plan` or `start` is pending. `get_next_step` assigns no step. A \
             review of scope `step` does not change the status of the plan."
        }
        PlanStatus::Stalled => {
            "The sweep found a stalled step, or the budget is exhausted and no step is in progress. \
             The plan resumes with the next claim, result or progress report, or when a user resumes \
             it or raises the budget."
        }
        PlanStatus::Completed => "Every step is completed, skipped or failed. Terminal.",
        PlanStatus::Failed => {
            "A branch failed the plan, a reviewer rejected it, or a user abandoned it. Terminal."
        }
    }
}

pub(super) const fn step_meaning(status: StepStatus) -> &'static str {
    match status {
        StepStatus::Pending => {
            "Not claimed. It can be claimed when all its dependencies are terminal."
        }
        StepStatus::InProgress => "Claimed by an agent. Only this status can stall.",
        StepStatus::AwaitingInput => {
            "Awaiting review: an agent requested it, the step's gates require a review of the \
             submitted result, or the step carries the review of the plan's start."
        }
        StepStatus::Completed => "It has a result. Terminal.",
        StepStatus::Skipped => "Skipped by a branch or by a reviewer. Terminal.",
        StepStatus::Failed => {
            "Failed by a caller, by the stall policy, after its last attempt, or in review. \
             Terminal. The plan continues unless the step was rejected in review."
        }
    }
}

/// The audit entries of plans.
pub(super) const EVENTS: [(&str, &str); 20] = [
    (
        "plan_modified",
        "The plan was created, or its steps or branches changed. `action` is the change.",
    ),
    ("step_started", "A step was claimed."),
    (
        "step_progressed",
        "An agent reported progress or was active, or received feedback or new instructions.",
    ),
    (
        "step_completed",
        "A result was accepted, or approved in a review.",
    ),
    ("step_failed", "A step failed, with its reason."),
    ("step_skipped", "A branch or a reviewer skipped a step."),
    ("step_requeued", "A step was released for another attempt."),
    (
        "branch_taken",
        "The condition of a branch was true, with the effect of the branch.",
    ),
    ("user_reviewed", "A review was requested or decided."),
    (
        "late_result_kept",
        "A result was rejected and its text stored as an artifact.",
    ),
    (
        "plan_status_changed",
        "The previous entry changed the plan's status `from` one `to` another.",
    ),
    (
        "budget_exhausted",
        "A limit of the plan's budget is exhausted. Recorded once until the budget changes.",
    ),
    (
        "plan_stalled",
        "The plan was marked as stalled: a step stalled, or the budget is exhausted.",
    ),
    ("plan_resumed", "A stalled plan was resumed."),
    ("plan_completed", "Every step is terminal."),
    ("plan_failed", "The plan failed, with its reason."),
    (
        "step_orphaned",
        "The session that holds the step ended. Another session can take over the step; a step \
         under review, after a decision that asks for changes.",
    ),
    ("session_resumed", "Another session continued the plan."),
    (
        "skill_started",
        "A skill execution linked to the plan started.",
    ),
    (
        "skill_completed",
        "A skill execution linked to the plan ended.",
    ),
];
