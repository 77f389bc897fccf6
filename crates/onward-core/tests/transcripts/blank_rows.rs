//! User rows with nothing in them go; all others stay.

use onward_core::transcript::{Message, Part, Role, What};

use crate::desk::{clean, found, is_untouched, model, open, row, text, user};

#[track_caller]
fn goes(blank: Message<'static>) {
    let messages = [user(vec![text("Tides?")]), blank, model(vec![text("Two.")])];
    let (rows, repairs) = clean(&messages, 0);
    assert_eq!(found(&repairs), [(What::BlankRow, 1)]);
    let left: Vec<usize> = rows.iter().map(|row| row.index).collect();
    assert_eq!(left, [0, 2]);
}

fn unknown_call() -> Part<'static> {
    let Part::Call(mut call) = open("a") else {
        unreachable!()
    };
    call.tool = None;
    Part::Call(call)
}

#[test]
fn a_row_with_nothing_at_all_goes() {
    goes(user(vec![]));
}

#[test]
fn a_row_of_blanks_goes() {
    goes(user(vec![text(" \n\t\u{a0}")]));
}

#[test]
fn a_row_of_empty_pieces_of_text_goes() {
    goes(user(vec![text(""), text("  "), text("")]));
}

#[test]
fn a_row_of_calls_that_nobody_knows_goes() {
    goes(user(vec![unknown_call(), unknown_call()]));
}

#[test]
fn a_row_with_one_known_call_among_unknown_ones_stays() {
    is_untouched(&[user(vec![unknown_call(), open("a")])], 0);
}

#[test]
fn a_row_with_an_attachment_stays() {
    is_untouched(&[user(vec![text(""), Part::Other])], 0);
}

#[test]
fn a_row_that_waits_to_be_sent_stays() {
    let queued = Message {
        is_queued: true,
        ..user(vec![])
    };
    is_untouched(&[queued], 0);
}

#[test]
fn a_row_with_a_result_stays_whoever_called() {
    is_untouched(&[user(vec![Part::Answer("gone".into())])], 0);
}

#[test]
fn blank_rows_of_anybody_else_stay() {
    for role in [Role::Assistant, Role::Tool, Role::Other] {
        is_untouched(&[row(role, vec![text("")])], 0);
    }
}
