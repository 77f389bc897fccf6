//! Claims a step that the caller selects, such as the task that an agent has started on its own list.
//! The rules are those of [`start_next`](super::start_next), without its order: a step in progress
//! whose session has ended, or that is stalled, is taken over as a new attempt. The caller did not ask
//! for the step to fail, so one without attempts left is rejected.

use super::claim;
use super::draft::Draft;
use super::facts::StepFacts;
use super::start_next::requeue_or_fail;
use crate::command::StartStep;
use crate::event::{Event, RequeueReason, ResumedBy};
use crate::plan::{IllegalPlanTransition, PlanCause, PlanStatus};
use crate::refusal::Refusal;
use crate::step::StepCause;
use crate::time::Timestamp;

/// Decides the command.
pub fn decide(
    facts: &StepFacts,
    command: &StartStep,
    now: Timestamp,
) -> Result<Vec<Event>, Refusal> {
    let StepFacts {
        head: plan, step, ..
    } = facts;
    let mut draft = Draft::new(plan, now);
    match plan.status() {
        PlanStatus::Planning | PlanStatus::Executing => {}
        PlanStatus::Stalled => draft.push(Event::PlanResumed {
            by: ResumedBy::NextStep,
        })?,
        PlanStatus::AwaitingReview => {
            return Err(IllegalPlanTransition {
                from: plan.status(),
                cause: PlanCause::Begin,
            }
            .into());
        }
        PlanStatus::Completed | PlanStatus::Failed => {
            return Err(Refusal::PlanIsTerminal(plan.status()));
        }
    }
    let is_takeover =
        step.can_be_taken_over(true, plan.stall_threshold, now) && !step.is_exhausted();
    if !is_takeover {
        step.status().after(StepCause::Claim)?;
    }
    if let Some(exhausted) = plan.exhausted(now) {
        return Err(Refusal::BudgetExhausted(exhausted));
    }
    if facts.open_dependencies.total > 0 {
        return Err(Refusal::DependenciesOpen(facts.open_dependencies.clone()));
    }
    let mut claim = claim::next_claim(step, &command.token, command.session.as_ref());
    if is_takeover {
        draft.push(requeue_or_fail(step, RequeueReason::TakenOver)?)?;
        claim.attempt += 1;
    }
    draft.push(Event::StepStarted {
        step: step.id(),
        claim,
    })?;
    draft.finish()
}
