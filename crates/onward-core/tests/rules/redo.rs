//! Redoing a step, and forking a plan: successors, references, progress and taken-over results.

use onward_core::branch::{Action, Effect};
use onward_core::command::{ActionSpec, ForkPlan, Modification, StepRef};
use onward_core::decide::fork::{self, NewIds};
use onward_core::event::{Change, Decision};
use onward_core::id::{BranchId, ClaimToken, PlanId};
use onward_core::plan::ForkedFrom;
use onward_core::refusal::{NotRedoable, NotRemovable};
use onward_core::step::StepState;
use onward_core::{Code, Command, Event, Plan, PlanStatus, Refusal, StepStatus, Timestamp};

use crate::harness::{Harness, branch, create_plan, decision, id, modify, spec};

fn redo_with(step: u32, cascade: bool, ids: &[u32]) -> Command {
    modify(Modification::RedoStep {
        step: id(step),
        reason: "wrong source".to_owned(),
        cascade,
        ids: ids.iter().copied().map(id).collect(),
    })
}

fn redo(step: u32, new: u32) -> Command {
    redo_with(step, false, &[new])
}

fn complete(harness: &mut Harness, step: u32) {
    let submit = harness.submit(step, None);
    harness.run(&submit);
}

fn depends_on(harness: &Harness, step: u32) -> Vec<onward_core::StepId> {
    let step = harness.plan.step(id(step)).unwrap();
    step.spec.depends_on.clone()
}

/// A chain: each step depends on the previous one.
fn chain(n: u32) -> Harness {
    let mut command = create_plan(n);
    for (order, step) in (1u32..).zip(&mut command.steps).skip(1) {
        step.depends_on = vec![order - 1];
    }
    Harness::new(command)
}

#[test]
fn a_redone_step_gets_a_successor_with_the_reason() {
    let mut harness = chain(3);
    complete(&mut harness, 1);
    let before = harness.plan.step(id(1)).unwrap().clone();
    assert_eq!(harness.run(&redo(1, 9)), ["plan_modified"]);
    assert_eq!(harness.step_ids(), [1, 9, 2, 3].map(id));
    let successor = harness.plan.step(id(9)).unwrap();
    assert_eq!(successor.spec.supersedes, Some(id(1)));
    assert_eq!(
        successor.spec.instructions,
        "do 1\n\n---\n\nRedo reason: wrong source"
    );
    let old = harness.plan.step(id(1)).unwrap();
    assert_eq!(old.superseded_by, Some(id(9)));
    assert_eq!(
        (&old.state, old.updated_at),
        (&before.state, before.updated_at)
    );
    assert_eq!(depends_on(&harness, 2), [id(9)]);
    assert_eq!(depends_on(&harness, 3), [id(2)]);
    // The successor is assigned before the steps that depend on it.
    assert_eq!(harness.claim_next().unwrap().0, 2);
    assert_eq!(harness.claim_next(), None);
}

#[test]
fn superseded_steps_do_not_count_as_progress() {
    let mut harness = Harness::with_steps(2);
    complete(&mut harness, 1);
    assert_eq!(harness.plan.head().counts.progress(), 50);
    harness.run(&redo(1, 9));
    let counts = harness.plan.head().counts;
    assert_eq!(
        (counts.progress(), counts.completed, counts.superseded),
        (0, 0, 1)
    );
    assert_eq!((counts.total(), counts.last_order()), (2, 3));
    assert_eq!(counts.derived_status(), PlanStatus::Executing);
    complete(&mut harness, 9);
    complete(&mut harness, 2);
    assert_eq!(harness.status(), PlanStatus::Completed);
    assert_eq!(harness.plan.head().counts.progress(), 100);
}

#[test]
fn redoing_a_failed_step_completes_the_plan_without_failures() {
    let mut harness = Harness::with_steps(2);
    harness.run(&modify(Modification::FailStep {
        step: id(1),
        reason: None,
    }));
    harness.run(&redo(1, 9));
    complete(&mut harness, 9);
    complete(&mut harness, 2);
    assert_eq!(harness.status(), PlanStatus::Completed);
    assert_eq!(harness.plan.head().counts.failed, 0);
}

