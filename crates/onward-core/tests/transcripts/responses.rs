//! Repairs for OpenAI's Responses API.

use onward_core::transcript::{Api, RepairKind, TrailingCalls, repair_document};

use crate::harness::{assert_document_unchanged, assert_repaired, orphan_heading, outcome_unknown};

const USER: &str = r#"{"role":"user","content":"Well?"}"#;
const REASONING: &str = r#"{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"…"}"#;

fn call(id: &str) -> String {
    format!(r#"{{"type":"function_call","call_id":"{id}","name":"tides","arguments":"{{}}"}}"#)
}

fn output(id: &str, output: &str) -> String {
    format!(r#"{{"type":"function_call_output","call_id":"{id}","output":"{output}"}}"#)
}

fn synthetic(id: &str) -> String {
    output(id, &format!("Error: {}", outcome_unknown()))
}

fn list(rows: &[&str]) -> String {
    format!("[{}]", rows.join(","))
}

#[track_caller]
fn assert_repair(rows: &[&str], expected: &[&str], repairs: &[(RepairKind, usize)]) {
    assert_repaired(Api::Responses, &list(rows), &list(expected), repairs);
}

#[test]
fn leaves_a_valid_conversation_unchanged() {
    let message =
        r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Now."}]}"#;
    assert_document_unchanged(
        Api::Responses,
        &list(&[
            USER,
            REASONING,
            &call("a"),
            message,
            &call("b"),
            &output("a", "1"),
            &output("b", "2"),
            &call("c"),
            &output("c", "3"),
        ]),
    );
}

#[test]
fn inserts_missing_outputs_after_the_last_item_of_the_response() {
    assert_repair(
        &[REASONING, &call("a"), REASONING, &call("b"), USER],
        &[
            REASONING,
            &call("a"),
            REASONING,
            &call("b"),
            &synthetic("a"),
            &synthetic("b"),
            USER,
        ],
        &[(RepairKind::Dangling, 1), (RepairKind::Dangling, 3)],
    );
}

#[test]
fn custom_tools_and_the_local_shell_have_their_own_output_types() {
    let custom = r#"{"type":"custom_tool_call","call_id":"p","name":"apply_patch","input":"…"}"#;
    let shell = r#"{"type":"local_shell_call","call_id":"s","action":{"type":"exec"}}"#;
    assert_repair(
        &[custom, shell],
        &[
            custom,
            shell,
            &format!(
                r#"{{"type":"custom_tool_call_output","call_id":"p","output":"Error: {}"}}"#,
                outcome_unknown()
            ),
            &synthetic("s"),
        ],
        &[(RepairKind::Dangling, 0), (RepairKind::Dangling, 1)],
    );
}

#[test]
fn leaves_other_call_types_and_their_outputs_unchanged() {
    let computer = r#"{"type":"computer_call","call_id":"c","action":{"type":"screenshot"}}"#;
    let screen =
        r#"{"type":"computer_call_output","call_id":"c","output":{"type":"computer_screenshot"}}"#;
    assert_document_unchanged(Api::Responses, &list(&[computer, screen, USER, computer]));
}

#[test]
fn converts_an_output_without_a_call_to_user_text() {
    assert_repair(
        &[USER, &output("z", "lost")],
        &[
            USER,
            &format!(
                r#"{{"type":"message","role":"user","content":[{{"type":"input_text","text":"{}\nlost"}}]}}"#,
                orphan_heading("z")
            ),
        ],
        &[(RepairKind::Orphan, 1)],
    );
}

#[test]
fn drops_a_duplicate_output_and_moves_a_late_one() {
    assert_repair(
        &[&call("a"), USER, &output("a", "1"), &output("a", "2")],
        &[&call("a"), &output("a", "1"), USER],
        &[(RepairKind::Misplaced, 2), (RepairKind::DuplicateResult, 3)],
    );
}

#[test]
fn leaves_a_request_with_server_side_state_unchanged() {
    for field in [
        r#""previous_response_id":"resp_1""#,
        r#""conversation":"conv_1""#,
    ] {
        assert_document_unchanged(
            Api::Responses,
            &format!(r#"{{{field},"input":[{}]}}"#, output("z", "1")),
        );
    }
    let request = format!(
        r#"{{"previous_response_id":null,"input":[{}]}}"#,
        output("z", "1")
    );
    let repaired = repair_document(Api::Responses, &request, TrailingCalls::Answer);
    assert_eq!(repaired.repairs.len(), 1);
}

#[test]
fn renames_a_duplicate_id_together_with_its_result() {
    assert_repair(
        &[&call("a"), REASONING, &call("a"), &output("a", "1"), USER],
        &[
            &call("a"),
            REASONING,
            &call("a_2"),
            &output("a", "1"),
            &synthetic("a_2"),
            USER,
        ],
        &[(RepairKind::DuplicateId, 2), (RepairKind::Dangling, 2)],
    );
}
