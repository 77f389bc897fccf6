//! The passes together, and which result belongs to which call.

use onward_core::call::Cause;
use onward_core::transcript::{Fit, Part, Standing, Walk, What};

use crate::desk::{call, clean, found, is_untouched, model, open, standings, text, user};

#[test]
fn a_conversation_with_nothing_wrong_is_not_copied() {
    is_untouched(
        &[
            user(vec![text("Tides?")]),
            model(vec![text("Let me see."), call("a", Standing::Settled)]),
            user(vec![Part::Answer("a".into())]),
            model(vec![text("Two.")]),
        ],
        1_000_000,
    );
}

#[test]
fn a_jumbled_conversation_is_put_right_by_all_passes_at_once() {
    let tail = || model(vec![text("Two a day."), open("b")]);
    let messages = [
        user(vec![text("")]),
        user(vec![text("Tides?")]),
        model(vec![open("a")]),
        tail(),
        tail(),
    ];
    let (rows, repairs) = clean(&messages, 151);
    assert_eq!(
        found(&repairs),
        [
            (What::BlankRow, 0),
            (What::DoubledRow, 4),
            (What::Dangling, 2),
            (What::Stale, 3),
        ]
    );
    let left: Vec<usize> = rows.iter().map(|row| row.index).collect();
    assert_eq!(left, [1, 2, 3]);
    assert_eq!(standings(&rows[1]), [Some(Cause::OutcomeUnknown)]);
    assert_eq!(standings(&rows[2]), [Some(Cause::TimedOut)]);
}

#[test]
fn a_second_run_finds_nothing() {
    let messages = [
        user(vec![text("")]),
        model(vec![open("a"), open("b")]),
        model(vec![open("c")]),
        model(vec![open("c")]),
    ];
    let (rows, _) = clean(&messages, 151);
    let once: Vec<_> = rows
        .into_iter()
        .map(|row| row.message.into_owned())
        .collect();
    is_untouched(&once, 151);
}

#[test]
fn an_id_that_comes_again_belongs_to_the_last_row_that_used_it() {
    let mut walk = Walk::default();
    walk.begin_row();
    walk.call("call-1", "first");
    walk.begin_row();
    walk.call("call-1", "second");
    assert_eq!(walk.answer("call-1"), Fit::Answers("second"));
    assert_eq!(walk.answer("call-1"), Fit::Doubled);
    assert_eq!(walk.unanswered().collect::<Vec<_>>(), ["first"]);
}

#[test]
fn two_calls_of_one_row_with_one_id_are_answered_in_their_order() {
    let mut walk = Walk::default();
    walk.begin_row();
    walk.call("a", 1);
    walk.call("a", 2);
    assert_eq!(walk.answer("a"), Fit::Answers(1));
    assert_eq!(walk.answer("a"), Fit::Answers(2));
    assert_eq!(walk.answer("a"), Fit::Doubled);
}

#[test]
fn a_result_before_its_call_has_none() {
    let mut walk = Walk::default();
    assert_eq!(walk.answer("a"), Fit::Orphan);
    walk.begin_row();
    walk.call("a", ());
    assert_eq!(walk.unanswered().count(), 1);
}
