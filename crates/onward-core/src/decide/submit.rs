//! Submits a step's result. Submitting the same result again under the same claim returns no
//! events, and the caller repeats its first response.
//!
//! A step without a claim is claimed first, and a stalled plan is resumed first, each with a
//! separate event. A pending step with open dependencies cannot be claimed, and its result is
//! rejected. A rejected result must be stored: see
//! [`Command::late_result`](crate::Command::late_result).

use std::sync::Arc;

use super::check::Check;
use super::claim::{self, ClaimStatus};
use super::draft::Draft;
use super::facts::StepFacts;
use super::finish::{self, Completion, Outcome};
use crate::command::SubmitResult;
use crate::event::{Event, ResumedBy};
use crate::plan::{IllegalPlanTransition, PlanCause, PlanStatus};
use crate::refusal::Refusal;
use crate::step::{Step, StepCause, StepState, StepStatus};
use crate::time::Timestamp;

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
    if is_repetition(step, command) {
        return Ok(Outcome::Events(Vec::new()));
    }
    let mut check = Check::default();
    check.result(&command.result);
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
    let completion = Completion {
        step,
        from: StepStatus::InProgress,
        attempt,
        result: Arc::clone(&command.result),
        session,
    };
    finish::complete(draft, completion, branches)
}

/// Whether the same result was already submitted under the same claim.
fn is_repetition(step: &Step, command: &SubmitResult) -> bool {
    match &step.state {
        StepState::Completed { claim, result, .. } => {
            command
                .token
                .as_ref()
                .is_none_or(|token| *token == claim.token)
                && **result == *command.result
        }
        StepState::Pending { .. }
        | StepState::InProgress(_)
        | StepState::AwaitingInput { .. }
        | StepState::Skipped { .. }
        | StepState::Failed { .. } => false,
    }
}
