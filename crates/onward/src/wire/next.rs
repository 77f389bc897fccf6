//! What comes next: the answer of `get_next_step`, and the same without handing anything out.

use onward_core::{PlanId, Step};
use onward_engine::next::{Handed, Next};
use schemars::JsonSchema;
use serde::Serialize;

use super::review::Review;
use super::step::InProgress;

/// What comes next, or why nothing does.
#[derive(Serialize, JsonSchema)]
#[serde(
    tag = "status",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
pub(crate) enum NextStep {
    /// Handed out under a claim.
    StepStarted {
        plan_id: String,
        step_id: String,
        step_order: u32,
        step_type: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        instructions: String,
        attempt: u32,
        claim_token: String,
        stall_threshold_ms: u64,
        total_steps: u32,
        progress: u32,
    },
    /// Would be handed out: what `onward plan next` shows, and no tool.
    #[schemars(skip)]
    StepReady {
        plan_id: String,
        step_id: String,
        step_order: u32,
        step_type: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        instructions: String,
        attempt: u32,
    },
    PlanComplete {
        plan_id: String,
        output_media_type: Option<String>,
        output_formatting_instructions: Option<String>,
        plan_formatting_notes: Option<String>,
        step_formatting_notes: Vec<Notes>,
    },
    PlanFailed {
        plan_id: String,
        reason: String,
    },
    AwaitingReview {
        plan_id: String,
        review: Review,
    },
    NoPendingSteps {
        plan_id: String,
        in_progress_count: u32,
        failed_count: u32,
        blocked_count: u32,
        in_progress: Vec<InProgress>,
    },
}

/// How the output should show a step's result.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Notes {
    step_id: String,
    step_order: u32,
    notes: String,
}

impl NextStep {
    pub(crate) fn of(plan: PlanId, next: &Next) -> Self {
        let plan_id = plan.to_string();
        match next {
            Next::Started(handed) => Self::started(handed),
            Next::Complete(notes) => NextStep::PlanComplete {
                plan_id,
                output_media_type: notes.media_type.clone(),
                output_formatting_instructions: notes.instructions.clone(),
                plan_formatting_notes: notes.plan.clone(),
                step_formatting_notes: notes
                    .steps
                    .iter()
                    .map(|(step, order, notes)| Notes {
                        step_id: step.to_string(),
                        step_order: *order,
                        notes: notes.clone(),
                    })
                    .collect(),
            },
            Next::Failed { reason } => NextStep::PlanFailed {
                plan_id,
                reason: reason.to_string(),
            },
            Next::AwaitingReview { step, review } => NextStep::AwaitingReview {
                plan_id,
                review: Review::of(*step, review),
            },
            Next::NoPendingSteps {
                in_progress,
                failed,
                blocked,
                working,
            } => NextStep::NoPendingSteps {
                plan_id,
                in_progress_count: *in_progress,
                failed_count: *failed,
                blocked_count: *blocked,
                in_progress: working.iter().map(InProgress::of).collect(),
            },
        }
    }

    /// The same, with where a person finds the review.
    pub(crate) fn linked(mut self, base_url: Option<&str>) -> Self {
        if let NextStep::AwaitingReview { review, .. } = &mut self {
            review.link(base_url);
        }
        self
    }

    fn started(handed: &Handed) -> Self {
        NextStep::StepStarted {
            plan_id: handed.plan.to_string(),
            step_id: handed.step.to_string(),
            step_order: handed.order,
            step_type: handed.step_type.as_str(),
            title: handed.title.clone(),
            instructions: handed.instructions.clone(),
            attempt: handed.attempt,
            claim_token: handed.token.as_str().to_owned(),
            stall_threshold_ms: super::ms(handed.stall_threshold),
            total_steps: handed.total,
            progress: handed.progress,
        }
    }

    pub(crate) fn ready(plan: PlanId, step: &Step) -> Self {
        NextStep::StepReady {
            plan_id: plan.to_string(),
            step_id: step.id().to_string(),
            step_order: step.order,
            step_type: step.spec.step_type.as_str(),
            title: step.spec.title.clone(),
            instructions: step.spec.instructions.clone(),
            attempt: step.attempt(),
        }
    }
}
