//! A running call in an older row of the model is given up; the last one is left alone.

use onward_core::call::{CallStatus, CallTimestamp, Cause};
use onward_core::transcript::{Standing, What};

use crate::desk::{call, clean, found, is_untouched, model, open, running, standings, text, user};

const UNKNOWN: Option<Cause> = Some(Cause::OutcomeUnknown);

#[test]
fn a_call_in_an_older_row_is_given_up_and_its_outcome_is_unknown() {
    let messages = [model(vec![open("a")]), model(vec![text("Then …")])];
    let (rows, repairs) = clean(&messages, 1);
    assert_eq!(found(&repairs), [(What::Dangling, 0)]);
    assert_eq!(standings(&rows[0]), [UNKNOWN]);
}

#[test]
fn the_last_row_of_the_model_is_left_alone() {
    is_untouched(&[model(vec![text("First.")]), model(vec![open("a")])], 1);
}

#[test]
fn a_later_row_of_a_person_proves_nothing() {
    is_untouched(&[model(vec![open("a")]), user(vec![text("Well?")])], 1);
}

#[test]
fn a_row_of_a_person_in_between_makes_no_difference() {
    let messages = [
        model(vec![open("a")]),
        user(vec![text("Well?")]),
        model(vec![text("Then …")]),
    ];
    let (rows, _) = clean(&messages, 1);
    assert_eq!(standings(&rows[0]), [UNKNOWN]);
}

#[test]
fn what_is_settled_or_given_up_already_stays_as_it_is() {
    for standing in [Standing::Settled, Standing::Interrupted(Cause::NotStarted)] {
        is_untouched(
            &[
                model(vec![call("a", standing)]),
                model(vec![text("Then …")]),
            ],
            1,
        );
    }
}

#[test]
fn a_call_that_waits_for_a_person_waits_rightly() {
    for status in [CallStatus::AwaitingApproval, CallStatus::Requested] {
        let waits = CallTimestamp {
            status,
            ..running()
        };
        let row = model(vec![call("a", Standing::Open(waits))]);
        is_untouched(&[row, model(vec![text("Then …")])], 1_000_000);
    }
}

#[test]
fn siblings_with_a_result_are_not_touched() {
    let messages = [
        model(vec![
            call("a", Standing::Settled),
            open("b"),
            call("c", Standing::Settled),
        ]),
        model(vec![text("Then …")]),
    ];
    let (rows, _) = clean(&messages, 1);
    assert_eq!(standings(&rows[0]), [None, UNKNOWN, None]);
}

#[test]
fn all_calls_of_a_batch_are_given_up_and_of_every_older_row() {
    let messages = [
        model(vec![open("a"), open("b")]),
        model(vec![open("c")]),
        model(vec![open("d")]),
    ];
    let (rows, repairs) = clean(&messages, 1);
    assert_eq!(repairs.len(), 3);
    assert_eq!(standings(&rows[0]), [UNKNOWN, UNKNOWN]);
    assert_eq!(standings(&rows[1]), [UNKNOWN]);
    assert_eq!(standings(&rows[2]), [None]);
}

#[test]
fn the_input_stays_as_it_was_and_other_rows_are_not_copied() {
    let messages = [
        user(vec![text("Tides?")]),
        model(vec![open("a")]),
        model(vec![text("Then …")]),
    ];
    let before = messages.clone();
    let (rows, _) = clean(&messages, 1);
    assert!(std::ptr::eq(rows[0].message.as_ref(), &messages[0]));
    assert!(std::ptr::eq(rows[2].message.as_ref(), &messages[2]));
    assert_eq!(messages, before);
}
