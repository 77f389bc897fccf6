//! All passes together, and the matching of results to calls.

use onward_core::call::Cause;
use onward_core::transcript::{CallMatcher, Part, RepairKind, Resolution, ResultMatch};

use crate::harness::{
    assert_unchanged, call, causes, kinds_and_rows, model, open, sanitized, text, user,
};

#[test]
fn does_not_copy_a_valid_conversation() {
    assert_unchanged(
        &[
            user(vec![text("Tides?")]),
            model(vec![text("Let me see."), call("a", Resolution::Settled)]),
            user(vec![Part::Result("a".into())]),
            model(vec![text("Two.")]),
        ],
        1_000_000,
    );
}

#[test]
fn all_passes_together_repair_a_conversation() {
    let tail = || model(vec![text("Two a day."), open("b")]);
    let messages = [
        user(vec![text("")]),
        user(vec![text("Tides?")]),
        model(vec![open("a")]),
        tail(),
        tail(),
    ];
    let (rows, repairs) = sanitized(&messages, 151);
    assert_eq!(
        kinds_and_rows(&repairs),
        [
            (RepairKind::BlankRow, 0),
            (RepairKind::DuplicateRow, 4),
            (RepairKind::Dangling, 2),
            (RepairKind::Stale, 3),
        ]
    );
    let kept: Vec<usize> = rows.iter().map(|row| row.index).collect();
    assert_eq!(kept, [1, 2, 3]);
    assert_eq!(causes(&rows[1]), [Some(Cause::OutcomeUnknown)]);
    assert_eq!(causes(&rows[2]), [Some(Cause::TimedOut)]);
}

#[test]
fn sanitizing_twice_finds_nothing_the_second_time() {
    let messages = [
        user(vec![text("")]),
        model(vec![open("a"), open("b")]),
        model(vec![open("c")]),
        model(vec![open("c")]),
    ];
    let (rows, _) = sanitized(&messages, 151);
    let once: Vec<_> = rows
        .into_iter()
        .map(|row| row.message.into_owned())
        .collect();
    assert_unchanged(&once, 151);
}

#[test]
fn a_reused_id_matches_the_last_row_with_it() {
    let mut matcher = CallMatcher::default();
    matcher.start_row();
    matcher.add_call("call-1", "first");
    matcher.start_row();
    matcher.add_call("call-1", "second");
    assert_eq!(
        matcher.match_result("call-1"),
        ResultMatch::Matched("second")
    );
    assert_eq!(matcher.match_result("call-1"), ResultMatch::Duplicate);
    assert_eq!(matcher.unanswered().collect::<Vec<_>>(), ["first"]);
}

#[test]
fn two_calls_with_one_id_in_a_row_match_results_in_order() {
    let mut matcher = CallMatcher::default();
    matcher.start_row();
    matcher.add_call("a", 1);
    matcher.add_call("a", 2);
    assert_eq!(matcher.match_result("a"), ResultMatch::Matched(1));
    assert_eq!(matcher.match_result("a"), ResultMatch::Matched(2));
    assert_eq!(matcher.match_result("a"), ResultMatch::Duplicate);
}

#[test]
fn a_result_before_its_call_is_an_orphan() {
    let mut matcher = CallMatcher::default();
    assert_eq!(matcher.match_result("a"), ResultMatch::Orphan);
    matcher.start_row();
    matcher.add_call("a", ());
    assert_eq!(matcher.unanswered().count(), 1);
}
