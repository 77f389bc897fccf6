//! Reviews: requesting one, the four decisions, and other steps in the meantime.

use onward_core::command::{ActionSpec, RequestReview, StepRef};
use onward_core::event::Decision;
use onward_core::step::{FailReason, StepState};
use onward_core::{Code, Command, PlanStatus, StepStatus};

use crate::harness::{Harness, MINUTE, branch, create_plan, decision, id};

#[test]
fn a_review_request_requires_a_step_in_progress_and_an_executing_plan() {
    let mut planning = Harness::with_steps(1);
    let mut stalled = Harness::with_steps(1).stalled();
    let mut in_review = Harness::with_steps(2).in_review();
    // Step 2 is pending.
    let other = in_review.request_review(2, None);
    let command = planning.request_review(1, None);
    assert_eq!(planning.rejection_code(&command), Code::IllegalTransition);
    assert_eq!(stalled.rejection_code(&command), Code::IllegalTransition);
    assert_eq!(in_review.rejection_code(&other), Code::IllegalTransition);
}

#[test]
fn a_review_request_moves_step_and_plan_to_awaiting_review() {
    let mut harness = Harness::with_steps(2).started();
    let command = harness.request_review(1, None);
    let events = harness.execute(&command).unwrap();
    assert_eq!(events[0].name(), "user_reviewed");
    assert_eq!(events[0].action(), Some("review_requested"));
    assert_eq!(harness.status(), PlanStatus::AwaitingReview);
    assert_eq!(
        harness.step_statuses(),
        [StepStatus::AwaitingInput, StepStatus::Pending]
    );
    // No step is assigned while the plan awaits review.
    assert_eq!(harness.claim_next(), None);
}

#[test]
fn approve_completes_the_step_with_the_summary_and_no_confidence() {
    let mut harness = Harness::with_steps(2).in_review();
    assert_eq!(
        harness.run(&decision(1, Decision::Approve, None)),
        ["user_reviewed", "plan_status_changed", "step_completed"]
    );
    assert_eq!(harness.status(), PlanStatus::Executing);
    let StepState::Completed { result, .. } = &harness.plan.step(id(1)).unwrap().state else {
        panic!("step is not completed")
    };
    assert_eq!(result.summary, "summary of step 1");
    assert_eq!(result.confidence, None);
}

#[test]
fn approving_the_last_step_completes_the_plan() {
    let mut harness = Harness::with_steps(1).in_review();
    assert_eq!(
        harness.run(&decision(1, Decision::Approve, None)),
        [
            "user_reviewed",
            "plan_status_changed",
            "step_completed",
            "plan_completed"
        ]
    );
}

#[test]
fn approve_evaluates_the_branches() {
    let mut command = create_plan(3);
    command.branches = vec![
        branch(1, 1, "confidence >= 0.8", ActionSpec::Fail { reason: None }),
        branch(2, 1, "true", ActionSpec::SkipTo(StepRef::Order(3))),
    ];
    let mut harness = Harness::new(command).in_review();
    assert_eq!(
        harness.run(&decision(1, Decision::Approve, None)),
        [
            "user_reviewed",
            "plan_status_changed",
            "step_completed",
            "branch_taken",
            "step_skipped"
        ]
    );
}

#[test]
fn a_branch_can_fail_the_plan_after_an_approval() {
    let mut command = create_plan(2);
    command.branches = vec![branch(1, 1, "true", ActionSpec::Fail { reason: None })];
    let mut harness = Harness::new(command).in_review();
    assert_eq!(
        harness.run(&decision(1, Decision::Approve, None)),
        [
            "user_reviewed",
            "plan_status_changed",
            "step_completed",
            "branch_taken",
            "plan_failed"
        ]
    );
}

#[test]
fn reject_fails_step_and_plan() {
    let mut harness = Harness::with_steps(2).in_review();
    assert_eq!(
        harness.run(&decision(1, Decision::Reject, Some("wrong"))),
        ["user_reviewed", "step_failed", "plan_failed"]
    );
    assert_eq!(harness.status(), PlanStatus::Failed);
    let state = &harness.plan.step(id(1)).unwrap().state;
    let StepState::Failed { reason, .. } = state else {
        panic!("{state:?}")
    };
    assert_eq!(*reason, FailReason::Rejected(Some("wrong".to_owned())));
}

