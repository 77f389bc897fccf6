//! Claims the next step: of the pending steps whose dependencies are all terminal and whose labels
//! the caller offers, the one with the highest priority, and of these the one with the lowest order.
//!
//! Two kinds of steps take precedence: a step of the calling session with undelivered feedback from
//! a reviewer, and, on request, a step that can be taken over, which gets a new attempt. Without that
//! request, a step whose session has ended is taken over if no pending step is ready. A plan that is
//! terminal or awaits review assigns no step: the command returns no events. Nor does a plan with an exhausted
//! budget: the first such request records it. [`no_step_reason`] gives the reason. A stalled plan is
//! resumed only if a step is assigned: otherwise it would count as executing although no agent works
//! on it.

use super::draft::Draft;
use super::facts::{NextFacts, StepFacts};
use crate::budget::Exhausted;
use crate::command::StartNext;
use crate::event::{Event, RequeueReason, ResumedBy};
use crate::id::StepId;
use crate::plan::{PlanFailure, PlanHead, PlanState, PlanStatus};
use crate::refusal::Refusal;
use crate::routing::covers;
use crate::step::{Claim, FailReason, Step, StepCause, StepStatus};
use crate::time::Timestamp;

/// Decides the command.
pub fn decide(
    facts: &NextFacts,
    command: &StartNext,
    now: Timestamp,
) -> Result<Vec<Event>, Refusal> {
    let mut draft = Draft::new(&facts.head, now);
    match facts.head.status() {
        PlanStatus::AwaitingReview | PlanStatus::Completed | PlanStatus::Failed => {
            return Ok(draft.into_events());
        }
        PlanStatus::Stalled => {
            if !has_step_to_assign(facts, command, now) {
                return Ok(draft.into_events());
            }
            draft.push(Event::PlanResumed {
                by: ResumedBy::NextStep,
            })?;
        }
        PlanStatus::Planning | PlanStatus::Executing => {}
    }
    // A takeover includes undelivered feedback and creates a new claim.
    let is_stalled = |step: &Step| {
        let stalled = facts.stalled.iter();
        command.include_stalled && stalled.map(Step::id).any(|id| id == step.id())
    };
    let undelivered = facts.undelivered.as_ref();
    if let Some(step) = undelivered.filter(|step| !is_stalled(step)) {
        draft.push(Event::FeedbackDelivered {
            step: step.id(),
            session: command.session.clone(),
        })?;
        return Ok(draft.into_events());
    }
    if facts.head.exhausted(now).is_some() {
        draft.check_budget(facts.head.counts.pending > 0)?;
        return Ok(draft.into_events());
    }
    for step in &facts.stalled {
        if !can_take_over(facts, step, command, now) {
            continue;
        }
        draft.push(requeue_or_fail(step, RequeueReason::TakenOver)?)?;
        if !step.is_exhausted() {
            draft.push(claim(step.id(), step.attempt() + 1, command))?;
            return draft.finish();
        }
    }
    if let Some(step) = &facts.ready {
        step.status().after(StepCause::Claim)?;
        draft.push(claim(step.id(), step.attempt(), command))?;
    }
    draft.finish()
}

fn can_take_over(facts: &NextFacts, step: &Step, command: &StartNext, now: Timestamp) -> bool {
    step.can_be_taken_over(command.include_stalled, facts.head.stall_threshold, now)
}

/// Whether the command changes a step: a step without attempts left that is taken over fails.
fn has_step_to_assign(facts: &NextFacts, command: &StartNext, now: Timestamp) -> bool {
    if facts.head.exhausted(now).is_some() {
        return facts.undelivered.is_some();
    }
    facts.ready.is_some()
        || facts.undelivered.is_some()
        || (facts.stalled.iter()).any(|step| can_take_over(facts, step, command, now))
}

