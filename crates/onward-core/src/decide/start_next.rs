//! Claims the next step: the pending step with the lowest order whose dependencies are all
//! terminal.
//!
//! Two kinds of steps take precedence: a step with undelivered feedback from a reviewer, and, on
//! request, a stalled step, which gets a new attempt. A plan that is terminal or awaits review
//! assigns no step: the command returns no events, and the plan's status gives the reason.

use super::draft::Draft;
use crate::command::StartNext;
use crate::event::{Event, RequeueReason, ResumedBy};
use crate::id::StepId;
use crate::plan::{PlanHead, PlanStatus};
use crate::policy::stall_threshold;
use crate::refusal::Refusal;
use crate::step::{Claim, FailReason, Step, StepCause, StepStatus};
use crate::time::Timestamp;

/// The required facts.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The plan.
    pub plan: &'a PlanHead,
    /// The lowest-order step with undelivered feedback.
    pub undelivered: Option<&'a Step>,
    /// Stalled steps, sorted by order. Empty unless `include_stalled` is set.
    pub stalled: &'a [&'a Step],
    /// The lowest-order pending step whose dependencies are all terminal, counting the
    /// [`exhausted`] ones as terminal.
    pub ready: Option<&'a Step>,
}

/// The stalled steps that fail because they have no attempts left.
pub fn exhausted(stalled: &[&Step]) -> Vec<StepId> {
    stalled
        .iter()
        .filter(|step| is_exhausted(step))
        .map(|step| step.id())
        .collect()
}

/// Decides the command.
pub fn decide(
    facts: &Facts<'_>,
    command: &StartNext,
    now: Timestamp,
) -> Result<Vec<Event>, Refusal> {
    let mut draft = Draft::new(facts.plan, now);
    match facts.plan.status() {
        PlanStatus::AwaitingReview | PlanStatus::Completed | PlanStatus::Failed => {
            return Ok(draft.into_events());
        }
        PlanStatus::Stalled => draft.push(Event::PlanResumed {
            by: ResumedBy::NextStep,
        })?,
        PlanStatus::Planning | PlanStatus::Executing => {}
    }
    // A takeover includes undelivered feedback and creates a new claim.
    let is_stalled = |step: &Step| {
        facts
            .stalled
            .iter()
            .any(|stalled| stalled.id() == step.id())
    };
    if let Some(step) = facts.undelivered.filter(|step| !is_stalled(step)) {
        draft.push(Event::FeedbackDelivered {
            step: step.id(),
            session: command.session.clone(),
        })?;
        return Ok(draft.into_events());
    }
    for step in facts.stalled {
        let threshold =
            stall_threshold(None, step.spec.stall_threshold, facts.plan.stall_threshold);
        if !step.timestamp().is_stalled(now, threshold) {
            continue;
        }
        draft.push(requeue_or_fail(step, RequeueReason::TakenOver)?)?;
        if !is_exhausted(step) {
            draft.push(claim(step.id(), step.attempt() + 1, command))?;
            return draft.finish();
        }
    }
    if let Some(step) = facts.ready {
        step.status().after(StepCause::Claim)?;
        draft.push(claim(step.id(), step.attempt(), command))?;
    }
    draft.finish()
}

/// The step that [`decide`] assigned, if any: claimed by these events, or returned to its agent
/// with feedback.
pub fn assigned_step(events: &[Event]) -> Option<StepId> {
    events.iter().rev().find_map(|event| match event {
        Event::StepStarted { step, .. } | Event::FeedbackDelivered { step, .. } => Some(*step),
        Event::PlanModified { .. }
        | Event::StepCompleted { .. }
        | Event::StepFailed { .. }
        | Event::StepSkipped { .. }
        | Event::StepRequeued { .. }
        | Event::StepProgressed { .. }
        | Event::BranchTaken { .. }
        | Event::UserReviewed { .. }
        | Event::SessionResumed { .. }
        | Event::SkillStarted { .. }
        | Event::SkillCompleted { .. }
        | Event::PlanStalled { .. }
        | Event::PlanResumed { .. }
        | Event::PlanCompleted
        | Event::PlanFailed { .. }
        | Event::LateResultKept { .. } => None,
    })
}

fn claim(step: StepId, attempt: u32, command: &StartNext) -> Event {
    let claim = Claim {
        attempt,
        token: command.token.clone(),
        session: command.session.clone(),
    };
    Event::StepStarted { step, claim }
}

fn is_exhausted(step: &Step) -> bool {
    step.attempt() >= step.spec.max_attempts
}

/// Requeues the step, or fails it if it has no attempts left.
pub(super) fn requeue_or_fail(step: &Step, reason: RequeueReason) -> Result<Event, Refusal> {
    if is_exhausted(step) {
        step.status().after(StepCause::ExhaustAttempts)?;
        let reason = FailReason::AttemptsExhausted;
        Ok(Event::StepFailed {
            step: step.id(),
            from: StepStatus::InProgress,
            reason,
        })
    } else {
        step.status().after(StepCause::Requeue)?;
        Ok(Event::StepRequeued {
            step: step.id(),
            attempt: step.attempt() + 1,
            reason,
        })
    }
}
