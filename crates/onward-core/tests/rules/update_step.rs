//! Changes to the definition of a pending step: dependencies, type, title, instructions, stall
//! threshold and gates.

use std::sync::Arc;
use std::time::Duration;

use onward_core::command::{Modification, StepRef, StepUpdate};
use onward_core::refusal::BadDependency;
use onward_core::step::{Gates, ReviewBy};
use onward_core::{Code, Command, Refusal, StepStatus, StepType};
use serde_json::json;

use crate::harness::{Harness, create_plan, id, modify};

fn update(step: u32, update: StepUpdate) -> Command {
    let step = id(step);
    modify(Modification::UpdateStep { step, update })
}

fn depend(step: u32, needed: &[StepRef]) -> Command {
    let depends_on = Some(needed.to_vec());
    update(
        step,
        StepUpdate {
            depends_on,
            ..StepUpdate::default()
        },
    )
}

fn issues(harness: &mut Harness, command: &Command) -> Vec<String> {
    let Refusal::InvalidInput(issues) = harness.expect_rejection(command) else {
        panic!("expected invalid input");
    };
    issues.into_iter().map(|issue| issue.path).collect()
}

fn next_order(harness: &mut Harness) -> Option<u32> {
    harness.claim_next().map(|(order, _)| order)
}

#[test]
fn dependencies_are_orders_or_ids_without_duplicates() {
    let mut harness = Harness::with_steps(3);
    let needed = [StepRef::Order(3), StepRef::Id(id(2)), StepRef::Id(id(3))];
    assert_eq!(harness.run(&depend(1, &needed)), ["plan_modified"]);
    let step = harness.plan.step(id(1)).unwrap();
    assert_eq!(step.spec.depends_on, [id(3), id(2)]);
    assert_eq!(next_order(&mut harness), Some(2));
    assert_eq!(next_order(&mut harness), Some(3));
    assert_eq!(next_order(&mut harness), None);
    for step in [2, 3] {
        let submit = harness.submit(step, None);
        harness.run(&submit);
    }
    assert_eq!(next_order(&mut harness), Some(1));
}

#[test]
fn a_step_without_dependencies_is_ready() {
    let mut plan = create_plan(2);
    plan.steps[0].depends_on = vec![2];
    let mut harness = Harness::new(plan);
    harness.run(&depend(1, &[]));
    assert_eq!(next_order(&mut harness), Some(1));
}

#[test]
fn a_cycle_is_rejected_with_its_orders() {
    let mut plan = create_plan(4);
    plan.steps[1].depends_on = vec![1];
    plan.steps[2].depends_on = vec![2];
    let mut harness = Harness::new(plan);
    for (step, needed, cycle) in [
        (1, 3, vec![1, 3, 2, 1]),
        (2, 2, vec![2, 2]),
        (2, 3, vec![2, 3, 2]),
    ] {
        let refusal = harness.expect_rejection(&depend(step, &[StepRef::Order(needed)]));
        let expected = Refusal::InvalidDependency(BadDependency::Cycle(cycle));
        assert_eq!(refusal, expected);
    }
    for needed in [StepRef::Order(0), StepRef::Order(5), StepRef::Id(id(9))] {
        let refusal = harness.expect_rejection(&depend(4, &[needed]));
        let expected = Refusal::InvalidDependency(BadDependency::Unknown { step: 4, needed });
        assert_eq!(refusal, expected);
    }
}

#[test]
fn only_a_pending_step_can_be_changed() {
    let mut harness = Harness::with_steps(2).started();
    let command = depend(1, &[StepRef::Order(2)]);
    let expected = Refusal::StepNotPending(StepStatus::InProgress);
    assert_eq!(harness.expect_rejection(&command), expected);
    let submit = harness.submit(1, None);
    harness.run(&submit);
    assert_eq!(harness.rejection_code(&command), Code::IllegalTransition);
    let unknown = update(9, StepUpdate::default());
    assert_eq!(harness.rejection_code(&unknown), Code::StepNotFound);
}

#[test]
fn values_that_are_not_given_stay_and_empty_values_remove() {
    let mut harness = Harness::with_steps(1);
    let review_by = Some(ReviewBy::Person);
    let threshold = Duration::from_secs(60);
    harness.run(&update(
        1,
        StepUpdate {
            step_type: Some(StepType::Critique),
            title: Some("Sources".to_owned()),
            stall_threshold: Some(Some(threshold)),
            acceptance_criteria: Some(vec!["It works.".to_owned()]),
            review_by: Some(review_by),
            ..StepUpdate::default()
        },
    ));
    let before = harness.plan.step(id(1)).unwrap().spec.clone();
    assert_eq!(before.title.as_deref(), Some("Sources"));
    assert_eq!(before.step_type, StepType::Critique);
    assert_eq!(before.stall_threshold, Some(threshold));
    let gates = Gates {
        result_schema: None,
        acceptance_criteria: vec!["It works.".to_owned()],
        review_by,
    };
    assert_eq!(before.gates, Some(Arc::new(gates)));
    harness.run(&update(
        1,
        StepUpdate {
            instructions: Some("Look again".to_owned()),
            acceptance_criteria: Some(Vec::new()),
            ..StepUpdate::default()
        },
    ));
    let after = harness.plan.step(id(1)).unwrap().spec.clone();
    assert_eq!(after.instructions, "Look again");
    let gates = after.gates.as_deref().unwrap();
    assert!(gates.acceptance_criteria.is_empty() && gates.review_by == review_by);
    assert_eq!(
        (after.title, after.stall_threshold),
        (before.title, before.stall_threshold)
    );
    harness.run(&update(
        1,
        StepUpdate {
            title: Some(String::new()),
            stall_threshold: Some(None),
            review_by: Some(None),
            result_schema: Some(None),
            ..StepUpdate::default()
        },
    ));
    let last = &harness.plan.step(id(1)).unwrap().spec;
    assert_eq!(
        (&last.title, last.stall_threshold, &last.gates),
        (&None, None, &None)
    );
}

#[test]
fn invalid_values_are_rejected_with_their_paths() {
    let mut harness = Harness::with_steps(1);
    let command = update(
        1,
        StepUpdate {
            title: Some("x".repeat(201)),
            instructions: Some(" ".to_owned()),
            stall_threshold: Some(Some(Duration::ZERO)),
            result_schema: Some(Some(json!({ "type": "moon" }).into())),
            acceptance_criteria: Some(vec!["One.".to_owned(), "One.".to_owned()]),
            ..StepUpdate::default()
        },
    );
    let paths = issues(&mut harness, &command);
    assert_eq!(
        paths,
        [
            "instructions",
            "title",
            "stallThresholdMs",
            "acceptanceCriteria[1]",
            "resultSchema"
        ]
    );
}
