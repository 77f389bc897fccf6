//! A thousand steps: what moves all of them leaves no gap, and lists are cut where they say so.

use onward_core::StepId;
use onward_core::command::{ActionSpec, Modification, StepRef};
use onward_engine::status::SHOWN;

use crate::desk::Desk;
use crate::on_both_databases;

async fn a_thousand_steps_are_moved_without_a_gap(desk: &Desk) {
    let plan = desk.plan(1_000).await;
    let added = desk.steps(3);
    let mut expected: Vec<StepId> = added.iter().map(|step| step.id).collect();
    expected.extend(&plan.steps);
    let front = Modification::AddSteps {
        steps: added,
        insert_after: Some(0),
    };
    let modified = desk.modify(plan.id, front).await.unwrap();
    assert_eq!((modified.steps.len(), modified.omitted), (3, 1_000));
    assert_eq!(desk.order(plan.id).await, expected);

    let removed = expected.remove(500);
    desk.modify(plan.id, Modification::RemoveStep { step: removed })
        .await
        .unwrap();
    assert_eq!(desk.order(plan.id).await, expected);

    expected.reverse();
    let turned = Modification::ReorderSteps {
        steps: expected.clone(),
    };
    desk.modify(plan.id, turned).await.unwrap();
    assert_eq!(desk.order(plan.id).await, expected);
    assert_eq!(desk.take(plan.id).await.step, expected[0]);
}

/// More than one statement could say: it may have 65,535 values.
async fn a_branch_passes_over_thousands_of_steps(desk: &Desk) {
    let to_last = ActionSpec::SkipTo(StepRef::Order(3_000));
    let plan = desk
        .branching(3_000, vec![desk.branch(1, "true", to_last)])
        .await;
    desk.work_off(plan.id, 2).await;
    let status = desk.status(plan.id).await;
    assert_eq!(status.sheet.head.status().as_str(), "completed");
    assert_eq!(status.sheet.head.counts.skipped, 2_998);
    // One for each step that was passed over, beside seven others.
    assert_eq!(status.sheet.head.seq, 2_998 + 7);
}

async fn the_lists_of_a_status_are_cut(desk: &Desk) {
    let plan = desk.plan(SHOWN * 2 + 10).await;
    let shown = usize::try_from(SHOWN).unwrap();
    desk.work_off(plan.id, shown + 1).await;
    let status = desk.status(plan.id).await;
    assert_eq!(status.completed.len(), shown);
    assert_eq!(status.pending.len(), shown);
    assert_eq!(status.pending[0].order, SHOWN + 2);
    assert_eq!(status.sheet.head.counts.completed, SHOWN + 1);
}

on_both_databases![
    a_thousand_steps_are_moved_without_a_gap,
    a_branch_passes_over_thousands_of_steps,
    the_lists_of_a_status_are_cut,
];
