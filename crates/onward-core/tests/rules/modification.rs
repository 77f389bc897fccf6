//! Modification: what may be changed, when, and what follows.

use onward_core::command::{ActionSpec, Modification, ModifyPlan, StepRef};
use onward_core::policy::MAX_STEPS;
use onward_core::refusal::NotRemovable;
use onward_core::{Code, Command, Event, PlanStatus, Refusal, StepStatus};

use crate::desk::{Desk, branch, id, modify, plan_of, spec};

fn add(steps: &[u32], insert_after: Option<u32>) -> Command {
    modify(Modification::AddSteps {
        steps: steps.iter().copied().map(spec).collect(),
        insert_after,
    })
}

fn remove(step: u32) -> Command {
    modify(Modification::RemoveStep { step: id(step) })
}

fn reorder(steps: &[u32]) -> Command {
    modify(Modification::ReorderSteps {
        steps: steps.iter().copied().map(id).collect(),
    })
}

fn fail(step: u32) -> Command {
    modify(Modification::FailStep {
        step: id(step),
        reason: Some("no use".to_owned()),
    })
}

fn instruct(step: u32) -> Command {
    modify(Modification::UpdateInstructions {
        step: id(step),
        instructions: "anew".to_owned(),
    })
}

#[test]
fn only_a_plan_in_planning_or_executing_is_modified() {
    let completed = {
        let mut desk = Desk::with(2);
        for step in [1, 2] {
            let submit = desk.submit(step, None);
            desk.does(&submit);
        }
        desk
    };
    let closed = [
        completed,
        Desk::with(2).in_review(),
        Desk::with(2).stalled(),
        Desk::with(2).abandoned(),
    ];
    for mut desk in closed {
        let all = [
            add(&[9], None),
            remove(2),
            reorder(&[2, 1]),
            instruct(2),
            fail(2),
            modify(Modification::RequeueStep { step: id(1) }),
            modify(Modification::AddBranch {
                branch: branch(1, 2, "true", ActionSpec::Continue),
            }),
        ];
        for command in all {
            assert_eq!(
                desk.code(&command),
                Code::PlanNotModifiable,
                "{}",
                desk.status()
            );
        }
    }
    for mut desk in [Desk::with(2), Desk::with(2).started()] {
        assert_eq!(desk.does(&add(&[9], None)), ["plan_modified"]);
    }
}

#[test]
fn a_modification_keeps_its_rationale() {
    let mut desk = Desk::with(2);
    let command = Command::ModifyPlan(ModifyPlan {
        modification: Modification::RemoveStep { step: id(2) },
        rationale: Some("not needed".to_owned()),
        resume: false,
    });
    let events = desk.try_to(&command).unwrap();
    assert!(matches!(
        events.as_slice(),
        [event @ Event::PlanModified { rationale: Some(why), .. }]
            if why == "not needed" && event.action() == Some("remove_step")
    ));
}

#[test]
fn steps_are_inserted_after_an_order_or_appended() {
    let mut desk = Desk::with(2);
    desk.does(&add(&[7], Some(0)));
    desk.does(&add(&[8], Some(2)));
    desk.does(&add(&[9], None));
    assert_eq!(desk.order(), [7, 1, 8, 2, 9].map(id));
    assert_eq!(desk.code(&add(&[10], Some(6))), Code::InvalidStepReference);
    assert_eq!(desk.code(&add(&[], None)), Code::InvalidInput);
}

#[test]
fn a_plan_does_not_grow_past_its_size() {
    let mut desk = Desk::with(u32::try_from(MAX_STEPS).unwrap() - 1);
    assert_eq!(
        desk.code(&add(&[20_001, 20_002], None)),
        Code::LimitExceeded
    );
    assert_eq!(desk.does(&add(&[20_001], None)), ["plan_modified"]);
}

#[test]
fn a_removed_step_is_gone_and_the_orders_close_up() {
    let mut desk = Desk::with(3);
    desk.does(&remove(2));
    assert_eq!(desk.order(), [1, 3].map(id));
    assert_eq!(desk.plan.step(id(3)).unwrap().order, 2);
    assert_eq!(desk.code(&remove(2)), Code::StepNotFound);
}

