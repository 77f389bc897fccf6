//! `modify_plan`: when each change is allowed, and its effects.

use onward_core::command::{
    ActionSpec, Modification, ModifyPlan, PlanUpdate, ReportProgress, StepRef, StepUpdate,
};
use onward_core::id::SessionId;
use onward_core::policy::MAX_STEPS;
use onward_core::refusal::NotRemovable;
use onward_core::{Code, Command, Event, PlanStatus, Refusal, StepStatus};

use crate::harness::{Harness, branch, create_plan, id, modify, spec, with_token};

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
        reason: Some("test reason".to_owned()),
    })
}

fn update_instructions(step: u32) -> Command {
    modify(Modification::UpdateInstructions {
        step: id(step),
        instructions: "new instructions".to_owned(),
    })
}

fn update(step: u32, update: StepUpdate) -> Command {
    let step = id(step);
    modify(Modification::UpdateStep { step, update })
}

#[test]
fn only_a_planning_or_executing_plan_can_be_modified() {
    let completed = {
        let mut harness = Harness::with_steps(2);
        for step in [1, 2] {
            let submit = harness.submit(step, None);
            harness.run(&submit);
        }
        harness
    };
    let not_modifiable = [
        completed,
        Harness::with_steps(2).in_review(),
        Harness::with_steps(2).stalled(),
        Harness::with_steps(2).abandoned(),
    ];
    for mut harness in not_modifiable {
        let all = [
            add(&[9], None),
            remove(2),
            reorder(&[2, 1]),
            update_instructions(2),
            fail(2),
            update(2, StepUpdate::default()),
            modify(Modification::UpdatePlan {
                update: PlanUpdate::default(),
            }),
            modify(Modification::RequeueStep { step: id(1) }),
            modify(Modification::RedoStep {
                step: id(1),
                reason: "test reason".to_owned(),
                cascade: false,
                ids: vec![id(9)],
            }),
            modify(Modification::AddBranch {
                branch: branch(1, 2, "true", ActionSpec::Continue),
            }),
        ];
        for command in all {
            assert_eq!(
                harness.rejection_code(&command),
                Code::PlanNotModifiable,
                "{}",
                harness.status()
            );
        }
    }
    for mut harness in [Harness::with_steps(2), Harness::with_steps(2).started()] {
        assert_eq!(harness.run(&add(&[9], None)), ["plan_modified"]);
    }
}

#[test]
fn records_the_rationale() {
    let mut harness = Harness::with_steps(2);
    let command = Command::ModifyPlan(ModifyPlan {
        modification: Modification::RemoveStep { step: id(2) },
        rationale: Some("not needed".to_owned()),
        resume: false,
        token: None,
        session: None,
    });
    let events = harness.execute(&command).unwrap();
    assert!(matches!(
        events.as_slice(),
        [event @ Event::PlanModified { rationale: Some(rationale), .. }]
            if rationale == "not needed" && event.action() == Some("remove_step")
    ));
}

#[test]
fn add_steps_inserts_after_an_order_or_appends() {
    let mut harness = Harness::with_steps(2);
    harness.run(&add(&[7], Some(0)));
    harness.run(&add(&[8], Some(2)));
    harness.run(&add(&[9], None));
    assert_eq!(harness.step_ids(), [7, 1, 8, 2, 9].map(id));
    assert_eq!(
        harness.rejection_code(&add(&[10], Some(6))),
        Code::InvalidStepReference
    );
    assert_eq!(harness.rejection_code(&add(&[], None)), Code::InvalidInput);
}

#[test]
fn add_steps_cannot_exceed_the_maximum_number_of_steps() {
    let mut harness = Harness::with_steps(u32::try_from(MAX_STEPS).unwrap() - 1);
    assert_eq!(
        harness.rejection_code(&add(&[20_001, 20_002], None)),
        Code::LimitExceeded
    );
    assert_eq!(harness.run(&add(&[20_001], None)), ["plan_modified"]);
}

#[test]
fn removing_a_step_renumbers_the_following_steps() {
    let mut harness = Harness::with_steps(3);
    harness.run(&remove(2));
    assert_eq!(harness.step_ids(), [1, 3].map(id));
    assert_eq!(harness.plan.step(id(3)).unwrap().order, 2);
    assert_eq!(harness.rejection_code(&remove(2)), Code::StepNotFound);
}

#[test]
fn rejects_the_removal_of_a_claimed_step() {
    let mut harness = Harness::with_steps(2).started();
    let refusal = harness.expect_rejection(&remove(1));
    assert_eq!(
        refusal,
        Refusal::StepNotRemovable(NotRemovable::NotPending(StepStatus::InProgress))
    );
}

