//! Branches: which branch is taken, its effect, and actions that cannot be carried out.

use std::sync::Arc;

use onward_core::branch::{Effect, NoEffect};
use onward_core::command::{ActionSpec, Modification, StepRef};
use onward_core::condition::EvaluationError;
use onward_core::policy::MAX_STEPS;
use onward_core::step::StepResult;
use onward_core::{Event, PlanStatus, StepStatus};
use serde_json::{Value, json};

use crate::harness::{Harness, branch, create_plan, id, modify, spec};

fn skip_to(order: u32) -> ActionSpec {
    ActionSpec::SkipTo(StepRef::Order(order))
}

fn submit_data(
    harness: &mut Harness,
    step: u32,
    data: Value,
    confidence: Option<f64>,
) -> Vec<Event> {
    let result = StepResult {
        data: Some(data.into()),
        confidence,
        ..StepResult::from_summary("test result with details")
    };
    let command = harness.submit_result(step, None, &Arc::new(result));
    harness.execute(&command).unwrap()
}

fn effect(events: &[Event]) -> &Effect {
    events
        .iter()
        .find_map(|event| match event {
            Event::BranchTaken { effect, .. } => Some(effect),
            _ => None,
        })
        .expect("a branch was taken")
}

fn verdicts(events: &[Event]) -> Vec<(bool, bool)> {
    events
        .iter()
        .find_map(|event| match event {
            Event::StepCompleted { verdicts, .. } => Some(
                verdicts
                    .iter()
                    .map(|verdict| (verdict.matched, verdict.error.is_some()))
                    .collect(),
            ),
            _ => None,
        })
        .expect("a step was completed")
}

/// Whether the condition is true after step 1 of 3 was completed with this result.
fn is_true(condition: &str, data: &Value, confidence: Option<f64>) -> bool {
    let mut command = create_plan(3);
    command.branches = vec![branch(1, 1, condition, ActionSpec::Continue)];
    let events = submit_data(
        &mut Harness::new(command).started(),
        1,
        data.clone(),
        confidence,
    );
    verdicts(&events) == [(true, false)]
}

