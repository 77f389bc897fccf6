//! Blank user rows are dropped; all other rows are kept.

use onward_core::transcript::{Message, Part, RepairKind, Role};

use crate::harness::{assert_unchanged, kinds_and_rows, model, open, row, sanitized, text, user};

#[track_caller]
fn assert_dropped(blank: Message<'static>) {
    let messages = [user(vec![text("Tides?")]), blank, model(vec![text("Two.")])];
    let (rows, repairs) = sanitized(&messages, 0);
    assert_eq!(kinds_and_rows(&repairs), [(RepairKind::BlankRow, 1)]);
    let kept: Vec<usize> = rows.iter().map(|row| row.index).collect();
    assert_eq!(kept, [0, 2]);
}

fn unknown_call() -> Part<'static> {
    let Part::Call(mut call) = open("a") else {
        unreachable!()
    };
    call.tool = None;
    Part::Call(call)
}

#[test]
fn drops_an_empty_row() {
    assert_dropped(user(vec![]));
}

#[test]
fn drops_a_row_of_whitespace() {
    assert_dropped(user(vec![text(" \n\t\u{a0}")]));
}

#[test]
fn drops_a_row_of_empty_texts() {
    assert_dropped(user(vec![text(""), text("  "), text("")]));
}

#[test]
fn drops_a_row_of_calls_without_a_tool() {
    assert_dropped(user(vec![unknown_call(), unknown_call()]));
}

#[test]
fn keeps_a_row_with_at_least_one_call_with_a_tool() {
    assert_unchanged(&[user(vec![unknown_call(), open("a")])], 0);
}

#[test]
fn keeps_a_row_with_an_attachment() {
    assert_unchanged(&[user(vec![text(""), Part::Other])], 0);
}

#[test]
fn keeps_a_queued_row() {
    let queued = Message {
        is_queued: true,
        ..user(vec![])
    };
    assert_unchanged(&[queued], 0);
}

#[test]
fn keeps_a_row_with_a_result() {
    assert_unchanged(&[user(vec![Part::Result("unknown".into())])], 0);
}

#[test]
fn keeps_blank_rows_of_other_roles() {
    for role in [Role::Assistant, Role::Tool, Role::Other] {
        assert_unchanged(&[row(role, vec![text("")])], 0);
    }
}