#[test]
fn rejects_the_removal_of_a_skip_target_or_dependency() {
    let mut command = create_plan(4);
    command.steps[3].depends_on = vec![2];
    command.branches = vec![branch(7, 1, "true", ActionSpec::SkipTo(StepRef::Order(3)))];
    let mut harness = Harness::new(command);
    let by_step = Refusal::StepNotRemovable(NotRemovable::NeededByStep(id(4)));
    assert_eq!(harness.expect_rejection(&remove(2)), by_step);
    assert_eq!(
        harness.expect_rejection(&remove(3)).code(),
        Code::StepNotRemovable
    );
    // Removing a step removes its branches. After that, nothing refers to step 3.
    assert_eq!(harness.run(&remove(1)), ["plan_modified"]);
    assert_eq!(harness.run(&remove(3)), ["plan_modified"]);
}

#[test]
fn rejects_the_removal_of_a_dependency_of_steps_a_branch_would_add() {
    let mut command = create_plan(2);
    let mut added = spec(9);
    added.depends_on = vec![2];
    command.branches = vec![branch(7, 1, "true", ActionSpec::AddSteps(vec![added]))];
    assert_eq!(
        Harness::new(command).rejection_code(&remove(2)),
        Code::StepNotRemovable
    );
}

#[test]
fn removing_the_last_open_step_completes_the_plan() {
    let mut harness = Harness::with_steps(2).started();
    let submit = harness.submit(1, None);
    harness.run(&submit);
    assert_eq!(harness.run(&remove(2)), ["plan_modified", "plan_completed"]);
}

#[test]
fn reordering_requires_every_step_exactly_once() {
    let mut harness = Harness::with_steps(3).started();
    let refusal = harness.expect_rejection(&reorder(&[2, 2, 9]));
    assert_eq!(
        refusal,
        Refusal::IncompleteStepList {
            missing: vec![id(1), id(3)],
            unknown: vec![id(9)],
            duplicates: vec![id(2)]
        }
    );
    // Each error alone is enough.
    for list in [&[1, 2][..], &[1, 2, 3, 9], &[1, 2, 3, 3]] {
        assert_eq!(
            harness.rejection_code(&reorder(list)),
            Code::IncompleteStepList
        );
    }
    harness.run(&reorder(&[3, 1, 2]));
    assert_eq!(harness.step_ids(), [3, 1, 2].map(id));
    assert_eq!(harness.claim_next().unwrap().0, 1);
}

#[test]
fn instructions_can_be_replaced_in_any_status() {
    let mut harness = Harness::with_steps(3).started();
    let submit = harness.submit(1, None);
    harness.run(&submit);
    harness.claim_next();
    for step in 1..=3 {
        harness.run(&update_instructions(step));
        assert_eq!(
            harness.plan.step(id(step)).unwrap().spec.instructions,
            "new instructions"
        );
    }
    let blank = Modification::UpdateInstructions {
        step: id(1),
        instructions: " ".to_owned(),
    };
    assert_eq!(harness.rejection_code(&modify(blank)), Code::InvalidInput);
}

#[test]
fn a_failed_step_does_not_fail_its_plan() {
    let mut harness = Harness::with_steps(2).started();
    assert_eq!(harness.run(&fail(1)), ["plan_modified", "step_failed"]);
    assert_eq!(harness.status(), PlanStatus::Executing);
    assert_eq!(
        harness.run(&fail(2)),
        ["plan_modified", "step_failed", "plan_completed"]
    );
    assert_eq!(harness.status(), PlanStatus::Completed);
    assert_eq!(harness.plan.head().counts.progress(), 0);
}

#[test]
fn failing_a_step_moves_a_planning_plan_to_executing() {
    let mut harness = Harness::with_steps(2);
    harness.run(&fail(1));
    assert_eq!(harness.status(), PlanStatus::Executing);
    // A plan with one step is also completed.
    let mut harness = Harness::with_steps(1);
    assert_eq!(
        harness.run(&fail(1)),
        [
            "plan_modified",
            "step_failed",
            "plan_status_changed",
            "plan_completed"
        ]
    );
}

#[test]
fn new_instructions_reach_the_agent_with_its_next_response() {
    let update = modify(Modification::UpdateInstructions {
        step: id(1),
        instructions: "new instructions".to_owned(),
    });
    let mut harness = Harness::with_steps(3);
    let (_, claim) = harness.claim_next_for(Some("a"), false).unwrap();
    harness.run(&update);
    // The step is not assigned again: its agent works on it.
    assert_eq!(harness.claim_next_for(Some("b"), false).unwrap().0, 2);
    assert_eq!(harness.claim_next_for(Some("a"), false).unwrap().0, 3);
    let report = harness.report(1, Some(&claim.token));
    let delivered = ["step_progressed", "step_progressed"];
    assert_eq!(harness.run(&report), delivered);
    assert_eq!(harness.run(&report), ["step_progressed"]);
    harness.run(&update);
    let submit = harness.submit(1, Some(&claim.token));
    assert_eq!(harness.run(&submit), ["step_progressed", "step_completed"]);

    // Another session without the token does not receive them.
    let mut harness = Harness::with_steps(1);
    harness.claim_next_for(Some("a"), false).unwrap();
    harness.run(&update);
    let Command::ReportProgress(report) = harness.report(1, None) else {
        panic!("not a report")
    };
    let other = Some(SessionId::new("b"));
    let other = Command::ReportProgress(ReportProgress {
        session: other,
        ..report
    });
    assert_eq!(harness.run(&other), ["step_progressed"]);
}

