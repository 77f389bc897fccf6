//! Reorders all steps. The only action that needs the whole step list.

use std::collections::BTreeSet;

use super::facts::Facts;
use crate::event::{Change, Event};
use crate::id::StepId;
use crate::refusal::Refusal;

pub(super) fn decide(facts: &Facts, steps: &[StepId]) -> Result<(Change, Option<Event>), Refusal> {
    let existing: BTreeSet<StepId> = facts.list.iter().copied().collect();
    let mut listed = BTreeSet::new();
    let mut duplicates = BTreeSet::new();
    for step in steps {
        if !listed.insert(*step) {
            duplicates.insert(*step);
        }
    }
    if listed != existing || !duplicates.is_empty() {
        return Err(Refusal::IncompleteStepList {
            missing: facts
                .list
                .iter()
                .copied()
                .filter(|step| !listed.contains(step))
                .collect(),
            unknown: listed.difference(&existing).copied().collect(),
            duplicates: duplicates.into_iter().collect(),
        });
    }
    Ok((
        Change::StepsReordered {
            steps: steps.into(),
        },
        None,
    ))
}
