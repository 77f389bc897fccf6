//! Replaces a step's instructions, in any status.

use super::super::check::Check;
use super::facts::Facts;
use crate::event::{Change, Event};
use crate::id::StepId;
use crate::policy::MAX_INSTRUCTIONS;
use crate::refusal::Refusal;

pub(super) fn decide(
    facts: &Facts,
    step: StepId,
    instructions: &str,
) -> Result<(Change, Option<Event>), Refusal> {
    let mut check = Check::default();
    check.text("instructions", instructions, MAX_INSTRUCTIONS);
    check.finish()?;
    facts.step(step)?;
    Ok((
        Change::InstructionsUpdated {
            step,
            instructions: instructions.to_owned(),
        },
        None,
    ))
}
