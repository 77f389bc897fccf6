//! Changing a plan: every action, every constraint, and orders without gaps after each.

use onward_core::StepId;
use onward_core::command::{ActionSpec, Modification, StepRef};
use onward_core::refusal::{NotRemovable, Refusal};
use onward_core::step::FailReason;

use crate::desk::Desk;
use crate::on_both_databases;
use crate::verbs::{code, refusal};

fn add(steps: Vec<onward_core::command::StepSpec>, after: Option<u32>) -> Modification {
    Modification::AddSteps {
        steps,
        insert_after: after,
    }
}

async fn steps_are_added_in_front_between_and_at_the_end(desk: &Desk) {
    let plan = desk.plan(2).await;
    let added = [desk.step("front"), desk.step("between"), desk.step("end")];
    let [front, between, end] = [added[0].id, added[1].id, added[2].id];
    for (step, after) in added.into_iter().zip([Some(0), Some(2), None]) {
        desk.modify(plan.id, add(vec![step], after)).await.unwrap();
    }
    let [one, two] = [plan.steps[0], plan.steps[1]];
    assert_eq!(desk.order(plan.id).await, [front, one, between, two, end]);
    assert_eq!(desk.plan_status(plan.id).await.as_str(), "planning");
}

async fn the_answer_holds_the_steps_as_they_are_afterwards(desk: &Desk) {
    let plan = desk.plan(1).await;
    let modified = desk
        .modify(plan.id, add(desk.steps(2), Some(0)))
        .await
        .unwrap();
    let orders: Vec<u32> = modified.steps.iter().map(|step| step.order).collect();
    assert_eq!((orders, modified.omitted), (vec![1, 2, 3], 0));
    assert_eq!(modified.head.counts.pending, 3);
    assert_eq!(modified.steps[2].id, plan.steps[0]);
}

async fn steps_that_are_added_depend_on_orders_as_they_will_be(desk: &Desk) {
    let plan = desk.plan(2).await;
    desk.work_off(plan.id, 1).await;
    let mut added = vec![desk.step("a"), desk.step("b"), desk.step("c")];
    // Behind the first: `a` is 2, `b` 3, `c` 4, and the old second is 5.
    added[0].depends_on = vec![5];
    added[1].depends_on = vec![1];
    added[2].depends_on = vec![1, 2];
    let ids: Vec<StepId> = added.iter().map(|step| step.id).collect();
    desk.modify(plan.id, add(added, Some(1))).await.unwrap();
    for expected in [ids[1], plan.steps[1], ids[0], ids[2]] {
        let step = desk.take(plan.id).await;
        assert_eq!(step.step, expected);
        desk.hand_in(&step, "done").await;
    }
}

async fn an_addition_that_cannot_be_is_refused_and_changes_nothing(desk: &Desk) {
    let plan = desk.plan(2).await;
    let far = desk.modify(plan.id, add(desk.steps(1), Some(3))).await;
    assert_eq!(code(far), "INVALID_STEP_REFERENCE");
    assert_eq!(
        code(desk.modify(plan.id, add(Vec::new(), None)).await),
        "invalid_input"
    );
    let mut unknown = desk.step("unknown");
    unknown.depends_on = vec![9];
    let refused = desk.modify(plan.id, add(vec![unknown], None)).await;
    assert_eq!(code(refused), "invalid_dependency");
    let mut itself = desk.step("itself");
    itself.depends_on = vec![3];
    let refused = desk.modify(plan.id, add(vec![itself], None)).await;
    assert_eq!(code(refused), "invalid_dependency");
    assert_eq!(desk.order(plan.id).await, plan.steps);
    assert_eq!(desk.trail(plan.id).await.len(), 1);
}

async fn an_id_of_another_step_cannot_be_added(desk: &Desk) {
    let (plan, other) = (desk.plan(2).await, desk.plan(1).await);
    for taken in [plan.steps[0], other.steps[0]] {
        let mut doubled = desk.step("doubled");
        doubled.id = taken;
        assert!(
            desk.modify(plan.id, add(vec![doubled], None))
                .await
                .is_err()
        );
    }
    assert_eq!(desk.order(plan.id).await, plan.steps);
}

async fn a_plan_takes_no_more_than_10000_steps(desk: &Desk) {
    let plan = desk.plan(1).await;
    let refused = desk.modify(plan.id, add(desk.steps(10_000), None)).await;
    assert_eq!(code(refused), "limit_exceeded");
}

