//! Requeues a step for its next attempt, or fails it if it has no attempts left.

use super::super::start_next::requeue_or_fail;
use super::facts::Facts;
use crate::event::{Change, Event, RequeueReason};
use crate::id::StepId;
use crate::refusal::Refusal;
use crate::step::StepCause;

pub(super) fn decide(facts: &Facts, id: StepId) -> Result<(Change, Option<Event>), Refusal> {
    let step = facts.step(id)?;
    step.status().after(StepCause::Requeue)?;
    let follow_up = requeue_or_fail(step, RequeueReason::Manual)?;
    Ok((Change::StepRequeued { step: id }, Some(follow_up)))
}
