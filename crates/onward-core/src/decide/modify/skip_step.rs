//! Skips a pending step. The steps that depend on it can start.

use super::facts::Facts;
use crate::event::{Change, Event};
use crate::id::StepId;
use crate::refusal::Refusal;
use crate::step::{SkipCause, StepCause};

pub(super) fn decide(facts: &Facts, id: StepId) -> Result<(Change, Option<Event>), Refusal> {
    let from = facts.step(id)?.status();
    from.after(StepCause::SkipManually)?;
    Ok((
        Change::StepSkipped { step: id },
        Some(Event::StepSkipped {
            step: id,
            from,
            by: SkipCause::Person,
        }),
    ))
}
