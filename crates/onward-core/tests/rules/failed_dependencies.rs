//! Steps that depend on a failed step: blocked by default, and the ways to let the plan continue.

use onward_core::command::{CreatePlan, Modification, StepUpdate};
use onward_core::policy::OnDependencyFailure;
use onward_core::{Code, PlanStatus, StepStatus};

use crate::harness::{Harness, create_plan, id, modify, spec};

/// Step 2 depends on step 1, and step 3 on step 2.
fn chain(policy: OnDependencyFailure) -> CreatePlan {
    let mut command = create_plan(3);
    command.on_dependency_failure = policy;
    command.steps[1].depends_on = vec![1];
    command.steps[2].depends_on = vec![2];
    command
}

fn fail(harness: &mut Harness, step: u32) {
    harness.run(&modify(Modification::FailStep {
        step: id(step),
        reason: None,
    }));
}

fn proceed(step: u32) -> onward_core::Command {
    modify(Modification::UpdateStep {
        step: id(step),
        update: StepUpdate {
            on_dependency_failure: Some(OnDependencyFailure::Continue),
            ..StepUpdate::default()
        },
    })
}

#[test]
fn a_failed_dependency_blocks_the_step_and_keeps_the_plan_open() {
    let mut harness = Harness::new(chain(OnDependencyFailure::Block));
    fail(&mut harness, 1);
    assert_eq!(harness.claim_next(), None);
    assert_eq!(harness.plan.count_blocked(), 2);
    let submit = harness.submit(2, None);
    assert_eq!(harness.rejection_code(&submit), Code::DependenciesOpen);
    assert_ne!(harness.status(), PlanStatus::Completed);
}

#[test]
fn the_plan_can_continue_after_failed_dependencies() {
    let mut harness = Harness::new(chain(OnDependencyFailure::Continue));
    fail(&mut harness, 1);
    assert_eq!(harness.claim_next().unwrap().0, 2);
    // Steps that are added later follow the plan, too.
    let mut added = spec(9);
    added.depends_on = vec![1];
    harness.run(&modify(Modification::AddSteps {
        steps: vec![added],
        insert_after: None,
    }));
    assert_eq!(harness.claim_next().unwrap().0, 4);
}

#[test]
fn one_step_can_continue_and_only_that_one() {
    let mut harness = Harness::new(chain(OnDependencyFailure::Block));
    fail(&mut harness, 1);
    harness.run(&proceed(2));
    assert_eq!(harness.claim_next().unwrap().0, 2);
    fail(&mut harness, 2);
    assert_eq!(harness.claim_next(), None);
}

#[test]
fn a_step_may_continue_before_its_dependency_fails() {
    let mut harness = Harness::new(chain(OnDependencyFailure::Block));
    harness.run(&proceed(2));
    assert_eq!(harness.claim_next().unwrap().0, 1);
    assert_eq!(harness.claim_next(), None);
    fail(&mut harness, 1);
    assert_eq!(harness.claim_next().unwrap().0, 2);
}

#[test]
fn redoing_the_failed_step_lets_the_plan_continue() {
    let mut harness = Harness::new(chain(OnDependencyFailure::Block));
    fail(&mut harness, 1);
    harness.run(&modify(Modification::RedoStep {
        step: id(1),
        reason: "again".to_owned(),
        cascade: false,
        ids: vec![id(8)],
    }));
    let (order, _) = harness.claim_next().unwrap();
    assert_eq!(order, 2);
    assert_eq!(harness.claim_next(), None);
    let submit = harness.submit(8, None);
    harness.run(&submit);
    assert_eq!(harness.claim_next().unwrap().0, 3);
}

#[test]
fn a_skipped_dependency_is_met() {
    let mut harness = Harness::new(chain(OnDependencyFailure::Block));
    let skip = |step| modify(Modification::SkipStep { step: id(step) });
    let names = ["plan_modified", "step_skipped", "plan_status_changed"];
    assert_eq!(harness.run(&skip(1)), names);
    assert_eq!(harness.step_statuses()[0], StepStatus::Skipped);
    assert_eq!(harness.claim_next().unwrap().0, 2);
    // Only a pending step can be skipped.
    for step in [1, 2] {
        assert_eq!(harness.rejection_code(&skip(step)), Code::IllegalTransition);
    }
}

#[test]
fn skipping_the_last_open_step_completes_the_plan() {
    let mut harness = Harness::with_steps(1);
    harness.run(&modify(Modification::SkipStep { step: id(1) }));
    assert_eq!(harness.status(), PlanStatus::Completed);
}
