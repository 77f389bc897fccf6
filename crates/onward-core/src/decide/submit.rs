//! Submits a step's result. Submitting the same result again under the same claim returns no
//! events, and the caller repeats its first response.
//!
//! A step without a claim is claimed first, and a stalled plan is resumed first, each with a
//! separate event. A result must meet the step's gates; if they require a review, it is not a
//! completion but a request for the review of this result. A pending step with open dependencies cannot be claimed, and its result is
//! rejected. A rejected result must be stored: see
//! [`Command::late_result`](crate::Command::late_result).

use super::check::Check;
use super::claim::{self, ClaimStatus};
use super::draft::Draft;
use super::facts::{StepFacts, With};
use super::finish::{self, Completion, Outcome};
use super::gates;
use crate::command::SubmitResult;
use crate::event::{Event, ResumedBy, ReviewAction};
use crate::plan::{IllegalPlanTransition, PlanCause, PlanStatus};
use crate::refusal::Refusal;
use crate::step::{
    Claim, ReviewOptions, ReviewScope, Step, StepCause, StepResult, StepState, StepStatus,
};
use crate::time::Timestamp;

/// The facts to load with the step.
pub const FACTS: With = With::Branches;

/// Decides the command.
pub fn decide(
    facts: &StepFacts,
    command: &SubmitResult,
    now: Timestamp,
) -> Result<Outcome, Refusal> {
    let StepFacts {
        head: plan,
        step,
        branches,
        ..
    } = facts;
    let gates = step.spec.gates.as_deref();
    let result = gates::with_criteria(gates, &command.result);
    if is_repetition(step, command, &result) {
        return Ok(Outcome::Events(Vec::new()));
    }
    let mut check = Check::default();
    check.result(&result);
    check.submission(gates, &result);
    check.finish()?;
    let token = command.token.as_ref();
    let claim_status = claim::check_claim(step, token)?;
    let session = claim::calling_session(step, token, command.session.as_ref());
    if plan.status().is_terminal() {
        return Err(Refusal::PlanIsTerminal(plan.status()));
    }
    let mut draft = Draft::new(plan, now);
    if plan.status() == PlanStatus::Stalled {
        draft.push(Event::PlanResumed {
            by: ResumedBy::LateResult,
        })?;
    }
    let mut attempt = step.attempt();
    if claim_status == ClaimStatus::Unclaimed {
        // During a review no step is started, but an agent may reclaim a step that it had.
        let can_reclaim = claim::can_reclaim(step, token);
        if plan.status() == PlanStatus::AwaitingReview && !can_reclaim {
            return Err(IllegalPlanTransition {
                from: plan.status(),
                cause: PlanCause::Begin,
            }
            .into());
        }
        if facts.open_dependencies.total > 0 {
            return Err(Refusal::DependenciesOpen(facts.open_dependencies.clone()));
        }
        let token = token.unwrap_or(&command.fresh_token);
        let claim = claim::next_claim(step, token, session.as_ref());
        attempt = claim.attempt;
        draft.push(Event::StepStarted {
            step: step.id(),
            claim,
        })?;
    } else {
        step.status().after(StepCause::Complete)?;
        // The result is accepted as it is, and the response includes the new instructions.
        claim::deliver(&mut draft, step, token, command.session.as_ref())?;
    }
    if let Some(by) = gates.and_then(|gates| gates.review_by) {
        draft.push(Event::UserReviewed {
            step: step.id(),
            review: command.review,
            action: ReviewAction::Requested {
                summary: result.summary.clone(),
                questions: Vec::new(),
                session,
                scope: ReviewScope::Step,
                by: Some(by),
                result: Some(result),
                options: ReviewOptions::default(),
            },
        })?;
        return Ok(Outcome::Events(draft.finish()?));
    }
    let completion = Completion {
        step,
        from: StepStatus::InProgress,
        attempt,
        result,
        session,
    };
    finish::complete(draft, completion, branches)
}

/// Whether the same result was already submitted under the same claim.
fn is_repetition(step: &Step, command: &SubmitResult, submitted: &StepResult) -> bool {
    let token = command.token.as_ref();
    let is_same = |claim: &Claim, result: &StepResult| {
        token.is_none_or(|token| *token == claim.token) && *result == *submitted
    };
    match &step.state {
        StepState::Completed { claim, result, .. } => is_same(claim, result),
        StepState::AwaitingInput { work, review } => {
            let submitted = work.as_ref().zip(review.result.as_deref());
            submitted.is_some_and(|(work, result)| is_same(&work.claim, result))
        }
        StepState::Pending { .. }
        | StepState::InProgress(_)
        | StepState::Skipped { .. }
        | StepState::Failed { .. } => false,
    }
}
