//! Order and dependencies: which step is assigned next, and which dependencies are rejected.

use onward_core::command::{ActionSpec, Modification, StepRef};
use onward_core::decide::create;
use onward_core::refusal::{BadDependency, OpenDependencies};
use onward_core::{PlanStatus, Refusal};

use crate::harness::{Harness, branch, create_plan, id, modify, spec};

fn plan_with_dependencies(dependencies: &[&[u32]]) -> onward_core::command::CreatePlan {
    let mut command = create_plan(u32::try_from(dependencies.len()).unwrap());
    for (step, depends_on) in command.steps.iter_mut().zip(dependencies) {
        step.depends_on = depends_on.to_vec();
    }
    command
}

fn invalid_dependency(dependencies: &[&[u32]]) -> BadDependency {
    match create::decide(&plan_with_dependencies(dependencies)) {
        Err(Refusal::InvalidDependency(invalid_dependency)) => invalid_dependency,
        other => panic!("{other:?}"),
    }
}

#[test]
fn rejects_a_result_for_a_pending_step_with_open_dependencies() {
    let mut harness = Harness::new(plan_with_dependencies(&[&[], &[], &[1, 2]]));
    let submit = harness.submit(3, None);
    let open = |open: &[u32]| {
        let first = open.iter().map(|order| (id(*order), *order)).collect();
        let total = u32::try_from(open.len()).unwrap();
        Refusal::DependenciesOpen(OpenDependencies { total, first })
    };
    assert_eq!(harness.expect_rejection(&submit), open(&[1, 2]));
    assert!(submit.late_result().is_some());
    harness.claim_next().unwrap();
    let first = harness.submit(1, None);
    harness.run(&first);
    assert_eq!(harness.expect_rejection(&submit), open(&[2]));
    let second = harness.submit(2, None);
    harness.run(&second);
    assert_eq!(
        harness.run(&submit),
        ["step_started", "step_completed", "plan_completed"]
    );
}

#[test]
fn names_at_most_fifty_open_dependencies() {
    let mut command = create_plan(62);
    command.steps[60].depends_on = (1..=60).rev().collect();
    let mut harness = Harness::new(command);
    let submit = harness.submit(61, None);
    let Refusal::DependenciesOpen(open) = harness.expect_rejection(&submit) else {
        panic!("not rejected for its dependencies")
    };
    assert_eq!((open.total, open.first.len()), (60, 50));
    let orders: Vec<u32> = open.first.iter().map(|(_, order)| *order).collect();
    assert_eq!(orders, (1..=50).collect::<Vec<_>>());
}

#[test]
fn assigns_the_pending_step_with_the_lowest_order() {
    let mut harness = Harness::with_steps(3);
    assert_eq!(harness.claim_next().unwrap().0, 1);
    assert_eq!(harness.claim_next().unwrap().0, 2);
}

#[test]
fn assigns_different_steps_to_different_agents() {
    let mut harness = Harness::with_steps(2);
    let (first, _) = harness.claim_next_for(Some("a"), false).unwrap();
    let (second, _) = harness.claim_next_for(Some("b"), false).unwrap();
    assert_ne!(first, second);
    assert_eq!(harness.claim_next_for(Some("c"), false), None);
}

#[test]
fn assigns_a_step_after_all_its_dependencies_are_met() {
    let mut harness = Harness::new(plan_with_dependencies(&[&[], &[], &[1, 2], &[]]));
    assert_eq!(harness.claim_next().unwrap().0, 1);
    assert_eq!(harness.claim_next().unwrap().0, 2);
    assert_eq!(harness.claim_next().unwrap().0, 4);
    let command = harness.submit(1, None);
    harness.run(&command);
    assert_eq!(harness.claim_next(), None);
    let command = harness.submit(2, None);
    harness.run(&command);
    assert_eq!(harness.claim_next().unwrap().0, 3);
}

#[test]
fn a_step_can_depend_on_a_later_step() {
    let mut harness = Harness::new(plan_with_dependencies(&[&[2], &[]]));
    assert_eq!(harness.claim_next().unwrap().0, 2);
    assert_eq!(harness.claim_next(), None);
    let command = harness.submit(2, None);
    harness.run(&command);
    assert_eq!(harness.claim_next().unwrap().0, 1);
}

#[test]
fn rejects_a_cycle_and_reports_it() {
    assert_eq!(
        invalid_dependency(&[&[1]]),
        BadDependency::Cycle(vec![1, 1])
    );
    // A cycle after steps with valid dependencies.
    assert_eq!(
        invalid_dependency(&[&[], &[1], &[2, 4], &[3]]),
        BadDependency::Cycle(vec![3, 4, 3])
    );
    assert_eq!(
        invalid_dependency(&[&[], &[4], &[2], &[3]]),
        BadDependency::Cycle(vec![2, 4, 3, 2])
    );
}