#[test]
fn a_skipped_step_can_be_redone() {
    let mut harness = Harness::with_steps(2).in_review();
    harness.run(&decision(1, Decision::Skip, None));
    assert_eq!(harness.run(&redo(1, 9)), ["plan_modified"]);
    assert_eq!(harness.plan.head().counts.skipped, 0);
}

#[test]
fn cascade_redoes_the_completed_dependents() {
    let mut harness = chain(4);
    for step in [1, 2, 3] {
        complete(&mut harness, step);
    }
    harness.run(&redo_with(1, true, &[11, 12, 13, 14]));
    assert_eq!(harness.step_ids(), [1, 11, 2, 12, 3, 13, 4].map(id));
    assert_eq!(depends_on(&harness, 11), []);
    assert_eq!(depends_on(&harness, 12), [id(11)]);
    assert_eq!(depends_on(&harness, 13), [id(12)]);
    assert_eq!(depends_on(&harness, 4), [id(13)]);
    // The old steps still depend on each other.
    assert_eq!(depends_on(&harness, 3), [id(2)]);
    let counts = harness.plan.head().counts;
    assert_eq!((counts.superseded, counts.pending), (3, 4));
}

#[test]
fn without_cascade_completed_dependents_keep_their_result() {
    let mut harness = chain(3);
    for step in [1, 2] {
        complete(&mut harness, step);
    }
    harness.run(&redo(1, 9));
    assert_eq!(depends_on(&harness, 2), [id(1)]);
    assert_eq!(harness.plan.step(id(2)).unwrap().superseded_by, None);
    // A dependent that is redone later depends on the latest version.
    harness.run(&redo(2, 10));
    assert_eq!(depends_on(&harness, 10), [id(9)]);
    assert_eq!(depends_on(&harness, 3), [id(10)]);
}

#[test]
fn cascade_leaves_steps_in_progress() {
    let mut harness = chain(2);
    complete(&mut harness, 1);
    harness.claim_next().unwrap();
    harness.run(&redo_with(1, true, &[11, 12]));
    assert_eq!(harness.step_ids(), [1, 11, 2].map(id));
    assert_eq!(depends_on(&harness, 2), [id(1)]);
}

#[test]
fn rejects_steps_that_cannot_be_redone() {
    let mut harness = chain(3);
    let not_ended = |status| Refusal::StepNotRedoable(NotRedoable::NotEnded(status));
    assert_eq!(
        harness.expect_rejection(&redo(1, 9)),
        not_ended(StepStatus::Pending)
    );
    assert_eq!(harness.rejection_code(&redo(7, 9)), Code::StepNotFound);
    complete(&mut harness, 1);
    harness.run(&redo(1, 9));
    assert_eq!(
        harness.expect_rejection(&redo(1, 10)),
        Refusal::StepNotRedoable(NotRedoable::Superseded(id(9)))
    );
    assert_eq!(
        harness.rejection_code(&redo(1, 10)),
        Code::IllegalTransition
    );
    complete(&mut harness, 9);
    assert_eq!(harness.rejection_code(&redo(9, 2)), Code::InvalidInput);
    assert_eq!(
        harness.rejection_code(&redo_with(9, false, &[])),
        Code::LimitExceeded
    );
    let without_reason = modify(Modification::RedoStep {
        step: id(9),
        reason: " ".to_owned(),
        cascade: false,
        ids: vec![id(10)],
    });
    assert_eq!(harness.rejection_code(&without_reason), Code::InvalidInput);
}

#[test]
fn a_successor_cannot_be_removed() {
    let mut harness = Harness::with_steps(2);
    complete(&mut harness, 1);
    harness.run(&redo(1, 9));
    let remove = modify(Modification::RemoveStep { step: id(9) });
    assert_eq!(
        harness.expect_rejection(&remove),
        Refusal::StepNotRemovable(NotRemovable::Supersedes(id(1)))
    );
}

