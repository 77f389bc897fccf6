//! Repairs for OpenAI's Chat Completions API.

use onward_core::transcript::{Api, RepairKind, TrailingCalls, repair_document};

use crate::harness::{assert_document_unchanged, assert_repaired, orphan_heading, outcome_unknown};

const TWO: &str = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"tides","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"moon","arguments":"{}"}}]}"#;
const USER: &str = r#"{"role":"user","content":"Well?"}"#;

fn tool(id: &str, content: &str) -> String {
    format!(r#"{{"role":"tool","tool_call_id":"{id}","content":"{content}"}}"#)
}

fn synthetic(id: &str) -> String {
    tool(id, &format!("Error: {}", outcome_unknown()))
}

#[track_caller]
fn assert_repair(rows: &[&str], expected: &[&str], repairs: &[(RepairKind, usize)]) {
    let list = |rows: &[&str]| format!("[{}]", rows.join(","));
    assert_repaired(Api::Chat, &list(rows), &list(expected), repairs);
}

#[test]
fn leaves_a_valid_conversation_unchanged() {
    let rows = [USER, TWO, &tool("a", "1"), &tool("b", "2"), USER, USER];
    assert_document_unchanged(Api::Chat, &format!("[{}]", rows.join(",")));
}

#[test]
fn inserts_missing_results_directly_after_the_row() {
    assert_repair(
        &[TWO, USER],
        &[TWO, &synthetic("a"), &synthetic("b"), USER],
        &[(RepairKind::Dangling, 0), (RepairKind::Dangling, 0)],
    );
}

#[test]
fn completes_a_partial_batch_in_call_order() {
    assert_repair(
        &[TWO, &tool("b", "2"), USER],
        &[TWO, &synthetic("a"), &tool("b", "2"), USER],
        &[(RepairKind::Dangling, 0)],
    );
}

#[test]
fn moves_a_result_after_other_rows_to_its_call() {
    let system = r#"{"role":"system","content":"Be brief."}"#;
    assert_repair(
        &[TWO, &tool("a", "1"), system, &tool("b", "2")],
        &[TWO, &tool("a", "1"), &tool("b", "2"), system],
        &[(RepairKind::Misplaced, 3)],
    );
}

#[test]
fn converts_a_result_without_a_call_to_user_text() {
    assert_repair(
        &[USER, &tool("z", "lost")],
        &[
            USER,
            &format!(
                r#"{{"role":"user","content":[{{"type":"text","text":"{}\nlost"}}]}}"#,
                orphan_heading("z")
            ),
        ],
        &[(RepairKind::Orphan, 1)],
    );
}

#[test]
fn drops_a_duplicate_result() {
    assert_repair(
        &[TWO, &tool("a", "1"), &tool("a", "1"), &tool("b", "2")],
        &[TWO, &tool("a", "1"), &tool("b", "2")],
        &[(RepairKind::DuplicateResult, 2)],
    );
}

#[test]
fn each_row_of_the_model_gets_its_own_results() {
    assert_repair(
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
        &[(RepairKind::Dangling, 0), (RepairKind::Dangling, 0)],
    );
}

#[test]
fn legacy_function_calls_are_matched_by_name() {
    let old =
        r#"{"role":"assistant","content":null,"function_call":{"name":"tides","arguments":"{}"}}"#;
    let result = r#"{"role":"function","name":"tides","content":"two"}"#;
    assert_document_unchanged(Api::Chat, &format!("[{old},{result}]"));
    assert_repair(
        &[old, USER],
        &[
            old,
            &format!(
                r#"{{"role":"function","name":"tides","content":"Error: {}"}}"#,
                outcome_unknown()
            ),
            USER,
        ],
        &[(RepairKind::Dangling, 0)],
    );
}

#[test]
fn drops_a_tail_that_becomes_a_duplicate_during_the_repair() {
    let two = r#"{"role":"assistant","content":"Two."}"#;
    assert_repair(
        &[
            TWO,
            &tool("a", "1"),
            &tool("b", "2"),
            two,
            &tool("a", "1"),
            two,
        ],
        &[TWO, &tool("a", "1"), &tool("b", "2"), two],
        &[
            (RepairKind::DuplicateResult, 4),
            (RepairKind::DuplicateRow, 5),
        ],
    );
}

#[test]
fn leave_still_adds_results_to_older_rows() {
    let document = format!("[{TWO},{USER},{TWO}]");
    let repaired = repair_document(Api::Chat, &document, TrailingCalls::Leave);
    let rows: Vec<usize> = repaired.repairs.iter().map(|repair| repair.row).collect();
    assert_eq!(rows, [0, 0]);
    assert!(repaired.text.ends_with(&format!("{USER},{TWO}]")));
}

#[test]
fn renames_a_duplicate_id_together_with_its_result() {
    let taken = tool("a_2", "0");
    assert_repair(
        &[
            &TWO.replace(r#""b""#, r#""a_2""#),
            &tool("a", "1"),
            &taken,
            &TWO.replace(r#""b""#, r#""a""#),
            &tool("a", "1"),
            &tool("a", "2"),
            USER,
        ],
        &[
            &TWO.replace(r#""b""#, r#""a_2""#),
            &tool("a", "1"),
            &taken,
            &TWO.replace(r#""b""#, r#""a_3""#),
            &tool("a", "1"),
            &tool("a_3", "2"),
            USER,
        ],
        &[(RepairKind::DuplicateId, 3)],
    );
}
