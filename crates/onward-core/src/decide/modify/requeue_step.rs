//! Hand a step back, to be handed out again with the next attempt; or fail it, where that was done as
//! often as it may be.

use super::super::start_next::hand_back;
use super::Facts;
use crate::event::{Change, Event, RequeueReason};
use crate::id::StepId;
use crate::refusal::Refusal;
use crate::step::StepCause;

pub(super) fn decide(facts: &Facts<'_>, id: StepId) -> Result<(Change, Option<Event>), Refusal> {
    let step = facts.step(id)?;
    step.status().after(StepCause::HandBack)?;
    let follows = hand_back(step, RequeueReason::ByHand)?;
    Ok((Change::StepRequeued { step: id }, Some(follows)))
}
