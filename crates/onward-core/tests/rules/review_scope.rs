//! The scope of reviews, and several pending reviews at the same time.

use onward_core::command::{DecideReview, Modification};
use onward_core::event::Decision;
use onward_core::id::ReviewId;
use onward_core::plan::{PendingReview, PlanState};
use onward_core::{Code, Command, PlanStatus, StepStatus};

use crate::harness::{Harness, MINUTE, create_plan, decision, id, modify, sweep};

/// Two claimed steps and two pending ones; step 3 depends on step 1.
fn working() -> Harness {
    let mut command = create_plan(4);
    command.steps[2].depends_on = vec![1];
    Harness::new(command).started().started()
}

fn decide(step: u32, review: u128, choice: Decision) -> Command {
    let Command::DecideReview(command) = decision(step, choice, Some("test feedback")) else {
        panic!("not a decision")
    };
    Command::DecideReview(DecideReview {
        review: Some(ReviewId::from_u128(review)),
        ..command
    })
}

#[test]
fn a_review_of_a_step_does_not_stop_the_plan() {
    let mut harness = working();
    let request = harness.request_step_review(1, None);
    assert_eq!(harness.run(&request), ["user_reviewed"]);
    assert_eq!(harness.status(), PlanStatus::Executing);
    let counts = harness.plan.head().counts;
    assert_eq!(counts.derived_status(), PlanStatus::AwaitingReview);
    assert_eq!(counts.awaiting_input, 1);
    // Step 3 depends on the step under review.
    assert_eq!(harness.claim_next().unwrap().0, 4);
    assert_eq!(harness.claim_next(), None);
    harness.run(&modify(Modification::UpdateInstructions {
        step: id(3),
        instructions: "new instructions".to_owned(),
    }));
    assert_eq!(
        harness.run(&decision(1, Decision::Approve, None)),
        ["user_reviewed", "step_completed"]
    );
    assert_eq!(harness.claim_next().unwrap().0, 3);
}

#[test]
fn the_step_under_review_cannot_be_failed_requeued_or_removed() {
    let mut harness = working();
    let request = harness.request_step_review(1, None);
    harness.run(&request);
    let step = id(1);
    for (modification, code) in [
        (
            Modification::FailStep { step, reason: None },
            Code::IllegalTransition,
        ),
        (Modification::RequeueStep { step }, Code::IllegalTransition),
        (Modification::RemoveStep { step }, Code::StepNotRemovable),
    ] {
        assert_eq!(harness.rejection_code(&modify(modification)), code);
    }
}

#[test]
fn each_of_several_reviews_is_decided_by_its_own_id() {
    let mut harness = working();
    for step in [1, 2] {
        let request = harness.request_review(step, None);
        harness.run(&request);
    }
    let pending = |step: u32| PendingReview {
        step: id(step),
        review: ReviewId::from_u128(u128::from(step)),
    };
    let reviews = vec![pending(1), pending(2)];
    assert_eq!(
        harness.plan.head().state,
        PlanState::AwaitingReview { reviews }
    );
    let wrong = decide(1, 2, Decision::Approve);
    assert_eq!(harness.rejection_code(&wrong), Code::IllegalTransition);

    assert_eq!(
        harness.run(&decide(1, 1, Decision::Skip)),
        ["user_reviewed", "step_skipped"]
    );
    assert_eq!(
        harness.status(),
        PlanStatus::AwaitingReview,
        "one review is pending"
    );
    assert_eq!(harness.claim_next(), None);
    assert_eq!(
        harness.run(&decide(2, 2, Decision::Approve)),
        ["user_reviewed", "plan_status_changed", "step_completed"]
    );
    assert_eq!(harness.claim_next().unwrap().0, 3);
}

#[test]
fn repeating_a_decision_by_id_changes_nothing() {
    let mut harness = working();
    let request = harness.request_step_review(1, None);
    harness.run(&request);
    harness.run(&decide(1, 1, Decision::Skip));
    assert!(harness.run(&decide(1, 1, Decision::Skip)).is_empty());
    let other = decide(1, 2, Decision::Skip);
    assert_eq!(harness.rejection_code(&other), Code::IllegalTransition);
}

#[test]
fn reviews_of_both_scopes_can_be_pending() {
    let mut harness = working();
    let of_step = harness.request_step_review(1, None);
    harness.run(&of_step);
    let of_plan = harness.request_review(2, None);
    harness.run(&of_plan);
    assert_eq!(harness.status(), PlanStatus::AwaitingReview);
    harness.run(&decision(1, Decision::Approve, None));
    assert_eq!(harness.status(), PlanStatus::AwaitingReview);
    harness.run(&decision(2, Decision::Modify, Some("shorter")));
    assert_eq!(harness.status(), PlanStatus::Executing);
    assert_eq!(harness.step_statuses()[1], StepStatus::InProgress);
}

#[test]
fn rejecting_a_review_of_a_step_fails_the_plan() {
    let mut harness = working();
    let request = harness.request_step_review(1, None);
    harness.run(&request);
    assert_eq!(
        harness.run(&decision(1, Decision::Reject, None)),
        ["user_reviewed", "step_failed", "plan_failed"]
    );
}

#[test]
fn a_decision_resumes_a_plan_that_stalled_during_the_review() {
    let mut harness = working();
    let request = harness.request_step_review(1, None);
    harness.run(&request);
    harness.advance(31 * MINUTE);
    assert_eq!(harness.run(&sweep()), ["plan_stalled"]);
    assert_eq!(
        harness.run(&decision(1, Decision::Approve, None)),
        ["plan_resumed", "user_reviewed", "step_completed"]
    );
    assert_eq!(harness.status(), PlanStatus::Executing);
}

#[test]
fn the_plan_ends_only_after_the_last_decision() {
    let mut harness = Harness::with_steps(2).started();
    let request = harness.request_step_review(1, None);
    harness.run(&request);
    let submit = harness.submit(2, None);
    assert_eq!(harness.run(&submit), ["step_started", "step_completed"]);
    assert_eq!(harness.claim_next(), None);
    assert_eq!(
        harness.run(&decision(1, Decision::Approve, None)),
        ["user_reviewed", "step_completed", "plan_completed"]
    );
}