#[test]
fn a_successor_takes_over_the_branches() {
    let mut command = create_plan(4);
    command.steps[1].depends_on = vec![1];
    let mut added = spec(8);
    added.depends_on = vec![1];
    command.branches = vec![
        branch(1, 1, "false", ActionSpec::AddSteps(vec![added])),
        branch(2, 1, "true", ActionSpec::SkipTo(StepRef::Order(3))),
    ];
    let mut harness = Harness::new(command);
    complete(&mut harness, 1);
    assert_eq!(harness.step_statuses()[1], StepStatus::Skipped);
    harness.run(&modify(Modification::FailStep {
        step: id(3),
        reason: None,
    }));
    harness.run(&redo(3, 13));
    harness.run(&redo(1, 11));
    assert!(harness.plan.branches_after(id(1)).is_empty());
    let [adds, skips] = harness.plan.branches_after(id(11)) else {
        panic!("the branches moved");
    };
    // Both refer to the successors.
    assert_eq!(skips.action, Action::SkipTo { target: id(13) });
    let Action::AddSteps { steps } = &adds.action else {
        panic!("{adds:?}");
    };
    assert_eq!(steps[0].depends_on, [id(11)]);
    let submit = harness.submit(11, None);
    let events = harness.execute(&submit).unwrap();
    assert!(events.iter().any(|event| matches!(
        event,
        Event::BranchTaken { effect: Effect::Skipped { target, .. }, .. } if *target == id(13)
    )));
}

#[test]
fn a_branch_that_added_its_steps_is_not_repeated() {
    let mut command = create_plan(2);
    command.branches = vec![branch(1, 1, "true", ActionSpec::AddSteps(vec![spec(8)]))];
    let mut harness = Harness::new(command);
    complete(&mut harness, 1);
    assert_eq!(harness.step_ids(), [1, 8, 2].map(id));
    harness.run(&redo(1, 9));
    assert_eq!(harness.plan.branches_after(id(1)).len(), 1);
    complete(&mut harness, 9);
    assert_eq!(harness.step_ids(), [1, 9, 8, 2].map(id));
}

fn fork_from(source: &Plan, from_order: u32) -> Result<Plan, Refusal> {
    let command = ForkPlan {
        plan: PlanId::from_u128(2),
        from_order,
        name: None,
        research_question: None,
        design_rationale: None,
        session: None,
        approval: None,
    };
    let (mut step, mut branch, mut token) = (100, 100, 0);
    let mut ids = NewIds {
        step: &mut || {
            step += 1;
            id(step)
        },
        branch: &mut || {
            branch += 1;
            BranchId::from_u128(branch)
        },
        token: &mut || {
            token += 1;
            ClaimToken::new(format!("taken over {token}"))
        },
    };
    let now = Timestamp::from_millis(1_900_000_000_000);
    let events = fork::decide(source, &command, &mut ids, now)?;
    Ok(Plan::replay(events.iter().map(|event| (event, now))).expect("valid audit trail"))
}

fn statuses(plan: &Plan) -> Vec<StepStatus> {
    plan.steps().iter().map(onward_core::Step::status).collect()
}

