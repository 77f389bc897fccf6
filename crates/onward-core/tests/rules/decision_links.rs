//! Decisions with a link: recorded as such, and made once.

use onward_core::command::{DecideReview, RequestReview, Reviewer};
use onward_core::event::{DecidedBy, Decision, Event, ReviewAction};
use onward_core::id::ReviewId;
use onward_core::step::StepState;
use onward_core::{Code, Command, Refusal, StepStatus};

use crate::harness::{Harness, decision, id};

/// A decision on the pending review of the first step.
fn by_link(harness: &Harness, choice: Decision, recipient: &str) -> Command {
    let Command::DecideReview(command) = decision(1, choice, None) else {
        panic!("not a decision")
    };
    let step = harness.plan.step(id(1)).unwrap();
    let StepState::AwaitingInput { review, .. } = &step.state else {
        panic!("{step:?}")
    };
    Command::DecideReview(DecideReview {
        review: Some(review.id),
        reviewer: Reviewer::Link {
            recipient: recipient.to_owned(),
        },
        ..command
    })
}

#[test]
fn a_decision_by_link_records_its_recipient() {
    for (choice, status) in [
        (Decision::Approve, StepStatus::Completed),
        (Decision::Skip, StepStatus::Skipped),
        (Decision::Reject, StepStatus::Failed),
    ] {
        let mut harness = Harness::with_steps(2).in_review();
        let command = by_link(&harness, choice, "ann");
        let events = harness.execute(&command).unwrap();
        let Event::UserReviewed {
            action: ReviewAction::Decided { by, decision, .. },
            ..
        } = &events[0]
        else {
            panic!("{events:?}")
        };
        let recipient = "ann".to_owned();
        assert_eq!((by, *decision), (&DecidedBy::Link { recipient }, choice));
        assert_eq!(harness.step_statuses()[0], status);
    }
}

#[test]
fn a_link_works_once() {
    for choice in [Decision::Approve, Decision::Skip, Decision::Reject] {
        let mut harness = Harness::with_steps(2).in_review();
        let command = by_link(&harness, choice, "ann");
        harness.run(&command);
        let code = harness.rejection_code(&command);
        let expected = if choice == Decision::Reject {
            Code::PlanIsTerminal
        } else {
            Code::IllegalTransition
        };
        assert_eq!(code, expected);
    }
}

#[test]
fn a_link_does_not_decide_a_later_review_of_the_step() {
    let mut harness = Harness::with_steps(2).in_review();
    let command = by_link(&harness, Decision::Approve, "ann");
    harness.run(&decision(1, Decision::Modify, Some("shorter")));
    let Command::RequestReview(request) = harness.request_review(1, None) else {
        panic!("not a request")
    };
    let review = ReviewId::from_u128(2);
    harness.run(&Command::RequestReview(RequestReview { review, ..request }));
    let refusal = harness.expect_rejection(&command);
    assert!(matches!(refusal, Refusal::ReviewNotPending(_)), "{refusal}");
    assert_eq!(harness.step_statuses()[0], StepStatus::AwaitingInput);
}

#[test]
fn a_recipient_has_a_name() {
    let mut harness = Harness::with_steps(1).in_review();
    for recipient in [String::new(), "a".repeat(201)] {
        let command = by_link(&harness, Decision::Approve, &recipient);
        let refusal = harness.expect_rejection(&command);
        let Refusal::InvalidInput(issues) = refusal else {
            panic!("{refusal}")
        };
        assert_eq!(issues[0].path, "recipient");
    }
}
