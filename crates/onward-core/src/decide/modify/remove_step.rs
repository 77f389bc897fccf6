//! Take a pending step out, with its own branches. Orders close up.
//!
//! Not where a branch leads to it or a step depends on it: they would point at nothing.

use super::Facts;
use crate::event::{Change, Event};
use crate::id::StepId;
use crate::refusal::{NotRemovable, Refusal};
use crate::step::StepStatus;

pub(super) fn decide(facts: &Facts<'_>, id: StepId) -> Result<(Change, Option<Event>), Refusal> {
    let step = facts.step(id)?;
    let why = match (step.status(), facts.dependents, facts.needed_by) {
        (StepStatus::Pending, [], []) => None,
        (StepStatus::Pending, [dependent, ..], _) => Some(NotRemovable::NeededByStep(*dependent)),
        (StepStatus::Pending, [], [branch, ..]) => Some(NotRemovable::NeededByBranch(*branch)),
        (
            status @ (StepStatus::InProgress
            | StepStatus::AwaitingInput
            | StepStatus::Completed
            | StepStatus::Skipped
            | StepStatus::Failed),
            _,
            _,
        ) => Some(NotRemovable::NotPending(status)),
    };
    match why {
        Some(why) => Err(Refusal::StepNotRemovable(why)),
        None => Ok((Change::StepRemoved { step: id }, None)),
    }
}
