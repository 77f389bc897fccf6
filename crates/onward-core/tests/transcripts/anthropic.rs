//! Repairs for Anthropic's Messages API.

use onward_core::transcript::{Api, RepairKind, TrailingCalls, repair_document};

use crate::harness::{assert_document_unchanged, assert_repaired, orphan_heading, outcome_unknown};

const CALL: &str =
    r#"{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"Bash","input":{}}]}"#;
const TWO: &str = r#"{"role":"assistant","content":[{"type":"text","text":"Both."},{"type":"tool_use","id":"a","name":"Bash","input":{}},{"type":"tool_use","id":"b","name":"Read","input":{}}]}"#;

fn result(id: &str, content: &str) -> String {
    format!(r#"{{"type":"tool_result","tool_use_id":"{id}","content":"{content}"}}"#)
}

fn synthetic(id: &str) -> String {
    format!(
        r#"{{"type":"tool_result","tool_use_id":"{id}","content":"{}","is_error":true}}"#,
        outcome_unknown()
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
fn assert_repair(rows: &[&str], expected: &[&str], repairs: &[(RepairKind, usize)]) {
    assert_repaired(Api::Anthropic, &list(rows), &list(expected), repairs);
}

#[test]
fn leaves_a_valid_conversation_unchanged() {
    let results = user(&[&result("a", "ok"), &result("b", "ok"), &text("Continue.")]);
    assert_document_unchanged(
        Api::Anthropic,
        &list(&[r#"{"role":"user","content":"Tides?"}"#, TWO, &results]),
    );
}

#[test]
fn adds_a_result_to_a_call_at_the_end() {
    assert_repair(
        &[CALL],
        &[CALL, &user(&[&synthetic("a")])],
        &[(RepairKind::Dangling, 0)],
    );
}

#[test]
fn inserts_a_missing_result_before_the_following_text() {
    assert_repair(
        &[CALL, r#"{"role":"user","content":"Well?"}"#],
        &[CALL, &user(&[&synthetic("a"), &text("Well?")])],
        &[(RepairKind::Dangling, 0)],
    );
}

#[test]
fn adds_a_result_to_every_call_of_a_batch() {
    assert_repair(
        &[TWO],
        &[TWO, &user(&[&synthetic("a"), &synthetic("b")])],
        &[(RepairKind::Dangling, 0), (RepairKind::Dangling, 0)],
    );
}

#[test]
fn adds_a_missing_result_to_a_partial_batch_in_call_order() {
    assert_repair(
        &[TWO, &user(&[&result("b", "ok")])],
        &[TWO, &user(&[&synthetic("a"), &result("b", "ok")])],
        &[(RepairKind::Dangling, 0)],
    );
}

#[test]
fn sorts_results_in_call_order() {
    assert_repair(
        &[TWO, &user(&[&result("b", "2"), &result("a", "1")])],
        &[TWO, &user(&[&result("a", "1"), &result("b", "2")])],
        &[(RepairKind::Reordered, 1), (RepairKind::Reordered, 1)],
    );
}

#[test]
fn moves_a_result_before_the_text() {
    assert_repair(
        &[CALL, &user(&[&text("Here."), &result("a", "1")])],
        &[CALL, &user(&[&result("a", "1"), &text("Here.")])],
        &[(RepairKind::Misplaced, 1)],
    );
}

#[test]
fn moves_a_late_result_to_its_call() {
    let then = r#"{"role":"assistant","content":"Then."}"#;
    assert_repair(
        &[
            CALL,
            r#"{"role":"user","content":"Well?"}"#,
            then,
            &user(&[&result("a", "1")]),
        ],
        &[CALL, &user(&[&result("a", "1"), &text("Well?")]), then],
        &[(RepairKind::Misplaced, 3)],
    );
}

#[test]
fn moves_a_result_out_of_a_row_of_the_model() {
    let both = format!(
        r#"{{"role":"assistant","content":[{},{}]}}"#,
        r#"{"type":"tool_use","id":"a","name":"Bash","input":{}}"#,
        result("a", "1")
    );
    assert_repair(
        &[&both],
        &[CALL, &user(&[&result("a", "1")])],
        &[(RepairKind::Misplaced, 0)],
    );
}

#[test]
fn converts_a_result_without_a_call_to_text() {
    let heading = orphan_heading("z");
    assert_repair(
        &[&user(&[&result("z", "lost"), &text("Continue.")])],
        &[&user(&[
            &text(&format!("{heading}\\nlost")),
            &text("Continue."),
        ])],
        &[(RepairKind::Orphan, 0)],
    );
}

#[test]
fn keeps_an_image_in_a_result_without_a_call() {
    let image = r#"{"type":"image","source":{"type":"base64","data":"AA=="}}"#;
    let heading = orphan_heading("z");
    assert_repair(
        &[&user(&[&format!(
            r#"{{"type":"tool_result","tool_use_id":"z","content":[{image}]}}"#
        )])],
        &[&user(&[&text(&heading), image])],
        &[(RepairKind::Orphan, 0)],
    );
}

#[test]
fn a_result_before_its_call_is_an_orphan() {
    let heading = orphan_heading("a");
    assert_repair(
        &[&user(&[&result("a", "early")]), CALL],
        &[
            &user(&[&text(&format!("{heading}\\nearly"))]),
            CALL,
            &user(&[&synthetic("a")]),
        ],
        &[(RepairKind::Orphan, 0), (RepairKind::Dangling, 1)],
    );
}

#[test]
fn keeps_the_first_of_two_results() {
    assert_repair(
        &[CALL, &user(&[&result("a", "1"), &result("a", "2")])],
        &[CALL, &user(&[&result("a", "1")])],
        &[(RepairKind::DuplicateResult, 1)],
    );
}

#[test]
fn drops_a_late_result_after_a_synthetic_one() {
    let then = r#"{"role":"assistant","content":"Then."}"#;
    assert_repair(
        &[
            CALL,
            &user(&[&synthetic("a")]),
            then,
            &user(&[&result("a", "late")]),
        ],
        &[CALL, &user(&[&synthetic("a")]), then],
        &[(RepairKind::DuplicateResult, 3)],
    );
}

#[test]
fn a_reused_id_gets_a_result_in_each_row() {
    assert_repair(
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
        &[(RepairKind::Dangling, 0)],
    );
}

#[test]
fn merges_consecutive_rows_of_one_role() {
    assert_repair(
        &[
            r#"{"role":"user","content":"One."}"#,
            r#"{"role":"user","content":"Two."}"#,
        ],
        &[&user(&[&text("One."), &text("Two.")])],
        &[(RepairKind::Merged, 1)],
    );
}

#[test]
fn does_not_merge_a_row_with_extra_fields() {
    assert_document_unchanged(
        Api::Anthropic,
        r#"[{"role":"user","content":"One."},{"role":"user","content":"Two.","name":"b"}]"#,
    );
}

#[test]
fn merged_rows_of_the_model_get_their_results_together() {
    let then =
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"b","name":"Read","input":{}}]}"#;
    let one = r#"{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"Bash","input":{}},{"type":"tool_use","id":"b","name":"Read","input":{}}]}"#;
    let results = user(&[&result("a", "1"), &result("b", "2")]);
    assert_repair(
        &[CALL, then, &results],
        &[one, &results],
        &[(RepairKind::Merged, 1)],
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
fn leaves_server_calls_open_during_the_turn() {
    let found = r#"{"type":"web_search_tool_result","tool_use_id":"s","content":[]}"#;
    for rows in [
        // The server paused the turn; the row is sent back unchanged.
        vec![model(&[SEARCH])],
        // The server waits for the results of other calls and returns its result in a later row.
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
        assert_document_unchanged(Api::Anthropic, &list(&rows));
    }
}

#[test]
fn adds_an_error_to_a_server_call_without_a_result_after_the_turn() {
    let [question, thanks] = [user(&[&text("Well?")]), user(&[&text("Thanks.")])];
    assert_repair(
        &[&model(&[&text("Let me see."), SEARCH]), &question],
        &[
            &model(&[&text("Let me see."), SEARCH, UNAVAILABLE]),
            &question,
        ],
        &[(RepairKind::Dangling, 0)],
    );
    // User text after the results of other calls ends the turn too.
    let results = user(&[&result("a", "1"), &text("Continue.")]);
    assert_repair(
        &[
            &model(&[SEARCH, BASH]),
            &results,
            &model(&[&text("Two.")]),
            &thanks,
        ],
        &[
            &model(&[SEARCH, UNAVAILABLE, BASH]),
            &results,
            &model(&[&text("Two.")]),
            &thanks,
        ],
        &[(RepairKind::Dangling, 0)],
    );
}

#[test]
fn each_server_tool_has_its_own_error_type() {
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
        let question = user(&[&text("Well?")]);
        assert_repair(
            &[&model(&[&call]), &question],
            &[&model(&[&call, &error]), &question],
            &[(RepairKind::Dangling, 0)],
        );
    }
    let call = r#"{"type":"mcp_tool_use","id":"m","name":"echo","server_name":"x","input":{}}"#;
    let error = format!(
        r#"{{"type":"mcp_tool_result","tool_use_id":"m","content":[{}],"is_error":true}}"#,
        text(&outcome_unknown())
    );
    let question = user(&[&text("Well?")]);
    assert_repair(
        &[&model(&[call]), &question],
        &[&model(&[call, &error]), &question],
        &[(RepairKind::Dangling, 0)],
    );
}

#[test]
fn leaves_calls_of_unknown_server_tools_unchanged() {
    let call = SEARCH.replace("web_search", "unknown_tool");
    assert_document_unchanged(
        Api::Anthropic,
        &list(&[&model(&[&call]), &user(&[&text("Well?")])]),
    );
}

#[test]
fn leave_keeps_trailing_server_calls_open() {
    let document = list(&[&model(&[SEARCH]), &user(&[&text("Well?")])]);
    let repaired = repair_document(Api::Anthropic, &document, TrailingCalls::Leave);
    assert_eq!(repaired.repairs, []);
}

#[test]
fn drops_blank_rows_and_a_duplicate_tail_first() {
    let two = r#"{"role":"assistant","content":"Two."}"#;
    assert_repair(
        &[
            r#"{"role":"user","content":"Tides?"}"#,
            r#"{"role":"user","content":" "}"#,
            two,
            two,
        ],
        &[r#"{"role":"user","content":"Tides?"}"#, two],
        &[(RepairKind::BlankRow, 1), (RepairKind::DuplicateRow, 3)],
    );
}

#[test]
fn leave_keeps_trailing_calls_open() {
    let document = list(&[
        CALL,
        &user(&[&result("a", "1")]),
        TWO,
        &user(&[&result("b", "1")]),
    ]);
    let repaired = repair_document(Api::Anthropic, &document, TrailingCalls::Leave);
    assert_eq!(repaired.repairs, []);
    let both = list(&[&CALL.replace(r#""a""#, r#""c""#), TWO]);
    let repaired = repair_document(Api::Anthropic, &both, TrailingCalls::Leave);
    // The API treats both rows as one, and the user sent nothing after them.
    assert!(
        repaired
            .repairs
            .iter()
            .all(|repair| repair.kind == RepairKind::Merged)
    );
}

#[test]
fn renames_a_duplicate_id_together_with_its_result() {
    let call =
        |id: &str| format!(r#"{{"type":"tool_use","id":"{id}","name":"Bash","input":{{}}}}"#);
    let model = |ids: [&str; 2]| {
        let blocks = ids.map(&call).join(",");
        format!(r#"{{"role":"assistant","content":[{blocks}]}}"#)
    };
    let answers = |ids: [&str; 2]| user(&[&result(ids[0], "1"), &result(ids[1], "2")]);
    assert_repair(
        &[&model(["a", "a"]), &answers(["a", "a"])],
        &[&model(["a", "a_2"]), &answers(["a", "a_2"])],
        &[(RepairKind::DuplicateId, 0)],
    );
    // Without a second result, the renamed call gets a synthetic one.
    assert_repair(
        &[&model(["a", "a"]), &user(&[&result("a", "1")])],
        &[
            &model(["a", "a_2"]),
            &user(&[&result("a", "1"), &synthetic("a_2")]),
        ],
        &[(RepairKind::DuplicateId, 0), (RepairKind::Dangling, 0)],
    );
}
