//! Plan modifications: every action, its constraints, and gapless step orders afterwards.

use onward_core::StepId;
use onward_core::command::{ActionSpec, Modification, ModifyPlan, StepRef};
use onward_core::refusal::{NotRemovable, Refusal};
use onward_core::step::FailReason;

use crate::harness::Harness;
use crate::on_both_databases;
use crate::operations::{code, refusal};

fn add(steps: Vec<onward_core::command::StepSpec>, after: Option<u32>) -> Modification {
    Modification::AddSteps {
        steps,
        insert_after: after,
    }
}

async fn adds_steps_at_the_front_in_between_and_at_the_end(harness: &Harness) {
    let plan = harness.plan(2).await;
    let added = [
        harness.step("front"),
        harness.step("between"),
        harness.step("end"),
    ];
    let [front, between, end] = [added[0].id, added[1].id, added[2].id];
    for (step, after) in added.into_iter().zip([Some(0), Some(2), None]) {
        harness
            .modify(plan.id, add(vec![step], after))
            .await
            .unwrap();
    }
    let [one, two] = [plan.steps[0], plan.steps[1]];
    assert_eq!(
        harness.step_ids(plan.id).await,
        [front, one, between, two, end]
    );
    assert_eq!(harness.plan_status(plan.id).await.as_str(), "planning");
}

async fn returns_the_modified_steps(harness: &Harness) {
    let plan = harness.plan(1).await;
    let modified = harness
        .modify(plan.id, add(harness.steps(2), Some(0)))
        .await
        .unwrap();
    let orders: Vec<u32> = modified.steps.iter().map(|step| step.order).collect();
    assert_eq!((orders, modified.omitted), (vec![1, 2], 0));
    assert_eq!(modified.head.counts.pending, 3);
    let steps = harness.steps(60);
    let modified = harness.modify(plan.id, add(steps, None)).await.unwrap();
    assert_eq!((modified.steps.len(), modified.omitted), (50, 10));
}

async fn dependencies_of_added_steps_refer_to_the_orders_before_it(harness: &Harness) {
    let plan = harness.plan(2).await;
    harness.complete_steps(plan.id, 1).await;
    let mut added = vec![harness.step("a"), harness.step("b"), harness.step("c")];
    // The plan has two steps, so `a` is 3, `b` 4 and `c` 5, although they come before step 2.
    added[0].depends_on = vec![2];
    added[1].depends_on_ids = vec![plan.steps[0]];
    added[2].depends_on = vec![1, 3];
    let ids: Vec<StepId> = added.iter().map(|step| step.id).collect();
    let modified = harness.modify(plan.id, add(added, Some(1))).await.unwrap();
    // The response has the orders after the insertion.
    let orders = |id| modified.depends_on.get(&id).cloned().unwrap_or_default();
    assert_eq!(orders(ids[0]), [5]);
    assert_eq!(orders(ids[1]), [1]);
    assert_eq!(orders(ids[2]), [1, 2]);
    let page = harness.engine.list_steps(&harness.me, plan.id, None, 0, 9);
    assert_eq!(page.await.unwrap().depends_on, modified.depends_on);
    for expected in [ids[1], plan.steps[1], ids[0], ids[2]] {
        let step = harness.claim(plan.id).await;
        assert_eq!(step.step, expected);
        harness.complete(&step, "done").await;
    }
}

async fn rejects_invalid_additions_without_changes(harness: &Harness) {
    let plan = harness.plan(2).await;
    let past_end = harness
        .modify(plan.id, add(harness.steps(1), Some(3)))
        .await;
    assert_eq!(code(past_end), "INVALID_STEP_REFERENCE");
    assert_eq!(
        code(harness.modify(plan.id, add(Vec::new(), None)).await),
        "invalid_input"
    );
    let mut unknown = harness.step("unknown");
    unknown.depends_on = vec![9];
    let rejected = harness.modify(plan.id, add(vec![unknown], None)).await;
    assert_eq!(code(rejected), "invalid_dependency");
    let mut itself = harness.step("itself");
    itself.depends_on = vec![3];
    let rejected = harness.modify(plan.id, add(vec![itself], None)).await;
    assert_eq!(code(rejected), "invalid_dependency");
    assert_eq!(harness.step_ids(plan.id).await, plan.steps);
    assert_eq!(harness.audit_trail(plan.id).await.len(), 1);
}

async fn rejects_an_added_step_with_an_existing_id(harness: &Harness) {
    let (plan, other) = (harness.plan(2).await, harness.plan(1).await);
    for existing in [plan.steps[0], other.steps[0]] {
        let mut duplicate = harness.step("duplicate");
        duplicate.id = existing;
        assert!(
            harness
                .modify(plan.id, add(vec![duplicate], None))
                .await
                .is_err()
        );
    }
    assert_eq!(harness.step_ids(plan.id).await, plan.steps);
}

async fn rejects_more_than_10000_steps(harness: &Harness) {
    let plan = harness.plan(1).await;
    let rejected = harness
        .modify(plan.id, add(harness.steps(10_000), None))
        .await;
    assert_eq!(code(rejected), "limit_exceeded");
}