#[test]
fn evaluates_the_documented_examples() {
    let good = json!({ "sources": [1, 2, 3], "verdict": "accept" });
    let poor = json!({ "sources": [1], "verdict": "reject" });
    assert!(is_true("confidence >= 0.8", &good, Some(0.8)));
    assert!(!is_true("confidence >= 0.8", &good, Some(0.79)));
    assert!(!is_true("confidence >= 0.8", &good, None));
    let few = "result.sources.size() < 3 || confidence < 0.5";
    assert!(is_true(few, &poor, Some(0.9)));
    assert!(!is_true(few, &good, Some(0.9)));
    assert!(is_true(few, &good, Some(0.4)));
    assert!(is_true(r#"result.verdict === "reject""#, &poor, None));
    assert!(!is_true(r#"result.verdict === "reject""#, &good, None));
    assert!(is_true(r#"result.verdict !== "reject""#, &good, None));
}

#[test]
fn a_condition_reads_result_confidence_step_and_plan() {
    let data = json!({ "n": 4, "confidence": "hidden", "step": 7 });
    assert!(is_true("n == 4 && result.n == 4", &data, None));
    assert!(is_true(
        "confidence == null && result.confidence == 'hidden'",
        &data,
        None
    ));
    assert!(is_true(
        "step.order == 1 && step.type == 'custom' && step.attempt == 1",
        &data,
        None
    ));
    assert!(is_true(
        "plan.progress == 33 && plan.completed == 1",
        &data,
        None
    ));
    assert!(is_true(
        "plan.failed == 0 && plan.pending == 2",
        &data,
        None
    ));
    assert!(is_true("resultSummary.contains('details')", &data, None));
}

#[test]
fn a_condition_that_cannot_be_evaluated_counts_as_false_with_an_error() {
    let mut command = create_plan(2);
    command.branches = vec![
        branch(
            1,
            1,
            "result.no.such.path == 1",
            ActionSpec::Fail { reason: None },
        ),
        branch(2, 1, "result.n > 'text'", ActionSpec::Fail { reason: None }),
        branch(3, 1, "result.n", ActionSpec::Fail { reason: None }),
    ];
    let events = submit_data(
        &mut Harness::new(command).started(),
        1,
        json!({ "n": 1 }),
        None,
    );
    assert_eq!(verdicts(&events), [(false, true); 3]);
}

#[test]
fn takes_the_first_true_branch_and_evaluates_no_more() {
    let mut command = create_plan(2);
    command.branches = vec![
        branch(1, 1, "false", ActionSpec::Fail { reason: None }),
        branch(2, 1, "true", ActionSpec::Continue),
        branch(3, 1, "true", ActionSpec::Fail { reason: None }),
    ];
    let events = submit_data(&mut Harness::new(command).started(), 1, json!({}), None);
    assert_eq!(verdicts(&events), [(false, false), (true, false)]);
    assert_eq!(effect(&events), &Effect::Continued);
}

#[test]
fn evaluates_branches_in_creation_order() {
    let mut command = create_plan(2);
    command.branches = vec![branch(9, 1, "true", ActionSpec::Continue)];
    let mut harness = Harness::new(command).started();
    let later = branch(1, 1, "true", ActionSpec::Fail { reason: None });
    harness.run(&modify(Modification::AddBranch { branch: later }));
    assert_eq!(
        effect(&submit_data(&mut harness, 1, json!({}), None)),
        &Effect::Continued
    );
}

#[test]
fn skip_to_skips_only_the_pending_steps_between() {
    let mut command = create_plan(5);
    command.branches = vec![branch(1, 1, "true", skip_to(5))];
    let mut harness = Harness::new(command).started().started();
    let events = submit_data(&mut harness, 1, json!({}), None);
    assert_eq!(
        effect(&events),
        &Effect::Skipped {
            target: id(5),
            steps: vec![id(3), id(4)]
        }
    );
    use StepStatus::{Completed, InProgress, Pending, Skipped};
    assert_eq!(
        harness.step_statuses(),
        [Completed, InProgress, Skipped, Skipped, Pending]
    );
    assert_eq!(harness.status(), PlanStatus::Executing);
    assert_eq!(harness.claim_next().unwrap().0, 5);
}

#[test]
fn a_skipped_step_satisfies_dependencies() {
    let mut command = create_plan(3);
    command.steps[2].depends_on = vec![2];
    command.branches = vec![branch(1, 1, "true", ActionSpec::SkipTo(StepRef::Id(id(3))))];
    let mut harness = Harness::new(command).started();
    submit_data(&mut harness, 1, json!({}), None);
    assert_eq!(harness.claim_next().unwrap().0, 3);
}

/// The effect of a branch from step 1 to step 3 in a plan of three steps, after `change`.
fn skip_effect_after(change: impl FnOnce(&mut Harness)) -> Effect {
    let mut command = create_plan(3);
    command.branches = vec![branch(1, 1, "true", skip_to(3))];
    let mut harness = Harness::new(command).started();
    change(&mut harness);
    let events = submit_data(&mut harness, 1, json!({}), None);
    assert_eq!(
        events
            .iter()
            .filter(|event| event.name() == "step_skipped")
            .count(),
        0
    );
    effect(&events).clone()
}

#[test]
fn skip_to_has_no_effect_if_the_target_is_not_pending() {
    let reason = NoEffect::TargetNotPending;
    let effect = skip_effect_after(|harness| {
        harness.run(&modify(Modification::FailStep {
            step: id(3),
            reason: None,
        }));
    });
    assert_eq!(effect, Effect::Nothing { reason });
}

#[test]
fn skip_to_has_no_effect_if_the_target_was_moved_before_the_step() {
    let reason = NoEffect::TargetNotAfter;
    let effect = skip_effect_after(|harness| {
        harness.run(&modify(Modification::ReorderSteps {
            steps: vec![id(3), id(1), id(2)],
        }));
    });
    assert_eq!(effect, Effect::Nothing { reason });
}

#[test]
fn skip_to_has_no_effect_if_the_target_was_removed() {
    use onward_core::decide::{Outcome, SkipTarget, StepFacts, With, submit};
    let mut command = create_plan(3);
    command.branches = vec![branch(1, 1, "true", skip_to(3))];
    let harness = Harness::new(command).started();
    let onward_core::Command::SubmitResult(command) = harness.submit(1, None) else {
        unreachable!()
    };
    let facts = StepFacts::from_plan(&harness.plan, id(1), With::Branches).unwrap();
    let outcome = submit::decide(&facts, &command, harness.now).unwrap();
    assert!(
        matches!(&outcome, Outcome::SkipTo(skip) if skip.target() == id(3) && skip.step() == id(1))
    );
    let events = outcome.resolve(|_| SkipTarget::Missing).unwrap();
    assert_eq!(
        effect(&events),
        &Effect::Nothing {
            reason: NoEffect::TargetMissing
        }
    );
}

#[test]
fn add_steps_inserts_after_the_step_and_shifts_later_orders() {
    let mut command = create_plan(2);
    command.branches = vec![branch(
        1,
        1,
        "true",
        ActionSpec::AddSteps(vec![spec(8), spec(9)]),
    )];
    let mut harness = Harness::new(command).started();
    submit_data(&mut harness, 1, json!({}), None);
    assert_eq!(harness.step_ids(), [id(1), id(8), id(9), id(2)]);
    assert_eq!(harness.claim_next().unwrap().0, 2);
    assert_eq!(harness.plan.head().counts.total(), 4);
}

#[test]
fn add_steps_after_the_last_step_keeps_the_plan_executing() {
    let mut command = create_plan(1);
    command.branches = vec![branch(1, 1, "true", ActionSpec::AddSteps(vec![spec(8)]))];
    let mut harness = Harness::new(command).started();
    submit_data(&mut harness, 1, json!({}), None);
    assert_eq!(harness.status(), PlanStatus::Executing);
}

#[test]
fn add_steps_has_no_effect_on_a_full_plan() {
    let most = u32::try_from(MAX_STEPS).unwrap();
    let mut command = create_plan(most);
    command.branches = vec![branch(
        1,
        1,
        "true",
        ActionSpec::AddSteps(vec![spec(most + 1)]),
    )];
    let mut harness = Harness::new(command).started();
    let events = submit_data(&mut harness, 1, json!({}), None);
    assert_eq!(
        effect(&events),
        &Effect::Nothing {
            reason: NoEffect::PlanFull
        }
    );
}

#[test]
fn fail_fails_the_plan_instead_of_completing_it() {
    let mut command = create_plan(1);
    let action = ActionSpec::Fail {
        reason: Some("test reason".to_owned()),
    };
    command.branches = vec![branch(1, 1, "true", action)];
    let mut harness = Harness::new(command).started();
    let events = submit_data(&mut harness, 1, json!({}), None);
    let names: Vec<_> = events.iter().map(Event::name).collect();
    assert_eq!(names, ["step_completed", "branch_taken", "plan_failed"]);
    // Every step is terminal, but the plan is not completed.
    assert_eq!(harness.status(), PlanStatus::Failed);
}

#[test]
fn a_failed_step_evaluates_no_branches() {
    let mut command = create_plan(2);
    command.branches = vec![branch(1, 1, "true", ActionSpec::Fail { reason: None })];
    let mut harness = Harness::new(command).started();
    let fail = modify(Modification::FailStep {
        step: id(1),
        reason: None,
    });
    assert_eq!(harness.run(&fail), ["plan_modified", "step_failed"]);
}

#[test]
fn add_steps_can_fill_the_plan_to_its_limit() {
    let most = u32::try_from(MAX_STEPS).unwrap();
    let mut command = create_plan(most - 1);
    command.branches = vec![branch(1, 1, "true", ActionSpec::AddSteps(vec![spec(most)]))];
    let mut harness = Harness::new(command).started();
    submit_data(&mut harness, 1, json!({}), None);
    assert_eq!(harness.plan.head().counts.total(), most);
}

#[test]
fn branches_of_an_approved_step_read_the_current_attempt() {
    let mut command = create_plan(2);
    command.branches = vec![branch(1, 1, "step.attempt == 2", ActionSpec::Continue)];
    let mut harness = Harness::new(command).started();
    harness.run(&modify(Modification::RequeueStep { step: id(1) }));
    harness = harness.in_review();
    let approve = crate::harness::decision(1, onward_core::event::Decision::Approve, None);
    assert_eq!(
        harness.run(&approve),
        [
            "user_reviewed",
            "plan_status_changed",
            "step_completed",
            "branch_taken"
        ]
    );
}

#[test]
fn the_branches_of_a_step_share_one_work_budget() {
    // Each evaluation stops at the work limit of one condition.
    let costly = "list.exists(x, text.contains('a' + text))";
    let mut command = create_plan(2);
    command.branches = (0..50)
        .map(|n| branch(n, 1, costly, ActionSpec::Continue))
        .collect();
    command
        .branches
        .push(branch(50, 1, "true", ActionSpec::Continue));
    let mut harness = Harness::new(command).started();
    let data = json!({ "text": "b".repeat(30_000), "list": vec![0; 1000] });
    let events = submit_data(&mut harness, 1, data, None);
    assert_eq!(verdicts(&events), vec![(false, true); 51]);
    let Some(Event::StepCompleted { verdicts, .. }) = events.first() else {
        panic!("{events:?}")
    };
    let spent = EvaluationError::BudgetSpent.to_string();
    let evaluated = verdicts
        .iter()
        .filter(|verdict| verdict.error.as_ref().is_some_and(|error| *error != spent));
    assert!((2..10).contains(&evaluated.count()));
}
