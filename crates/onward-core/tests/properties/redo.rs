//! Redone steps: the superseded step is unchanged, its successor is pending directly after it, and
//! pending steps and branches refer to the successor.

use std::collections::{BTreeMap, BTreeSet};

use onward_core::apply::Plan;
use onward_core::branch::Action;
use onward_core::command::Modification;
use onward_core::decide::modify;
use onward_core::event::{Change, Successor};
use onward_core::id::StepId;
use onward_core::step::Step;
use onward_core::{Command, Event, StepStatus};
use proptest::prelude::*;

use crate::walk::{cases, walks};

fn superseded(successors: &[Successor]) -> BTreeSet<StepId> {
    let superseded = successors.iter().filter_map(|next| next.step.supersedes);
    superseded.collect()
}

/// Whether a step depends on itself, by following every path.
fn is_in_cycle(plan: &Plan, start: &Step) -> bool {
    let mut seen = BTreeSet::new();
    let mut left = start.spec.depends_on.clone();
    while let Some(id) = left.pop() {
        if id == start.id() {
            return true;
        }
        if seen.insert(id) {
            left.extend(
                plan.step(id)
                    .into_iter()
                    .flat_map(|step| &step.spec.depends_on),
            );
        }
    }
    false
}

/// The completed steps that depend on a step, directly or through completed steps.
fn completed_dependents(plan: &Plan, root: StepId) -> BTreeSet<StepId> {
    let mut found = BTreeSet::from([root]);
    loop {
        let more = plan.steps().iter().filter(|step| {
            step.status() == StepStatus::Completed
                && step.superseded_by.is_none()
                && !found.contains(&step.id())
                && step
                    .spec
                    .depends_on
                    .iter()
                    .any(|needed| found.contains(needed))
        });
        let more: Vec<StepId> = more.map(Step::id).collect();
        if more.is_empty() {
            return found;
        }
        found.extend(more);
    }
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn a_superseded_step_is_unchanged_and_its_successor_is_pending(walk in walks()) {
        walk.run(|round| {
            round.each_event(|before, event, after| {
                let Event::PlanModified { change: Change::StepRedone { successors, step, .. }, .. } =
                    event
                else {
                    return Ok(());
                };
                let old = superseded(successors);
                let closure = completed_dependents(before, *step);
                prop_assert!(old == BTreeSet::from([*step]) || old == closure, "{:?}", old);
                for next in &**successors {
                    let was = before.step(next.step.supersedes.expect("supersedes a step"));
                    let was = was.expect("the superseded step exists");
                    let is = after.step(was.id()).expect("the superseded step is kept");
                    prop_assert!(was.status().is_terminal() && was.superseded_by.is_none());
                    prop_assert_eq!(is.superseded_by, Some(next.step.id));
                    let same = Step { order: was.order, superseded_by: None, ..is.clone() };
                    prop_assert_eq!(&same, was);
                    let successor = after.step(next.step.id).expect("the successor exists");
                    prop_assert_eq!(successor.status(), StepStatus::Pending);
                    prop_assert_eq!(successor.order, is.order + 1);
                    let spec = &successor.spec;
                    prop_assert!(spec.instructions.starts_with(&was.spec.instructions));
                    prop_assert_eq!(spec.depends_on.iter().find(|id| old.contains(id)), None);
                }
                Ok(())
            })
        })?;
    }

    #[test]
    fn pending_steps_and_branches_refer_to_the_successors(walk in walks()) {
        walk.run(|round| {
            round.each_event(|_, event, after| {
                let Event::PlanModified { change: Change::StepRedone { successors, .. }, .. } = event
                else {
                    return Ok(());
                };
                let old = superseded(successors);
                for step in after.steps() {
                    let needs_old = step.spec.depends_on.iter().any(|id| old.contains(id));
                    prop_assert!(!needs_old || step.status() != StepStatus::Pending, "{:?}", step);
                    for branch in after.branches_after(step.id()) {
                        prop_assert_eq!(branch.after, step.id());
                        let is_old = step.superseded_by.is_some();
                        // Only a branch that has added its steps stays with a superseded step.
                        prop_assert!(
                            !is_old || matches!(branch.action, Action::AddSteps { .. }),
                            "{:?}", branch
                        );
                        let refers = branch.references().iter().any(|id| old.contains(id));
                        prop_assert!(is_old || !refers, "{:?}", branch);
                    }
                }
                Ok(())
            })
        })?;
    }

    #[test]
    fn dependencies_never_form_a_cycle(walk in walks()) {
        walk.run(|round| {
            let plan = round.after();
            for step in plan.steps() {
                prop_assert!(!is_in_cycle(plan, step), "{:?}", step);
            }
            Ok(())
        })?;
    }

    #[test]
    fn redirected_branches_are_those_that_change_in_the_plan(walk in walks()) {
        walk.run(|round| {
            let (Command::ModifyPlan(command), Ok(events)) = (round.command, round.outcome) else {
                return Ok(());
            };
            if !matches!(command.modification, Modification::RedoStep { .. }) {
                return Ok(());
            }
            let needs = modify::needs(&command.modification, round.before.head());
            let facts = modify::Facts::from_plan(round.before, &needs);
            let redirected = modify::redirected_branches(&facts, events);
            let redirected: BTreeMap<_, _> = (redirected.iter())
                .map(|branch| (branch.id, &branch.action))
                .collect();
            let before: BTreeMap<_, _> = (round.before.branches())
                .map(|branch| (branch.id, &branch.action))
                .collect();
            // Invalid commands reuse the id of a branch. The database rejects that, the core does not.
            if before.len() != round.before.branches().count() {
                return Ok(());
            }
            let changed: BTreeMap<_, _> = (round.after().branches())
                .map(|branch| (branch.id, &branch.action))
                .filter(|(id, action)| before.get(id) != Some(action))
                .collect();
            prop_assert_eq!(redirected, changed);
            Ok(())
        })?;
    }
}