#[test]
fn a_step_that_was_taken_on_is_not_removed() {
    let mut desk = Desk::with(2).started();
    let refusal = desk.refuses(&remove(1));
    assert_eq!(
        refusal,
        Refusal::StepNotRemovable(NotRemovable::NotPending(StepStatus::InProgress))
    );
}

#[test]
fn a_step_that_something_leads_to_or_waits_for_is_not_removed() {
    let mut command = plan_of(4);
    command.steps[3].depends_on = vec![2];
    command.branches = vec![branch(7, 1, "true", ActionSpec::SkipTo(StepRef::Order(3)))];
    let mut desk = Desk::of(command);
    let by_step = Refusal::StepNotRemovable(NotRemovable::NeededByStep(id(4)));
    assert_eq!(desk.refuses(&remove(2)), by_step);
    assert_eq!(desk.refuses(&remove(3)).code(), Code::StepNotRemovable);
    // Its own branches are no reason: they go with it. Then nothing leads to step 3 any more.
    assert_eq!(desk.does(&remove(1)), ["plan_modified"]);
    assert_eq!(desk.does(&remove(3)), ["plan_modified"]);
}

#[test]
fn a_step_that_a_branch_would_make_others_wait_for_is_not_removed() {
    let mut command = plan_of(2);
    let mut added = spec(9);
    added.depends_on = vec![3];
    command.branches = vec![branch(7, 1, "true", ActionSpec::AddSteps(vec![added]))];
    assert_eq!(Desk::of(command).code(&remove(2)), Code::StepNotRemovable);
}

#[test]
fn removing_the_last_open_step_completes_the_plan() {
    let mut desk = Desk::with(2).started();
    let submit = desk.submit(1, None);
    desk.does(&submit);
    assert_eq!(desk.does(&remove(2)), ["plan_modified", "plan_completed"]);
}

#[test]
fn a_plan_without_steps_is_planning_and_hands_out_nothing() {
    let mut desk = Desk::with(1);
    desk.does(&remove(1));
    assert_eq!(desk.status(), PlanStatus::Planning);
    assert_eq!(desk.next(), None);
    assert_eq!(desk.status(), PlanStatus::Planning);
    desk.does(&add(&[2], None));
    assert_eq!(desk.next().unwrap().0, 1);
}

#[test]
fn reordering_needs_the_complete_list_and_names_what_is_wrong() {
    let mut desk = Desk::with(3).started();
    let refusal = desk.refuses(&reorder(&[2, 2, 9]));
    assert_eq!(
        refusal,
        Refusal::IncompleteStepList {
            missing: vec![id(1), id(3)],
            unknown: vec![id(9)],
            doubled: vec![id(2)]
        }
    );
    // Each fault alone is enough.
    for list in [&[1, 2][..], &[1, 2, 3, 9], &[1, 2, 3, 3]] {
        assert_eq!(desk.code(&reorder(list)), Code::IncompleteStepList);
    }
    desk.does(&reorder(&[3, 1, 2]));
    assert_eq!(desk.order(), [3, 1, 2].map(id));
    assert_eq!(desk.next().unwrap().0, 1);
}

#[test]
fn instructions_are_replaced_in_any_status() {
    let mut desk = Desk::with(3).started();
    let submit = desk.submit(1, None);
    desk.does(&submit);
    desk.next();
    for step in 1..=3 {
        desk.does(&instruct(step));
        assert_eq!(desk.plan.step(id(step)).unwrap().spec.instructions, "anew");
    }
    let blank = Modification::UpdateInstructions {
        step: id(1),
        instructions: " ".to_owned(),
    };
    assert_eq!(desk.code(&modify(blank)), Code::InvalidInput);
}

