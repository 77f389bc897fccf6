//! A person decides a review. Approval completes the step with the review's summary and tries its
//! branches; rejection fails step and plan; `modify` gives the step back to its agent with the
//! feedback; `skip` passes over it.

use std::sync::Arc;

use super::check::Check;
use super::draft::Draft;
use super::finish::{self, Completion, Settled};
use crate::branch::Branch;
use crate::command::DecideReview;
use crate::event::{Decision, Event, ReviewAction};
use crate::plan::{PlanFailure, PlanHead};
use crate::policy::MAX_INSTRUCTIONS;
use crate::refusal::Refusal;
use crate::step::{
    FailReason, IllegalStepMove, Review, SkipCause, Step, StepCause, StepResult, StepState,
    StepStatus,
};
use crate::time::Timestamp;

/// What must be known.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The plan.
    pub plan: &'a PlanHead,
    /// The step.
    pub step: &'a Step,
    /// Its branches, in the order in which they were made.
    pub branches: &'a [Branch],
}

/// Decides what the decision leads to.
pub fn decide(
    facts: &Facts<'_>,
    command: &DecideReview,
    now: Timestamp,
) -> Result<Settled, Refusal> {
    let Facts {
        plan,
        step,
        branches,
    } = *facts;
    let mut check = Check::default();
    check.remark("feedback", command.feedback.as_deref());
    check.done()?;
    if plan.status().is_terminal() {
        return Err(Refusal::PlanIsTerminal(plan.status()));
    }
    let review = open_review(step, command.decision)?;
    let feedback = command
        .feedback
        .clone()
        .filter(|words| !words.trim().is_empty());
    if command.decision == Decision::Modify {
        let words = feedback.as_deref().ok_or(Refusal::FeedbackRequired)?;
        let asked = step.spec.instructions.chars().count() + words.chars().count();
        if asked > MAX_INSTRUCTIONS {
            let what = "characters of instructions and feedback";
            return Err(Refusal::LimitExceeded {
                what,
                limit: MAX_INSTRUCTIONS,
                asked,
            });
        }
    }
    let mut draft = Draft::of(plan, now);
    draft.push(Event::UserReviewed {
        step: step.id(),
        review: review.id,
        action: ReviewAction::Decided {
            decision: command.decision,
            feedback: feedback.clone(),
        },
    })?;
    let from = StepStatus::AwaitingInput;
    match command.decision {
        Decision::Approve => {
            let result = Arc::new(StepResult::of_summary(review.summary.clone()));
            let completion = Completion {
                step,
                from,
                attempt: step.attempt(),
                result,
                session: None,
            };
            finish::complete(draft, completion, branches)
        }
        Decision::Reject => {
            let reason = FailReason::Rejected(feedback.clone());
            draft.push(Event::StepFailed {
                step: step.id(),
                from,
                reason,
            })?;
            draft.push(Event::PlanFailed {
                reason: PlanFailure::Rejected(feedback),
            })?;
            Ok(Settled::Events(draft.done()))
        }
        Decision::Modify => Ok(Settled::Events(draft.done())),
        Decision::Skip => {
            let by = SkipCause::Review(review.id);
            draft.push(Event::StepSkipped {
                step: step.id(),
                from,
                by,
            })?;
            Ok(Settled::Events(draft.settle()?))
        }
    }
}

fn open_review(step: &Step, decision: Decision) -> Result<&Review, Refusal> {
    let asked = match decision {
        Decision::Approve => StepCause::Approve,
        Decision::Reject => StepCause::Reject,
        Decision::Modify => StepCause::Revise,
        Decision::Skip => StepCause::Skip,
    };
    match &step.state {
        StepState::AwaitingInput { review, .. } => Ok(review),
        StepState::Pending { .. }
        | StepState::InProgress(_)
        | StepState::Completed { .. }
        | StepState::Skipped { .. }
        | StepState::Failed { .. } => Err(IllegalStepMove {
            from: step.status(),
            asked,
        }
        .into()),
    }
}