#[test]
fn rejects_a_long_cycle_without_stack_overflow() {
    let mut command = create_plan(10_000);
    for (n, step) in (1u32..).zip(&mut command.steps) {
        step.depends_on = vec![if n == 1 { 10_000 } else { n - 1 }];
    }
    assert!(matches!(
        create::decide(&command),
        Err(Refusal::InvalidDependency(BadDependency::Cycle(orders))) if orders.len() == 10_001
    ));
}

#[test]
fn rejects_a_dependency_on_an_unknown_order() {
    assert_eq!(
        invalid_dependency(&[&[], &[0]]),
        BadDependency::Unknown {
            step: 2,
            needed: StepRef::Order(0)
        }
    );
    assert_eq!(
        invalid_dependency(&[&[3], &[]]),
        BadDependency::Unknown {
            step: 1,
            needed: StepRef::Order(3)
        }
    );
}

#[test]
fn deduplicates_dependencies() {
    let mut harness = Harness::new(plan_with_dependencies(&[&[], &[1, 1]]));
    harness.claim_next();
    let command = harness.submit(1, None);
    harness.run(&command);
    assert_eq!(harness.claim_next().unwrap().0, 2);
}

#[test]
fn dependencies_of_added_steps_refer_to_the_orders_before_the_insertion() {
    let mut harness = Harness::with_steps(2);
    let (mut first, mut second) = (spec(8), spec(9));
    // Two steps are inserted between 1 and 2; the first of them is 3.
    first.depends_on = vec![2];
    second.depends_on = vec![1, 3];
    harness.run(&modify(Modification::AddSteps {
        steps: vec![first, second],
        insert_after: Some(1),
    }));
    assert_eq!(harness.step_ids(), [id(1), id(8), id(9), id(2)]);
    assert_eq!(harness.plan.step(id(8)).unwrap().spec.depends_on, [id(2)]);
    assert_eq!(
        harness.plan.step(id(9)).unwrap().spec.depends_on,
        [id(1), id(8)]
    );
}

#[test]
fn added_steps_can_depend_on_steps_by_id() {
    let mut harness = Harness::with_steps(3);
    let mut added = spec(8);
    added.depends_on = vec![2];
    added.depends_on_ids = vec![id(3), id(2)];
    harness.run(&modify(Modification::AddSteps {
        steps: vec![added],
        insert_after: Some(0),
    }));
    assert_eq!(
        harness.plan.step(id(8)).unwrap().spec.depends_on,
        [id(2), id(3)]
    );
    let mut unknown = spec(9);
    unknown.depends_on_ids = vec![id(7)];
    let unknown = modify(Modification::AddSteps {
        steps: vec![unknown],
        insert_after: None,
    });
    assert_eq!(
        harness.rejection_code(&unknown),
        onward_core::Code::InvalidDependency
    );
}

#[test]
fn added_steps_can_depend_on_completed_steps() {
    let mut harness = Harness::with_steps(2).started();
    let command = harness.submit(1, None);
    harness.run(&command);
    let mut late = spec(9);
    late.depends_on = vec![1];
    harness.run(&modify(Modification::AddSteps {
        steps: vec![late],
        insert_after: Some(1),
    }));
    assert_eq!(harness.claim_next().unwrap().0, 2);
    assert_eq!(harness.plan.step_at(2).unwrap().id(), id(9));
}

#[test]
fn steps_added_by_a_branch_can_depend_on_each_other_and_on_existing_steps() {
    let mut command = create_plan(2);
    let (mut first, mut second) = (spec(8), spec(9));
    first.depends_on = vec![4];
    second.depends_on = vec![2];
    command.branches.push(branch(
        1,
        1,
        "true",
        ActionSpec::AddSteps(vec![first, second]),
    ));
    let created = create::decide(&command);
    // 4 is the second inserted step.
    assert!(created.is_ok(), "{created:?}");
    let mut harness = Harness::new(command).started();
    let command = harness.submit(1, None);
    harness.run(&command);
    assert_eq!(harness.step_ids(), [id(1), id(8), id(9), id(2)]);
    assert_eq!(harness.claim_next().unwrap().0, 4);
    assert_eq!(harness.claim_next(), None);
    let command = harness.submit(2, None);
    harness.run(&command);
    assert_eq!(harness.claim_next().unwrap().0, 3);
    assert_eq!(harness.status(), PlanStatus::Executing);
}
