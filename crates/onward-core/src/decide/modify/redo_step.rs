//! Redoes a terminal step: a pending successor with the same instructions and the reason supersedes
//! it. The superseded step does not change.
//!
//! With `cascade`, the completed steps that depend on it get successors too, directly or through
//! other completed steps. A successor depends on the successors of its dependencies. It takes over
//! the branches of the superseded step, except an `add_steps` branch that was already taken: its
//! steps exist.

use std::collections::{BTreeMap, BTreeSet};

use super::super::check::Check;
use super::facts::{Facts, StepOutline};
use crate::branch::{Action, Branch};
use crate::event::{Change, Event, Successor};
use crate::id::{BranchId, StepId};
use crate::policy::{MAX_REMARK, MAX_STEPS};
use crate::refusal::{NotRedoable, Refusal};
use crate::step::StepStatus;

pub(super) fn decide(
    facts: &Facts,
    id: StepId,
    reason: &str,
    cascade: bool,
    ids: &[StepId],
) -> Result<(Change, Option<Event>), Refusal> {
    let mut check = Check::with_taken_ids(&facts.taken);
    check.text("reason", reason, MAX_REMARK);
    check.finish()?;
    let step = facts.step(id)?;
    if let Some(successor) = step.superseded_by {
        return Err(Refusal::StepNotRedoable(NotRedoable::Superseded(successor)));
    }
    if !step.status().is_terminal() {
        return Err(Refusal::StepNotRedoable(NotRedoable::NotEnded(
            step.status(),
        )));
    }
    let redone = if cascade {
        with_dependents(id, &facts.outline)
    } else {
        BTreeSet::from([id])
    };
    let redone: Vec<&StepOutline> = (facts.outline.iter())
        .filter(|outline| redone.contains(&outline.spec.id))
        .collect();
    check_limits(facts, redone.len(), ids)?;
    let mut check = Check::with_taken_ids(&facts.taken);
    check.fresh_ids("ids", ids.iter().take(redone.len()));
    check.finish()?;
    let new_ids: BTreeMap<StepId, StepId> = (redone.iter())
        .map(|outline| outline.spec.id)
        .zip(ids.iter().copied())
        .collect();
    let present: BTreeMap<StepId, Option<StepId>> = (facts.outline.iter())
        .map(|outline| (outline.spec.id, outline.superseded_by))
        .collect();
    let current = |id: &StepId| {
        let last = last_successor(&present, *id);
        new_ids.get(&last).copied().unwrap_or(last)
    };
    let successors = redone.iter().filter_map(|outline| {
        let mut seen = BTreeSet::new();
        let depends_on = outline.spec.depends_on.iter().map(current);
        let depends_on = depends_on.filter(|id| seen.insert(*id)).collect();
        let id = new_ids.get(&outline.spec.id)?;
        let branches = facts.branches.iter().filter(|branch| {
            branch.after == outline.spec.id
                && !is_spent(branch, |added| present.contains_key(&added))
        });
        Some(Successor {
            step: outline.spec.redone(*id, depends_on, reason),
            order: outline.order,
            from: outline.status,
            branches: branches.map(|branch| branch.id).collect(),
        })
    });
    let change = Change::StepRedone {
        step: id,
        reason: reason.to_owned(),
        successors: successors.collect(),
    };
    Ok((change, None))
}

/// The branches whose references change with these events: each refers to the successor of a redone
/// step. A branch that stays after a superseded step is history and does not change.
pub fn redirected_branches(facts: &Facts, events: &[Event]) -> Vec<Branch> {
    let redone = events.iter().find_map(|event| {
        if let Event::PlanModified {
            change: Change::StepRedone { successors, .. },
            ..
        } = event
        {
            Some(successors)
        } else {
            None
        }
    });
    let Some(successors) = redone else {
        return Vec::new();
    };
    let new_ids: BTreeMap<StepId, StepId> = (successors.iter())
        .filter_map(|successor| Some((successor.step.supersedes?, successor.step.id)))
        .collect();
    let moved: BTreeSet<BranchId> = (successors.iter())
        .flat_map(|successor| successor.branches.iter().copied())
        .collect();
    let superseded: BTreeSet<StepId> = (facts.outline.iter())
        .filter(|outline| outline.superseded_by.is_some())
        .map(|outline| outline.spec.id)
        .chain(new_ids.keys().copied())
        .collect();
    (facts.branches.iter())
        .filter(|branch| moved.contains(&branch.id) || !superseded.contains(&branch.after))
        .filter_map(|branch| branch.redirected(&new_ids))
        .collect()
}

fn check_limits(facts: &Facts, redone: usize, ids: &[StepId]) -> Result<(), Refusal> {
    let exceeds = |what, limit, actual| {
        let refusal = Refusal::LimitExceeded {
            what,
            limit,
            actual,
        };
        if actual > limit { Err(refusal) } else { Ok(()) }
    };
    exceeds("steps to redo", ids.len(), redone)?;
    let total = usize::try_from(facts.head.counts.last_order()).unwrap_or(usize::MAX);
    exceeds("steps", MAX_STEPS, total.saturating_add(redone))
}

/// The step and its completed dependents, directly or through other completed steps.
fn with_dependents(root: StepId, outline: &[StepOutline]) -> BTreeSet<StepId> {
    let mut dependents: BTreeMap<StepId, Vec<StepId>> = BTreeMap::new();
    let completed = outline.iter().filter(|outline| {
        outline.status == StepStatus::Completed && outline.superseded_by.is_none()
    });
    for outline in completed {
        for needed in &outline.spec.depends_on {
            dependents.entry(*needed).or_default().push(outline.spec.id);
        }
    }
    let mut found = BTreeSet::from([root]);
    let mut open = vec![root];
    while let Some(id) = open.pop() {
        for dependent in dependents.get(&id).into_iter().flatten() {
            if found.insert(*dependent) {
                open.push(*dependent);
            }
        }
    }
    found
}

/// The step that redoes this one last, or the step itself.
pub(in crate::decide) fn last_successor(
    superseded_by: &BTreeMap<StepId, Option<StepId>>,
    mut id: StepId,
) -> StepId {
    // A successor is newer than the step that it supersedes, so the chain ends.
    for _ in 0..superseded_by.len() {
        match superseded_by.get(&id).copied().flatten() {
            Some(successor) => id = successor,
            None => break,
        }
    }
    id
}

/// Whether the branch has added its steps. It cannot be taken again: the ids are assigned.
pub(in crate::decide) fn is_spent(branch: &Branch, exists: impl Fn(StepId) -> bool) -> bool {
    match &branch.action {
        Action::AddSteps { steps } => steps.iter().any(|step| exists(step.id)),
        Action::Continue | Action::SkipTo { .. } | Action::Fail { .. } => false,
    }
}
