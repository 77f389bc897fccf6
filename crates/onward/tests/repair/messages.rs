//! API messages: one document, one document per line, one message per line.

use crate::harness::Harness;

const CALL: &str = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"tides","arguments":"{}"}}]}"#;
const USE: &str =
    r#"{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"tides","input":{}}]}"#;
const USER: &str = r#"{"role":"user","content":"Well?"}"#;

#[test]
fn detects_and_repairs_an_openai_list() {
    let dir = Harness::new("openai");
    dir.write("a.json", format!("[{CALL},{USER}]"));
    let run = dir.run(&["check", "a.json"]);
    assert!(
        run.stdout.starts_with("a.json, message 0: dangling: "),
        "{run:?}"
    );
    assert_eq!(run.code, Some(10));
    assert_eq!(dir.run(&["repair", "a.json"]).code, Some(0));
    let after = dir.read("a.repaired.json");
    assert!(after.starts_with(&format!(
        r#"[{CALL},{{"role":"tool","tool_call_id":"a","content":"Error: "#
    )));
    assert_eq!(dir.findings("a.repaired.json"), []);
}

#[test]
fn changes_only_the_messages_of_an_anthropic_request() {
    let dir = Harness::new("anthropic");
    let request = format!(
        "{{\n \"max_tokens\": 1e3,\n \"messages\": [{USE},\n{USER}],\n \"system\":\"s\"}}\n"
    );
    dir.write("a.json", &request);
    assert_eq!(dir.findings("a.json"), [(0, "dangling".to_owned())]);
    dir.run(&["repair", "--in-place", "a.json"]);
    let after = dir.read("a.json");
    assert!(after.starts_with(&format!("{{\n \"max_tokens\": 1e3,\n \"messages\": [{USE},\n{{\"role\":\"user\",\"content\":[{{\"type\":\"tool_result\",\"tool_use_id\":\"a\"")));
    assert!(after.ends_with("],\n \"system\":\"s\"}\n"));
    assert_eq!(dir.read("a.json.bak"), request);
    assert_eq!(dir.findings("a.json"), []);
}

#[test]
fn detects_responses_items() {
    let dir = Harness::new("responses");
    let call = r#"{"type":"function_call","call_id":"c","name":"t","arguments":"{}"}"#;
    dir.write("a.json", format!(r#"{{"input":[{USER},{call}]}}"#));
    assert_eq!(dir.findings("a.json"), [(1, "dangling".to_owned())]);
    dir.run(&["repair", "--in-place", "a.json"]);
    assert!(
        dir.read("a.json")
            .contains(r#""type":"function_call_output","call_id":"c""#)
    );
    dir.write("b.jsonl", format!("{USER}\n{call}\n"));
    assert_eq!(dir.findings("b.jsonl"), [(2, "dangling".to_owned())]);
}

#[test]
fn reads_messages_on_lines_as_one_conversation() {
    let dir = Harness::new("lines");
    dir.write("a.jsonl", format!("{USER}\n{CALL}\n\n{USER}\n"));
    assert_eq!(dir.findings("a.jsonl"), [(2, "dangling".to_owned())]);
    dir.run(&["repair", "--in-place", "a.jsonl"]);
    let after = dir.read("a.jsonl");
    let lines: Vec<&str> = after.lines().collect();
    assert_eq!(
        (lines.len(), lines[0], lines[1], lines[3], lines[4]),
        (5, USER, CALL, "", USER)
    );
    assert_eq!(dir.findings("a.jsonl"), []);
}

#[test]
fn reads_documents_on_lines_as_separate_conversations() {
    let dir = Harness::new("documents");
    let clean = format!("[{USER}]");
    let tool = r#"{"role":"tool","tool_call_id":"a","content":"two"}"#;
    dir.write("a.jsonl", format!("{clean}\n[{CALL}]\n[{tool}]"));
    assert_eq!(
        dir.findings("a.jsonl"),
        [(2, "dangling".to_owned()), (3, "orphan".to_owned())]
    );
    dir.run(&["repair", "--in-place", "a.jsonl"]);
    let after = dir.read("a.jsonl");
    assert!(after.starts_with(&format!("{clean}\n[{CALL},")));
    assert!(!after.ends_with('\n'));
    assert_eq!(dir.findings("a.jsonl"), []);
}

#[test]
fn reports_cosmetic_defects_without_failing() {
    let dir = Harness::new("cosmetic");
    let text = format!(
        "[{{\"role\":\"assistant\",\"content\":[{{\"type\":\"thinking\",\"thinking\":\"\"}}]}},{USER},{USER}]"
    );
    dir.write("a.json", &text);
    let run = dir.run(&["check", "a.json"]);
    assert_eq!(run.code, Some(0));
    assert!(
        run.stdout.starts_with("a.json, message 2: merged: "),
        "{run:?}"
    );
    let run = dir.run(&["repair", "a.json"]);
    assert_eq!(run.code, Some(0));
    assert_eq!(dir.names(), ["a.json"]);
}

#[test]
fn uses_the_format_of_the_flag() {
    let dir = Harness::new("named");
    dir.write(
        "a.json",
        r#"[{"role":"user","content":[{"type":"tool_result","tool_use_id":"z"}]}]"#,
    );
    let run = dir.run(&["check", "a.json", "--format", "openai"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(dir.run(&["check", "a.json"]).code, Some(10));
}
