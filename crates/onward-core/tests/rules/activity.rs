//! Progress reports and other activity: when they are recorded, and when they resume a stalled
//! plan.

use std::time::Duration;

use onward_core::command::ReportProgress;
use onward_core::event::ProgressSource;
use onward_core::id::SessionId;
use onward_core::{Code, Command, DEFAULT_STALL_THRESHOLD, Event, PlanStatus};

use crate::harness::{Harness, MINUTE, create_plan, decision, id};
use onward_core::event::Decision;

#[test]
fn a_progress_report_is_always_recorded() {
    let mut harness = Harness::with_steps(1).started();
    let report = harness.report(1, None);
    for _ in 0..3 {
        assert_eq!(harness.run(&report), ["step_progressed"]);
    }
}

#[test]
fn a_progress_report_restarts_the_stall_threshold() {
    let mut harness = Harness::with_steps(1).started();
    harness.advance(29 * MINUTE);
    let report = harness.report(1, None);
    harness.run(&report);
    harness.advance(30 * MINUTE);
    assert!(harness.plan.stalls(harness.now, None).is_empty());
    harness.advance(Duration::from_millis(1));
    assert_eq!(harness.plan.stalls(harness.now, None).len(), 1);
}

#[test]
fn a_progress_report_resumes_a_stalled_plan() {
    let mut harness = Harness::with_steps(1).stalled();
    let report = harness.report(1, None);
    assert_eq!(harness.run(&report), ["plan_resumed", "step_progressed"]);
    assert_eq!(harness.status(), PlanStatus::Executing);
}

#[test]
fn other_activity_is_recorded_at_intervals() {
    let (seconds, millis) = (Duration::from_secs, Duration::from_millis);
    for (threshold, written, seen) in [
        (
            DEFAULT_STALL_THRESHOLD,
            seconds(10),
            DEFAULT_STALL_THRESHOLD / 4,
        ),
        (seconds(8), seconds(2), seconds(2)),
        (millis(1), millis(1), millis(1)),
    ] {
        let mut command = create_plan(1);
        command.stall_threshold = Some(threshold);
        let mut harness = Harness::new(command);
        harness.claim_next_for(Some("one"), false);
        for (source, session, interval) in [
            (ProgressSource::Written, None, written),
            // The first event of a session makes the step a monitored one.
            (
                ProgressSource::Seen,
                Some("one"),
                (threshold / 16).max(millis(1)),
            ),
            (ProgressSource::Seen, Some("one"), seen),
        ] {
            let mut command = harness.report_activity(1, source, None);
            if let Command::ReportProgress(report) = &mut command {
                report.session = session.map(SessionId::new);
            }
            harness.advance(interval - millis(1));
            assert!(harness.run(&command).is_empty());
            harness.advance(millis(1));
            assert_eq!(harness.run(&command), ["step_progressed"]);
            assert!(harness.run(&command).is_empty());
        }
    }
}

#[test]
fn a_monitored_step_stalls_after_the_threshold_since_any_event() {
    let mut harness = Harness::with_steps(1).started();
    let mut seen = harness.report_activity(1, ProgressSource::Seen, None);
    if let Command::ReportProgress(report) = &mut seen {
        report.session = Some(SessionId::new("one"));
    }
    harness.advance(2 * MINUTE);
    assert_eq!(harness.run(&seen), ["step_progressed"]);
    harness.advance(7 * MINUTE);
    // Not recorded: less than a quarter of the threshold has passed.
    assert!(harness.run(&seen).is_empty());
    harness.advance(30 * MINUTE);
    assert!(harness.plan.stalls(harness.now, None).is_empty());
    // A caller's own threshold applies to the recorded activity.
    assert_eq!(harness.plan.stalls(harness.now, Some(36 * MINUTE)).len(), 1);
    harness.advance(MINUTE);
    assert_eq!(harness.plan.stalls(harness.now, None).len(), 1);
}

#[test]
fn other_activity_is_ignored_if_the_step_is_not_in_progress() {
    for mut harness in [
        Harness::with_steps(1),
        Harness::with_steps(1).in_review(),
        Harness::with_steps(1).started().abandoned(),
    ] {
        harness.advance(10 * MINUTE);
        let command = harness.report_activity(1, ProgressSource::Written, None);
        assert!(harness.run(&command).is_empty());
    }
}

