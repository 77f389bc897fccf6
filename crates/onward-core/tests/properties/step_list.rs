//! The step list: orders from 1 without gaps, unique ids, and references that keep their step when
//! the list changes.

use std::collections::BTreeSet;

use onward_core::apply::Plan;
use onward_core::branch::{Action, Effect};
use onward_core::command::{Modification, StepSpec};
use onward_core::event::Change;
use onward_core::id::StepId;
use onward_core::{Command, Event, Step};
use proptest::prelude::*;

use crate::walk::{cases, walks};

fn ids(plan: &Plan) -> Vec<StepId> {
    plan.steps().iter().map(Step::id).collect()
}

/// Checks that the new steps were inserted at `index` and the order is otherwise unchanged.
fn check_inserted(
    before: &Plan,
    after: &Plan,
    index: usize,
    new: &[StepId],
) -> Result<(), TestCaseError> {
    let mut expected = ids(before);
    expected.splice(index..index, new.iter().copied());
    prop_assert_eq!(ids(after), expected);
    Ok(())
}

fn index(order: u32) -> usize {
    usize::try_from(order).expect("order fits")
}

/// The expected dependencies of inserted steps: their orders refer to the list before the insertion,
/// followed by the new steps.
fn expected_dependencies(before: &Plan, specs: &[StepSpec]) -> Vec<Vec<StepId>> {
    let mut list = ids(before);
    list.extend(specs.iter().map(|spec| spec.id));
    let id_at = |order: &u32| list[index(*order) - 1];
    specs
        .iter()
        .map(|spec| {
            let mut seen = BTreeSet::new();
            let distinct = spec.depends_on.iter().filter(|order| seen.insert(**order));
            distinct.map(id_at).collect()
        })
        .collect()
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn orders_are_gapless_and_ids_are_unique_after_every_event(walk in walks()) {
        walk.run(|round| {
            round.each_event(|_, event, after| {
                let orders: Vec<u32> = after.steps().iter().map(|step| step.order).collect();
                let expected: Vec<u32> = (1..).take(orders.len()).collect();
                prop_assert_eq!(orders, expected, "after {:?}", event);
                let unique: BTreeSet<StepId> = ids(after).into_iter().collect();
                prop_assert_eq!(unique.len(), after.steps().len());
                for step in after.steps() {
                    prop_assert_eq!(after.step(step.id()), Some(step));
                    prop_assert_eq!(after.step_at(step.order), Some(step));
                }
                prop_assert_eq!(after.step_at(0), None);
                Ok(())
            })
        })?;
    }

    #[test]
    fn dependencies_and_branches_stay_with_their_steps(walk in walks()) {
        walk.run(|round| {
            round.each_event(|before, event, after| {
                // `redo.rs` checks the references after this change.
                if let Event::PlanModified { change: Change::StepRedone { .. }, .. } = event {
                    return Ok(());
                }
                for step in after.steps() {
                    let Some(was) = before.step(step.id()) else { continue };
                    let updated = match event {
                        Event::PlanModified { change: Change::StepUpdated { step: spec }, .. }
                            if spec.id == step.id() => spec,
                        _ => &was.spec,
                    };
                    prop_assert_eq!(&updated.depends_on, &step.spec.depends_on);
                    let own = before.branches_after(step.id());
                    let (kept, added) = after.branches_after(step.id()).split_at(own.len());
                    prop_assert_eq!(kept, own);
                    let expected = match event {
                        Event::PlanModified { change: Change::BranchAdded { branch }, .. }
                            if branch.after == step.id() => std::slice::from_ref(branch),
                        _ => &[],
                    };
                    prop_assert_eq!(added, expected);
                }
                Ok(())
            })
        })?;
    }

    #[test]
    fn there_are_no_dangling_step_references(walk in walks()) {
        walk.run(|round| {
            let plan = round.after();
            for step in plan.steps() {
                for needed in &step.spec.depends_on {
                    prop_assert!(plan.step(*needed).is_some(), "{:?}", step);
                }
                for branch in plan.branches_after(step.id()) {
                    prop_assert_eq!(branch.after, step.id());
                    for needed in branch.references() {
                        prop_assert!(plan.step(needed).is_some(), "{:?}", branch);
                    }
                }
            }
            for step in round.before.steps() {
                if plan.step(step.id()).is_none() {
                    prop_assert!(plan.branches_after(step.id()).is_empty());
                }
            }
            Ok(())
        })?;
    }

    #[test]
    fn list_changes_keep_the_order_of_the_other_steps(walk in walks()) {
        walk.run(|round| {
            round.each_event(|before, event, after| {
                match event {
                    Event::PlanModified { change: Change::StepsAdded { after: order, steps }, .. } => {
                        let new: Vec<StepId> = steps.iter().map(|step| step.id).collect();
                        check_inserted(before, after, index(*order), &new)
                    }
                    Event::BranchTaken { step, effect: Effect::Added { steps }, .. } => {
                        let new: Vec<StepId> = steps.iter().map(|step| step.id).collect();
                        let order = before.step(*step).map_or(0, |step| step.order);
                        check_inserted(before, after, index(order), &new)
                    }
                    Event::PlanModified { change: Change::StepRemoved { step }, .. } => {
                        let left: Vec<StepId> =
                            ids(before).into_iter().filter(|id| id != step).collect();
                        prop_assert_eq!(ids(after), left);
                        Ok(())
                    }
                    Event::PlanModified { change: Change::StepRedone { successors, .. }, .. } => {
                        let mut expected = Vec::new();
                        for id in ids(before) {
                            expected.push(id);
                            let next = successors.iter();
                            let next = next.filter(|next| next.step.supersedes == Some(id));
                            expected.extend(next.map(|next| next.step.id));
                        }
                        prop_assert_eq!(ids(after), expected);
                        Ok(())
                    }
                    Event::PlanModified { change: Change::StepsReordered { steps }, .. } => {
                        prop_assert_eq!(ids(after), steps.to_vec());
                        Ok(())
                    }
                    _ => {
                        prop_assert_eq!(ids(after), ids(before));
                        Ok(())
                    }
                }
            })
        })?;
    }

    #[test]
    fn dependencies_of_new_steps_refer_to_the_orders_before_the_change(walk in walks()) {
        walk.run(|round| {
            let (Command::ModifyPlan(modify), Ok(events)) = (round.command, round.outcome) else {
                return Ok(());
            };
            for event in events {
                let Event::PlanModified { change, .. } = event else { continue };
                match (change, &modify.modification) {
                    (
                        Change::StepsAdded { steps, .. },
                        Modification::AddSteps { steps: specs, .. },
                    ) => {
                        let actual: Vec<_> =
                            steps.iter().map(|step| step.depends_on.clone()).collect();
                        prop_assert_eq!(actual, expected_dependencies(round.before, specs));
                    }
                    (Change::BranchAdded { branch }, Modification::AddBranch { branch: spec }) => {
                        if let (
                            Action::AddSteps { steps },
                            onward_core::command::ActionSpec::AddSteps(specs),
                        ) = (&branch.action, &spec.action) {
                            let actual: Vec<_> =
                                steps.iter().map(|step| step.depends_on.clone()).collect();
                            prop_assert_eq!(actual, expected_dependencies(round.before, specs));
                        }
                        let after = round.before.step_at(spec.after_order).map(Step::id);
                        prop_assert_eq!(Some(branch.after), after);
                    }
                    _ => {}
                }
            }
            Ok(())
        })?;
    }
}
