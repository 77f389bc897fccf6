//! Order and dependencies: what is handed out, and what waits for what.

use onward_core::command::{ActionSpec, Modification};
use onward_core::decide::create;
use onward_core::refusal::BadDependency;
use onward_core::{PlanStatus, Refusal};

use crate::desk::{Desk, branch, id, modify, plan_of, spec};

fn depending(waits: &[&[u32]]) -> onward_core::command::CreatePlan {
    let mut command = plan_of(u32::try_from(waits.len()).unwrap());
    for (step, depends_on) in command.steps.iter_mut().zip(waits) {
        step.depends_on = depends_on.to_vec();
    }
    command
}

fn bad(waits: &[&[u32]]) -> BadDependency {
    match create::decide(&depending(waits)) {
        Err(Refusal::InvalidDependency(bad)) => bad,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_lowest_pending_step_is_handed_out() {
    let mut desk = Desk::with(3);
    assert_eq!(desk.next().unwrap().0, 1);
    assert_eq!(desk.next().unwrap().0, 2);
}

#[test]
fn two_agents_that_ask_get_two_different_steps() {
    let mut desk = Desk::with(2);
    let (first, _) = desk.next_for(Some("a"), false).unwrap();
    let (second, _) = desk.next_for(Some("b"), false).unwrap();
    assert_ne!(first, second);
    assert_eq!(desk.next_for(Some("c"), false), None);
}

#[test]
fn a_step_waits_until_all_its_dependencies_are_terminal() {
    let mut desk = Desk::of(depending(&[&[], &[], &[1, 2], &[]]));
    assert_eq!(desk.next().unwrap().0, 1);
    assert_eq!(desk.next().unwrap().0, 2);
    assert_eq!(desk.next().unwrap().0, 4);
    let command = desk.submit(1, None);
    desk.does(&command);
    assert_eq!(desk.next(), None);
    // Failed is terminal, too.
    desk.does(&modify(Modification::FailStep {
        step: id(2),
        reason: None,
    }));
    assert_eq!(desk.next().unwrap().0, 3);
}

#[test]
fn a_dependency_may_stand_behind_what_waits_for_it() {
    let mut desk = Desk::of(depending(&[&[2], &[]]));
    assert_eq!(desk.next().unwrap().0, 2);
    assert_eq!(desk.next(), None);
    let command = desk.submit(2, None);
    desk.does(&command);
    assert_eq!(desk.next().unwrap().0, 1);
}

#[test]
fn a_cycle_is_refused_and_shown() {
    assert_eq!(bad(&[&[1]]), BadDependency::Cycle(vec![1, 1]));
    // Also behind steps that wait in good order.
    assert_eq!(
        bad(&[&[], &[1], &[2, 4], &[3]]),
        BadDependency::Cycle(vec![3, 4, 3])
    );
    assert_eq!(
        bad(&[&[], &[4], &[2], &[3]]),
        BadDependency::Cycle(vec![2, 4, 3, 2])
    );
}

#[test]
fn a_long_cycle_is_refused_without_running_out_of_stack() {
    let mut command = plan_of(10_000);
    for (n, step) in (1u32..).zip(&mut command.steps) {
        step.depends_on = vec![if n == 1 { 10_000 } else { n - 1 }];
    }
    assert!(matches!(
        create::decide(&command),
        Err(Refusal::InvalidDependency(BadDependency::Cycle(orders))) if orders.len() == 10_001
    ));
}

#[test]
fn an_unknown_order_is_refused_by_name() {
    assert_eq!(
        bad(&[&[], &[0]]),
        BadDependency::Unknown { step: 2, order: 0 }
    );
    assert_eq!(
        bad(&[&[3], &[]]),
        BadDependency::Unknown { step: 1, order: 3 }
    );
}

#[test]
fn naming_a_dependency_twice_is_naming_it_once() {
    let mut desk = Desk::of(depending(&[&[], &[1, 1]]));
    desk.next();
    let command = desk.submit(1, None);
    desk.does(&command);
    assert_eq!(desk.next().unwrap().0, 2);
}

#[test]
fn steps_that_come_in_later_name_orders_of_the_plan_as_it_will_be() {
    let mut desk = Desk::with(2);
    let (mut first, mut second) = (spec(8), spec(9));
    // Between 1 and 2 come two; the old step 2 is then step 4.
    first.depends_on = vec![4];
    second.depends_on = vec![1, 2];
    desk.does(&modify(Modification::AddSteps {
        steps: vec![first, second],
        insert_after: Some(1),
    }));
    assert_eq!(desk.order(), [id(1), id(8), id(9), id(2)]);
    assert_eq!(desk.plan.step(id(8)).unwrap().spec.depends_on, [id(2)]);
    assert_eq!(
        desk.plan.step(id(9)).unwrap().spec.depends_on,
        [id(1), id(8)]
    );
}

#[test]
fn steps_that_come_in_later_may_wait_for_what_is_over() {
    let mut desk = Desk::with(2).started();
    let command = desk.submit(1, None);
    desk.does(&command);
    let mut late = spec(9);
    late.depends_on = vec![1];
    desk.does(&modify(Modification::AddSteps {
        steps: vec![late],
        insert_after: Some(1),
    }));
    assert_eq!(desk.next().unwrap().0, 2);
    assert_eq!(desk.plan.step_at(2).unwrap().id(), id(9));
}

#[test]
fn what_a_branch_adds_may_depend_on_each_other_and_on_the_plan() {
    let mut command = plan_of(2);
    let (mut first, mut second) = (spec(8), spec(9));
    first.depends_on = vec![3];
    second.depends_on = vec![4];
    command.branches.push(branch(
        1,
        1,
        "true",
        ActionSpec::AddSteps(vec![first, second]),
    ));
    let refused = create::decide(&command);
    // 3 is the second of the two, 4 the old step 2: no cycle, but the second waits for step 2.
    assert!(refused.is_ok(), "{refused:?}");
    let mut desk = Desk::of(command).started();
    let command = desk.submit(1, None);
    desk.does(&command);
    assert_eq!(desk.order(), [id(1), id(8), id(9), id(2)]);
    assert_eq!(desk.next().unwrap().0, 4);
    assert_eq!(desk.next(), None);
    let command = desk.submit(2, None);
    desk.does(&command);
    assert_eq!(desk.next().unwrap().0, 3);
    assert_eq!(desk.status(), PlanStatus::Executing);
}