async fn removing_a_pending_step_removes_its_branches_and_closes_the_gap(harness: &Harness) {
    let to_last = ActionSpec::SkipTo(StepRef::Order(4));
    let plan = harness
        .plan_with_branches(4, vec![harness.branch(2, "true", to_last)])
        .await;
    let remove = |step| Modification::RemoveStep { step };
    // The last step is the branch's target, so it cannot be removed before the branch.
    let rejected = refusal(harness.modify(plan.id, remove(plan.steps[3])).await);
    let needed = NotRemovable::NeededByBranch(plan.branches[0]);
    assert_eq!(rejected, Refusal::StepNotRemovable(needed));
    harness
        .modify(plan.id, remove(plan.steps[1]))
        .await
        .unwrap();
    harness
        .modify(plan.id, remove(plan.steps[3]))
        .await
        .unwrap();
    assert_eq!(
        harness.step_ids(plan.id).await,
        [plan.steps[0], plan.steps[2]]
    );
    let whole = harness
        .engine
        .full_plan(&harness.me, plan.id)
        .await
        .unwrap()
        .plan;
    assert_eq!(whole.branches, []);
}

async fn rejects_the_removal_of_a_dependency(harness: &Harness) {
    let mut draft = harness.draft(3);
    draft.steps[2].depends_on = vec![1];
    let plan = harness.create(draft).await;
    let remove = |step| Modification::RemoveStep { step };
    let rejected = refusal(harness.modify(plan.id, remove(plan.steps[0])).await);
    let needed = NotRemovable::NeededByStep(plan.steps[2]);
    assert_eq!(rejected, Refusal::StepNotRemovable(needed));
    harness
        .modify(plan.id, remove(plan.steps[2]))
        .await
        .unwrap();
    harness
        .modify(plan.id, remove(plan.steps[0]))
        .await
        .unwrap();
    assert_eq!(harness.step_ids(plan.id).await, [plan.steps[1]]);
}

async fn rejects_the_removal_of_a_step_that_is_not_pending(harness: &Harness) {
    let plan = harness.plan(3).await;
    harness.complete_steps(plan.id, 1).await;
    harness.claim(plan.id).await;
    for step in [plan.steps[0], plan.steps[1]] {
        let rejected = harness
            .modify(plan.id, Modification::RemoveStep { step })
            .await;
        assert_eq!(code(rejected), "step_not_removable");
    }
    let rejected = harness.modify(
        plan.id,
        Modification::RemoveStep {
            step: StepId::from_u128(1),
        },
    );
    assert_eq!(code(rejected.await), "step_not_found");
}

async fn removing_the_last_open_step_completes_the_plan(harness: &Harness) {
    let plan = harness.plan(2).await;
    harness.complete_steps(plan.id, 1).await;
    let step = plan.steps[1];
    let modified = harness
        .modify(plan.id, Modification::RemoveStep { step })
        .await
        .unwrap();
    assert_eq!(modified.head.status().as_str(), "completed");
}

async fn reorders_steps(harness: &Harness) {
    let plan = harness.plan(4).await;
    let first = harness.claim(plan.id).await;
    let reversed: Vec<StepId> = plan.steps.iter().rev().copied().collect();
    let reorder = Modification::ReorderSteps {
        steps: reversed.clone(),
    };
    harness.modify(plan.id, reorder).await.unwrap();
    assert_eq!(harness.step_ids(plan.id).await, reversed);
    assert_eq!(harness.claim(plan.id).await.step, reversed[0]);
    harness.complete(&first, "done").await;
}

async fn rejects_an_incomplete_reordering_with_missing_unknown_and_duplicate_ids(
    harness: &Harness,
) {
    let plan = harness.plan(3).await;
    let unknown = StepId::from_u128(9);
    let [a, b, c] = [plan.steps[0], plan.steps[1], plan.steps[2]];
    let rejected = harness.modify(
        plan.id,
        Modification::ReorderSteps {
            steps: vec![c, unknown, c, a],
        },
    );
    let expected = Refusal::IncompleteStepList {
        missing: vec![b],
        unknown: vec![unknown],
        duplicates: vec![c],
    };
    assert_eq!(refusal(rejected.await), expected);
    assert_eq!(harness.step_ids(plan.id).await, plan.steps);
}

async fn replaces_instructions_of_steps_in_any_status(harness: &Harness) {
    let plan = harness.plan(3).await;
    harness.complete_steps(plan.id, 1).await;
    harness.claim(plan.id).await;
    for step in plan.steps.clone() {
        let instructions = format!("for {step}");
        let update = Modification::UpdateInstructions { step, instructions };
        harness.modify(plan.id, update).await.unwrap();
    }
    let whole = harness
        .engine
        .full_plan(&harness.me, plan.id)
        .await
        .unwrap()
        .plan;
    for step in whole.steps {
        assert_eq!(step.spec.instructions, format!("for {}", step.id()));
    }
}

