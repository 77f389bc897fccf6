//! Branches: tried in the order in which they were made, the first that is true decides, and what it
//! does is what its action says, no more and no less.

use onward_core::apply::Plan;
use onward_core::branch::{Action, Branch, Effect, Verdict};
use onward_core::id::StepId;
use onward_core::step::{SkipCause, StepResult};
use onward_core::{Event, PlanStatus, Step, StepStatus};
use proptest::prelude::*;

use crate::walk::{Moment, cases, walks};

/// What must come out, for the conditions of which this is plain.
fn expected(condition: &str, result: &StepResult) -> Option<bool> {
    match condition {
        "true" => Some(true),
        "false" => Some(false),
        "confidence >= 0.8" => Some(
            result
                .confidence
                .is_some_and(|confidence| confidence >= 0.8),
        ),
        _ => None,
    }
}

/// The branch that decides, by the verdicts; they must be those of the branches.
fn deciding<'p>(
    branches: &'p [Branch],
    verdicts: &[Verdict],
    result: &StepResult,
) -> Result<Option<&'p Branch>, TestCaseError> {
    for (branch, verdict) in branches.iter().zip(verdicts) {
        prop_assert_eq!(branch.id, verdict.branch);
        prop_assert_eq!(branch.condition.source(), &verdict.condition);
        prop_assert!(!(verdict.matched && verdict.error.is_some()));
        if let Some(expected) = expected(&verdict.condition, result) {
            prop_assert_eq!(verdict.matched, expected, "{}", verdict.condition);
        }
    }
    let first = verdicts.iter().position(|verdict| verdict.matched);
    let tried = first.map_or(branches.len(), |place| place + 1);
    prop_assert_eq!(verdicts.len(), tried, "the rest are not tried");
    Ok(first.and_then(|place| branches.get(place)))
}

/// The pending steps strictly between, where a `skip_to` can land.
fn passed_over(plan: &Plan, step: StepId, target: StepId) -> Option<Vec<StepId>> {
    let order = plan.step(step)?.order;
    let target = plan.step(target)?;
    if target.status() != StepStatus::Pending || target.order <= order {
        return None;
    }
    let between = plan.steps().iter().filter(|step| {
        step.status() == StepStatus::Pending && step.order > order && step.order < target.order
    });
    Some(between.map(Step::id).collect())
}

/// What the branch did is what its action says, on the plan as it was when it was taken.
fn does_what_it_says(
    moment: &Moment<'_>,
    then: &Plan,
    branch: &Branch,
    effect: &Effect,
) -> Result<(), TestCaseError> {
    let skipped = moment.events().iter().filter_map(|event| match event {
        Event::StepSkipped {
            step,
            by: SkipCause::Branch(by),
            ..
        } if *by == branch.id => Some(*step),
        _ => None,
    });
    let skipped: Vec<StepId> = skipped.collect();
    let over = match &branch.action {
        Action::SkipTo { target } => passed_over(then, branch.after, *target),
        Action::Continue | Action::AddSteps { .. } | Action::Fail { .. } => None,
    };
    prop_assert_eq!(&skipped, over.as_deref().unwrap_or_default());
    match (&branch.action, effect) {
        (Action::Continue, Effect::Continued) => {}
        (Action::SkipTo { target }, Effect::Skipped { target: to, steps }) => {
            prop_assert_eq!(to, target);
            prop_assert_eq!(Some(steps), over.as_ref());
            let landed = moment.after().step(*target).map(Step::status);
            prop_assert_eq!(landed, Some(StepStatus::Pending));
        }
        (Action::SkipTo { .. }, Effect::Nothing { .. }) => prop_assert_eq!(over, None),
        (Action::AddSteps { steps }, Effect::Added { steps: added }) => {
            prop_assert_eq!(steps, added);
        }
        (Action::Fail { reason }, Effect::FailedPlan { reason: said }) => {
            prop_assert_eq!(reason, said);
            prop_assert_eq!(moment.after().head().status(), PlanStatus::Failed);
            prop_assert_eq!(moment.events().last().map(Event::name), Some("plan_failed"));
        }
        (action, effect) => {
            return Err(TestCaseError::fail(format!("{action:?} did {effect:?}")));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn the_first_branch_that_is_true_decides(walk in walks()) {
        walk.play(|moment| {
            let mut due: Option<Branch> = None;
            moment.each_event(|before, event, _| {
                match event {
                    Event::StepCompleted { step, result, verdicts, .. } => {
                        let branches = before.branches_after(*step);
                        due = deciding(branches, verdicts, result)?.cloned();
                    }
                    Event::BranchTaken { branch, step, effect } => {
                        let Some(due) = due.take() else {
                            return Err(TestCaseError::fail("taken, and not due"));
                        };
                        prop_assert_eq!(due.id, *branch);
                        prop_assert_eq!(due.after, *step);
                        does_what_it_says(moment, before, &due, effect)?;
                    }
                    _ => prop_assert!(due.is_none(), "{:?} before a branch that is due", event),
                }
                Ok(())
            })?;
            prop_assert!(due.is_none(), "{:?} was due, and not taken", due);
            Ok(())
        })?;
    }
}
