//! Plans with thousands of steps: reordering leaves no gaps, and lists are limited.

use onward_core::StepId;
use onward_core::command::{ActionSpec, Modification, StepRef};
use onward_engine::status::MAX_LISTED;

use crate::harness::Harness;
use crate::on_both_databases;

async fn inserting_removing_and_reordering_a_thousand_steps_leaves_no_gaps(harness: &Harness) {
    let plan = harness.plan(1_000).await;
    let added = harness.steps(3);
    let mut expected: Vec<StepId> = added.iter().map(|step| step.id).collect();
    expected.extend(&plan.steps);
    let insert = Modification::AddSteps {
        steps: added,
        insert_after: Some(0),
    };
    let modified = harness.modify(plan.id, insert).await.unwrap();
    assert_eq!((modified.steps.len(), modified.omitted), (3, 0));
    assert_eq!(harness.step_ids(plan.id).await, expected);

    let removed = expected.remove(500);
    harness
        .modify(plan.id, Modification::RemoveStep { step: removed })
        .await
        .unwrap();
    assert_eq!(harness.step_ids(plan.id).await, expected);

    expected.reverse();
    let reversed = Modification::ReorderSteps {
        steps: expected.clone(),
    };
    harness.modify(plan.id, reversed).await.unwrap();
    assert_eq!(harness.step_ids(plan.id).await, expected);
    assert_eq!(harness.claim(plan.id).await.step, expected[0]);
}

/// Needs more bind parameters than one statement allows (65,535).
async fn a_branch_skips_thousands_of_steps(harness: &Harness) {
    let to_last = ActionSpec::SkipTo(StepRef::Order(3_000));
    let plan = harness
        .plan_with_branches(3_000, vec![harness.branch(1, "true", to_last)])
        .await;
    harness.complete_steps(plan.id, 2).await;
    let status = harness.status(plan.id).await;
    assert_eq!(status.sheet.head.status().as_str(), "completed");
    assert_eq!(status.sheet.head.counts.skipped, 2_998);
    // One event per skipped step, and eight others.
    assert_eq!(status.sheet.head.seq, 2_998 + 8);
}

async fn limits_the_step_lists_of_a_status(harness: &Harness) {
    let plan = harness.plan(MAX_LISTED * 2 + 10).await;
    let limit = usize::try_from(MAX_LISTED).unwrap();
    harness.complete_steps(plan.id, limit + 1).await;
    let status = harness.status(plan.id).await;
    assert_eq!(status.completed.len(), limit);
    assert_eq!(status.pending.len(), limit);
    assert_eq!(status.pending[0].order, MAX_LISTED + 2);
    assert_eq!(status.sheet.head.counts.completed, MAX_LISTED + 1);
}

on_both_databases![
    inserting_removing_and_reordering_a_thousand_steps_leaves_no_gaps,
    a_branch_skips_thousands_of_steps,
    limits_the_step_lists_of_a_status,
];
