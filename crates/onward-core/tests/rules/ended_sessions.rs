//! Steps of sessions that have ended: other sessions take them over without waiting for the stall
//! threshold.

use onward_core::command::OrphanStep;
use onward_core::event::{Decision, ProgressSource};
use onward_core::id::ClaimToken;
use onward_core::{Command, StepStatus};

use crate::harness::{Harness, MINUTE, decision, id, session};

fn orphan(step: u32, name: &str, token: Option<&ClaimToken>) -> Command {
    Command::OrphanStep(OrphanStep {
        step: id(step),
        session: session(name),
        token: token.cloned(),
    })
}

/// Step 1 is claimed by `monday`, whose session has ended.
fn orphaned(steps: u32) -> (Harness, ClaimToken) {
    let mut harness = Harness::with_steps(steps);
    let (_, claim) = harness.claim_next_for(Some("monday"), false).unwrap();
    assert_eq!(harness.run(&orphan(1, "monday", None)), ["step_orphaned"]);
    (harness, claim.token)
}

#[test]
fn the_end_of_a_session_is_recorded_once_and_for_its_own_steps_only() {
    let (mut harness, token) = orphaned(2);
    assert_eq!(harness.plan.steps()[0].status(), StepStatus::InProgress);
    assert!(harness.plan.steps()[0].is_orphaned());
    assert!(harness.run(&orphan(1, "monday", None)).is_empty());
    let other = harness.claim_next_for(Some("tuesday"), false).unwrap();
    assert_eq!(other.0, 2);
    assert!(harness.run(&orphan(2, "monday", None)).is_empty());
    assert!(harness.run(&orphan(2, "monday", Some(&token))).is_empty());
    // The token proves the claim, whatever the id of the session is.
    let token = Some(&other.1.token);
    assert_eq!(
        harness.run(&orphan(2, "another id", token)),
        ["step_orphaned"]
    );
}

#[test]
fn pending_steps_are_assigned_before_those_of_ended_sessions() {
    let (mut harness, _) = orphaned(2);
    assert_eq!(harness.claim_next_for(Some("tuesday"), false).unwrap().0, 2);
    let (order, claim) = harness.claim_next_for(Some("tuesday"), false).unwrap();
    assert_eq!(
        (order, claim.attempt, claim.session),
        (1, 2, Some(session("tuesday")))
    );
    assert!(!harness.plan.steps()[0].is_orphaned());
    assert!(harness.claim_next_for(Some("wednesday"), false).is_none());
}

#[test]
fn include_stalled_takes_over_steps_of_ended_sessions_first() {
    let (mut harness, first) = orphaned(2);
    let (order, claim) = harness.claim_next_for(Some("tuesday"), true).unwrap();
    assert_eq!((order, claim.attempt), (1, 2));
    let late = harness.submit(1, Some(&first));
    assert_eq!(
        harness.rejection_code(&late),
        onward_core::Code::ClaimSuperseded
    );
}

#[test]
fn a_result_of_the_ended_session_is_accepted_until_another_session_takes_over() {
    let (mut harness, token) = orphaned(2);
    let submit = harness.submit(1, Some(&token));
    assert_eq!(harness.run(&submit), ["step_completed"]);
}

#[test]
fn activity_of_the_session_ends_the_possibility_of_a_takeover() {
    for source in [ProgressSource::Reported, ProgressSource::Seen] {
        let (mut harness, token) = orphaned(1);
        let report = harness.report_activity(1, source, Some(&token));
        assert_eq!(harness.run(&report), ["step_progressed"]);
        assert!(!harness.plan.steps()[0].is_orphaned());
        assert!(harness.claim_next_for(Some("tuesday"), false).is_none());
    }
}

#[test]
fn a_session_that_requests_a_review_has_not_ended() {
    let (mut harness, token) = orphaned(1);
    harness.run(&harness.request_review(1, Some(&token)));
    harness.run(&decision(1, Decision::Modify, Some("shorter")));
    assert!(!harness.plan.steps()[0].is_orphaned());
    assert!(harness.claim_next_for(Some("tuesday"), false).is_none());
}

#[test]
fn a_step_whose_session_ends_during_its_review_can_be_taken_over_with_the_feedback() {
    let mut harness = Harness::with_steps(1);
    let (_, claim) = harness.claim_next_for(Some("monday"), false).unwrap();
    harness.run(&harness.request_review(1, Some(&claim.token)));
    assert_eq!(harness.run(&orphan(1, "monday", None)), ["step_orphaned"]);
    assert!(harness.run(&orphan(1, "monday", None)).is_empty());
    assert!(
        !harness.plan.steps()[0].is_orphaned(),
        "the reviewer decides first"
    );
    harness.run(&decision(1, Decision::Modify, Some("shorter")));
    assert!(harness.plan.steps()[0].is_orphaned());
    let (order, claim) = harness.claim_next_for(Some("tuesday"), false).unwrap();
    assert_eq!((order, claim.attempt), (1, 2));
    let instructions = &harness.plan.steps()[0].spec.instructions;
    assert!(instructions.contains("shorter"));
}

#[test]
fn a_takeover_resumes_a_stalled_plan() {
    let (mut harness, _) = orphaned(1);
    harness.advance(31 * MINUTE);
    harness.run(&crate::harness::sweep());
    let command = harness.start_next(Some("tuesday"), false);
    let names = ["plan_resumed", "step_requeued", "step_started"];
    assert_eq!(harness.run(&command), names);
}

#[test]
fn a_step_without_attempts_left_fails_instead_of_being_taken_over() {
    let (mut harness, _) = orphaned(1);
    for attempt in 2..=onward_core::policy::DEFAULT_MAX_ATTEMPTS {
        let name = format!("session {attempt}");
        let (_, claim) = harness.claim_next_for(Some(&name), false).unwrap();
        assert_eq!(claim.attempt, attempt);
        harness.run(&orphan(1, &name, None));
    }
    assert!(harness.claim_next_for(Some("last"), false).is_none());
    assert_eq!(harness.step_statuses(), [StepStatus::Failed]);
}

#[test]
fn the_first_event_of_a_session_links_it_to_a_claim_without_a_session() {
    let mut harness = Harness::with_steps(1);
    let (_, claim) = harness.claim_next().unwrap();
    let mut seen = harness.report_activity(1, ProgressSource::Seen, Some(&claim.token));
    if let Command::ReportProgress(report) = &mut seen {
        report.session = Some(session("monday"));
    }
    assert_eq!(harness.run(&seen), ["step_progressed"]);
    assert_eq!(harness.plan.head().last_session, Some(session("monday")));
    assert!(harness.run(&seen).is_empty());
}
