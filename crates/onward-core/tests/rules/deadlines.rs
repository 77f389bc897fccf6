//! Deadlines of reviews: a decision by policy, and its limits.

use std::time::Duration;

use onward_core::command::{DecideReview, RequestReview, Reviewer};
use onward_core::event::{DecidedBy, Decision, Event, ReviewAction};
use onward_core::finding::{Finding, Kind};
use onward_core::next_check::Due;
use onward_core::step::{
    Deadline, FieldKind, Gates, OnDeadline, ReviewField, ReviewOptions, StepState,
};
use onward_core::transition::Transition;
use onward_core::{Code, Command, StepStatus};

use crate::harness::{Harness, MINUTE, create_plan, decision, id};

fn options(harness: &Harness, after: Duration, action: OnDeadline) -> ReviewOptions {
    let at = harness.now.checked_add(after).unwrap();
    ReviewOptions {
        deadline: Some(Deadline { at, action }),
        ..ReviewOptions::default()
    }
}

fn request(harness: &Harness, options: ReviewOptions) -> Command {
    let Command::RequestReview(request) = harness.request_review(1, None) else {
        panic!("not a request")
    };
    Command::RequestReview(RequestReview { options, ..request })
}

/// A plan whose first step is under review, with a deadline in one minute.
fn due_in_a_minute(action: OnDeadline) -> Harness {
    let mut harness = Harness::with_steps(2).started();
    let options = options(&harness, MINUTE, action);
    let request = request(&harness, options);
    harness.run(&request);
    harness
}

fn by_policy(choice: Decision) -> Command {
    let Command::DecideReview(command) = decision(1, choice, None) else {
        panic!("not a decision")
    };
    Command::DecideReview(DecideReview {
        reviewer: Reviewer::Policy,
        ..command
    })
}

#[test]
fn the_policy_decides_at_the_deadline() {
    for (action, choice, status) in [
        (
            OnDeadline::Approve,
            Decision::Approve,
            StepStatus::Completed,
        ),
        (OnDeadline::Skip, Decision::Skip, StepStatus::Skipped),
        (OnDeadline::Reject, Decision::Reject, StepStatus::Failed),
    ] {
        assert_eq!(Decision::at_deadline(action), Some(choice));
        let mut harness = due_in_a_minute(action);
        harness.advance(MINUTE - Duration::from_millis(1));
        assert_eq!(
            harness.rejection_code(&by_policy(choice)),
            Code::IllegalTransition,
            "before the deadline"
        );
        harness.advance(Duration::from_millis(1));
        for other in Decision::ALL.into_iter().filter(|other| *other != choice) {
            assert_eq!(
                harness.rejection_code(&by_policy(other)),
                Code::IllegalTransition
            );
        }
        let events = harness.execute(&by_policy(choice)).unwrap();
        let recorded = events.iter().any(|event| {
            let policy = |action: &ReviewAction| {
                matches!(
                    action,
                    ReviewAction::Decided {
                        by: DecidedBy::Policy,
                        ..
                    }
                )
            };
            matches!(event, Event::UserReviewed { action, .. } if policy(action))
        });
        assert!(recorded, "{events:?}");
        assert_eq!(harness.step_statuses()[0], status);
    }
}

#[test]
fn a_persons_decision_is_not_recorded_as_one_by_policy() {
    let mut harness = due_in_a_minute(OnDeadline::Reject);
    harness.advance(2 * MINUTE);
    let events = harness
        .execute(&decision(1, Decision::Approve, None))
        .unwrap();
    assert!(matches!(
        &events[0],
        Event::UserReviewed {
            action: ReviewAction::Decided {
                by: DecidedBy::Reviewer,
                ..
            },
            ..
        }
    ));
}

#[test]
fn a_reminder_decides_nothing() {
    let mut harness = due_in_a_minute(OnDeadline::Remind);
    harness.advance(2 * MINUTE);
    for choice in Decision::ALL {
        let refused = harness.rejection_code(&by_policy(choice));
        let expected = if choice == Decision::Modify {
            [Code::FeedbackRequired, Code::IllegalTransition]
        } else {
            [Code::IllegalTransition; 2]
        };
        assert!(expected.contains(&refused));
    }
    let step = harness.plan.step(id(1)).unwrap();
    let StepState::AwaitingInput { review, .. } = &step.state else {
        panic!("{step:?}")
    };
    let first = Finding::review_due(step.id(), review);
    assert_eq!(first.kind, Kind::Review);
    assert_eq!(first.key, format!("review/{}/due", review.id));
}

#[test]
fn the_sweep_checks_the_plan_at_the_deadline() {
    let harness = Harness::with_steps(1).started();
    let options = options(&harness, MINUTE, OnDeadline::Approve);
    let at = options.deadline.unwrap().at;
    let command = request(&harness, options);
    let events = onward_core::decide(&harness.plan, &command, harness.now).unwrap();
    let steps = harness.plan.steps().to_vec();
    let head = harness.plan.head().clone();
    let after = Transition::new(head, steps, &events, harness.now, Duration::MAX).unwrap();
    assert_eq!(after.due, Due::By(at));
}

#[test]
fn rejects_an_invalid_deadline_or_assignee() {
    let mut harness = Harness::with_steps(1).started();
    let no_default = ReviewField {
        name: "count".to_owned(),
        title: None,
        kind: FieldKind::Number,
        options: Vec::new(),
        default: None,
    };
    let valid = options(&harness, MINUTE, OnDeadline::Approve);
    let invalid = [
        options(&harness, Duration::ZERO, OnDeadline::Remind),
        options(
            &harness,
            Duration::from_secs(366 * 86_400),
            OnDeadline::Remind,
        ),
        ReviewOptions {
            fields: vec![no_default],
            ..valid.clone()
        },
        ReviewOptions {
            assignee: Some(" ".to_owned()),
            ..ReviewOptions::default()
        },
    ];
    for options in invalid {
        let request = request(&harness, options);
        assert_eq!(harness.rejection_code(&request), Code::InvalidInput);
    }
    harness.run(&request(&harness, valid));
}

#[test]
fn the_policy_cannot_waive_the_gates_of_a_step() {
    let mut command = create_plan(1);
    let gates = Gates {
        acceptance_criteria: vec!["It is short.".to_owned()],
        ..Gates::default()
    };
    command.steps[0].gates = Some(gates.into());
    let mut harness = Harness::new(command).started();
    let approve = options(&harness, MINUTE, OnDeadline::Approve);
    let request_approval = request(&harness, approve);
    assert_eq!(
        harness.rejection_code(&request_approval),
        Code::InvalidInput
    );
    let skip = options(&harness, MINUTE, OnDeadline::Skip);
    let request_skip = request(&harness, skip);
    harness.run(&request_skip);
}

#[test]
fn a_retry_with_a_later_relative_deadline_is_a_repetition() {
    let mut harness = due_in_a_minute(OnDeadline::Skip);
    harness.advance(Duration::from_secs(1));
    let later = options(&harness, MINUTE, OnDeadline::Skip);
    let again = request(&harness, later);
    assert!(harness.run(&again).is_empty());
    let other = options(&harness, MINUTE, OnDeadline::Approve);
    let other = request(&harness, other);
    assert_eq!(harness.rejection_code(&other), Code::IllegalTransition);
}
