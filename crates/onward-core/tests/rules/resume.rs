//! Resuming a plan: from another session, after a stall, or by a user; and abandoning it.

use onward_core::event::Decision;
use onward_core::{Code, Command, PlanStatus, StepStatus};

use crate::harness::{
    Harness, MINUTE, abandon, create_plan, decision, id, result, resume_session, session,
};

#[test]
fn records_each_resuming_session_once() {
    let mut harness = Harness::with_steps(2);
    harness.claim_next_for(Some("monday"), false);
    assert!(harness.run(&resume_session("monday")).is_empty());
    assert_eq!(harness.run(&resume_session("tuesday")), ["session_resumed"]);
    assert!(harness.run(&resume_session("tuesday")).is_empty());
    // Resuming is not work: the last session that worked on the plan is still `monday`.
    assert!(harness.run(&resume_session("monday")).is_empty());
    harness.claim_next_for(Some("tuesday"), false);
    assert_eq!(harness.plan.head().last_session, Some(session("tuesday")));
    assert_eq!(harness.run(&resume_session("monday")), ["session_resumed"]);
}

#[test]
fn any_session_resumes_a_plan_without_a_session() {
    let mut harness = Harness::with_steps(2).started();
    assert_eq!(harness.run(&resume_session("tuesday")), ["session_resumed"]);
}

#[test]
fn a_terminal_plan_records_no_resuming_session() {
    let mut harness = Harness::with_steps(1).abandoned();
    assert!(harness.run(&resume_session("tuesday")).is_empty());
}

#[test]
fn claiming_the_next_step_resumes_a_stalled_plan_and_keeps_the_stalled_step() {
    let mut harness = Harness::with_steps(2).stalled();
    let command = harness.start_next(Some("tuesday"), false);
    assert_eq!(harness.run(&command), ["plan_resumed", "step_started"]);
    assert_eq!(
        harness.step_statuses(),
        [StepStatus::InProgress, StepStatus::InProgress]
    );
}

#[test]
fn include_stalled_takes_over_a_stalled_step_first() {
    let mut harness = Harness::with_steps(2).stalled();
    let command = harness.start_next(Some("tuesday"), true);
    assert_eq!(
        harness.run(&command),
        ["plan_resumed", "step_requeued", "step_started"]
    );
    let claim = harness.plan.steps()[0].claim().unwrap();
    assert_eq!(
        (claim.attempt, claim.session.clone()),
        (2, Some(session("tuesday")))
    );
}

#[test]
fn does_not_take_over_a_step_within_its_threshold() {
    let mut harness = Harness::with_steps(1).started();
    harness.advance(30 * MINUTE);
    assert_eq!(harness.claim_next_for(None, true), None);
}

#[test]
fn a_late_result_resumes_a_stalled_plan_and_can_complete_it() {
    let mut harness = Harness::with_steps(1).stalled();
    let command = harness.submit(1, None);
    assert_eq!(
        harness.run(&command),
        ["plan_resumed", "step_completed", "plan_completed"]
    );
}

#[test]
fn a_result_for_the_only_step_of_a_new_plan_starts_and_completes_the_plan() {
    let mut harness = Harness::with_steps(1);
    let command = harness.submit(1, None);
    assert_eq!(
        harness.run(&command),
        [
            "step_started",
            "plan_status_changed",
            "step_completed",
            "plan_completed"
        ]
    );
}

#[test]
fn a_user_can_resume_only_a_stalled_plan() {
    let mut harness = Harness::with_steps(1).stalled();
    assert_eq!(harness.run(&Command::ResumePlan), ["plan_resumed"]);
    assert_eq!(
        harness.rejection_code(&Command::ResumePlan),
        Code::IllegalTransition
    );
    assert_eq!(
        Harness::with_steps(1).rejection_code(&Command::ResumePlan),
        Code::IllegalTransition
    );
    assert_eq!(
        Harness::with_steps(1)
            .abandoned()
            .rejection_code(&Command::ResumePlan),
        Code::PlanIsTerminal
    );
}

#[test]
fn a_user_can_abandon_any_plan_that_is_not_terminal() {
    for mut harness in [
        Harness::with_steps(1),
        Harness::with_steps(1).started(),
        Harness::with_steps(1).in_review(),
        Harness::with_steps(1).stalled(),
    ] {
        assert_eq!(harness.run(&abandon()), ["plan_failed"]);
        assert_eq!(harness.status(), PlanStatus::Failed);
        assert_eq!(harness.rejection_code(&abandon()), Code::PlanIsTerminal);
        assert_eq!(harness.claim_next(), None);
        assert_eq!(
            harness.rejection_code(&decision(1, Decision::Approve, None)),
            Code::PlanIsTerminal
        );
    }
}

#[test]
fn creations_reports_review_requests_and_results_update_the_last_session() {
    use onward_core::command::{ReportProgress, RequestReview, SubmitResult};
    let ada = || Some(session("ada"));
    let commands: [fn(&mut Harness) -> Command; 3] = [
        |_| {
            Command::from(SubmitResult {
                step: id(1),
                result: result("done"),
                token: None,
                fresh_token: onward_core::id::ClaimToken::new("fresh"),
                review: onward_core::id::ReviewId::from_u128(7_000),
                session: Some(session("ada")),
            })
        },
        |harness| match harness.report(1, None) {
            Command::ReportProgress(report) => ReportProgress {
                session: Some(session("ada")),
                ..report
            }
            .into(),
            other => other,
        },
        |harness| match harness.request_review(1, None) {
            Command::RequestReview(request) => RequestReview {
                session: Some(session("ada")),
                ..request
            }
            .into(),
            other => other,
        },
    ];
    for command_of in commands {
        let mut harness = Harness::with_steps(2).started();
        let command = command_of(&mut harness);
        harness.run(&command);
        assert_eq!(harness.plan.head().last_session, ada());
    }
    let mut command = create_plan(1);
    command.session = ada();
    assert_eq!(Harness::new(command).plan.head().last_session, ada());
}

#[test]
fn a_stalled_step_with_undelivered_feedback_can_be_taken_over() {
    // An agent without a session cannot be distinguished from the holder.
    for session in [Some("ben"), None] {
        let mut harness = Harness::with_steps(2).in_review();
        harness.run(&decision(1, Decision::Modify, Some("shorter")));
        harness.advance(31 * MINUTE);
        let before = harness.plan.steps()[0].claim().unwrap().token.clone();
        let (order, claim) = harness.claim_next_for(session, true).unwrap();
        assert_eq!((order, claim.attempt), (1, 2), "{session:?}");
        assert_ne!(claim.token, before);
        let instructions = &harness.plan.steps()[0].spec.instructions;
        assert!(instructions.ends_with("shorter"), "{instructions}");
        assert_eq!(harness.claim_next().unwrap().0, 2);
    }
}

#[test]
fn limits_the_reason_for_abandoning() {
    let command = |length| {
        let reason = Some("x".repeat(length));
        Command::from(onward_core::command::AbandonPlan { reason })
    };
    assert_eq!(
        Harness::with_steps(1).rejection_code(&command(10_001)),
        Code::InvalidInput
    );
    assert_eq!(
        Harness::with_steps(1).run(&command(10_000)),
        ["plan_failed"]
    );
}