#[test]
fn an_agent_that_changes_its_own_instructions_does_not_receive_them() {
    let mut harness = Harness::with_steps(1);
    let (_, claim) = harness.claim_next().unwrap();
    let update = modify(Modification::UpdateInstructions {
        step: id(1),
        instructions: "new instructions".to_owned(),
    });
    harness.run(&with_token(update, Some(&claim.token)));
    let submit = harness.submit(1, Some(&claim.token));
    assert_eq!(harness.run(&submit), ["step_completed", "plan_completed"]);
}

#[test]
fn rejects_failing_a_terminal_step_and_requeueing_an_unclaimed_step() {
    let mut harness = Harness::with_steps(2).started();
    assert_eq!(
        harness.rejection_code(&modify(Modification::RequeueStep { step: id(2) })),
        Code::IllegalTransition
    );
    harness.run(&fail(1));
    assert_eq!(harness.rejection_code(&fail(1)), Code::IllegalTransition);
    assert_eq!(
        harness.rejection_code(&modify(Modification::RequeueStep { step: id(1) })),
        Code::IllegalTransition
    );
}

#[test]
fn a_plan_never_returns_to_planning() {
    let mut harness = Harness::with_steps(1).started();
    harness.run(&modify(Modification::RequeueStep { step: id(1) }));
    assert_eq!(
        harness.plan.head().counts.derived_status(),
        PlanStatus::Planning
    );
    assert_eq!(harness.status(), PlanStatus::Executing);
}

#[test]
fn a_branch_can_be_added_only_to_a_step_that_is_not_terminal() {
    let mut harness = Harness::with_steps(3).started();
    let add = |after, action| {
        modify(Modification::AddBranch {
            branch: branch(1, after, "true", action),
        })
    };
    assert_eq!(
        harness.run(&add(1, ActionSpec::SkipTo(StepRef::Order(3)))),
        ["plan_modified"]
    );
    assert_eq!(
        harness.run(&add(1, ActionSpec::SkipTo(StepRef::Id(id(3))))),
        ["plan_modified"]
    );
    assert_eq!(
        harness.rejection_code(&add(4, ActionSpec::Continue)),
        Code::InvalidStepReference
    );
    assert_eq!(
        harness.rejection_code(&add(2, ActionSpec::SkipTo(StepRef::Order(2)))),
        Code::InvalidStepReference
    );
    assert_eq!(
        harness.rejection_code(&add(2, ActionSpec::SkipTo(StepRef::Id(id(9))))),
        Code::InvalidStepReference
    );
    let submit = harness.submit(1, None);
    harness.run(&submit);
    assert_eq!(
        harness.rejection_code(&add(1, ActionSpec::Continue)),
        Code::IllegalTransition
    );
}

#[test]
fn rejects_added_steps_with_duplicate_ids() {
    let mut command = create_plan(2);
    let adding = |step: u32| branch(1, 1, "true", ActionSpec::AddSteps(vec![spec(step)]));
    command.branches = vec![adding(8)];
    let mut harness = Harness::new(command);
    for taken in [2, 8] {
        assert_eq!(
            harness.rejection_code(&add(&[taken], None)),
            Code::InvalidInput
        );
        let again = Modification::AddBranch {
            branch: adding(taken),
        };
        assert_eq!(harness.rejection_code(&modify(again)), Code::InvalidInput);
    }
    assert_eq!(
        harness.rejection_code(&add(&[9, 9], None)),
        Code::InvalidInput
    );
}

#[test]
fn rejects_the_removal_of_the_only_step() {
    let mut harness = Harness::with_steps(2);
    assert_eq!(harness.run(&remove(1)), ["plan_modified"]);
    assert_eq!(harness.rejection_code(&remove(2)), Code::StepNotRemovable);
}

#[test]
fn an_incomplete_list_names_the_wrong_id() {
    let mut harness = Harness::with_steps(2);
    let steps = vec![id(1), id(77)];
    let refusal = harness.expect_rejection(&modify(Modification::ReorderSteps { steps }));
    for wrong in [id(77), id(2)] {
        let message = refusal.to_string();
        assert!(message.contains(&wrong.to_string()), "{message}");
    }
}

#[test]
fn a_step_can_be_removed_if_only_its_own_branches_refer_to_it() {
    let mut command = create_plan(2);
    let mut added = spec(9);
    added.depends_on = vec![1];
    command.branches = vec![branch(7, 1, "true", ActionSpec::AddSteps(vec![added]))];
    assert_eq!(Harness::new(command).run(&remove(1)), ["plan_modified"]);
}
