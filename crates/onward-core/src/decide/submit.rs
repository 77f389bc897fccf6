//! Submit a step's result. The same result under the same claim, twice, changes nothing the second
//! time: no events, and the caller answers what it answered before.
//!
//! A step that nobody had claimed is taken on first; a stalled plan is resumed first; each with its
//! own event. What is refused must be kept: see [`Command::late_result`](crate::Command::late_result).

use std::sync::Arc;

use super::check::Check;
use super::draft::Draft;
use super::finish::{self, Completion, Settled};
use super::take_up::{self, Voice};
use crate::branch::Branch;
use crate::command::SubmitResult;
use crate::event::{Event, ResumedBy};
use crate::plan::{IllegalPlanMove, PlanCause, PlanHead, PlanStatus};
use crate::refusal::Refusal;
use crate::step::{Step, StepCause, StepState, StepStatus};
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

/// Decides whether the result is applied, and what follows from it.
pub fn decide(
    facts: &Facts<'_>,
    command: &SubmitResult,
    now: Timestamp,
) -> Result<Settled, Refusal> {
    let Facts {
        plan,
        step,
        branches,
    } = *facts;
    if is_repeated(step, command) {
        return Ok(Settled::Events(Vec::new()));
    }
    let mut check = Check::default();
    check.result(&command.result);
    check.done()?;
    let voice = take_up::voice(step, command.token.as_ref())?;
    if plan.status().is_terminal() {
        return Err(Refusal::PlanIsTerminal(plan.status()));
    }
    let mut draft = Draft::of(plan, now);
    if plan.status() == PlanStatus::Stalled {
        draft.push(Event::PlanResumed {
            by: ResumedBy::LateResult,
        })?;
    }
    let mut attempt = step.attempt();
    if voice == Voice::Unclaimed {
        // While a person thinks, nobody begins anything; but an agent may come back to what it had.
        let returns = take_up::is_returning(step, command.token.as_ref());
        if plan.status() == PlanStatus::AwaitingReview && !returns {
            return Err(IllegalPlanMove {
                from: plan.status(),
                asked: PlanCause::Begin,
            }
            .into());
        }
        let token = command.token.as_ref().unwrap_or(&command.fresh_token);
        let claim = take_up::claim(step, token, command.session.as_ref());
        attempt = claim.attempt;
        draft.push(Event::StepStarted {
            step: step.id(),
            claim,
        })?;
    } else {
        step.status().after(StepCause::Complete)?;
    }
    let completion = Completion {
        step,
        from: StepStatus::InProgress,
        attempt,
        result: Arc::clone(&command.result),
        session: command.session.clone(),
    };
    finish::complete(draft, completion, branches)
}

/// The very same result, under the claim that completed the step.
fn is_repeated(step: &Step, command: &SubmitResult) -> bool {
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
