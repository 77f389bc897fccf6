//! The states of a call: the whole table, written down here a second time, and what each state keeps.

use onward_core::Timestamp;
use onward_core::call::{Call, CallMove, CallState, CallStatus, Cause, Death, Limit};

const MOVES: [CallMove; 8] = [
    CallMove::AskApproval,
    CallMove::Start,
    CallMove::Progress,
    CallMove::Complete,
    CallMove::Fail,
    CallMove::Deny,
    CallMove::Cancel,
    CallMove::Interrupt(Cause::OutcomeUnknown),
];

pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(seconds * 1000)
}

/// A call after these moves, one second apart, the first at second 0.
pub(crate) fn after(moves: &[CallMove]) -> Call {
    let mut call = Call::requested(Limit::Unsaid, None);
    for (second, asked) in (0..).zip(moves) {
        call.apply(*asked, at(second)).unwrap();
    }
    call
}

/// Where a move leads, row by row: `.` is nowhere. Columns as in `MOVES`.
fn law(from: CallStatus) -> &'static str {
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
fn the_law_of_the_calls_is_as_written() {
    for from in CallStatus::ALL {
        let row: Vec<&str> = MOVES
            .iter()
            .map(|asked| from.after(*asked).map_or(".", letter))
            .collect();
        assert_eq!(row.join(" "), law(from), "{from}");
    }
}

#[test]
fn a_move_that_there_is_not_names_the_state() {
    let error = after(&[CallMove::Start, CallMove::Complete])
        .apply(CallMove::Cancel, at(9))
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "a call that is `completed` cannot be called off"
    );
}

#[test]
fn a_refused_move_changes_nothing() {
    let mut call = after(&[CallMove::Start, CallMove::Fail]);
    let before = call.clone();
    assert!(call.apply(CallMove::Progress, at(9)).is_err());
    assert_eq!(call, before);
}

#[test]
fn words_of_states_and_causes_read_back() {
    for status in CallStatus::ALL {
        assert_eq!(status.as_str().parse(), Ok(status));
    }
    for cause in Cause::ALL {
        assert_eq!(cause.as_str().parse(), Ok(cause));
    }
    assert!("busy".parse::<CallStatus>().is_err());
}

#[test]
fn approval_starts_the_clock_from_zero() {
    let call = after(&[CallMove::Start, CallMove::AskApproval, CallMove::Start]);
    assert_eq!(call.timestamp().started_at, Some(at(2)));
    assert_eq!(call.timestamp().last_progress_at, None);
}

#[test]
fn a_sign_of_life_shows_that_it_was_allowed() {
    let call = after(&[CallMove::AskApproval, CallMove::Progress]);
    assert_eq!(call.state.status(), CallStatus::Running);
    assert_eq!(call.timestamp().started_at, Some(at(1)));
}

#[test]
fn a_clock_that_is_set_back_takes_no_sign_of_life_away() {
    let mut call = after(&[CallMove::Start, CallMove::Progress]);
    call.apply(CallMove::Progress, at(-100)).unwrap();
    assert_eq!(call.timestamp().last_progress_at, Some(at(1)));
}

#[test]
fn a_late_result_is_kept_beside_what_the_model_was_told() {
    let interrupt = CallMove::Interrupt(Cause::TimedOut);
    let call = after(&[CallMove::Start, interrupt, CallMove::Complete]);
    let CallState::Completed(end) = call.state else {
        panic!("{:?}", call.state)
    };
    assert_eq!(end.ended_at, at(2));
    let told = call.state.interruption().unwrap();
    assert_eq!((told.cause, told.interrupted_at), (Cause::TimedOut, at(1)));
}

#[test]
fn a_call_is_given_up_once() {
    let interrupt = CallMove::Interrupt(Cause::OutcomeUnknown);
    let mut call = after(&[CallMove::Start, interrupt]);
    assert!(call.apply(interrupt, at(5)).is_err());
    assert_eq!(
        call.verdict(Timestamp::MAX, Default::default(), Some(Death::ProcessGone)),
        None
    );
}

#[test]
fn a_dead_owner_says_what_can_be_known_of_each_state() {
    let dead = |moves: &[CallMove]| {
        after(moves).verdict(at(0), Default::default(), Some(Death::ProcessGone))
    };
    assert_eq!(dead(&[]), Some(Cause::NotStarted));
    assert_eq!(dead(&[CallMove::AskApproval]), Some(Cause::NotStarted));
    assert_eq!(dead(&[CallMove::Start]), Some(Cause::OutcomeUnknown));
    // Whoever recorded it as running before the question does not see the answer either.
    assert_eq!(
        dead(&[CallMove::Start, CallMove::AskApproval]),
        Some(Cause::OutcomeUnknown)
    );
    for end in [
        CallMove::Complete,
        CallMove::Fail,
        CallMove::Deny,
        CallMove::Cancel,
    ] {
        assert_eq!(dead(&[CallMove::Start, end]), None, "{end:?}");
    }
}
