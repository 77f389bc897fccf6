//! Review: a pause in which a person decides.

use onward_core::command::{ActionSpec, StepRef};
use onward_core::event::Decision;
use onward_core::step::{FailReason, StepState};
use onward_core::{Code, PlanStatus, StepStatus};

use crate::desk::{Desk, branch, decision, id, plan_of};

#[test]
fn asking_needs_the_step_in_progress_and_the_plan_executing() {
    let mut planning = Desk::with(1);
    let mut stalled = Desk::with(1).stalled();
    let mut in_review = Desk::with(2).in_review();
    let again = in_review.request_review(1, None);
    let other = in_review.request_review(2, None);
    let command = planning.request_review(1, None);
    assert_eq!(planning.code(&command), Code::IllegalTransition);
    assert_eq!(stalled.code(&command), Code::IllegalTransition);
    assert_eq!(in_review.code(&again), Code::IllegalTransition);
    assert_eq!(in_review.code(&other), Code::IllegalTransition);
}

#[test]
fn asking_makes_step_and_plan_wait() {
    let mut desk = Desk::with(2).started();
    let command = desk.request_review(1, None);
    let events = desk.try_to(&command).unwrap();
    assert_eq!(events[0].name(), "user_reviewed");
    assert_eq!(events[0].action(), Some("review_requested"));
    assert_eq!(desk.status(), PlanStatus::AwaitingReview);
    assert_eq!(
        desk.steps(),
        [StepStatus::AwaitingInput, StepStatus::Pending]
    );
    // Nothing is handed out meanwhile.
    assert_eq!(desk.next(), None);
}

#[test]
fn approving_completes_the_step_with_the_summary_and_no_confidence() {
    let mut desk = Desk::with(2).in_review();
    assert_eq!(
        desk.does(&decision(1, Decision::Approve, None)),
        ["user_reviewed", "step_completed"]
    );
    assert_eq!(desk.status(), PlanStatus::Executing);
    let StepState::Completed { result, .. } = &desk.plan.step(id(1)).unwrap().state else {
        panic!("not completed")
    };
    assert_eq!(result.summary, "step 1 is ready");
    assert_eq!(result.confidence, None);
}

#[test]
fn approving_the_last_step_completes_the_plan() {
    let mut desk = Desk::with(1).in_review();
    assert_eq!(
        desk.does(&decision(1, Decision::Approve, None)),
        ["user_reviewed", "step_completed", "plan_completed"]
    );
}

#[test]
fn approving_tries_the_branches() {
    let mut command = plan_of(3);
    command.branches = vec![
        branch(1, 1, "confidence >= 0.8", ActionSpec::Fail { reason: None }),
        branch(2, 1, "true", ActionSpec::SkipTo(StepRef::Order(3))),
    ];
    let mut desk = Desk::of(command).in_review();
    assert_eq!(
        desk.does(&decision(1, Decision::Approve, None)),
        [
            "user_reviewed",
            "step_completed",
            "branch_taken",
            "step_skipped"
        ]
    );
}

#[test]
fn a_branch_may_fail_a_plan_whose_step_was_approved() {
    let mut command = plan_of(2);
    command.branches = vec![branch(1, 1, "true", ActionSpec::Fail { reason: None })];
    let mut desk = Desk::of(command).in_review();
    assert_eq!(
        desk.does(&decision(1, Decision::Approve, None)),
        [
            "user_reviewed",
            "step_completed",
            "branch_taken",
            "plan_failed"
        ]
    );
}

#[test]
fn rejecting_fails_step_and_plan() {
    let mut desk = Desk::with(2).in_review();
    assert_eq!(
        desk.does(&decision(1, Decision::Reject, Some("wrong"))),
        ["user_reviewed", "step_failed", "plan_failed"]
    );
    assert_eq!(desk.status(), PlanStatus::Failed);
    let state = &desk.plan.step(id(1)).unwrap().state;
    let StepState::Failed { reason, .. } = state else {
        panic!("{state:?}")
    };
    assert_eq!(*reason, FailReason::Rejected(Some("wrong".to_owned())));
}

#[test]
fn skipping_passes_over_the_step() {
    let mut desk = Desk::with(2).in_review();
    assert_eq!(
        desk.does(&decision(1, Decision::Skip, None)),
        ["user_reviewed", "step_skipped"]
    );
    assert_eq!(desk.status(), PlanStatus::Executing);
    assert_eq!(desk.plan.head().counts.progress(), 50);
}