#[test]
fn skip_skips_the_step_and_resumes_the_plan() {
    let mut harness = Harness::with_steps(2).in_review();
    assert_eq!(
        harness.run(&decision(1, Decision::Skip, None)),
        ["user_reviewed", "plan_status_changed", "step_skipped"]
    );
    assert_eq!(harness.status(), PlanStatus::Executing);
    assert_eq!(harness.plan.head().counts.progress(), 50);
}

#[test]
fn modify_requires_feedback_and_appends_it_to_the_instructions() {
    let mut harness = Harness::with_steps(2).in_review();
    for feedback in [None, Some(""), Some("  \n")] {
        assert_eq!(
            harness.rejection_code(&decision(1, Decision::Modify, feedback)),
            Code::FeedbackRequired
        );
    }
    assert_eq!(
        harness.run(&decision(1, Decision::Modify, Some("shorter"))),
        ["user_reviewed", "plan_status_changed"]
    );
    assert_eq!(harness.status(), PlanStatus::Executing);
    assert_eq!(harness.step_statuses()[0], StepStatus::InProgress);
    let instructions = &harness.plan.step(id(1)).unwrap().spec.instructions;
    assert_eq!(instructions, "do 1\n\n---\n\nUser feedback: shorter");
}

#[test]
fn after_modify_the_step_is_assigned_once_more_with_the_same_claim() {
    let mut harness = Harness::with_steps(2);
    let (_, claim) = harness.claim_next().unwrap();
    let command = harness.request_review(1, Some(&claim.token));
    harness.run(&command);
    harness.run(&decision(1, Decision::Modify, Some("shorter")));
    assert_eq!(harness.claim_next(), Some((1, claim.clone())));
    assert_eq!(harness.claim_next().unwrap().0, 2);
    let submit = harness.submit(1, Some(&claim.token));
    assert_eq!(harness.run(&submit), ["step_completed"]);
}

#[test]
fn only_the_session_of_the_claim_receives_the_step_after_modify() {
    for holder in [Some("a"), None] {
        let mut harness = Harness::with_steps(1);
        let (_, claim) = harness.claim_next_for(holder, false).unwrap();
        let review = harness.request_review(1, Some(&claim.token));
        harness.run(&review);
        harness.run(&decision(1, Decision::Modify, Some("shorter")));
        for other in [Some("a"), Some("b"), None] {
            if other != holder {
                assert_eq!(harness.claim_next_for(other, false), None);
            }
        }
        assert_eq!(harness.claim_next_for(holder, false), Some((1, claim)));
    }
}

#[test]
fn a_stalled_step_after_modify_is_taken_over_with_the_feedback() {
    let mut harness = Harness::with_steps(1);
    let (_, claim) = harness.claim_next_for(Some("a"), false).unwrap();
    let review = harness.request_review(1, Some(&claim.token));
    harness.run(&review);
    harness.run(&decision(1, Decision::Modify, Some("shorter")));
    harness.advance(31 * MINUTE);
    let (step, taken) = harness.claim_next_for(Some("b"), true).unwrap();
    assert_eq!((step, taken.attempt), (1, 2));
    assert_ne!(taken.token, claim.token);
    assert!(harness.plan.step(id(1)).unwrap().has_feedback());
    // The new agent has received it.
    assert_eq!(harness.claim_next_for(Some("b"), false), None);
    let late = harness.submit(1, Some(&claim.token));
    assert_eq!(harness.rejection_code(&late), Code::ClaimSuperseded);
}

#[test]
fn repeating_a_review_request_changes_nothing() {
    let mut harness = Harness::with_steps(2);
    let (_, claim) = harness.claim_next().unwrap();
    let request = harness.request_review(1, Some(&claim.token));
    harness.run(&request);
    assert!(harness.run(&request).is_empty());
    let Command::RequestReview(different) = request.clone() else {
        panic!("not a review request")
    };
    let different = Command::RequestReview(RequestReview {
        summary: "another summary".to_owned(),
        ..different
    });
    let code = harness.rejection_code(&different);
    assert_eq!(code, Code::IllegalTransition);
    harness.run(&decision(1, Decision::Modify, Some("shorter")));
    // After a decision, the same request opens a new review.
    assert_eq!(
        harness.run(&request),
        ["user_reviewed", "plan_status_changed"]
    );
}

