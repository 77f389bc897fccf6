//! Changes to the definition of a pending step: rows, assignment, replay, export and import.

use std::time::Duration;

use onward_core::command::{Modification, StepRef, StepUpdate};
use onward_core::step::ReviewBy;
use onward_core::{StepId, StepType};
use onward_engine::next_step::NextStep;
use serde_json::json;

use crate::harness::Harness;
use crate::on_both_databases;
use crate::operations::{code, document};

fn depend(step: StepId, needed: &[StepRef]) -> Modification {
    let update = StepUpdate {
        depends_on: Some(needed.to_vec()),
        ..StepUpdate::default()
    };
    Modification::UpdateStep { step, update }
}

async fn a_step_waits_for_its_new_dependencies(harness: &Harness) {
    let plan = harness.plan(3).await;
    let [first, second, third] = [plan.steps[0], plan.steps[1], plan.steps[2]];
    let needed = [StepRef::Order(3), StepRef::Id(second)];
    let modified = harness.modify(plan.id, depend(first, &needed)).await;
    let modified = modified.unwrap();
    assert_eq!(modified.depends_on.get(&first), Some(&vec![2, 3]));
    let claimed = [harness.claim(plan.id).await, harness.claim(plan.id).await];
    assert_eq!([claimed[0].step, claimed[1].step], [second, third]);
    let none = harness.next_step(plan.id).await;
    assert!(
        matches!(none, NextStep::NoPendingSteps { blocked: 1, .. }),
        "{none:?}"
    );
    for step in &claimed {
        harness.complete(step, "done").await;
    }
    assert_eq!(harness.claim(plan.id).await.step, first);
    let change = harness.modify(plan.id, depend(first, &[])).await;
    assert_eq!(code(change), "illegal_transition");
}

async fn a_completed_dependency_does_not_block(harness: &Harness) {
    let plan = harness.plan(3).await;
    harness.complete_steps(plan.id, 1).await;
    let needed = [StepRef::Order(1), StepRef::Order(3)];
    let set = depend(plan.steps[1], &needed);
    harness.modify(plan.id, set).await.unwrap();
    let step = harness.claim(plan.id).await;
    assert_eq!(step.step, plan.steps[2]);
    let set = depend(plan.steps[1], &[StepRef::Order(1)]);
    harness.modify(plan.id, set).await.unwrap();
    assert_eq!(harness.claim(plan.id).await.step, plan.steps[1]);
}

async fn a_cycle_is_rejected_and_changes_nothing(harness: &Harness) {
    let plan = harness.plan(2).await;
    let set = depend(plan.steps[1], &[StepRef::Order(1)]);
    harness.modify(plan.id, set).await.unwrap();
    let before = document(&harness.engine, &harness.me, plan.id).await;
    let cycle = depend(plan.steps[0], &[StepRef::Order(2)]);
    let rejected = harness.modify(plan.id, cycle).await;
    assert_eq!(code(rejected), "invalid_dependency");
    assert_eq!(
        document(&harness.engine, &harness.me, plan.id).await,
        before
    );
}

async fn the_definition_is_stored_and_exported(harness: &Harness) {
    let plan = harness.plan(1).await;
    let update = StepUpdate {
        step_type: Some(StepType::Critique),
        title: Some("Sources".to_owned()),
        instructions: Some("Look again".to_owned()),
        stall_threshold: Some(Some(Duration::from_secs(60))),
        result_schema: Some(Some(json!({ "type": "object" }).into())),
        acceptance_criteria: Some(vec!["It works.".to_owned()]),
        review_by: Some(Some(ReviewBy::OtherSession)),
        ..StepUpdate::default()
    };
    let step = plan.steps[0];
    let modification = Modification::UpdateStep { step, update };
    harness.modify(plan.id, modification).await.unwrap();
    let whole = harness.engine.full_plan(&harness.me, plan.id).await;
    let whole = whole.unwrap().plan;
    let spec = &whole.steps[0].spec;
    assert_eq!(spec.title.as_deref(), Some("Sources"));
    assert_eq!(spec.step_type, StepType::Critique);
    assert_eq!(spec.instructions, "Look again");
    assert_eq!(spec.stall_threshold, Some(Duration::from_secs(60)));
    let gates = spec.gates.as_deref().unwrap();
    assert_eq!(gates.review_by, Some(ReviewBy::OtherSession));
    assert_eq!(gates.acceptance_criteria, ["It works."]);
    assert!(gates.result_schema.is_some());
}

on_both_databases!(
    a_step_waits_for_its_new_dependencies,
    a_completed_dependency_does_not_block,
    a_cycle_is_rejected_and_changes_nothing,
    the_definition_is_stored_and_exported,
);
