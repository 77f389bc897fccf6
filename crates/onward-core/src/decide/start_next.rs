//! Hand out the next step: the lowest-order pending one whose dependencies are all terminal.
//!
//! Two kinds come before it: a step whose instructions a person changed, once, so that an agent learns
//! of it; and, where the caller asks for that, a step that is past its threshold, with the next
//! attempt. A plan that is over, or waits for a person, hands out nothing: no events, and its status
//! says why.

use super::draft::Draft;
use crate::command::StartNext;
use crate::event::{Event, RequeueReason, ResumedBy};
use crate::id::StepId;
use crate::plan::{PlanHead, PlanStatus};
use crate::policy::stall_threshold;
use crate::refusal::Refusal;
use crate::step::{Claim, FailReason, Step, StepCause, StepStatus};
use crate::time::Timestamp;

/// What must be known.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The plan.
    pub plan: &'a PlanHead,
    /// The lowest-order step whose agent has not been told of a person's feedback.
    pub undelivered: Option<&'a Step>,
    /// Steps past their threshold, lowest order first; empty where the caller does not ask for them.
    pub stalled: &'a [&'a Step],
    /// The lowest-order pending step whose dependencies are all terminal, counting the
    /// [`used_up`] ones as such.
    pub ready: Option<&'a Step>,
}

/// The stalled steps that will fail instead of being handed out again.
pub fn used_up(stalled: &[&Step]) -> Vec<StepId> {
    stalled
        .iter()
        .filter(|step| is_used_up(step))
        .map(|step| step.id())
        .collect()
}

/// Decides what is handed out, if anything.
pub fn decide(
    facts: &Facts<'_>,
    command: &StartNext,
    now: Timestamp,
) -> Result<Vec<Event>, Refusal> {
    let mut draft = Draft::of(facts.plan, now);
    match facts.plan.status() {
        PlanStatus::AwaitingReview | PlanStatus::Completed | PlanStatus::Failed => {
            return Ok(draft.done());
        }
        PlanStatus::Stalled => draft.push(Event::PlanResumed {
            by: ResumedBy::NextStep,
        })?,
        PlanStatus::Planning | PlanStatus::Executing => {}
    }
    // Who asks for stalled steps takes such a step over, feedback and all, under a claim of its own.
    let taken_over = |step: &Step| {
        facts
            .stalled
            .iter()
            .any(|stalled| stalled.id() == step.id())
    };
    if let Some(step) = facts.undelivered.filter(|step| !taken_over(step)) {
        draft.push(Event::FeedbackDelivered {
            step: step.id(),
            session: command.session.clone(),
        })?;
        return Ok(draft.done());
    }
    for step in facts.stalled {
        let threshold =
            stall_threshold(None, step.spec.stall_threshold, facts.plan.stall_threshold);
        if !step.timestamp().is_stalled(now, threshold) {
            continue;
        }
        draft.push(hand_back(step, RequeueReason::TakenOver)?)?;
        if !is_used_up(step) {
            draft.push(claim(step.id(), step.attempt() + 1, command))?;
            return draft.settle();
        }
    }
    if let Some(step) = facts.ready {
        step.status().after(StepCause::Claim)?;
        draft.push(claim(step.id(), step.attempt(), command))?;
    }
    draft.settle()
}

/// The step that [`decide`] handed out, if any: claimed by these events, or given to its agent once
/// more because of a person's feedback.
pub fn handed_out(events: &[Event]) -> Option<StepId> {
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

fn is_used_up(step: &Step) -> bool {
    step.attempt() >= step.spec.max_attempts
}

/// The step goes back to be handed out again, or fails where that was done as often as it may be.
pub(super) fn hand_back(step: &Step, reason: RequeueReason) -> Result<Event, Refusal> {
    if is_used_up(step) {
        step.status().after(StepCause::UseUp)?;
        let reason = FailReason::AttemptsUsedUp;
        Ok(Event::StepFailed {
            step: step.id(),
            from: StepStatus::InProgress,
            reason,
        })
    } else {
        step.status().after(StepCause::HandBack)?;
        Ok(Event::StepRequeued {
            step: step.id(),
            attempt: step.attempt() + 1,
            reason,
        })
    }
}
