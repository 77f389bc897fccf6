//! A call that is past its time is given up, in any row of the model.

use std::time::Duration;

use onward_core::call::{CallStatus, CallTimestamp, Cause, Limit};
use onward_core::transcript::{Part, Standing, What};

use crate::desk::{
    at, call, clean, found, is_untouched, model, open, running, standings, text, user,
};

const LATE: Option<Cause> = Some(Cause::TimedOut);

fn with(times: CallTimestamp) -> Part<'static> {
    call("a", Standing::Open(times))
}

#[test]
fn a_call_past_the_default_and_the_grace_is_given_up_also_in_the_last_row() {
    let messages = [user(vec![text("Tides?")]), model(vec![open("a")])];
    let (rows, repairs) = clean(&messages, 151);
    assert_eq!(found(&repairs), [(What::Stale, 1)]);
    assert_eq!(standings(&rows[1]), [LATE]);
}

#[test]
fn exactly_at_its_limit_a_call_is_let_alone() {
    is_untouched(&[model(vec![open("a")])], 150);
}

#[test]
fn a_call_with_its_own_ten_minutes_is_let_alone_after_two() {
    let limit = Limit::After(Duration::from_secs(600));
    is_untouched(
        &[model(vec![with(CallTimestamp { limit, ..running() })])],
        151,
    );
}

#[test]
fn a_timeout_of_nothing_counts_as_the_default() {
    let limit = Limit::After(Duration::ZERO);
    let messages = [model(vec![with(CallTimestamp { limit, ..running() })])];
    assert_eq!(standings(&clean(&messages, 151).0[0]), [LATE]);
}

#[test]
fn a_call_that_reported_a_second_ago_is_let_alone_after_two_hours() {
    let last_progress_at = Some(at(7199));
    let times = CallTimestamp {
        last_progress_at,
        ..running()
    };
    is_untouched(&[model(vec![with(times)])], 7200);
}

#[test]
fn a_call_that_waits_for_a_person_is_let_alone_after_a_day() {
    let status = CallStatus::AwaitingApproval;
    is_untouched(
        &[model(vec![with(CallTimestamp {
            status,
            ..running()
        })])],
        86_400,
    );
}

#[test]
fn without_a_start_nothing_is_said() {
    let started_at = None;
    is_untouched(
        &[model(vec![with(CallTimestamp {
            started_at,
            ..running()
        })])],
        86_400,
    );
}

#[test]
fn siblings_are_judged_each_by_its_own_time() {
    let limit = Limit::After(Duration::from_secs(600));
    let slow = with(CallTimestamp { limit, ..running() });
    let messages = [model(vec![slow, open("b"), call("c", Standing::Settled)])];
    assert_eq!(standings(&clean(&messages, 200).0[0]), [None, LATE, None]);
}

#[test]
fn a_dangling_call_is_given_up_once_and_as_dangling() {
    let messages = [model(vec![open("a")]), model(vec![text("Then …")])];
    let (rows, repairs) = clean(&messages, 1_000_000);
    assert_eq!(found(&repairs), [(What::Dangling, 0)]);
    assert_eq!(standings(&rows[0]), [Some(Cause::OutcomeUnknown)]);
}

#[test]
fn calls_in_rows_of_people_have_no_clock() {
    is_untouched(&[user(vec![open("a")])], 1_000_000);
}
