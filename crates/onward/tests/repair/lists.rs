//! Lists of messages: one document, a document on each line, a message on each line.

use crate::desk::Scratch;

const CALL: &str = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"tides","arguments":"{}"}}]}"#;
const USE: &str =
    r#"{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"tides","input":{}}]}"#;
const USER: &str = r#"{"role":"user","content":"Well?"}"#;

#[test]
fn a_list_of_openai_is_told_apart_and_repaired() {
    let scratch = Scratch::new("openai");
    scratch.write("a.json", format!("[{CALL},{USER}]"));
    let run = scratch.run(&["check", "a.json"]);
    assert_eq!(
        run.stdout,
        "a.json, row 0: dangling: the call `a` of `tides` has no result\n"
    );
    assert_eq!(run.code, Some(10));
    assert_eq!(scratch.run(&["repair", "a.json"]).code, Some(0));
    let after = scratch.read("a.repaired.json");
    assert!(after.starts_with(&format!(
        r#"[{CALL},{{"role":"tool","tool_call_id":"a","content":"Error: "#
    )));
    assert_eq!(scratch.found("a.repaired.json"), []);
}

#[test]
fn a_request_of_anthropic_keeps_everything_around_its_messages() {
    let scratch = Scratch::new("anthropic");
    let request = format!(
        "{{\n \"max_tokens\": 1e3,\n \"messages\": [{USE},\n{USER}],\n \"system\":\"s\"}}\n"
    );
    scratch.write("a.json", &request);
    assert_eq!(scratch.found("a.json"), [(0, "dangling".to_owned())]);
    scratch.run(&["repair", "--in-place", "a.json"]);
    let after = scratch.read("a.json");
    assert!(after.starts_with(&format!("{{\n \"max_tokens\": 1e3,\n \"messages\": [{USE},\n{{\"role\":\"user\",\"content\":[{{\"type\":\"tool_result\",\"tool_use_id\":\"a\"")));
    assert!(after.ends_with("],\n \"system\":\"s\"}\n"));
    assert_eq!(scratch.read("a.json.bak"), request);
    assert_eq!(scratch.found("a.json"), []);
}

#[test]
fn items_of_responses_are_told_apart() {
    let scratch = Scratch::new("responses");
    let call = r#"{"type":"function_call","call_id":"c","name":"t","arguments":"{}"}"#;
    scratch.write("a.json", format!(r#"{{"input":[{USER},{call}]}}"#));
    assert_eq!(scratch.found("a.json"), [(1, "dangling".to_owned())]);
    scratch.run(&["repair", "--in-place", "a.json"]);
    assert!(
        scratch
            .read("a.json")
            .contains(r#""type":"function_call_output","call_id":"c""#)
    );
    scratch.write("b.jsonl", format!("{USER}\n{call}\n"));
    assert_eq!(scratch.found("b.jsonl"), [(2, "dangling".to_owned())]);
}

#[test]
fn messages_on_lines_are_one_conversation() {
    let scratch = Scratch::new("lines");
    scratch.write("a.jsonl", format!("{USER}\n{CALL}\n\n{USER}\n"));
    assert_eq!(scratch.found("a.jsonl"), [(2, "dangling".to_owned())]);
    scratch.run(&["repair", "--in-place", "a.jsonl"]);
    let after = scratch.read("a.jsonl");
    let lines: Vec<&str> = after.lines().collect();
    assert_eq!(
        (lines.len(), lines[0], lines[1], lines[3]),
        (4, USER, CALL, USER)
    );
    assert_eq!(scratch.found("a.jsonl"), []);
}

#[test]
fn documents_on_lines_are_conversations_of_their_own() {
    let scratch = Scratch::new("documents");
    let fine = format!("[{USER}]");
    let tool = r#"{"role":"tool","tool_call_id":"a","content":"two"}"#;
    scratch.write("a.jsonl", format!("{fine}\n[{CALL}]\n[{tool}]"));
    assert_eq!(
        scratch.found("a.jsonl"),
        [(2, "dangling".to_owned()), (3, "orphan".to_owned())]
    );
    scratch.run(&["repair", "--in-place", "a.jsonl"]);
    let after = scratch.read("a.jsonl");
    assert!(after.starts_with(&format!("{fine}\n[{CALL},")));
    assert!(!after.ends_with('\n'));
    assert_eq!(scratch.found("a.jsonl"), []);
}

#[test]
fn what_is_untidy_is_shown_and_does_not_count() {
    let scratch = Scratch::new("untidy");
    let text = format!(
        "[{{\"role\":\"assistant\",\"content\":[{{\"type\":\"thinking\",\"thinking\":\"\"}}]}},{USER},{USER}]"
    );
    scratch.write("a.json", &text);
    let run = scratch.run(&["check", "a.json"]);
    assert_eq!(
        (run.code, run.stdout.as_str()),
        (
            Some(0),
            "a.json, row 2: merged: it has the role of the row before\n"
        )
    );
    let run = scratch.run(&["repair", "a.json"]);
    assert_eq!(run.code, Some(0));
    assert_eq!(scratch.names(), ["a.json"]);
}

#[test]
fn a_format_that_is_named_is_not_told() {
    let scratch = Scratch::new("named");
    scratch.write(
        "a.json",
        r#"[{"role":"user","content":[{"type":"tool_result","tool_use_id":"z"}]}]"#,
    );
    let run = scratch.run(&["check", "a.json", "--format", "openai"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(scratch.run(&["check", "a.json"]).code, Some(10));
}