async fn a_pending_step_is_removed_with_its_branches_and_orders_close_up(desk: &Desk) {
    let to_last = ActionSpec::SkipTo(StepRef::Order(4));
    let plan = desk
        .branching(4, vec![desk.branch(2, "true", to_last)])
        .await;
    let remove = |step| Modification::RemoveStep { step };
    // The branch leads to the last step, so that cannot go before the branch's own step.
    let refused = refusal(desk.modify(plan.id, remove(plan.steps[3])).await);
    let needed = NotRemovable::NeededByBranch(plan.branches[0]);
    assert_eq!(refused, Refusal::StepNotRemovable(needed));
    desk.modify(plan.id, remove(plan.steps[1])).await.unwrap();
    desk.modify(plan.id, remove(plan.steps[3])).await.unwrap();
    assert_eq!(desk.order(plan.id).await, [plan.steps[0], plan.steps[2]]);
    let whole = desk
        .engine
        .whole_plan(&desk.me, plan.id)
        .await
        .unwrap()
        .plan;
    assert_eq!(whole.branches, []);
}

async fn a_step_that_another_depends_on_is_not_removed(desk: &Desk) {
    let mut draft = desk.draft(3);
    draft.steps[2].depends_on = vec![1];
    let plan = desk.create(draft).await;
    let remove = |step| Modification::RemoveStep { step };
    let refused = refusal(desk.modify(plan.id, remove(plan.steps[0])).await);
    let needed = NotRemovable::NeededByStep(plan.steps[2]);
    assert_eq!(refused, Refusal::StepNotRemovable(needed));
    desk.modify(plan.id, remove(plan.steps[2])).await.unwrap();
    desk.modify(plan.id, remove(plan.steps[0])).await.unwrap();
    assert_eq!(desk.order(plan.id).await, [plan.steps[1]]);
}

async fn only_a_pending_step_is_removed(desk: &Desk) {
    let plan = desk.plan(3).await;
    desk.work_off(plan.id, 1).await;
    desk.take(plan.id).await;
    for step in [plan.steps[0], plan.steps[1]] {
        let refused = desk
            .modify(plan.id, Modification::RemoveStep { step })
            .await;
        assert_eq!(code(refused), "step_not_removable");
    }
    let refused = desk.modify(
        plan.id,
        Modification::RemoveStep {
            step: StepId::from_u128(1),
        },
    );
    assert_eq!(code(refused.await), "step_not_found");
}

async fn removing_the_last_open_step_ends_the_plan(desk: &Desk) {
    let plan = desk.plan(2).await;
    desk.work_off(plan.id, 1).await;
    let step = plan.steps[1];
    let modified = desk
        .modify(plan.id, Modification::RemoveStep { step })
        .await
        .unwrap();
    assert_eq!(modified.head.status().as_str(), "completed");
}

async fn steps_are_put_in_another_order(desk: &Desk) {
    let plan = desk.plan(4).await;
    let first = desk.take(plan.id).await;
    let turned: Vec<StepId> = plan.steps.iter().rev().copied().collect();
    let reorder = Modification::ReorderSteps {
        steps: turned.clone(),
    };
    desk.modify(plan.id, reorder).await.unwrap();
    assert_eq!(desk.order(plan.id).await, turned);
    assert_eq!(desk.take(plan.id).await.step, turned[0]);
    desk.hand_in(&first, "done").await;
}

async fn an_order_that_is_not_the_whole_list_names_what_is_wrong(desk: &Desk) {
    let plan = desk.plan(3).await;
    let stranger = StepId::from_u128(9);
    let [a, b, c] = [plan.steps[0], plan.steps[1], plan.steps[2]];
    let refused = desk.modify(
        plan.id,
        Modification::ReorderSteps {
            steps: vec![c, stranger, c, a],
        },
    );
    let expected = Refusal::IncompleteStepList {
        missing: vec![b],
        unknown: vec![stranger],
        doubled: vec![c],
    };
    assert_eq!(refusal(refused.await), expected);
    assert_eq!(desk.order(plan.id).await, plan.steps);
}

async fn instructions_are_replaced_in_any_status(desk: &Desk) {
    let plan = desk.plan(3).await;
    desk.work_off(plan.id, 1).await;
    desk.take(plan.id).await;
    for step in plan.steps.clone() {
        let instructions = format!("for {step}");
        let update = Modification::UpdateInstructions { step, instructions };
        desk.modify(plan.id, update).await.unwrap();
    }
    let whole = desk
        .engine
        .whole_plan(&desk.me, plan.id)
        .await
        .unwrap()
        .plan;
    for step in whole.steps {
        assert_eq!(step.spec.instructions, format!("for {}", step.id()));
    }
}

