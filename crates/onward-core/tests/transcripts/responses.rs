//! OpenAI's Responses: what breaks a conversation there, and what comes out.

use onward_core::transcript::{Api, Frontier, What, repair_document};

use crate::desk::{UNKNOWN, repairs_to, stays};

const USER: &str = r#"{"role":"user","content":"Well?"}"#;
const THOUGHT: &str = r#"{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"…"}"#;

fn call(id: &str) -> String {
    format!(r#"{{"type":"function_call","call_id":"{id}","name":"tides","arguments":"{{}}"}}"#)
}

fn output(id: &str, output: &str) -> String {
    format!(r#"{{"type":"function_call_output","call_id":"{id}","output":"{output}"}}"#)
}

fn synthetic(id: &str) -> String {
    output(id, &format!("Error: {UNKNOWN}"))
}

fn list(rows: &[&str]) -> String {
    format!("[{}]", rows.join(","))
}

#[track_caller]
fn becomes(rows: &[&str], expected: &[&str], wrong: &[(What, usize)]) {
    repairs_to(Api::Responses, &list(rows), &list(expected), wrong);
}

#[test]
fn a_conversation_that_the_api_takes_stays() {
    let said =
        r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Now."}]}"#;
    stays(
        Api::Responses,
        &list(&[
            USER,
            THOUGHT,
            &call("a"),
            said,
            &call("b"),
            &output("a", "1"),
            &output("b", "2"),
            &call("c"),
            &output("c", "3"),
        ]),
    );
}

#[test]
fn missing_outputs_stand_after_the_last_item_of_the_response() {
    becomes(
        &[THOUGHT, &call("a"), THOUGHT, &call("b"), USER],
        &[
            THOUGHT,
            &call("a"),
            THOUGHT,
            &call("b"),
            &synthetic("a"),
            &synthetic("b"),
            USER,
        ],
        &[(What::Dangling, 1), (What::Dangling, 3)],
    );
}

#[test]
fn custom_tools_and_the_local_shell_are_answered_in_their_own_way() {
    let custom = r#"{"type":"custom_tool_call","call_id":"p","name":"apply_patch","input":"…"}"#;
    let shell = r#"{"type":"local_shell_call","call_id":"s","action":{"type":"exec"}}"#;
    becomes(
        &[custom, shell],
        &[
            custom,
            shell,
            &format!(
                r#"{{"type":"custom_tool_call_output","call_id":"p","output":"Error: {UNKNOWN}"}}"#
            ),
            &synthetic("s"),
        ],
        &[(What::Dangling, 0), (What::Dangling, 1)],
    );
}

#[test]
fn calls_of_other_kinds_are_left_alone_and_their_outputs_are_no_orphans() {
    let computer = r#"{"type":"computer_call","call_id":"c","action":{"type":"screenshot"}}"#;
    let screen =
        r#"{"type":"computer_call_output","call_id":"c","output":{"type":"computer_screenshot"}}"#;
    stays(Api::Responses, &list(&[computer, screen, USER, computer]));
}

#[test]
fn an_output_without_a_call_becomes_words_of_the_user() {
    becomes(
        &[USER, &output("z", "lost")],
        &[
            USER,
            r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"[Result of `z`, a tool call that is not part of this conversation]\nlost"}]}"#,
        ],
        &[(What::Orphan, 1)],
    );
}

#[test]
fn a_doubled_output_goes_and_a_late_one_is_moved() {
    becomes(
        &[&call("a"), USER, &output("a", "1"), &output("a", "2")],
        &[&call("a"), &output("a", "1"), USER],
        &[(What::Misplaced, 2), (What::Doubled, 3)],
    );
}

#[test]
fn a_request_that_goes_on_from_what_the_server_remembers_is_left_alone() {
    for field in [
        r#""previous_response_id":"resp_1""#,
        r#""conversation":"conv_1""#,
    ] {
        stays(
            Api::Responses,
            &format!(r#"{{{field},"input":[{}]}}"#, output("z", "1")),
        );
    }
    let request = format!(
        r#"{{"previous_response_id":null,"input":[{}]}}"#,
        output("z", "1")
    );
    let repaired = repair_document(Api::Responses, &request, Frontier::Answer);
    assert_eq!(repaired.repairs.len(), 1);
}
