//! Replaces a step's instructions, in any status.
//!
//! The agent that works on the step receives them with its next response, unless it made the change.

use super::super::check::Check;
use super::super::claim;
use super::facts::Facts;
use crate::command::ModifyPlan;
use crate::event::{Change, Event};
use crate::id::StepId;
use crate::policy::MAX_INSTRUCTIONS;
use crate::refusal::Refusal;

pub(super) fn decide(
    facts: &Facts,
    id: StepId,
    instructions: &str,
    command: &ModifyPlan,
) -> Result<(Change, Option<Event>), Refusal> {
    let mut check = Check::default();
    check.text("instructions", instructions, MAX_INSTRUCTIONS);
    check.finish()?;
    let step = facts.step(id)?;
    let (token, session) = (command.token.as_ref(), command.session.as_ref());
    let by_holder = step.work().is_some() && claim::is_holder(step, token, session);
    let delivered = by_holder.then(|| Event::FeedbackDelivered {
        step: id,
        session: claim::calling_session(step, token, session),
    });
    Ok((
        Change::InstructionsUpdated {
            step: id,
            instructions: instructions.to_owned(),
        },
        delivered,
    ))
}