#[test]
fn a_fork_takes_over_the_results_before_a_step() {
    use StepStatus::{Completed, Pending};
    let mut harness = chain(3);
    for step in [1, 2, 3] {
        complete(&mut harness, step);
    }
    let source = harness.plan.clone();
    let fork = fork_from(&source, 3).unwrap();
    assert_eq!(harness.plan, source);
    assert_eq!(statuses(&fork), [Completed, Completed, Pending]);
    assert_eq!(fork.head().status(), PlanStatus::Executing);
    assert_eq!(fork.head().counts.progress(), 67);
    assert_eq!(
        fork.brief().forked_from,
        Some(ForkedFrom {
            plan: source.head().id,
            step_order: 3
        })
    );
    let result = |plan: &Plan, order| match &plan.step_at(order).unwrap().state {
        StepState::Completed { result, .. } => result.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(result(&fork, 1), result(&source, 1));
    // Dependencies refer to the copies.
    let second = fork.step_at(2).unwrap();
    assert_eq!(second.spec.depends_on, [fork.step_at(1).unwrap().id()]);
    assert_eq!(fork.ready().unwrap().order, 3);
}

#[test]
fn a_fork_from_the_first_step_takes_over_nothing() {
    let harness = Harness::with_steps(2).abandoned();
    let fork = fork_from(&harness.plan, 1).unwrap();
    assert_eq!(statuses(&fork), [StepStatus::Pending; 2]);
    assert_eq!(fork.head().status(), PlanStatus::Planning);
}

#[test]
fn a_fork_repeats_failed_steps_and_drops_superseded_and_skipped_ones() {
    let mut command = create_plan(5);
    command.steps[2].depends_on = vec![2];
    command.branches = vec![branch(1, 1, "true", ActionSpec::SkipTo(StepRef::Order(3)))];
    let mut harness = Harness::new(command);
    // Step 2 is skipped, step 3 fails, step 4 is redone.
    complete(&mut harness, 1);
    harness.run(&modify(Modification::FailStep {
        step: id(3),
        reason: None,
    }));
    complete(&mut harness, 4);
    harness.run(&redo(4, 9));
    complete(&mut harness, 9);
    let fork = fork_from(&harness.plan, 6).unwrap();
    use StepStatus::{Completed, Pending};
    assert_eq!(statuses(&fork), [Completed, Pending, Completed, Pending]);
    let instructions = |order| fork.step_at(order).unwrap().spec.instructions.as_str();
    assert_eq!(instructions(2), "do 3");
    assert!(instructions(3).starts_with("do 4\n"));
    assert!(fork.step_at(2).unwrap().spec.depends_on.is_empty());
    assert!(
        fork.steps()
            .iter()
            .all(|step| step.spec.supersedes.is_none())
    );
    // The result of step 1 was taken over, and its branch with it.
    assert_eq!(fork.branches().count(), 0);
}

#[test]
fn a_fork_has_the_branches_of_the_steps_to_do() {
    let mut command = create_plan(3);
    let mut added = spec(8);
    added.depends_on = vec![1];
    command.branches = vec![
        branch(1, 1, "false", ActionSpec::AddSteps(vec![added])),
        branch(2, 1, "false", ActionSpec::SkipTo(StepRef::Order(3))),
    ];
    let mut harness = Harness::new(command);
    complete(&mut harness, 1);
    let fork = fork_from(&harness.plan, 1).unwrap();
    let [first, second, third] = fork.steps() else {
        panic!("{:?}", fork.steps())
    };
    let [adds, skips] = fork.branches_after(first.id()) else {
        panic!("both branches are copied");
    };
    assert_eq!(skips.action, Action::SkipTo { target: third.id() });
    let Action::AddSteps { steps } = &adds.action else {
        panic!("{adds:?}");
    };
    assert_eq!(steps[0].depends_on, [first.id()]);
    assert_ne!(steps[0].id, id(8));
    assert_ne!(second.id(), id(2));
}

#[test]
fn rejects_a_fork_from_a_step_that_does_not_exist() {
    let harness = Harness::with_steps(2);
    for order in [0, 3] {
        let refusal = fork_from(&harness.plan, order).unwrap_err();
        assert_eq!(refusal.code(), Code::InvalidStepReference);
    }
}

#[test]
fn rejects_an_inconsistent_redo_event() {
    let mut harness = Harness::with_steps(2);
    complete(&mut harness, 1);
    let events = onward_core::decide(&harness.plan, &redo(1, 9), harness.now).unwrap();
    let [
        Event::PlanModified {
            change:
                Change::StepRedone {
                    step,
                    reason,
                    successors,
                },
            ..
        },
    ] = events.as_slice()
    else {
        panic!("{events:?}")
    };
    let [valid] = &**successors else {
        panic!("{successors:?}")
    };
    let mut invalid = vec![valid.clone(); 4];
    invalid[0].order = 2;
    invalid[1].from = StepStatus::Failed;
    invalid[2].step.id = id(2);
    invalid[3].step.supersedes = None;
    for successor in invalid {
        let event = Event::PlanModified {
            change: Change::StepRedone {
                step: *step,
                reason: reason.clone(),
                successors: [successor].into(),
            },
            rationale: None,
        };
        let mut plan = harness.plan.clone();
        plan.apply(&event, harness.now).unwrap_err();
        assert_eq!(plan, harness.plan);
    }
}
