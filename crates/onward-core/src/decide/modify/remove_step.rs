//! Removes a pending step with its branches. Later orders shift.
//!
//! Rejected if a branch refers to the step, another step depends on it, it supersedes a step, or it
//! is the only step: a plan has at least one.

use super::facts::Facts;
use crate::event::{Change, Event};
use crate::id::StepId;
use crate::refusal::{NotRemovable, Refusal};
use crate::step::StepStatus;

pub(super) fn decide(facts: &Facts, id: StepId) -> Result<(Change, Option<Event>), Refusal> {
    let step = facts.step(id)?;
    let (dependents, needed_by) = (&*facts.dependents, &*facts.needed_by);
    let why = match (step.status(), dependents, needed_by) {
        (StepStatus::Pending, [], []) if facts.head.counts.total() <= 1 => {
            Some(NotRemovable::OnlyStep)
        }
        (StepStatus::Pending, [], []) => step.spec.supersedes.map(NotRemovable::Supersedes),
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
