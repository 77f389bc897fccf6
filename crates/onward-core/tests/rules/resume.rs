//! Resume: going on from another session, after a stall, or as a person.

use onward_core::event::Decision;
use onward_core::{Code, Command, PlanStatus, StepStatus};

use crate::desk::{Desk, MINUTE, abandon, decision, id, plan_of, result, resume_session, session};

#[test]
fn another_session_is_noted_once() {
    let mut desk = Desk::with(2);
    desk.next_for(Some("monday"), false);
    assert!(desk.does(&resume_session("monday")).is_empty());
    assert_eq!(desk.does(&resume_session("tuesday")), ["session_resumed"]);
    assert!(desk.does(&resume_session("tuesday")).is_empty());
    // Reading is no work: monday is still the one that last worked on it.
    assert!(desk.does(&resume_session("monday")).is_empty());
    desk.next_for(Some("tuesday"), false);
    assert_eq!(desk.plan.head().last_session, Some(session("tuesday")));
    assert_eq!(desk.does(&resume_session("monday")), ["session_resumed"]);
}

#[test]
fn a_plan_that_nobody_named_a_session_for_is_resumed_by_whoever_comes() {
    let mut desk = Desk::with(2).started();
    assert_eq!(desk.does(&resume_session("tuesday")), ["session_resumed"]);
}

#[test]
fn a_plan_that_is_over_is_not_taken_up() {
    let mut desk = Desk::with(1).abandoned();
    assert!(desk.does(&resume_session("tuesday")).is_empty());
}

#[test]
fn the_next_step_resumes_a_stalled_plan_and_leaves_the_silent_step_alone() {
    let mut desk = Desk::with(2).stalled();
    let command = desk.start_next(Some("tuesday"), false);
    assert_eq!(desk.does(&command), ["plan_resumed", "step_started"]);
    assert_eq!(
        desk.steps(),
        [StepStatus::InProgress, StepStatus::InProgress]
    );
}

#[test]
fn a_stalled_step_comes_first_where_the_caller_asks_for_it() {
    let mut desk = Desk::with(2).stalled();
    let command = desk.start_next(Some("tuesday"), true);
    assert_eq!(
        desk.does(&command),
        ["plan_resumed", "step_requeued", "step_started"]
    );
    let claim = desk.plan.steps()[0].claim().unwrap();
    assert_eq!(
        (claim.attempt, claim.session.clone()),
        (2, Some(session("tuesday")))
    );
}

#[test]
fn a_step_within_its_threshold_is_not_taken_over() {
    let mut desk = Desk::with(1).started();
    desk.wait(30 * MINUTE);
    assert_eq!(desk.next_for(None, true), None);
}

#[test]
fn a_late_result_resumes_a_stalled_plan_and_may_end_it() {
    let mut desk = Desk::with(1).stalled();
    let command = desk.submit(1, None);
    assert_eq!(
        desk.does(&command),
        ["plan_resumed", "step_completed", "plan_completed"]
    );
}

#[test]
fn a_result_for_the_only_pending_step_of_a_plan_in_planning_makes_both_moves() {
    let mut desk = Desk::with(1);
    let command = desk.submit(1, None);
    assert_eq!(
        desk.does(&command),
        ["step_started", "step_completed", "plan_completed"]
    );
}

#[test]
fn a_person_resumes_a_stalled_plan_and_no_other() {
    let mut desk = Desk::with(1).stalled();
    assert_eq!(desk.does(&Command::ResumePlan), ["plan_resumed"]);
    assert_eq!(desk.code(&Command::ResumePlan), Code::IllegalTransition);
    assert_eq!(
        Desk::with(1).code(&Command::ResumePlan),
        Code::IllegalTransition
    );
    assert_eq!(
        Desk::with(1).abandoned().code(&Command::ResumePlan),
        Code::PlanIsTerminal
    );
}

#[test]
fn a_person_abandons_a_plan_from_anywhere_but_its_end() {
    for mut desk in [
        Desk::with(1),
        Desk::with(1).started(),
        Desk::with(1).in_review(),
        Desk::with(1).stalled(),
    ] {
        assert_eq!(desk.does(&abandon()), ["plan_failed"]);
        assert_eq!(desk.status(), PlanStatus::Failed);
        assert_eq!(desk.code(&abandon()), Code::PlanIsTerminal);
        assert_eq!(desk.next(), None);
        assert_eq!(
            desk.code(&decision(1, Decision::Approve, None)),
            Code::PlanIsTerminal
        );
    }
}

#[test]
fn whoever_makes_claims_reports_asks_or_submits_has_worked_on_the_plan() {
    use onward_core::command::{ReportProgress, RequestReview, SubmitResult};
    let ada = || Some(session("ada"));
    let works: [fn(&mut Desk) -> Command; 3] = [
        |_| {
            Command::from(SubmitResult {
                step: id(1),
                result: result("done"),
                token: None,
                fresh_token: onward_core::id::ClaimToken::new("fresh"),
                session: Some(session("ada")),
            })
        },
        |desk| match desk.report(1, None) {
            Command::ReportProgress(report) => ReportProgress {
                session: Some(session("ada")),
                ..report
            }
            .into(),
            other => other,
        },
        |desk| match desk.request_review(1, None) {
            Command::RequestReview(request) => RequestReview {
                session: Some(session("ada")),
                ..request
            }
            .into(),
            other => other,
        },
    ];
    for work in works {
        let mut desk = Desk::with(2).started();
        let command = work(&mut desk);
        desk.does(&command);
        assert_eq!(desk.plan.head().last_session, ada());
    }
    let mut command = plan_of(1);
    command.session = ada();
    assert_eq!(Desk::of(command).plan.head().last_session, ada());
}

#[test]
fn a_stalled_step_with_feedback_that_nobody_heard_is_taken_over_like_any_other() {
    let mut desk = Desk::with(2).in_review();
    desk.does(&decision(1, Decision::Modify, Some("shorter")));
    desk.wait(31 * MINUTE);
    let (order, claim) = desk.next_for(Some("ben"), true).unwrap();
    assert_eq!((order, claim.attempt), (1, 2));
    assert!(desk.plan.steps()[0].spec.instructions.ends_with("shorter"));
    assert_eq!(desk.next().unwrap().0, 2);
}

#[test]
fn a_reason_to_abandon_has_its_bound() {
    let command = |length| {
        let reason = Some("x".repeat(length));
        Command::from(onward_core::command::AbandonPlan { reason })
    };
    assert_eq!(Desk::with(1).code(&command(10_001)), Code::InvalidInput);
    assert_eq!(Desk::with(1).does(&command(10_000)), ["plan_failed"]);
}
