//! Put all steps in another order. The one action that is about the whole list, and so the one that
//! looks at it.

use std::collections::BTreeSet;

use super::Facts;
use crate::event::{Change, Event};
use crate::id::StepId;
use crate::refusal::Refusal;

pub(super) fn decide(
    facts: &Facts<'_>,
    steps: &[StepId],
) -> Result<(Change, Option<Event>), Refusal> {
    let own: BTreeSet<StepId> = facts.list.iter().copied().collect();
    let mut given = BTreeSet::new();
    let mut doubled = BTreeSet::new();
    for step in steps {
        if !given.insert(*step) {
            doubled.insert(*step);
        }
    }
    if given != own || !doubled.is_empty() {
        return Err(Refusal::IncompleteStepList {
            missing: facts
                .list
                .iter()
                .copied()
                .filter(|step| !given.contains(step))
                .collect(),
            unknown: given.difference(&own).copied().collect(),
            doubled: doubled.into_iter().collect(),
        });
    }
    Ok((
        Change::StepsReordered {
            steps: steps.into(),
        },
        None,
    ))
}
