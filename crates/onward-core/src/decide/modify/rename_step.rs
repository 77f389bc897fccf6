//! Replaces a step's title and instructions, in any status: its agent has renamed its task.
//!
//! The agent that works on the step made the change, so there is nothing to deliver to it.

use super::super::check::Check;
use super::facts::Facts;
use crate::event::{Change, Event};
use crate::id::StepId;
use crate::policy::{MAX_INSTRUCTIONS, MAX_TITLE};
use crate::refusal::Refusal;

pub(super) fn decide(
    facts: &Facts,
    id: StepId,
    title: &str,
    instructions: &str,
) -> Result<(Change, Option<Event>), Refusal> {
    let mut check = Check::default();
    check.text("title", title, MAX_TITLE);
    check.text("instructions", instructions, MAX_INSTRUCTIONS);
    check.finish()?;
    facts.step(id)?;
    let change = Change::StepRenamed {
        step: id,
        title: title.to_owned(),
        instructions: instructions.to_owned(),
    };
    Ok((change, None))
}
