//! Calls that have timed out are interrupted, in any row of the model.

use std::time::Duration;

use onward_core::call::{CallStatus, CallTimestamp, Cause, Limit};
use onward_core::transcript::{Part, RepairKind, Resolution};

use crate::harness::{
    assert_unchanged, at, call, causes, kinds_and_rows, model, open, running, sanitized, text, user,
};

const TIMED_OUT: Option<Cause> = Some(Cause::TimedOut);

fn call_with(times: CallTimestamp) -> Part<'static> {
    call("a", Resolution::Open(times))
}

#[test]
fn interrupts_a_call_after_timeout_and_grace_period_even_in_the_last_row() {
    let messages = [user(vec![text("Tides?")]), model(vec![open("a")])];
    let (rows, repairs) = sanitized(&messages, 151);
    assert_eq!(kinds_and_rows(&repairs), [(RepairKind::Stale, 1)]);
    assert_eq!(causes(&rows[1]), [TIMED_OUT]);
}

#[test]
fn does_not_interrupt_a_call_exactly_at_its_limit() {
    assert_unchanged(&[model(vec![open("a")])], 150);
}

#[test]
fn a_longer_timeout_overrides_the_default() {
    let limit = Limit::After(Duration::from_secs(600));
    assert_unchanged(
        &[model(vec![call_with(CallTimestamp { limit, ..running() })])],
        151,
    );
}

#[test]
fn a_zero_timeout_counts_as_the_default() {
    let limit = Limit::After(Duration::ZERO);
    let messages = [model(vec![call_with(CallTimestamp { limit, ..running() })])];
    assert_eq!(causes(&sanitized(&messages, 151).0[0]), [TIMED_OUT]);
}

#[test]
fn progress_restarts_the_timeout() {
    let last_progress_at = Some(at(7199));
    let times = CallTimestamp {
        last_progress_at,
        ..running()
    };
    assert_unchanged(&[model(vec![call_with(times)])], 7200);
}

#[test]
fn a_call_awaiting_approval_has_no_timeout() {
    let status = CallStatus::AwaitingApproval;
    assert_unchanged(
        &[model(vec![call_with(CallTimestamp {
            status,
            ..running()
        })])],
        86_400,
    );
}

#[test]
fn does_not_interrupt_a_call_without_a_start_time() {
    let started_at = None;
    assert_unchanged(
        &[model(vec![call_with(CallTimestamp {
            started_at,
            ..running()
        })])],
        86_400,
    );
}

#[test]
fn each_call_of_a_batch_has_its_own_timeout() {
    let limit = Limit::After(Duration::from_secs(600));
    let slow = call_with(CallTimestamp { limit, ..running() });
    let messages = [model(vec![slow, open("b"), call("c", Resolution::Settled)])];
    assert_eq!(
        causes(&sanitized(&messages, 200).0[0]),
        [None, TIMED_OUT, None]
    );
}

#[test]
fn a_dangling_call_is_interrupted_once_as_dangling() {
    let messages = [model(vec![open("a")]), model(vec![text("Then …")])];
    let (rows, repairs) = sanitized(&messages, 1_000_000);
    assert_eq!(kinds_and_rows(&repairs), [(RepairKind::Dangling, 0)]);
    assert_eq!(causes(&rows[0]), [Some(Cause::OutcomeUnknown)]);
}

#[test]
fn calls_in_user_rows_have_no_timeout() {
    assert_unchanged(&[user(vec![open("a")])], 1_000_000);
}
