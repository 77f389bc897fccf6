//! Decides a review. `approve` completes the step with the review's summary and evaluates its
//! branches; `reject` fails the step and the plan; `modify` returns the step to its agent with the
//! feedback; `skip` skips the step. Repeating a decision returns no events, and the caller repeats
//! its first response.

use std::sync::Arc;

use super::check::Check;
use super::claim;
use super::draft::Draft;
use super::facts::StepFacts;
use super::finish::{self, Completion, Outcome};
use crate::command::DecideReview;
use crate::event::{Decided, Decision, Event, ReviewAction};
use crate::plan::PlanFailure;
use crate::policy::MAX_INSTRUCTIONS;
use crate::refusal::Refusal;
use crate::step::{
    FailReason, IllegalStepTransition, Review, SkipCause, Step, StepCause, StepResult, StepState,
    StepStatus,
};
use crate::time::Timestamp;

/// Decides the command.
pub fn decide(
    facts: &StepFacts,
    command: &DecideReview,
    now: Timestamp,
) -> Result<Outcome, Refusal> {
    let StepFacts {
        head: plan,
        step,
        branches,
        ..
    } = facts;
    let mut check = Check::default();
    check.remark("feedback", command.feedback.as_deref());
    check.finish()?;
    claim::check_claim(step, command.token.as_ref())?;
    let feedback = command
        .feedback
        .clone()
        .filter(|text| !text.trim().is_empty());
    let repeated =
        |decided: &Decided| decided.decision == command.decision && decided.feedback == feedback;
    if facts.decided.as_ref().is_some_and(repeated) {
        return Ok(Outcome::Events(Vec::new()));
    }
    if plan.status().is_terminal() {
        return Err(Refusal::PlanIsTerminal(plan.status()));
    }
    let review = open_review(step, command.decision)?;
    if command.decision == Decision::Modify {
        let text = feedback.as_deref().ok_or(Refusal::FeedbackRequired)?;
        let actual = step.spec.instructions.chars().count() + text.chars().count();
        if actual > MAX_INSTRUCTIONS {
            let what = "characters of instructions and feedback";
            return Err(Refusal::LimitExceeded {
                what,
                limit: MAX_INSTRUCTIONS,
                actual,
            });
        }
    }
    let mut draft = Draft::new(plan, now);
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
            let result = Arc::new(StepResult::from_summary(review.summary.clone()));
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
            draft.fail_plan(PlanFailure::Rejected(feedback))?;
            Ok(Outcome::Events(draft.into_events()))
        }
        Decision::Modify => Ok(Outcome::Events(draft.into_events())),
        Decision::Skip => {
            let by = SkipCause::Review(review.id);
            draft.push(Event::StepSkipped {
                step: step.id(),
                from,
                by,
            })?;
            Ok(Outcome::Events(draft.finish()?))
        }
    }
}

fn open_review(step: &Step, decision: Decision) -> Result<&Review, Refusal> {
    let cause = match decision {
        Decision::Approve => StepCause::Approve,
        Decision::Reject => StepCause::Reject,
        Decision::Modify => StepCause::Revise,
        Decision::Skip => StepCause::ReviewSkip,
    };
    match &step.state {
        StepState::AwaitingInput { review, .. } => Ok(review),
        StepState::Pending { .. }
        | StepState::InProgress(_)
        | StepState::Completed { .. }
        | StepState::Skipped { .. }
        | StepState::Failed { .. } => Err(IllegalStepTransition {
            from: step.status(),
            cause,
        }
        .into()),
    }
}