#[test]
fn a_failed_step_does_not_fail_its_plan() {
    let mut desk = Desk::with(2).started();
    assert_eq!(desk.does(&fail(1)), ["plan_modified", "step_failed"]);
    assert_eq!(desk.status(), PlanStatus::Executing);
    assert_eq!(
        desk.does(&fail(2)),
        ["plan_modified", "step_failed", "plan_completed"]
    );
    assert_eq!(desk.status(), PlanStatus::Completed);
    assert_eq!(desk.plan.head().counts.progress(), 0);
}

#[test]
fn a_modification_that_leaves_a_terminal_step_begins_the_plan() {
    let mut desk = Desk::with(2);
    desk.does(&fail(1));
    assert_eq!(desk.status(), PlanStatus::Executing);
    // Both moves, where it is the only one.
    let mut desk = Desk::with(1);
    assert_eq!(
        desk.does(&fail(1)),
        ["plan_modified", "step_failed", "plan_completed"]
    );
}

#[test]
fn a_step_that_is_over_or_never_began_is_not_failed_or_handed_back() {
    let mut desk = Desk::with(2).started();
    assert_eq!(
        desk.code(&modify(Modification::RequeueStep { step: id(2) })),
        Code::IllegalTransition
    );
    desk.does(&fail(1));
    assert_eq!(desk.code(&fail(1)), Code::IllegalTransition);
    assert_eq!(
        desk.code(&modify(Modification::RequeueStep { step: id(1) })),
        Code::IllegalTransition
    );
}

#[test]
fn a_plan_never_moves_back_to_planning() {
    let mut desk = Desk::with(1).started();
    desk.does(&modify(Modification::RequeueStep { step: id(1) }));
    assert_eq!(
        desk.plan.head().counts.derived_status(),
        PlanStatus::Planning
    );
    assert_eq!(desk.status(), PlanStatus::Executing);
}

#[test]
fn a_branch_is_added_to_a_step_that_is_open() {
    let mut desk = Desk::with(3).started();
    let add = |after, action| {
        modify(Modification::AddBranch {
            branch: branch(1, after, "true", action),
        })
    };
    assert_eq!(
        desk.does(&add(1, ActionSpec::SkipTo(StepRef::Order(3)))),
        ["plan_modified"]
    );
    assert_eq!(
        desk.does(&add(1, ActionSpec::SkipTo(StepRef::Id(id(3))))),
        ["plan_modified"]
    );
    assert_eq!(
        desk.code(&add(4, ActionSpec::Continue)),
        Code::InvalidStepReference
    );
    assert_eq!(
        desk.code(&add(2, ActionSpec::SkipTo(StepRef::Order(2)))),
        Code::InvalidStepReference
    );
    assert_eq!(
        desk.code(&add(2, ActionSpec::SkipTo(StepRef::Id(id(9))))),
        Code::InvalidStepReference
    );
    let submit = desk.submit(1, None);
    desk.does(&submit);
    assert_eq!(
        desk.code(&add(1, ActionSpec::Continue)),
        Code::IllegalTransition
    );
}

#[test]
fn a_step_that_comes_in_has_an_id_of_its_own() {
    let mut command = plan_of(2);
    let adding = |step: u32| branch(1, 1, "true", ActionSpec::AddSteps(vec![spec(step)]));
    command.branches = vec![adding(8)];
    let mut desk = Desk::of(command);
    for taken in [2, 8] {
        assert_eq!(desk.code(&add(&[taken], None)), Code::InvalidInput);
        let again = Modification::AddBranch {
            branch: adding(taken),
        };
        assert_eq!(desk.code(&modify(again)), Code::InvalidInput);
    }
    assert_eq!(desk.code(&add(&[9, 9], None)), Code::InvalidInput);
}

#[test]
fn a_step_goes_with_its_own_branches_even_where_what_they_add_would_wait_for_it() {
    let mut command = plan_of(2);
    let mut added = spec(9);
    added.depends_on = vec![1];
    command.branches = vec![branch(7, 1, "true", ActionSpec::AddSteps(vec![added]))];
    assert_eq!(Desk::of(command).does(&remove(1)), ["plan_modified"]);
}