#[test]
fn repeating_a_decision_changes_nothing_and_a_different_one_is_rejected() {
    for (first, feedback) in [
        (Decision::Approve, None),
        (Decision::Approve, Some("good")),
        (Decision::Skip, None),
        (Decision::Modify, Some("shorter")),
    ] {
        let mut harness = Harness::with_steps(2).in_review();
        harness.run(&decision(1, first, feedback));
        assert!(harness.run(&decision(1, first, feedback)).is_empty());
        let different = [
            decision(1, first, Some("another feedback")),
            decision(1, Decision::Reject, feedback),
        ];
        for command in different {
            assert_eq!(harness.rejection_code(&command), Code::IllegalTransition);
        }
    }
    // The plan is terminal after a rejection, or because the last step ended.
    for first in [Decision::Reject, Decision::Approve] {
        let mut harness = Harness::with_steps(1).in_review();
        harness.run(&decision(1, first, None));
        assert!(harness.run(&decision(1, first, None)).is_empty());
        let different = decision(1, Decision::Skip, None);
        assert_eq!(harness.rejection_code(&different), Code::PlanIsTerminal);
    }
}

#[test]
fn a_step_completed_after_modify_is_not_assigned_again() {
    let mut harness = Harness::with_steps(2).in_review();
    harness.run(&decision(1, Decision::Modify, Some("shorter")));
    let submit = harness.submit(1, None);
    harness.run(&submit);
    assert_eq!(harness.claim_next().unwrap().0, 2);
}

#[test]
fn a_step_can_be_reviewed_more_than_once() {
    let mut harness = Harness::with_steps(1).in_review();
    harness.run(&decision(1, Decision::Modify, Some("shorter")));
    let command = harness.request_review(1, None);
    harness.run(&command);
    harness.run(&decision(1, Decision::Modify, Some("clearer")));
    let instructions = &harness.plan.step(id(1)).unwrap().spec.instructions;
    assert!(instructions.contains("shorter") && instructions.ends_with("clearer"));
}

#[test]
fn rejects_and_keeps_a_result_for_a_step_under_review() {
    let mut harness = Harness::with_steps(1).in_review();
    let command = harness.submit(1, None);
    assert_eq!(harness.rejection_code(&command), Code::IllegalTransition);
    assert!(command.late_result().is_some());
}

#[test]
fn accepts_a_result_for_another_step_in_progress_during_a_review() {
    let mut harness = Harness::with_steps(3).started().in_review();
    assert_eq!(
        harness.step_statuses(),
        [
            StepStatus::AwaitingInput,
            StepStatus::InProgress,
            StepStatus::Pending
        ]
    );
    let command = harness.submit(2, None);
    assert_eq!(harness.run(&command), ["step_completed"]);
    assert_eq!(harness.status(), PlanStatus::AwaitingReview);
    let pending = harness.submit(3, None);
    assert_eq!(harness.rejection_code(&pending), Code::IllegalTransition);
}

#[test]
fn a_branch_of_another_step_can_fail_a_plan_awaiting_review() {
    let mut command = create_plan(2);
    command.branches = vec![branch(1, 2, "true", ActionSpec::Fail { reason: None })];
    let mut harness = Harness::new(command).started().in_review();
    let submit = harness.submit(2, None);
    assert_eq!(
        harness.run(&submit),
        ["step_completed", "branch_taken", "plan_failed"]
    );
    assert_eq!(
        harness.rejection_code(&decision(1, Decision::Approve, None)),
        Code::PlanIsTerminal
    );
}

#[test]
fn rejects_a_decision_without_an_open_review() {
    let mut harness = Harness::with_steps(2).started();
    for choice in Decision::ALL {
        assert_eq!(
            harness.rejection_code(&decision(1, choice, Some("test feedback"))),
            Code::IllegalTransition
        );
    }
}

#[test]
fn limits_instructions_with_appended_feedback() {
    // The limit of 100,000 characters includes the existing instructions.
    for (over, expected) in [(0, None), (1, Some(Code::LimitExceeded))] {
        let mut command = create_plan(1);
        command.steps[0].instructions = "x".repeat(90_000 + over);
        let mut harness = Harness::new(command).in_review();
        let modify = decision(1, Decision::Modify, Some(&"y".repeat(10_000)));
        let code = harness.execute(&modify).err().map(|refusal| refusal.code());
        assert_eq!(code, expected);
    }
}
