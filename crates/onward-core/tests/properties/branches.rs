//! Branches: evaluated in creation order, the first true branch is taken, and its effect matches
//! its action.

use onward_core::apply::Plan;
use onward_core::branch::{Action, Branch, BranchVerdict, Effect};
use onward_core::id::StepId;
use onward_core::step::{SkipCause, StepResult};
use onward_core::{Event, PlanStatus, Step, StepStatus};
use proptest::prelude::*;

use crate::walk::{Round, cases, walks};

/// The expected value of conditions with an obvious one.
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

/// Checks the verdicts and returns the branch that must be taken.
fn branch_to_take<'p>(
    branches: &'p [Branch],
    verdicts: &[BranchVerdict],
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
    let evaluated = first.map_or(branches.len(), |index| index + 1);
    prop_assert_eq!(
        verdicts.len(),
        evaluated,
        "later branches are not evaluated"
    );
    Ok(first.and_then(|index| branches.get(index)))
}

/// The pending steps between the step and the target, or `None` if the skip has no effect.
fn steps_to_skip(plan: &Plan, step: StepId, target: StepId) -> Option<Vec<StepId>> {
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

/// Checks that the effect matches the action. `then` is the plan when the branch was taken.
fn check_effect(
    round: &Round<'_>,
    then: &Plan,
    branch: &Branch,
    effect: &Effect,
) -> Result<(), TestCaseError> {
    let skipped = round.events().iter().filter_map(|event| match event {
        Event::StepSkipped {
            step,
            by: SkipCause::Branch(by),
            ..
        } if *by == branch.id => Some(*step),
        _ => None,
    });
    let skipped: Vec<StepId> = skipped.collect();
    let expected = match &branch.action {
        Action::SkipTo { target } => steps_to_skip(then, branch.after, *target),
        Action::Continue | Action::AddSteps { .. } | Action::Fail { .. } => None,
    };
    prop_assert_eq!(&skipped, expected.as_deref().unwrap_or_default());
    match (&branch.action, effect) {
        (Action::Continue, Effect::Continued) => {}
        (Action::SkipTo { target }, Effect::Skipped { target: to, steps }) => {
            prop_assert_eq!(to, target);
            prop_assert_eq!(Some(steps), expected.as_ref());
            let status = round.after().step(*target).map(Step::status);
            prop_assert_eq!(status, Some(StepStatus::Pending));
        }
        (Action::SkipTo { .. }, Effect::Nothing { .. }) => prop_assert_eq!(expected, None),
        (Action::AddSteps { steps }, Effect::Added { steps: added }) => {
            prop_assert_eq!(steps, added);
        }
        (Action::Fail { reason }, Effect::FailedPlan { reason: recorded }) => {
            prop_assert_eq!(reason, recorded);
            prop_assert_eq!(round.after().head().status(), PlanStatus::Failed);
            prop_assert_eq!(round.events().last().map(Event::name), Some("plan_failed"));
        }
        (action, effect) => {
            return Err(TestCaseError::fail(format!(
                "{action:?} has the effect {effect:?}"
            )));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn takes_the_first_true_branch(walk in walks()) {
        walk.run(|round| {
            let mut due: Option<Branch> = None;
            round.each_event(|before, event, _| {
                match event {
                    Event::StepCompleted { step, result, verdicts, .. } => {
                        let branches = before.branches_after(*step);
                        due = branch_to_take(branches, verdicts, result)?.cloned();
                    }
                    Event::BranchTaken { branch, step, effect } => {
                        let Some(due) = due.take() else {
                            return Err(TestCaseError::fail("taken, but its condition was not true"));
                        };
                        prop_assert_eq!(due.id, *branch);
                        prop_assert_eq!(due.after, *step);
                        check_effect(round, before, &due, effect)?;
                    }
                    _ => prop_assert!(due.is_none(), "{:?} before the branch was taken", event),
                }
                Ok(())
            })?;
            prop_assert!(due.is_none(), "{:?} was not taken", due);
            Ok(())
        })?;
    }
}