async fn failing_the_last_open_step_completes_the_plan_below_100_percent(harness: &Harness) {
    let plan = harness.plan(2).await;
    harness.complete_steps(plan.id, 1).await;
    let fail = Modification::FailStep {
        step: plan.steps[1],
        reason: Some("not needed".to_owned()),
    };
    let modified = harness.modify(plan.id, fail.clone()).await.unwrap();
    assert_eq!(modified.head.status().as_str(), "completed");
    assert_eq!(modified.head.counts.progress(), 50);
    let reason = FailReason::Manual(Some("not needed".to_owned()));
    assert_eq!(
        harness.status(plan.id).await.failed[0].failure,
        Some(reason)
    );
    assert_eq!(
        code(harness.modify(plan.id, fail).await),
        "plan_not_modifiable"
    );
}

async fn failing_a_pending_step_starts_a_new_plan(harness: &Harness) {
    let plan = harness.plan(2).await;
    let step = plan.steps[0];
    harness
        .modify(plan.id, Modification::FailStep { step, reason: None })
        .await
        .unwrap();
    assert_eq!(harness.plan_status(plan.id).await.as_str(), "executing");
    let again = harness
        .modify(plan.id, Modification::FailStep { step, reason: None })
        .await;
    assert_eq!(code(again), "illegal_transition");
}

async fn requeues_only_steps_in_progress(harness: &Harness) {
    let plan = harness.plan(2).await;
    let step = plan.steps[0];
    let requeue = Modification::RequeueStep { step };
    assert_eq!(
        code(harness.modify(plan.id, requeue.clone()).await),
        "illegal_transition"
    );
    harness.claim(plan.id).await;
    harness.modify(plan.id, requeue).await.unwrap();
    assert_eq!(harness.step_statuses(plan.id).await, ["pending", "pending"]);
    assert_eq!(harness.claim(plan.id).await.attempt, 2);
}

async fn rejects_a_branch_after_a_terminal_step(harness: &Harness) {
    let plan = harness.plan(2).await;
    harness.complete_steps(plan.id, 1).await;
    for (after, expected) in [(1, "illegal_transition"), (3, "INVALID_STEP_REFERENCE")] {
        let branch = harness.branch(after, "true", ActionSpec::Continue);
        let rejected = harness
            .modify(plan.id, Modification::AddBranch { branch })
            .await;
        assert_eq!(code(rejected), expected);
    }
}

async fn a_branch_target_is_a_step_id_or_an_order(harness: &Harness) {
    let (plan, other) = (harness.plan(3).await, harness.plan(3).await);
    for (target, valid) in [
        (StepRef::Id(plan.steps[2]), true),
        (StepRef::Order(3), true),
        (StepRef::Order(1), false),
        (StepRef::Id(other.steps[2]), false),
    ] {
        let branch = harness.branch(1, "true", ActionSpec::SkipTo(target));
        let added = harness
            .modify(plan.id, Modification::AddBranch { branch })
            .await;
        assert_eq!(added.is_ok(), valid, "{target:?}");
    }
}

async fn rejects_modifications_of_a_terminal_plan(harness: &Harness) {
    let plan = harness.plan(1).await;
    harness
        .engine
        .abandon_plan(&harness.me, plan.id, None)
        .await
        .unwrap();
    let rejected = harness.modify(plan.id, add(harness.steps(1), None)).await;
    assert_eq!(code(rejected), "plan_not_modifiable");
}

async fn records_the_rationale_in_the_audit_trail(harness: &Harness) {
    let plan = harness.plan(1).await;
    let change = add(harness.steps(1), None);
    let rationale = Some("one is not enough".to_owned());
    let modified = harness
        .engine
        .modify_plan(
            &harness.me,
            plan.id,
            ModifyPlan {
                rationale,
                ..ModifyPlan::new(change)
            },
        )
        .await;
    modified.unwrap();
    let events = harness
        .engine
        .audit_trail(&harness.me, plan.id, 1, 1)
        .await
        .unwrap();
    assert!(events[0].details.to_string().contains("one is not enough"));
    assert_eq!(events[0].entry.author.name, "me");
}

on_both_databases![
    adds_steps_at_the_front_in_between_and_at_the_end,
    returns_the_modified_steps,
    dependencies_of_added_steps_refer_to_the_orders_before_it,
    rejects_invalid_additions_without_changes,
    rejects_an_added_step_with_an_existing_id,
    rejects_more_than_10000_steps,
    removing_a_pending_step_removes_its_branches_and_closes_the_gap,
    rejects_the_removal_of_a_dependency,
    rejects_the_removal_of_a_step_that_is_not_pending,
    removing_the_last_open_step_completes_the_plan,
    reorders_steps,
    rejects_an_incomplete_reordering_with_missing_unknown_and_duplicate_ids,
    replaces_instructions_of_steps_in_any_status,
    failing_the_last_open_step_completes_the_plan_below_100_percent,
    failing_a_pending_step_starts_a_new_plan,
    requeues_only_steps_in_progress,
    rejects_a_branch_after_a_terminal_step,
    a_branch_target_is_a_step_id_or_an_order,
    rejects_modifications_of_a_terminal_plan,
    records_the_rationale_in_the_audit_trail,
];
