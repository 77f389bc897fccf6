//! Running calls in older rows of the model are interrupted; the last row is left open.

use onward_core::call::{CallStatus, CallTimestamp, Cause};
use onward_core::transcript::{RepairKind, Resolution};

use crate::harness::{
    assert_unchanged, call, causes, kinds_and_rows, model, open, running, sanitized, text, user,
};

const UNKNOWN: Option<Cause> = Some(Cause::OutcomeUnknown);

#[test]
fn interrupts_a_call_in_an_older_row_with_an_unknown_outcome() {
    let messages = [model(vec![open("a")]), model(vec![text("Then …")])];
    let (rows, repairs) = sanitized(&messages, 1);
    assert_eq!(kinds_and_rows(&repairs), [(RepairKind::Dangling, 0)]);
    assert_eq!(causes(&rows[0]), [UNKNOWN]);
}

#[test]
fn leaves_calls_in_the_last_row_of_the_model_open() {
    assert_unchanged(&[model(vec![text("First.")]), model(vec![open("a")])], 1);
}

#[test]
fn a_later_user_row_does_not_interrupt_a_call() {
    assert_unchanged(&[model(vec![open("a")]), user(vec![text("Well?")])], 1);
}

#[test]
fn a_user_row_in_between_makes_no_difference() {
    let messages = [
        model(vec![open("a")]),
        user(vec![text("Well?")]),
        model(vec![text("Then …")]),
    ];
    let (rows, _) = sanitized(&messages, 1);
    assert_eq!(causes(&rows[0]), [UNKNOWN]);
}

#[test]
fn leaves_settled_and_interrupted_calls_unchanged() {
    for resolution in [
        Resolution::Settled,
        Resolution::Interrupted(Cause::NotStarted),
    ] {
        assert_unchanged(
            &[
                model(vec![call("a", resolution)]),
                model(vec![text("Then …")]),
            ],
            1,
        );
    }
}

#[test]
fn leaves_calls_that_are_not_running_open() {
    for status in [CallStatus::AwaitingApproval, CallStatus::Requested] {
        let waiting = CallTimestamp {
            status,
            ..running()
        };
        let row = model(vec![call("a", Resolution::Open(waiting))]);
        assert_unchanged(&[row, model(vec![text("Then …")])], 1_000_000);
    }
}

#[test]
fn leaves_settled_calls_of_the_same_batch_unchanged() {
    let messages = [
        model(vec![
            call("a", Resolution::Settled),
            open("b"),
            call("c", Resolution::Settled),
        ]),
        model(vec![text("Then …")]),
    ];
    let (rows, _) = sanitized(&messages, 1);
    assert_eq!(causes(&rows[0]), [None, UNKNOWN, None]);
}

#[test]
fn interrupts_all_calls_of_every_older_row() {
    let messages = [
        model(vec![open("a"), open("b")]),
        model(vec![open("c")]),
        model(vec![open("d")]),
    ];
    let (rows, repairs) = sanitized(&messages, 1);
    assert_eq!(repairs.len(), 3);
    assert_eq!(causes(&rows[0]), [UNKNOWN, UNKNOWN]);
    assert_eq!(causes(&rows[1]), [UNKNOWN]);
    assert_eq!(causes(&rows[2]), [None]);
}

#[test]
fn does_not_change_the_input_or_copy_other_rows() {
    let messages = [
        user(vec![text("Tides?")]),
        model(vec![open("a")]),
        model(vec![text("Then …")]),
    ];
    let before = messages.clone();
    let (rows, _) = sanitized(&messages, 1);
    assert!(std::ptr::eq(rows[0].message.as_ref(), &messages[0]));
    assert!(std::ptr::eq(rows[2].message.as_ref(), &messages[2]));
    assert_eq!(messages, before);
}
