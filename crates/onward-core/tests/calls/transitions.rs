//! The transition table of calls, repeated here, and the data of each state.

use onward_core::Timestamp;
use onward_core::call::{
    Call, CallPolicy, CallState, CallStatus, CallTransition, Cause, IllegalCallTransition, Limit,
    is_stale,
};

const TRANSITIONS: [CallTransition; 8] = [
    CallTransition::RequestApproval,
    CallTransition::Start,
    CallTransition::Progress,
    CallTransition::Complete,
    CallTransition::Fail,
    CallTransition::Deny,
    CallTransition::Cancel,
    CallTransition::Interrupt(Cause::OutcomeUnknown),
];

pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(seconds * 1000)
}

/// A call after these transitions, one second apart, the first at second 0.
pub(crate) fn after(transitions: &[CallTransition]) -> Call {
    let mut call = Call::requested(Limit::Unspecified, None);
    for (second, transition) in (0..).zip(transitions) {
        call.apply(*transition, at(second)).unwrap();
    }
    call
}

/// The resulting status of each transition in `TRANSITIONS`; `.` is a rejection.
fn expected_row(from: CallStatus) -> &'static str {
    match from {
        CallStatus::Requested => "a r r c f d x i",
        CallStatus::AwaitingApproval => ". r r c f d x i",
        CallStatus::Running => "a . r c f d x i",
        CallStatus::Interrupted => ". . . c f . . .",
        CallStatus::Completed | CallStatus::Failed | CallStatus::Denied | CallStatus::Cancelled => {
            ". . . . . . . ."
        }
    }
}

fn letter(status: CallStatus) -> &'static str {
    match status {
        CallStatus::Requested => "q",
        CallStatus::AwaitingApproval => "a",
        CallStatus::Running => "r",
        CallStatus::Completed => "c",
        CallStatus::Failed => "f",
        CallStatus::Denied => "d",
        CallStatus::Cancelled => "x",
        CallStatus::Interrupted => "i",
    }
}

#[test]
fn transitions_match_the_table() {
    for from in CallStatus::ALL {
        let row: Vec<&str> = TRANSITIONS
            .iter()
            .map(|transition| from.after(*transition).map_or(".", letter))
            .collect();
        assert_eq!(row.join(" "), expected_row(from), "{from}");
    }
}

#[test]
fn an_illegal_transition_reports_status_and_transition() {
    let error = after(&[CallTransition::Start, CallTransition::Complete])
        .apply(CallTransition::Cancel, at(9))
        .unwrap_err();
    let expected = IllegalCallTransition {
        from: CallStatus::Completed,
        transition: CallTransition::Cancel,
    };
    assert_eq!(error, expected);
}

#[test]
fn a_rejected_transition_changes_nothing() {
    let mut call = after(&[CallTransition::Start, CallTransition::Fail]);
    let before = call.clone();
    assert!(call.apply(CallTransition::Progress, at(9)).is_err());
    assert_eq!(call, before);
}

#[test]
fn statuses_and_causes_parse_from_their_names() {
    for status in CallStatus::ALL {
        assert_eq!(status.as_str().parse(), Ok(status));
    }
    for cause in Cause::ALL {
        assert_eq!(cause.as_str().parse(), Ok(cause));
    }
    assert!("busy".parse::<CallStatus>().is_err());
}

#[test]
fn approval_resets_the_start_time() {
    let call = after(&[
        CallTransition::Start,
        CallTransition::RequestApproval,
        CallTransition::Start,
    ]);
    assert_eq!(call.timestamp().started_at, Some(at(2)));
    assert_eq!(call.timestamp().last_progress_at, None);
}

#[test]
fn progress_starts_a_call_awaiting_approval() {
    let call = after(&[CallTransition::RequestApproval, CallTransition::Progress]);
    assert_eq!(call.state.status(), CallStatus::Running);
    assert_eq!(call.timestamp().started_at, Some(at(1)));
}

#[test]
fn setting_the_clock_back_does_not_move_the_last_progress_back() {
    let mut call = after(&[CallTransition::Start, CallTransition::Progress]);
    call.apply(CallTransition::Progress, at(-100)).unwrap();
    assert_eq!(call.timestamp().last_progress_at, Some(at(1)));
}

#[test]
fn a_late_result_keeps_the_interruption() {
    let interrupt = CallTransition::Interrupt(Cause::TimedOut);
    let call = after(&[CallTransition::Start, interrupt, CallTransition::Complete]);
    let CallState::Completed(end) = call.state else {
        panic!("{:?}", call.state)
    };
    assert_eq!(end.ended_at, at(2));
    let interruption = call.state.interruption().unwrap();
    assert_eq!(
        (interruption.cause, interruption.interrupted_at),
        (Cause::TimedOut, at(1))
    );
}

#[test]
fn a_call_is_interrupted_once() {
    let interrupt = CallTransition::Interrupt(Cause::OutcomeUnknown);
    let mut call = after(&[CallTransition::Start, interrupt]);
    assert!(call.apply(interrupt, at(5)).is_err());
    assert_eq!(call.state.cause_after_owner_exit(), None);
    assert!(!is_stale(
        &call.timestamp(),
        Timestamp::MAX,
        CallPolicy::default()
    ));
}

#[test]
fn a_dead_owner_gives_a_cause_by_status() {
    let dead = |transitions: &[CallTransition]| after(transitions).state.cause_after_owner_exit();
    assert_eq!(dead(&[]), Some(Cause::NotStarted));
    assert_eq!(
        dead(&[CallTransition::RequestApproval]),
        Some(Cause::NotStarted)
    );
    assert_eq!(dead(&[CallTransition::Start]), Some(Cause::OutcomeUnknown));
    // It started before the approval was requested, so it may have taken effect.
    assert_eq!(
        dead(&[CallTransition::Start, CallTransition::RequestApproval]),
        Some(Cause::OutcomeUnknown)
    );
    for end in [
        CallTransition::Complete,
        CallTransition::Fail,
        CallTransition::Deny,
        CallTransition::Cancel,
    ] {
        assert_eq!(dead(&[CallTransition::Start, end]), None, "{end:?}");
    }
}
