//! OpenAI's Chat Completions: what breaks a conversation there, and what comes out.

use onward_core::transcript::{Api, Frontier, What, repair_document};

use crate::desk::{UNKNOWN, repairs_to, stays};

const TWO: &str = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"tides","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"moon","arguments":"{}"}}]}"#;
const USER: &str = r#"{"role":"user","content":"Well?"}"#;

fn tool(id: &str, content: &str) -> String {
    format!(r#"{{"role":"tool","tool_call_id":"{id}","content":"{content}"}}"#)
}

fn synthetic(id: &str) -> String {
    tool(id, &format!("Error: {UNKNOWN}"))
}

#[track_caller]
fn becomes(rows: &[&str], expected: &[&str], wrong: &[(What, usize)]) {
    let list = |rows: &[&str]| format!("[{}]", rows.join(","));
    repairs_to(Api::Chat, &list(rows), &list(expected), wrong);
}

#[test]
fn a_conversation_that_the_api_takes_stays() {
    let rows = [USER, TWO, &tool("a", "1"), &tool("b", "2"), USER, USER];
    stays(Api::Chat, &format!("[{}]", rows.join(",")));
}

#[test]
fn missing_results_stand_right_after_the_row_and_not_at_the_end() {
    becomes(
        &[TWO, USER],
        &[TWO, &synthetic("a"), &synthetic("b"), USER],
        &[(What::Dangling, 0), (What::Dangling, 0)],
    );
}

#[test]
fn a_partial_batch_is_filled_up_in_the_order_of_the_calls() {
    becomes(
        &[TWO, &tool("b", "2"), USER],
        &[TWO, &synthetic("a"), &tool("b", "2"), USER],
        &[(What::Dangling, 0)],
    );
}

#[test]
fn a_result_behind_other_rows_is_moved() {
    let system = r#"{"role":"system","content":"Be brief."}"#;
    becomes(
        &[TWO, &tool("a", "1"), system, &tool("b", "2")],
        &[TWO, &tool("a", "1"), &tool("b", "2"), system],
        &[(What::Misplaced, 3)],
    );
}

#[test]
fn a_result_without_a_call_becomes_words_of_the_user() {
    becomes(
        &[USER, &tool("z", "lost")],
        &[
            USER,
            r#"{"role":"user","content":[{"type":"text","text":"[Result of `z`, a tool call that is not part of this conversation]\nlost"}]}"#,
        ],
        &[(What::Orphan, 1)],
    );
}

#[test]
fn a_doubled_result_goes() {
    becomes(
        &[TWO, &tool("a", "1"), &tool("a", "1"), &tool("b", "2")],
        &[TWO, &tool("a", "1"), &tool("b", "2")],
        &[(What::Doubled, 2)],
    );
}

#[test]
fn each_row_of_the_model_is_answered_by_itself() {
    becomes(
        &[TWO, TWO, &tool("a", "1"), &tool("b", "2"), USER],
        &[
            TWO,
            &synthetic("a"),
            &synthetic("b"),
            TWO,
            &tool("a", "1"),
            &tool("b", "2"),
            USER,
        ],
        &[(What::Dangling, 0), (What::Dangling, 0)],
    );
}

#[test]
fn functions_from_before_there_were_tools_are_answered_by_name() {
    let old =
        r#"{"role":"assistant","content":null,"function_call":{"name":"tides","arguments":"{}"}}"#;
    let answer = r#"{"role":"function","name":"tides","content":"two"}"#;
    stays(Api::Chat, &format!("[{old},{answer}]"));
    becomes(
        &[old, USER],
        &[
            old,
            &format!(r#"{{"role":"function","name":"tides","content":"Error: {UNKNOWN}"}}"#),
            USER,
        ],
        &[(What::Dangling, 0)],
    );
}

#[test]
fn a_tail_that_is_doubled_only_after_the_repair_goes_too() {
    let two = r#"{"role":"assistant","content":"Two."}"#;
    becomes(
        &[
            TWO,
            &tool("a", "1"),
            &tool("b", "2"),
            two,
            &tool("a", "1"),
            two,
        ],
        &[TWO, &tool("a", "1"), &tool("b", "2"), two],
        &[(What::Doubled, 4), (What::DoubledRow, 5)],
    );
}

#[test]
fn older_rows_are_answered_also_where_the_last_one_is_left_alone() {
    let document = format!("[{TWO},{USER},{TWO}]");
    let repaired = repair_document(Api::Chat, &document, Frontier::Leave);
    let rows: Vec<usize> = repaired.repairs.iter().map(|repair| repair.row).collect();
    assert_eq!(rows, [0, 0]);
    assert!(repaired.text.ends_with(&format!("{USER},{TWO}]")));
}
