//! Anthropic's Messages: what breaks a conversation there, and what comes out.

use onward_core::transcript::{Api, Frontier, What, repair_document};

use crate::desk::{UNKNOWN, repairs_to, stays};

const CALL: &str =
    r#"{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"Bash","input":{}}]}"#;
const TWO: &str = r#"{"role":"assistant","content":[{"type":"text","text":"Both."},{"type":"tool_use","id":"a","name":"Bash","input":{}},{"type":"tool_use","id":"b","name":"Read","input":{}}]}"#;

fn result(id: &str, content: &str) -> String {
    format!(r#"{{"type":"tool_result","tool_use_id":"{id}","content":"{content}"}}"#)
}

fn synthetic(id: &str) -> String {
    format!(
        r#"{{"type":"tool_result","tool_use_id":"{id}","content":"{UNKNOWN}","is_error":true}}"#
    )
}

fn user(blocks: &[&str]) -> String {
    format!(r#"{{"role":"user","content":[{}]}}"#, blocks.join(","))
}

fn text(text: &str) -> String {
    format!(r#"{{"type":"text","text":"{text}"}}"#)
}

fn list(rows: &[&str]) -> String {
    format!("[{}]", rows.join(","))
}

#[track_caller]
fn becomes(rows: &[&str], expected: &[&str], wrong: &[(What, usize)]) {
    repairs_to(Api::Anthropic, &list(rows), &list(expected), wrong);
}

#[test]
fn a_conversation_that_the_api_takes_stays() {
    let answers = user(&[&result("a", "ok"), &result("b", "ok"), &text("Go on.")]);
    stays(
        Api::Anthropic,
        &list(&[r#"{"role":"user","content":"Tides?"}"#, TWO, &answers]),
    );
}

#[test]
fn a_call_at_the_end_without_a_result_gets_one() {
    becomes(
        &[CALL],
        &[CALL, &user(&[&synthetic("a")])],
        &[(What::Dangling, 0)],
    );
}

#[test]
fn the_missing_result_stands_before_the_words_that_followed_the_call() {
    becomes(
        &[CALL, r#"{"role":"user","content":"Well?"}"#],
        &[CALL, &user(&[&synthetic("a"), &text("Well?")])],
        &[(What::Dangling, 0)],
    );
}

#[test]
fn all_calls_of_a_batch_are_answered_not_only_the_first() {
    becomes(
        &[TWO],
        &[TWO, &user(&[&synthetic("a"), &synthetic("b")])],
        &[(What::Dangling, 0), (What::Dangling, 0)],
    );
}

#[test]
fn a_batch_of_which_one_was_answered_gets_the_other_in_its_place() {
    becomes(
        &[TWO, &user(&[&result("b", "ok")])],
        &[TWO, &user(&[&synthetic("a"), &result("b", "ok")])],
        &[(What::Dangling, 0)],
    );
}

#[test]
fn results_are_put_in_the_order_of_the_calls() {
    becomes(
        &[TWO, &user(&[&result("b", "2"), &result("a", "1")])],
        &[TWO, &user(&[&result("a", "1"), &result("b", "2")])],
        &[(What::Reordered, 1), (What::Reordered, 1)],
    );
}

#[test]
fn a_result_behind_the_words_is_put_in_front_of_them() {
    becomes(
        &[CALL, &user(&[&text("Here."), &result("a", "1")])],
        &[CALL, &user(&[&result("a", "1"), &text("Here.")])],
        &[(What::Misplaced, 1)],
    );
}

#[test]
fn a_result_that_was_appended_at_the_end_is_moved_to_its_call() {
    let then = r#"{"role":"assistant","content":"Then."}"#;
    becomes(
        &[
            CALL,
            r#"{"role":"user","content":"Well?"}"#,
            then,
            &user(&[&result("a", "1")]),
        ],
        &[CALL, &user(&[&result("a", "1"), &text("Well?")]), then],
        &[(What::Misplaced, 3)],
    );
}

#[test]
fn a_result_in_a_row_of_the_model_is_moved_out() {
    let both = format!(
        r#"{{"role":"assistant","content":[{},{}]}}"#,
        r#"{"type":"tool_use","id":"a","name":"Bash","input":{}}"#,
        result("a", "1")
    );
    becomes(
        &[&both],
        &[CALL, &user(&[&result("a", "1")])],
        &[(What::Misplaced, 0)],
    );
}

#[test]
fn a_result_without_a_call_becomes_text() {
    let head = "[Result of `z`, a tool call that is not part of this conversation]";
    becomes(
        &[&user(&[&result("z", "lost"), &text("Go on.")])],
        &[&user(&[&text(&format!("{head}\\nlost")), &text("Go on.")])],
        &[(What::Orphan, 0)],
    );
}

#[test]
fn a_picture_in_a_result_without_a_call_stays_a_picture() {
    let image = r#"{"type":"image","source":{"type":"base64","data":"AA=="}}"#;
    let head = "[Result of `z`, a tool call that is not part of this conversation]";
    becomes(
        &[&user(&[&format!(
            r#"{{"type":"tool_result","tool_use_id":"z","content":[{image}]}}"#
        )])],
        &[&user(&[&text(head), image])],
        &[(What::Orphan, 0)],
    );
}

#[test]
fn a_result_that_comes_before_its_call_has_none() {
    let head = "[Result of `a`, a tool call that is not part of this conversation]";
    becomes(
        &[&user(&[&result("a", "early")]), CALL],
        &[
            &user(&[&text(&format!("{head}\\nearly"))]),
            CALL,
            &user(&[&synthetic("a")]),
        ],
        &[(What::Orphan, 0), (What::Dangling, 1)],
    );
}

#[test]
fn of_two_results_the_first_counts_and_the_second_goes() {
    becomes(
        &[CALL, &user(&[&result("a", "1"), &result("a", "2")])],
        &[CALL, &user(&[&result("a", "1")])],
        &[(What::Doubled, 1)],
    );
}

#[test]
fn a_late_result_is_no_second_answer() {
    let then = r#"{"role":"assistant","content":"Then."}"#;
    becomes(
        &[
            CALL,
            &user(&[&synthetic("a")]),
            then,
            &user(&[&result("a", "late")]),
        ],
        &[CALL, &user(&[&synthetic("a")]), then],
        &[(What::Doubled, 3)],
    );
}

#[test]
fn an_id_that_is_used_again_is_answered_in_each_row() {
    becomes(
        &[
            CALL,
            r#"{"role":"user","content":"Well?"}"#,
            CALL,
            &user(&[&result("a", "2")]),
        ],
        &[
            CALL,
            &user(&[&synthetic("a"), &text("Well?")]),
            CALL,
            &user(&[&result("a", "2")]),
        ],
        &[(What::Dangling, 0)],
    );
}

#[test]
fn two_rows_of_one_role_become_one() {
    becomes(
        &[
            r#"{"role":"user","content":"One."}"#,
            r#"{"role":"user","content":"Two."}"#,
        ],
        &[&user(&[&text("One."), &text("Two.")])],
        &[(What::Merged, 1)],
    );
}

#[test]
fn a_row_with_something_of_its_own_is_not_merged() {
    stays(
        Api::Anthropic,
        r#"[{"role":"user","content":"One."},{"role":"user","content":"Two.","name":"b"}]"#,
    );
}

#[test]
fn rows_of_the_model_that_follow_each_other_are_answered_together() {
    let then =
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"b","name":"Read","input":{}}]}"#;
    let one = r#"{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"Bash","input":{}},{"type":"tool_use","id":"b","name":"Read","input":{}}]}"#;
    let answers = user(&[&result("a", "1"), &result("b", "2")]);
    becomes(
        &[CALL, then, &answers],
        &[one, &answers],
        &[(What::Merged, 1)],
    );
}

#[test]
fn what_the_server_runs_itself_is_left_alone() {
    stays(
        Api::Anthropic,
        r#"[{"role":"assistant","content":[{"type":"server_tool_use","id":"s","name":"web_search","input":{}}]}]"#,
    );
}

#[test]
fn blank_rows_and_a_doubled_tail_go_first() {
    let two = r#"{"role":"assistant","content":"Two."}"#;
    becomes(
        &[
            r#"{"role":"user","content":"Tides?"}"#,
            r#"{"role":"user","content":" "}"#,
            two,
            two,
        ],
        &[r#"{"role":"user","content":"Tides?"}"#, two],
        &[(What::BlankRow, 1), (What::DoubledRow, 3)],
    );
}

#[test]
fn whoever_may_still_answer_is_left_to() {
    let document = list(&[
        CALL,
        &user(&[&result("a", "1")]),
        TWO,
        &user(&[&result("b", "1")]),
    ]);
    let repaired = repair_document(Api::Anthropic, &document, Frontier::Leave);
    assert_eq!(repaired.repairs, []);
    let both = list(&[CALL, TWO]);
    let repaired = repair_document(Api::Anthropic, &both, Frontier::Leave);
    // Both are one row to the API, and nobody spoke after it.
    assert!(
        repaired
            .repairs
            .iter()
            .all(|repair| repair.what == What::Merged)
    );
}
