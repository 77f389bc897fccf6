//! A last row of the model that repeats the previous one is dropped; similar rows are kept.

use onward_core::transcript::{Message, Part, RepairKind, Role};

use crate::harness::{assert_unchanged, kinds_and_rows, model, open, row, sanitized, text, user};

fn bash(id: &'static str, input: &'static str) -> Part<'static> {
    let Part::Call(mut call) = open(id) else {
        unreachable!()
    };
    call.input = input.into();
    Part::Call(call)
}

fn other_tool(id: &'static str) -> Part<'static> {
    let Part::Call(mut call) = open(id) else {
        unreachable!()
    };
    call.tool = Some("Read".into());
    Part::Call(call)
}

#[track_caller]
fn assert_dropped(messages: &[Message<'static>], kept: usize) {
    let (rows, repairs) = sanitized(messages, 0);
    let dropped: Vec<_> = (kept..messages.len())
        .rev()
        .map(|row| (RepairKind::DuplicateRow, row))
        .collect();
    assert_eq!(kinds_and_rows(&repairs), dropped);
    assert_eq!(rows.len(), kept);
}

#[test]
fn drops_a_copy_of_the_previous_row() {
    let row = || model(vec![text("Two."), open("a")]);
    assert_dropped(&[user(vec![text("Tides?")]), row(), row()], 2);
}

#[test]
fn drops_copies_with_only_text_or_only_calls() {
    assert_dropped(&[model(vec![text("Two.")]), model(vec![text("Two.")])], 1);
    assert_dropped(&[model(vec![open("a")]), model(vec![open("a")])], 1);
}

#[test]
fn keeps_one_of_three_identical_rows() {
    let row = || model(vec![text("Two.")]);
    assert_dropped(&[row(), row(), row()], 1);
}

#[test]
fn keeps_a_single_row_and_an_empty_conversation() {
    assert_unchanged(&[model(vec![text("Two.")])], 0);
    assert_unchanged(&[], 0);
}

#[test]
fn keeps_a_row_with_another_text() {
    assert_unchanged(&[model(vec![text("Two.")]), model(vec![text("Three.")])], 0);
    assert_unchanged(
        &[
            model(vec![text("Two.")]),
            model(vec![text("Two."), text("")]),
        ],
        0,
    );
}

#[test]
fn keeps_a_row_with_another_tool_input_or_number_of_calls() {
    for last in [
        vec![other_tool("a")],
        vec![bash("a", "2")],
        vec![bash("a", "1"), bash("a", "1")],
    ] {
        let messages = [model(vec![bash("a", "1")]), model(last)];
        let (rows, _) = sanitized(&messages, 0);
        assert_eq!(rows.len(), 2);
    }
}

#[test]
fn keeps_a_row_with_another_call_id() {
    let messages = [model(vec![open("a")]), model(vec![open("b")])];
    let (rows, _) = sanitized(&messages, 0);
    assert_eq!(rows.len(), 2);
}

#[test]
fn compares_only_the_last_rows() {
    let row = || model(vec![text("Two.")]);
    assert_unchanged(&[row(), row(), user(vec![text("Why?")])], 0);
}

#[test]
fn keeps_repeated_user_rows() {
    assert_unchanged(
        &[user(vec![text("Continue.")]), user(vec![text("Continue.")])],
        0,
    );
}

#[test]
fn keeps_rows_with_results_other_content_or_blank_text() {
    let two = || model(vec![text("Two.")]);
    assert_unchanged(&[two(), model(vec![text("Two."), Part::Other])], 0);
    assert_unchanged(
        &[two(), model(vec![text("Two."), Part::Result("a".into())])],
        0,
    );
    assert_unchanged(&[model(vec![text(" ")]), model(vec![text(" ")])], 0);
}

#[test]
fn keeps_rows_without_text_and_calls() {
    assert_unchanged(&[model(vec![Part::Other]), model(vec![Part::Other])], 0);
    assert_unchanged(&[row(Role::Other, vec![]), row(Role::Other, vec![])], 0);
}
