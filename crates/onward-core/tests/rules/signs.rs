//! Signs of life: which count, which are recorded, and what they bring back.

use std::time::Duration;

use onward_core::command::ReportProgress;
use onward_core::event::Sign;
use onward_core::{Code, Command, Event, PlanStatus};

use crate::desk::{Desk, MINUTE, decision, id, plan_of};
use onward_core::event::Decision;

#[test]
fn a_progress_report_is_always_recorded() {
    let mut desk = Desk::with(1).started();
    let report = desk.report(1, None);
    for _ in 0..3 {
        assert_eq!(desk.does(&report), ["step_progressed"]);
    }
}

#[test]
fn a_progress_report_starts_the_threshold_again() {
    let mut desk = Desk::with(1).started();
    desk.wait(29 * MINUTE);
    let report = desk.report(1, None);
    desk.does(&report);
    desk.wait(30 * MINUTE);
    assert!(desk.plan.stalls(desk.now, None).is_empty());
    desk.wait(Duration::from_millis(1));
    assert_eq!(desk.plan.stalls(desk.now, None).len(), 1);
}

#[test]
fn a_progress_report_resumes_a_stalled_plan() {
    let mut desk = Desk::with(1).stalled();
    let report = desk.report(1, None);
    assert_eq!(desk.does(&report), ["plan_resumed", "step_progressed"]);
    assert_eq!(desk.status(), PlanStatus::Executing);
}

#[test]
fn other_signs_are_recorded_once_in_ten_seconds() {
    let mut desk = Desk::with(1).started();
    for sign in [Sign::Written, Sign::Seen] {
        let command = desk.sign(1, sign, None);
        desk.wait(Duration::from_millis(9_999));
        assert!(desk.does(&command).is_empty());
        desk.wait(Duration::from_millis(1));
        assert_eq!(desk.does(&command), ["step_progressed"]);
        assert!(desk.does(&command).is_empty());
    }
}

#[test]
fn other_signs_are_recorded_once_in_a_quarter_of_a_short_threshold() {
    let mut command = plan_of(1);
    command.stall_threshold = Some(Duration::from_secs(8));
    let mut desk = Desk::of(command).started();
    let command = desk.sign(1, Sign::Seen, None);
    desk.wait(Duration::from_millis(1_999));
    assert!(desk.does(&command).is_empty());
    desk.wait(Duration::from_millis(1));
    assert_eq!(desk.does(&command), ["step_progressed"]);
}

#[test]
fn other_signs_are_silent_where_they_do_not_fit() {
    for mut desk in [
        Desk::with(1),
        Desk::with(1).in_review(),
        Desk::with(1).started().abandoned(),
    ] {
        desk.wait(MINUTE);
        let command = desk.sign(1, Sign::Written, None);
        assert!(desk.does(&command).is_empty());
    }
}

#[test]
fn other_signs_keep_a_step_alive_but_resume_no_plan() {
    let mut desk = Desk::with(1).stalled();
    let command = desk.sign(1, Sign::Seen, None);
    assert_eq!(desk.does(&command), ["step_progressed"]);
    assert_eq!(desk.status(), PlanStatus::Stalled);
    // The stored status and the derived one differ for a while.
    assert_eq!(
        desk.plan.head().counts.derived_status(),
        PlanStatus::Executing
    );
    assert!(desk.plan.stalls(desk.now, None).is_empty());
}

#[test]
fn nobody_shows_progress_on_a_step_that_nobody_works_on() {
    let mut desk = Desk::with(2).in_review();
    for step in [1, 2] {
        let report = desk.report(step, None);
        assert_eq!(desk.code(&report), Code::IllegalTransition);
    }
    desk.does(&decision(1, Decision::Skip, None));
    let report = desk.report(1, None);
    assert_eq!(desk.code(&report), Code::IllegalTransition);
}

#[test]
fn percent_is_between_zero_and_a_hundred() {
    let mut desk = Desk::with(1).started();
    for (percent, fits) in [
        (0.0, true),
        (100.0, true),
        (-0.1, false),
        (100.1, false),
        (f64::NAN, false),
    ] {
        let command = Command::ReportProgress(ReportProgress {
            step: id(1),
            sign: Sign::Reported,
            note: Some("on it".to_owned()),
            percent: Some(percent),
            token: None,
            session: None,
        });
        let outcome = desk.try_to(&command);
        assert_eq!(outcome.is_ok(), fits, "{percent}");
    }
}

#[test]
fn a_sign_that_comes_by_itself_says_nothing() {
    let mut desk = Desk::with(1).started();
    desk.wait(MINUTE);
    let command = Command::ReportProgress(ReportProgress {
        step: id(1),
        sign: Sign::Seen,
        note: Some("x".repeat(50_000)),
        percent: Some(f64::NAN),
        token: None,
        session: None,
    });
    let events = desk.try_to(&command).unwrap();
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
fn a_clock_that_is_set_back_takes_no_sign_of_life_away() {
    let mut desk = Desk::with(1).started();
    let began_at = desk.now;
    desk.wait(60 * MINUTE);
    let report = desk.report(1, None);
    desk.does(&report);
    let reported_at = desk.now;
    let review = desk.request_review(1, None);
    desk.does(&review);
    desk.now = began_at;
    desk.does(&decision(1, Decision::Modify, Some("again")));
    let report = desk.report(1, None);
    desk.does(&report);
    let work = desk.plan.step(id(1)).unwrap().work().unwrap().clone();
    assert_eq!(work.last_progress_at, Some(reported_at));
}

#[test]
fn what_the_guard_sees_counts_for_the_session_that_holds_the_claim() {
    let seen_by = |session: Option<&str>| {
        let mut desk = Desk::with(1);
        desk.next_for(Some("ada"), false);
        desk.wait(MINUTE);
        let command = Command::from(ReportProgress {
            step: id(1),
            sign: Sign::Seen,
            note: None,
            percent: None,
            token: None,
            session: session.map(crate::desk::session),
        });
        !desk.does(&command).is_empty()
    };
    assert!(seen_by(Some("ada")));
    assert!(!seen_by(Some("mallory")));
    assert!(seen_by(None));
}

#[test]
fn a_sign_under_a_superseded_token_is_not_counted() {
    let mut desk = Desk::with(1).started();
    desk.wait(MINUTE);
    let command = desk.sign(
        1,
        Sign::Written,
        Some(&onward_core::id::ClaimToken::new("old")),
    );
    assert!(desk.does(&command).is_empty());
}
