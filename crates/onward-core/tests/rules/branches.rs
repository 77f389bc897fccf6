//! Branches: which is taken, what it does, and what it says when it can do nothing.

use std::sync::Arc;

use onward_core::branch::{Effect, NoEffect};
use onward_core::command::{ActionSpec, Modification, StepRef};
use onward_core::policy::MAX_STEPS;
use onward_core::step::StepResult;
use onward_core::{Event, PlanStatus, StepStatus};
use serde_json::{Value, json};

use crate::desk::{Desk, branch, id, modify, plan_of, spec};

fn skip_to(order: u32) -> ActionSpec {
    ActionSpec::SkipTo(StepRef::Order(order))
}

fn submit_data(desk: &mut Desk, step: u32, data: Value, confidence: Option<f64>) -> Vec<Event> {
    let result = StepResult {
        data: Some(data),
        confidence,
        ..StepResult::of_summary("it is a solid finding")
    };
    let command = desk.submit_result(step, None, &Arc::new(result));
    desk.try_to(&command).unwrap()
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

/// Whether the condition is true after step 1 of 3 was completed with this.
fn holds(condition: &str, data: &Value, confidence: Option<f64>) -> bool {
    let mut command = plan_of(3);
    command.branches = vec![branch(1, 1, condition, ActionSpec::Continue)];
    let events = submit_data(
        &mut Desk::of(command).started(),
        1,
        data.clone(),
        confidence,
    );
    verdicts(&events) == [(true, false)]
}

#[test]
fn the_examples_of_the_language_work() {
    let good = json!({ "sources": [1, 2, 3], "verdict": "accept" });
    let poor = json!({ "sources": [1], "verdict": "reject" });
    assert!(holds("confidence >= 0.8", &good, Some(0.8)));
    assert!(!holds("confidence >= 0.8", &good, Some(0.79)));
    assert!(!holds("confidence >= 0.8", &good, None));
    let few = "result.sources.size() < 3 || confidence < 0.5";
    assert!(holds(few, &poor, Some(0.9)));
    assert!(!holds(few, &good, Some(0.9)));
    assert!(holds(few, &good, Some(0.4)));
    assert!(holds(r#"result.verdict === "reject""#, &poor, None));
    assert!(!holds(r#"result.verdict === "reject""#, &good, None));
    assert!(holds(r#"result.verdict !== "reject""#, &good, None));
}

#[test]
fn a_condition_sees_what_it_is_told_that_it_sees() {
    let data = json!({ "n": 4, "confidence": "hidden", "step": 7 });
    assert!(holds("n == 4 && result.n == 4", &data, None));
    assert!(holds(
        "confidence == null && result.confidence == 'hidden'",
        &data,
        None
    ));
    assert!(holds(
        "step.order == 1 && step.type == 'custom' && step.attempt == 1",
        &data,
        None
    ));
    assert!(holds(
        "plan.progress == 33 && plan.completed == 1",
        &data,
        None
    ));
    assert!(holds("plan.failed == 0 && plan.pending == 2", &data, None));
    assert!(holds("resultSummary.contains('solid')", &data, None));
}

#[test]
fn what_cannot_be_evaluated_counts_as_false_and_says_why() {
    let mut command = plan_of(2);
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
    let events = submit_data(&mut Desk::of(command).started(), 1, json!({ "n": 1 }), None);
    assert_eq!(verdicts(&events), [(false, true); 3]);
}

#[test]
fn the_first_that_is_true_decides_and_the_rest_are_not_tried() {
    let mut command = plan_of(2);
    command.branches = vec![
        branch(1, 1, "false", ActionSpec::Fail { reason: None }),
        branch(2, 1, "true", ActionSpec::Continue),
        branch(3, 1, "true", ActionSpec::Fail { reason: None }),
    ];
    let events = submit_data(&mut Desk::of(command).started(), 1, json!({}), None);
    assert_eq!(verdicts(&events), [(false, false), (true, false)]);
    assert_eq!(effect(&events), &Effect::Continued);
}

#[test]
fn a_branch_that_is_added_later_is_tried_later() {
    let mut command = plan_of(2);
    command.branches = vec![branch(9, 1, "true", ActionSpec::Continue)];
    let mut desk = Desk::of(command).started();
    let later = branch(1, 1, "true", ActionSpec::Fail { reason: None });
    desk.does(&modify(Modification::AddBranch { branch: later }));
    assert_eq!(
        effect(&submit_data(&mut desk, 1, json!({}), None)),
        &Effect::Continued
    );
}

#[test]
fn skip_to_skips_the_pending_steps_between_and_no_others() {
    let mut command = plan_of(5);
    command.branches = vec![branch(1, 1, "true", skip_to(5))];
    let mut desk = Desk::of(command).started().started();
    let events = submit_data(&mut desk, 1, json!({}), None);
    assert_eq!(
        effect(&events),
        &Effect::Skipped {
            target: id(5),
            steps: vec![id(3), id(4)]
        }
    );
    use StepStatus::{Completed, InProgress, Pending, Skipped};
    assert_eq!(
        desk.steps(),
        [Completed, InProgress, Skipped, Skipped, Pending]
    );
    assert_eq!(desk.status(), PlanStatus::Executing);
    assert_eq!(desk.next().unwrap().0, 5);
}

#[test]
fn a_skipped_step_is_over_for_what_waits_for_it() {
    let mut command = plan_of(3);
    command.steps[2].depends_on = vec![2];
    command.branches = vec![branch(1, 1, "true", ActionSpec::SkipTo(StepRef::Id(id(3))))];
    let mut desk = Desk::of(command).started();
    submit_data(&mut desk, 1, json!({}), None);
    assert_eq!(desk.next().unwrap().0, 3);
}

/// A plan of three, whose step 1 skips to step 3, after `change`.
fn landing_after(change: impl FnOnce(&mut Desk)) -> Effect {
    let mut command = plan_of(3);
    command.branches = vec![branch(1, 1, "true", skip_to(3))];
    let mut desk = Desk::of(command).started();
    change(&mut desk);
    let events = submit_data(&mut desk, 1, json!({}), None);
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
fn a_skip_whose_target_is_no_longer_pending_does_nothing_and_says_so() {
    let why = NoEffect::TargetNotPending;
    let effect = landing_after(|desk| {
        desk.does(&modify(Modification::FailStep {
            step: id(3),
            reason: None,
        }));
    });
    assert_eq!(effect, Effect::Nothing { why });
}

#[test]
fn a_skip_whose_target_was_moved_in_front_does_nothing_and_says_so() {
    let why = NoEffect::TargetNotAfter;
    let effect = landing_after(|desk| {
        desk.does(&modify(Modification::ReorderSteps {
            steps: vec![id(3), id(1), id(2)],
        }));
    });
    assert_eq!(effect, Effect::Nothing { why });
}

#[test]
fn a_skip_whose_target_is_gone_does_nothing_and_says_so() {
    use onward_core::decide::{Landing, Settled, submit};
    let mut command = plan_of(3);
    command.branches = vec![branch(1, 1, "true", skip_to(3))];
    let desk = Desk::of(command).started();
    let onward_core::Command::SubmitResult(command) = desk.submit(1, None) else {
        unreachable!()
    };
    let facts = submit::Facts {
        plan: desk.plan.head(),
        step: desk.plan.step(id(1)).unwrap(),
        branches: desk.plan.branches_after(id(1)),
    };
    let settled = submit::decide(&facts, &command, desk.now).unwrap();
    assert!(
        matches!(&settled, Settled::Skips(skip) if skip.target() == id(3) && skip.step() == id(1))
    );
    let events = settled.land(|_| Landing::Gone).unwrap();
    assert_eq!(
        effect(&events),
        &Effect::Nothing {
            why: NoEffect::TargetGone
        }
    );
}

#[test]
fn steps_are_added_right_after_the_step_and_later_orders_shift() {
    let mut command = plan_of(2);
    command.branches = vec![branch(
        1,
        1,
        "true",
        ActionSpec::AddSteps(vec![spec(8), spec(9)]),
    )];
    let mut desk = Desk::of(command).started();
    submit_data(&mut desk, 1, json!({}), None);
    assert_eq!(desk.order(), [id(1), id(8), id(9), id(2)]);
    assert_eq!(desk.next().unwrap().0, 2);
    assert_eq!(desk.plan.head().counts.total(), 4);
}

#[test]
fn steps_added_after_the_last_step_keep_the_plan_going() {
    let mut command = plan_of(1);
    command.branches = vec![branch(1, 1, "true", ActionSpec::AddSteps(vec![spec(8)]))];
    let mut desk = Desk::of(command).started();
    submit_data(&mut desk, 1, json!({}), None);
    assert_eq!(desk.status(), PlanStatus::Executing);
}

#[test]
fn a_full_plan_takes_no_more_steps_and_says_so() {
    let most = u32::try_from(MAX_STEPS).unwrap();
    let mut command = plan_of(most);
    command.branches = vec![branch(
        1,
        1,
        "true",
        ActionSpec::AddSteps(vec![spec(most + 1)]),
    )];
    let mut desk = Desk::of(command).started();
    let events = submit_data(&mut desk, 1, json!({}), None);
    assert_eq!(
        effect(&events),
        &Effect::Nothing {
            why: NoEffect::PlanFull
        }
    );
}

#[test]
fn fail_fails_the_plan_at_once_and_nothing_is_derived_after_it() {
    let mut command = plan_of(1);
    let action = ActionSpec::Fail {
        reason: Some("hopeless".to_owned()),
    };
    command.branches = vec![branch(1, 1, "true", action)];
    let mut desk = Desk::of(command).started();
    let events = submit_data(&mut desk, 1, json!({}), None);
    let names: Vec<_> = events.iter().map(Event::name).collect();
    assert_eq!(names, ["step_completed", "branch_taken", "plan_failed"]);
    // Every step is terminal, and yet it is not completed.
    assert_eq!(desk.status(), PlanStatus::Failed);
}

#[test]
fn a_step_that_fails_tries_no_branch() {
    let mut command = plan_of(2);
    command.branches = vec![branch(1, 1, "true", ActionSpec::Fail { reason: None })];
    let mut desk = Desk::of(command).started();
    let fail = modify(Modification::FailStep {
        step: id(1),
        reason: None,
    });
    assert_eq!(desk.does(&fail), ["plan_modified", "step_failed"]);
}

#[test]
fn a_plan_may_be_filled_by_a_branch_to_exactly_its_size() {
    let most = u32::try_from(MAX_STEPS).unwrap();
    let mut command = plan_of(most - 1);
    command.branches = vec![branch(1, 1, "true", ActionSpec::AddSteps(vec![spec(most)]))];
    let mut desk = Desk::of(command).started();
    submit_data(&mut desk, 1, json!({}), None);
    assert_eq!(desk.plan.head().counts.total(), most);
}

#[test]
fn an_approved_step_shows_its_branches_the_attempt_it_is_in() {
    let mut command = plan_of(2);
    command.branches = vec![branch(1, 1, "step.attempt == 2", ActionSpec::Continue)];
    let mut desk = Desk::of(command).started();
    desk.does(&modify(Modification::RequeueStep { step: id(1) }));
    desk = desk.in_review();
    let approve = crate::desk::decision(1, onward_core::event::Decision::Approve, None);
    assert_eq!(
        desk.does(&approve),
        ["user_reviewed", "step_completed", "branch_taken"]
    );
}

#[test]
fn the_branches_of_a_step_share_one_budget() {
    // Each of these is given up on a text of this size, after all the work that one may take.
    let costly = "list.exists(x, text.contains('a' + text))";
    let mut command = plan_of(2);
    command.branches = (0..50)
        .map(|n| branch(n, 1, costly, ActionSpec::Continue))
        .collect();
    command
        .branches
        .push(branch(50, 1, "true", ActionSpec::Continue));
    let mut desk = Desk::of(command).started();
    let data = json!({ "text": "b".repeat(30_000), "list": vec![0; 1000] });
    let events = submit_data(&mut desk, 1, data, None);
    assert_eq!(verdicts(&events), vec![(false, true); 51]);
    let Some(Event::StepCompleted { verdicts, .. }) = events.first() else {
        panic!("{events:?}")
    };
    let tried = verdicts.iter().filter(|verdict| {
        verdict
            .error
            .as_ref()
            .is_some_and(|error| !error.starts_with("not tried"))
    });
    assert!((2..10).contains(&tried.count()));
}