/// Claims the ready step in the same commit as `events`, the decision of a command on
/// `facts.step`. The labels of `command` do not count: an agent that did this step offers its
/// labels, and perhaps no others. Returns no events if the command may have changed which step is ready: a branch was
/// taken, other steps depend on the step, or undelivered review feedback takes precedence.
pub fn claim_ready(
    facts: &StepFacts,
    events: &[Event],
    command: &StartNext,
    now: Timestamp,
) -> Result<Vec<Event>, Refusal> {
    let preserves_readiness = |event: &Event| {
        matches!(
            event,
            Event::PlanResumed { .. }
                | Event::PlanStatusChanged { .. }
                | Event::FeedbackDelivered { .. }
                | Event::StepStarted { .. }
                | Event::StepCompleted { .. }
        )
    };
    let ready = facts.ready.as_ref().map(Step::id);
    let offered = &facts.step.spec.labels;
    let can_claim = |ready: &Step| covers(Some(offered), &ready.spec.labels);
    let is_other_ready = ready.is_some_and(|ready| ready != facts.step.id())
        && facts.ready.as_ref().is_some_and(can_claim);
    let readiness_preserved = !events.is_empty() && events.iter().all(preserves_readiness);
    if !is_other_ready || facts.has_dependents || !readiness_preserved {
        return Ok(Vec::new());
    }
    let mut head = facts.head.clone();
    for event in events {
        head.apply(event, now)?;
    }
    if head.counts.in_progress > 0 || head.counts.awaiting_input > 0 {
        return Ok(Vec::new());
    }
    let facts = NextFacts {
        head,
        undelivered: None,
        stalled: Vec::new(),
        ready: facts.ready.clone(),
    };
    decide(&facts, command, now)
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
        | Event::StepOrphaned { .. }
        | Event::BranchTaken { .. }
        | Event::UserReviewed { .. }
        | Event::SessionResumed { .. }
        | Event::SkillStarted { .. }
        | Event::SkillCompleted { .. }
        | Event::BudgetExhausted { .. }
        | Event::PlanStalled { .. }
        | Event::PlanResumed { .. }
        | Event::PlanCompleted
        | Event::PlanFailed { .. }
        | Event::PlanStatusChanged { .. }
        | Event::LateResultKept { .. } => None,
    })
}

/// Why a request for the next step gets none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoStepReason {
    /// Every step is in a terminal state.
    Complete,
    /// The plan has failed.
    Failed(PlanFailure),
    /// A review decision is pending, and no step can be assigned or end before it.
    AwaitingReview {
        /// The step of the oldest review that stops the plan. `None` if no review stops it.
        step: Option<StepId>,
    },
    /// The budget is exhausted, and a step is pending.
    BudgetExhausted(Exhausted),
    /// No step is ready for the caller.
    NoneReady,
}

/// The reason if [`decide`] assigned no step.
pub fn no_step_reason(head: &PlanHead, now: Timestamp) -> NoStepReason {
    let counts = &head.counts;
    match &head.state {
        PlanState::Completed { .. } => NoStepReason::Complete,
        PlanState::Failed { reason, .. } => NoStepReason::Failed(reason.clone()),
        PlanState::AwaitingReview { reviews } => NoStepReason::AwaitingReview {
            step: reviews.first().map(|oldest| oldest.step),
        },
        PlanState::Planning | PlanState::Executing | PlanState::Stalled { .. } => {
            if let Some(exhausted) = head.exhausted(now).filter(|_| counts.pending > 0) {
                NoStepReason::BudgetExhausted(exhausted)
            } else if counts.awaiting_input > 0 && counts.in_progress == 0 {
                NoStepReason::AwaitingReview { step: None }
            } else {
                NoStepReason::NoneReady
            }
        }
    }
}

/// Whether [`decide`] assigns this step, which is ready or has undelivered feedback. A step with
/// undelivered feedback is already claimed and needs no budget.
pub fn is_assignable(head: &PlanHead, step: &Step, now: Timestamp) -> bool {
    head.status().assigns_steps() && (step.claim().is_some() || head.exhausted(now).is_none())
}

fn claim(step: StepId, attempt: u32, command: &StartNext) -> Event {
    let claim = Claim {
        attempt,
        token: command.token.clone(),
        session: command.session.clone(),
    };
    Event::StepStarted { step, claim }
}

/// Requeues the step, or fails it if it has no attempts left.
pub(super) fn requeue_or_fail(step: &Step, reason: RequeueReason) -> Result<Event, Refusal> {
    if step.is_exhausted() {
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
