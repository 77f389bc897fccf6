//! A last row of the model that repeats the one before goes; what merely looks alike stays.

use onward_core::transcript::{Message, Part, Role, What};

use crate::desk::{clean, found, is_untouched, model, open, row, text, user};

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
fn goes(messages: &[Message<'static>], left: usize) {
    let (rows, repairs) = clean(messages, 0);
    let gone: Vec<_> = (left..messages.len())
        .rev()
        .map(|row| (What::DoubledRow, row))
        .collect();
    assert_eq!(found(&repairs), gone);
    assert_eq!(rows.len(), left);
}

#[test]
fn a_mirror_of_the_row_before_goes() {
    let row = || model(vec![text("Two."), open("a")]);
    goes(&[user(vec![text("Tides?")]), row(), row()], 2);
}

#[test]
fn rows_of_text_alone_and_of_calls_alone_are_compared_too() {
    goes(&[model(vec![text("Two.")]), model(vec![text("Two.")])], 1);
    goes(&[model(vec![open("a")]), model(vec![open("a")])], 1);
}

#[test]
fn of_three_the_same_one_stays_so_that_a_second_run_finds_nothing() {
    let row = || model(vec![text("Two.")]);
    goes(&[row(), row(), row()], 1);
}

#[test]
fn a_single_row_and_no_row_at_all_stay() {
    is_untouched(&[model(vec![text("Two.")])], 0);
    is_untouched(&[], 0);
}

#[test]
fn other_words_or_more_of_them_are_no_mirror() {
    is_untouched(&[model(vec![text("Two.")]), model(vec![text("Three.")])], 0);
    is_untouched(
        &[
            model(vec![text("Two.")]),
            model(vec![text("Two."), text("")]),
        ],
        0,
    );
}

#[test]
fn another_tool_input_or_number_of_calls_is_no_mirror() {
    for last in [
        vec![other_tool("a")],
        vec![bash("a", "2")],
        vec![bash("a", "1"), bash("a", "1")],
    ] {
        let messages = [model(vec![bash("a", "1")]), model(last)];
        let (rows, _) = clean(&messages, 0);
        assert_eq!(rows.len(), 2);
    }
}

#[test]
fn two_calls_that_look_alike_are_two_calls() {
    let messages = [model(vec![open("a")]), model(vec![open("b")])];
    let (rows, _) = clean(&messages, 0);
    assert_eq!(rows.len(), 2);
}

#[test]
fn only_the_tail_is_looked_at() {
    let row = || model(vec![text("Two.")]);
    is_untouched(&[row(), row(), user(vec![text("Why?")])], 0);
}

#[test]
fn rows_of_people_may_repeat() {
    is_untouched(&[user(vec![text("Go on.")]), user(vec![text("Go on.")])], 0);
}

#[test]
fn a_row_with_a_result_or_with_more_beside_its_words_is_no_mirror() {
    let two = || model(vec![text("Two.")]);
    is_untouched(&[two(), model(vec![text("Two."), Part::Other])], 0);
    is_untouched(
        &[two(), model(vec![text("Two."), Part::Answer("a".into())])],
        0,
    );
    is_untouched(&[model(vec![text(" ")]), model(vec![text(" ")])], 0);
}

#[test]
fn rows_without_words_and_calls_are_not_compared() {
    is_untouched(&[model(vec![Part::Other]), model(vec![Part::Other])], 0);
    is_untouched(&[row(Role::Other, vec![]), row(Role::Other, vec![])], 0);
}
