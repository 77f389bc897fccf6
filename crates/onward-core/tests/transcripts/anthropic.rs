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

const SEARCH: &str =
    r#"{"type":"server_tool_use","id":"s","name":"web_search","input":{"query":"tides"}}"#;
const UNAVAILABLE: &str = r#"{"type":"web_search_tool_result","tool_use_id":"s","content":{"type":"web_search_tool_result_error","error_code":"unavailable"}}"#;

fn model(blocks: &[&str]) -> String {
    format!(r#"{{"role":"assistant","content":[{}]}}"#, blocks.join(","))
}

const BASH: &str = r#"{"type":"tool_use","id":"a","name":"Bash","input":{}}"#;

#[test]
fn what_the_server_runs_itself_is_left_alone_while_its_turn_goes_on() {
    let found = r#"{"type":"web_search_tool_result","tool_use_id":"s","content":[]}"#;
    for rows in [
        // Paused: the row is sent back as it is.
        vec![model(&[SEARCH])],
        // The server waits for the results of other calls, and answers in a later row.
        vec![model(&[SEARCH, BASH]), user(&[&result("a", "1")])],
        vec![
            model(&[SEARCH, BASH]),
            user(&[&result("a", "1")]),
            model(&[found, &text("Two.")]),
            user(&[&text("Thanks.")]),
        ],
        vec![
            model(&[SEARCH, found, &text("Two.")]),
            user(&[&text("Thanks.")]),
        ],
    ] {
        let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
        stays(Api::Anthropic, &list(&rows));
    }
}

#[test]
fn what_the_server_never_answered_gets_an_error_within_its_row_once_somebody_has_spoken() {
    let [went_on, thanks] = [user(&[&text("Well?")]), user(&[&text("Thanks.")])];
    becomes(
        &[&model(&[&text("Let me see."), SEARCH]), &went_on],
        &[
            &model(&[&text("Let me see."), SEARCH, UNAVAILABLE]),
            &went_on,
        ],
        &[(What::Dangling, 0)],
    );
    // Words behind the results of other calls end the turn, too.
    let said = user(&[&result("a", "1"), &text("Go on.")]);
    becomes(
        &[
            &model(&[SEARCH, BASH]),
            &said,
            &model(&[&text("Two.")]),
            &thanks,
        ],
        &[
            &model(&[SEARCH, UNAVAILABLE, BASH]),
            &said,
            &model(&[&text("Two.")]),
            &thanks,
        ],
        &[(What::Dangling, 0)],
    );
}

#[test]
fn each_tool_of_the_server_has_its_own_kind_of_error() {
    for (name, error) in [
        ("web_fetch", "web_fetch_tool_result"),
        ("code_execution", "code_execution_tool_result"),
        ("bash_code_execution", "bash_code_execution_tool_result"),
        (
            "text_editor_code_execution",
            "text_editor_code_execution_tool_result",
        ),
        ("tool_search_tool_bm25", "tool_search_tool_result"),
    ] {
        let call = SEARCH.replace("web_search", name);
        let error = UNAVAILABLE.replace("web_search_tool_result", error);
        let well = user(&[&text("Well?")]);
        becomes(
            &[&model(&[&call]), &well],
            &[&model(&[&call, &error]), &well],
            &[(What::Dangling, 0)],
        );
    }
    let call = r#"{"type":"mcp_tool_use","id":"m","name":"echo","server_name":"x","input":{}}"#;
    let error = format!(
        r#"{{"type":"mcp_tool_result","tool_use_id":"m","content":[{}],"is_error":true}}"#,
        text(UNKNOWN)
    );
    let well = user(&[&text("Well?")]);
    becomes(
        &[&model(&[call]), &well],
        &[&model(&[call, &error]), &well],
        &[(What::Dangling, 0)],
    );
}

#[test]
fn a_tool_of_the_server_that_nobody_knows_here_is_left_alone() {
    let call = SEARCH.replace("web_search", "divination");
    stays(
        Api::Anthropic,
        &list(&[&model(&[&call]), &user(&[&text("Well?")])]),
    );
}

#[test]
fn whoever_may_still_be_served_is_left_to() {
    let document = list(&[&model(&[SEARCH]), &user(&[&text("Well?")])]);
    let repaired = repair_document(Api::Anthropic, &document, Frontier::Leave);
    assert_eq!(repaired.repairs, []);
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