#[test]
fn modify_needs_feedback_and_appends_it() {
    let mut desk = Desk::with(2).in_review();
    for feedback in [None, Some(""), Some("  \n")] {
        assert_eq!(
            desk.code(&decision(1, Decision::Modify, feedback)),
            Code::FeedbackRequired
        );
    }
    assert_eq!(
        desk.does(&decision(1, Decision::Modify, Some("shorter"))),
        ["user_reviewed"]
    );
    assert_eq!(desk.status(), PlanStatus::Executing);
    assert_eq!(desk.steps()[0], StepStatus::InProgress);
    let instructions = &desk.plan.step(id(1)).unwrap().spec.instructions;
    assert_eq!(instructions, "do 1\n\n---\n\nUser feedback: shorter");
}

#[test]
fn after_modify_the_step_is_handed_out_once_more_under_the_same_claim() {
    let mut desk = Desk::with(2);
    let (_, claim) = desk.next().unwrap();
    let command = desk.request_review(1, Some(&claim.token));
    desk.does(&command);
    desk.does(&decision(1, Decision::Modify, Some("shorter")));
    assert_eq!(desk.next(), Some((1, claim.clone())));
    assert_eq!(desk.next().unwrap().0, 2);
    let submit = desk.submit(1, Some(&claim.token));
    assert_eq!(desk.does(&submit), ["step_completed"]);
}

#[test]
fn a_step_that_was_finished_meanwhile_is_not_handed_out_for_its_feedback() {
    let mut desk = Desk::with(2).in_review();
    desk.does(&decision(1, Decision::Modify, Some("shorter")));
    let submit = desk.submit(1, None);
    desk.does(&submit);
    assert_eq!(desk.next().unwrap().0, 2);
}

#[test]
fn a_step_may_be_reviewed_again() {
    let mut desk = Desk::with(1).in_review();
    desk.does(&decision(1, Decision::Modify, Some("shorter")));
    let command = desk.request_review(1, None);
    desk.does(&command);
    desk.does(&decision(1, Decision::Modify, Some("and kinder")));
    let instructions = &desk.plan.step(id(1)).unwrap().spec.instructions;
    assert!(
        instructions.contains("shorter") && instructions.ends_with("User feedback: and kinder")
    );
}

#[test]
fn a_result_for_a_step_that_awaits_input_is_refused_and_kept() {
    let mut desk = Desk::with(1).in_review();
    let command = desk.submit(1, None);
    assert_eq!(desk.code(&command), Code::IllegalTransition);
    assert!(command.late_result().is_some());
}

#[test]
fn a_result_for_another_step_in_progress_is_accepted_meanwhile() {
    let mut desk = Desk::with(3).started().in_review();
    assert_eq!(
        desk.steps(),
        [
            StepStatus::AwaitingInput,
            StepStatus::InProgress,
            StepStatus::Pending
        ]
    );
    let command = desk.submit(2, None);
    assert_eq!(desk.does(&command), ["step_completed"]);
    assert_eq!(desk.status(), PlanStatus::AwaitingReview);
    let pending = desk.submit(3, None);
    assert_eq!(desk.code(&pending), Code::IllegalTransition);
}

#[test]
fn a_branch_after_another_step_may_fail_a_plan_that_awaits_review() {
    let mut command = plan_of(2);
    command.branches = vec![branch(1, 2, "true", ActionSpec::Fail { reason: None })];
    let mut desk = Desk::of(command).started().in_review();
    let submit = desk.submit(2, None);
    assert_eq!(
        desk.does(&submit),
        ["step_completed", "branch_taken", "plan_failed"]
    );
    assert_eq!(
        desk.code(&decision(1, Decision::Approve, None)),
        Code::PlanIsTerminal
    );
}

#[test]
fn there_is_nothing_to_decide_where_nothing_was_asked() {
    let mut desk = Desk::with(2).started();
    for what in Decision::ALL {
        assert_eq!(
            desk.code(&decision(1, what, Some("words"))),
            Code::IllegalTransition
        );
    }
}

#[test]
fn feedback_does_not_grow_instructions_without_bound() {
    // 100,000 characters in all, with the instructions that the step has already.
    for (over, expected) in [(0, None), (1, Some(Code::LimitExceeded))] {
        let mut command = plan_of(1);
        command.steps[0].instructions = "x".repeat(90_000 + over);
        let mut desk = Desk::of(command).in_review();
        let modify = decision(1, Decision::Modify, Some(&"y".repeat(10_000)));
        let refused = desk.try_to(&modify).err().map(|refusal| refusal.code());
        assert_eq!(refused, expected);
    }
}