async fn failing_the_last_open_step_ends_the_plan_below_100_percent(desk: &Desk) {
    let plan = desk.plan(2).await;
    desk.work_off(plan.id, 1).await;
    let fail = Modification::FailStep {
        step: plan.steps[1],
        reason: Some("no use".to_owned()),
    };
    let modified = desk.modify(plan.id, fail.clone()).await.unwrap();
    assert_eq!(modified.head.status().as_str(), "completed");
    assert_eq!(modified.head.counts.progress(), 50);
    let reason = FailReason::ByHand(Some("no use".to_owned()));
    assert_eq!(desk.status(plan.id).await.failed[0].failure, Some(reason));
    assert_eq!(
        code(desk.modify(plan.id, fail).await),
        "plan_not_modifiable"
    );
}

async fn failing_a_pending_step_of_a_new_plan_begins_it(desk: &Desk) {
    let plan = desk.plan(2).await;
    let step = plan.steps[0];
    desk.modify(plan.id, Modification::FailStep { step, reason: None })
        .await
        .unwrap();
    assert_eq!(desk.plan_status(plan.id).await.as_str(), "executing");
    let again = desk
        .modify(plan.id, Modification::FailStep { step, reason: None })
        .await;
    assert_eq!(code(again), "illegal_transition");
}

async fn only_a_step_in_progress_is_handed_back(desk: &Desk) {
    let plan = desk.plan(2).await;
    let step = plan.steps[0];
    let requeue = Modification::RequeueStep { step };
    assert_eq!(
        code(desk.modify(plan.id, requeue.clone()).await),
        "illegal_transition"
    );
    desk.take(plan.id).await;
    desk.modify(plan.id, requeue).await.unwrap();
    assert_eq!(desk.statuses(plan.id).await, ["pending", "pending"]);
    assert_eq!(desk.take(plan.id).await.attempt, 2);
}

async fn a_step_that_is_over_gets_no_more_branches(desk: &Desk) {
    let plan = desk.plan(2).await;
    desk.work_off(plan.id, 1).await;
    for (after, expected) in [(1, "illegal_transition"), (3, "INVALID_STEP_REFERENCE")] {
        let branch = desk.branch(after, "true", ActionSpec::Continue);
        let refused = desk
            .modify(plan.id, Modification::AddBranch { branch })
            .await;
        assert_eq!(code(refused), expected);
    }
}

async fn a_branch_names_its_target_by_id_or_by_order(desk: &Desk) {
    let (plan, other) = (desk.plan(3).await, desk.plan(3).await);
    for (target, fits) in [
        (StepRef::Id(plan.steps[2]), true),
        (StepRef::Order(3), true),
        (StepRef::Order(1), false),
        (StepRef::Id(other.steps[2]), false),
    ] {
        let branch = desk.branch(1, "true", ActionSpec::SkipTo(target));
        let added = desk
            .modify(plan.id, Modification::AddBranch { branch })
            .await;
        assert_eq!(added.is_ok(), fits, "{target:?}");
    }
}

async fn a_plan_that_is_over_is_not_modified(desk: &Desk) {
    let plan = desk.plan(1).await;
    desk.engine
        .abandon_plan(&desk.me, plan.id, None)
        .await
        .unwrap();
    let refused = desk.modify(plan.id, add(desk.steps(1), None)).await;
    assert_eq!(code(refused), "plan_not_modifiable");
}

async fn the_reason_of_a_change_stands_in_the_trail(desk: &Desk) {
    let plan = desk.plan(1).await;
    let change = add(desk.steps(1), None);
    let rationale = Some("one is not enough".to_owned());
    let modified = desk
        .engine
        .modify_plan(&desk.me, plan.id, change, rationale, false)
        .await;
    modified.unwrap();
    let trail = desk.engine.trail(&desk.me, plan.id, 1, 1).await.unwrap();
    assert!(trail[0].details.to_string().contains("one is not enough"));
    assert_eq!(trail[0].entry.author.name, "me");
}

on_both_databases![
    steps_are_added_in_front_between_and_at_the_end,
    the_answer_holds_the_steps_as_they_are_afterwards,
    steps_that_are_added_depend_on_orders_as_they_will_be,
    an_addition_that_cannot_be_is_refused_and_changes_nothing,
    an_id_of_another_step_cannot_be_added,
    a_plan_takes_no_more_than_10000_steps,
    a_pending_step_is_removed_with_its_branches_and_orders_close_up,
    a_step_that_another_depends_on_is_not_removed,
    only_a_pending_step_is_removed,
    removing_the_last_open_step_ends_the_plan,
    steps_are_put_in_another_order,
    an_order_that_is_not_the_whole_list_names_what_is_wrong,
    instructions_are_replaced_in_any_status,
    failing_the_last_open_step_ends_the_plan_below_100_percent,
    failing_a_pending_step_of_a_new_plan_begins_it,
    only_a_step_in_progress_is_handed_back,
    a_step_that_is_over_gets_no_more_branches,
    a_branch_names_its_target_by_id_or_by_order,
    a_plan_that_is_over_is_not_modified,
    the_reason_of_a_change_stands_in_the_trail,
];