#[test]
fn other_activity_ends_the_stall_but_does_not_resume_the_plan() {
    let mut harness = Harness::with_steps(1).stalled();
    let command = harness.report_activity(1, ProgressSource::Seen, None);
    assert_eq!(harness.run(&command), ["step_progressed"]);
    assert_eq!(harness.status(), PlanStatus::Stalled);
    // The stored status and the derived status differ until the plan is resumed.
    assert_eq!(
        harness.plan.head().counts.derived_status(),
        PlanStatus::Executing
    );
    assert!(harness.plan.stalls(harness.now, None).is_empty());
}

#[test]
fn rejects_a_progress_report_for_a_step_not_in_progress() {
    let mut harness = Harness::with_steps(2).in_review();
    for step in [1, 2] {
        let report = harness.report(step, None);
        assert_eq!(harness.rejection_code(&report), Code::IllegalTransition);
    }
    harness.run(&decision(1, Decision::Skip, None));
    let report = harness.report(1, None);
    assert_eq!(harness.rejection_code(&report), Code::IllegalTransition);
}

#[test]
fn rejects_a_percentage_outside_0_to_100() {
    let mut harness = Harness::with_steps(1).started();
    for (percent, is_valid) in [
        (0.0, true),
        (100.0, true),
        (-0.1, false),
        (100.1, false),
        (f64::NAN, false),
    ] {
        let command = Command::ReportProgress(ReportProgress {
            step: id(1),
            source: ProgressSource::Reported,
            note: Some("test note".to_owned()),
            percent: Some(percent),
            token: None,
            session: None,
        });
        let outcome = harness.execute(&command);
        assert_eq!(outcome.is_ok(), is_valid, "{percent}");
    }
}

#[test]
fn other_activity_is_recorded_without_note_and_percentage() {
    let mut harness = Harness::with_steps(1).started();
    harness.advance(10 * MINUTE);
    let command = Command::ReportProgress(ReportProgress {
        step: id(1),
        source: ProgressSource::Seen,
        note: Some("x".repeat(50_000)),
        percent: Some(f64::NAN),
        token: None,
        session: None,
    });
    let events = harness.execute(&command).unwrap();
    assert!(matches!(
        events.as_slice(),
        [Event::StepProgressed {
            note: None,
            percent: None,
            ..
        }]
    ));
}

#[test]
fn setting_the_clock_back_a_little_does_not_move_the_last_progress_back() {
    let mut harness = Harness::with_steps(1).started();
    harness.advance(60 * MINUTE);
    let earlier = harness.now;
    harness.advance(MINUTE / 2);
    let report = harness.report(1, None);
    harness.run(&report);
    let reported_at = harness.now;
    let review = harness.request_review(1, None);
    harness.run(&review);
    harness.now = earlier;
    harness.run(&decision(1, Decision::Modify, Some("again")));
    let report = harness.report(1, None);
    harness.run(&report);
    let work = harness.plan.step(id(1)).unwrap().work().unwrap().clone();
    assert_eq!(work.last_progress_at, Some(reported_at));
}

#[test]
fn session_activity_counts_only_for_steps_claimed_by_that_session() {
    let counts_for = |session: Option<&str>, with_token: bool| {
        let mut harness = Harness::with_steps(1);
        harness.claim_next_for(Some("ada"), false);
        let step = harness.plan.step(id(1)).unwrap();
        let token = step.claim().unwrap().token.clone();
        harness.advance(10 * MINUTE);
        let command = Command::from(ReportProgress {
            step: id(1),
            source: ProgressSource::Seen,
            note: None,
            percent: None,
            token: with_token.then_some(token),
            session: session.map(crate::harness::session),
        });
        !harness.run(&command).is_empty()
    };
    assert!(counts_for(Some("ada"), false));
    assert!(!counts_for(Some("mallory"), false));
    assert!(counts_for(Some("mallory"), true), "the token proves it");
    assert!(counts_for(None, false));
}

#[test]
fn other_activity_with_a_superseded_token_is_ignored() {
    let mut harness = Harness::with_steps(1).started();
    harness.advance(10 * MINUTE);
    let command = harness.report_activity(
        1,
        ProgressSource::Written,
        Some(&onward_core::id::ClaimToken::new("old")),
    );
    assert!(harness.run(&command).is_empty());
}
