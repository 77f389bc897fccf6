//! Logs of agents: Codex, opencode, Kimi, Copilot and Gemini.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use onward_core::call::Cause;
use onward_core::call::message::for_model;
use serde_json::{Value, json};

use crate::harness::{Harness, log, parse_lines};

const AT: &str = "2026-03-01T10:00:00.000Z";

fn item(ordinal: u64, payload: Value) -> Value {
    json!({"timestamp": AT, "ordinal": ordinal, "type": "response_item", "payload": payload})
}

fn event(ordinal: u64, kind: &str) -> Value {
    json!({"timestamp": AT, "ordinal": ordinal, "type": "event_msg", "payload": {"type": kind}})
}

fn call(id: &str) -> Value {
    json!({"type": "function_call", "name": "exec_command", "arguments": "{}", "call_id": id})
}

fn output(id: &str, output: &str) -> Value {
    json!({"type": "function_call_output", "call_id": id, "output": output})
}

fn user(text: &str) -> Value {
    json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})
}

fn unknown() -> String {
    for_model(Cause::OutcomeUnknown, None)
}

fn kinds(dir: &Harness, name: &str) -> Vec<(u64, String)> {
    dir.findings(name)
}

fn found(line: u64, kind: &str) -> (u64, String) {
    (line, kind.to_owned())
}

#[test]
fn adds_missing_results_to_a_codex_rollout() {
    let dir = Harness::new("codex");
    let before = [
        json!({"timestamp": AT, "ordinal": 0, "type": "session_meta", "payload": {"id": "5e55"}}),
        item(1, user("Go.")),
        item(2, call("a")),
        item(3, call("b")),
        event(4, "token_count"),
        item(5, output("b", "ok")),
        item(6, user("Well?")),
    ];
    let after = dir.repaired(&before);
    let text = format!("Error: {}", unknown());
    let new = json!({
        "timestamp": AT, "ordinal": 4, "type": "response_item", "payload": output("a", &text),
        "onward": {"synthetic": true},
    });
    let mut expected = before.to_vec();
    expected.insert(4, new);
    for (ordinal, line) in expected.iter_mut().enumerate() {
        line["ordinal"] = ordinal.into();
    }
    assert_eq!(after, expected);
}

#[test]
fn repairs_results_and_ids_of_a_codex_rollout() {
    let dir = Harness::new("codex-results");
    let before = [
        item(1, user("Go.")),
        item(2, call("a")),
        item(3, output("a", "1")),
        item(4, output("a", "2")),
        item(5, output("lost", "3")),
        item(6, call("b")),
        item(7, call("b")),
        item(8, output("b", "4")),
        item(9, output("b", "5")),
        item(10, user("Well?")),
    ];
    dir.write("a.jsonl", log(&before));
    let problems = [
        found(4, "doubled"),
        found(5, "orphan"),
        found(7, "doubled_id"),
    ];
    assert_eq!(kinds(&dir, "a.jsonl"), problems);
    let after = dir.repaired(&before);
    let payloads: Vec<&Value> = after.iter().map(|line| &line["payload"]).collect();
    assert_eq!(payloads.len(), 9);
    assert_eq!(payloads[3]["role"], "user");
    let ids: Vec<&Value> = payloads[4..8].iter().map(|item| &item["call_id"]).collect();
    assert_eq!(ids, ["b", "b_2", "b", "b_2"]);
}

#[test]
fn reads_the_list_of_a_compaction_as_the_beginning_of_a_codex_conversation() {
    let dir = Harness::new("codex-compacted");
    let compacted = |items: Value| {
        json!({"timestamp": AT, "type": "compacted",
            "payload": {"message": "", "replacement_history": items}})
    };
    let items = json!([user("Go."), call("a"), user("And?"), call("b")]);
    let before = [
        item(1, call("old")),
        item(2, output("old", "1")),
        compacted(items),
        item(3, output("b", "2")),
        item(4, user("Well?")),
    ];
    let after = dir.repaired(&before);
    let text = format!("Error: {}", unknown());
    let items = json!([
        user("Go."),
        call("a"),
        output("a", &text),
        user("And?"),
        call("b")
    ]);
    let mut expected = before.to_vec();
    expected[2] = compacted(items);
    assert_eq!(after, expected);
}

#[test]
fn keeps_running_calls_and_invalid_lines_of_a_codex_rollout() {
    let dir = Harness::new("codex-open");
    let mut open = item(2, call("a"));
    open["timestamp"] = "2999-01-01T00:00:00.000Z".into();
    let text = format!("{}{{\"half\n{}", log(&[item(1, user("Go."))]), log(&[open]));
    dir.write("a.jsonl", &text);
    let run = dir.run(&["check", "a.jsonl"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), ""), "{run:?}");
    assert!(run.stderr.contains("`a.jsonl`, line 2: "), "{run:?}");
    assert!(run.stderr.contains("`--ended`"), "{run:?}");
    let run = dir.run(&["repair", "--ended", "--in-place", "a.jsonl"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let after = dir.read("a.jsonl");
    assert!(after.starts_with(&text), "{after}");
    assert_eq!(after.lines().count(), 4);
}

/// An exported session with calls in these states: id and state.
fn export(calls: &[(&str, Value)]) -> String {
    let parts: Vec<Value> = calls
        .iter()
        .map(|(id, state)| json!({"id": "p", "type": "tool", "callID": id, "tool": "bash", "state": state}))
        .collect();
    let time = json!({"created": 1_772_359_200_000_u64});
    let export = json!({
        "info": {"id": "ses_1", "title": "Tides"},
        "messages": [
            {"info": {"role": "user", "time": time}, "parts": [{"type": "text", "text": "Go."}]},
            {"info": {"role": "assistant", "time": time}, "parts": parts},
            {"info": {"role": "assistant", "time": time}, "parts": [{"type": "text", "text": "So."}]},
        ],
    });
    format!("{export:#}\n")
}

#[test]
fn replaces_the_state_of_interrupted_calls_of_an_opencode_export() {
    let dir = Harness::new("opencode");
    let input = json!({"command": "make"});
    let running = json!({"status": "running", "input": input, "metadata": {"output": "1"}, "time": {"start": 7}});
    let pending = json!({"status": "pending", "input": {}, "raw": ""});
    let done = json!({"status": "completed", "input": input, "output": "ok", "title": "", "metadata": {}, "time": {"start": 7, "end": 8}});
    dir.write(
        "a.json",
        export(&[
            ("a", running),
            ("b", done.clone()),
            ("c", pending),
            ("b", done.clone()),
        ]),
    );
    let problems = [
        found(1, "dangling"),
        found(1, "dangling"),
        found(1, "doubled_id"),
    ];
    assert_eq!(kinds(&dir, "a.json"), problems);
    assert_eq!(dir.run(&["repair", "--in-place", "a.json"]).code, Some(0));
    let failed = |input: &Value, start: u64| json!({"status": "error", "input": input, "error": unknown(), "time": {"start": start, "end": start}});
    let mut first = failed(&input, 7);
    first["metadata"] = json!({"output": "1"});
    let expected = export(&[
        ("a", first),
        ("b", done.clone()),
        ("c", failed(&json!({}), 0)),
        ("b_2", done),
    ]);
    let parse = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
    assert_eq!(parse(&dir.read("a.json")), parse(&expected));
    assert_eq!(kinds(&dir, "a.json"), []);
}

#[test]
fn repairs_the_database_of_opencode() {
    let dir = Harness::new("opencode-store");
    let encoded = include_str!("../fixtures/transcript/opencode.db.base64");
    let encoded: String = encoded.split_whitespace().collect();
    let before = STANDARD.decode(encoded).expect("base64");
    dir.write("a.db", &before);
    let problems = [found(1, "dangling"), found(3, "stale")];
    assert_eq!(kinds(&dir, "a.db"), problems);
    let run = dir.run(&["repair", "a.db"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(kinds(&dir, "a.repaired.db"), []);
    assert_eq!(kinds(&dir, "a.db"), problems);
    let run = dir.run(&["repair", "--in-place", "a.db"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(kinds(&dir, "a.db"), []);
    assert_eq!(kinds(&dir, "a.db.bak"), problems);
    let run = dir.run(&["judge", "--json", "a.db"]);
    let ids: Vec<Value> = run
        .json_lines()
        .iter()
        .map(|row| row["id"].clone())
        .collect();
    assert_eq!(ids, ["a.db@ses_1#0", "a.db@ses_2#0"]);
}

fn kimi(event: Value) -> Value {
    json!({"type": "context.append_loop_event", "event": event, "time": 1_772_359_200_000_u64})
}

#[test]
fn adds_missing_results_to_a_kimi_log() {
    let dir = Harness::new("kimi");
    let step = |id: &str| kimi(json!({"type": "step.begin", "uuid": id}));
    let call = |id: &str| {
        kimi(
            json!({"type": "tool.call", "uuid": format!("c-{id}"), "stepUuid": "s1", "toolCallId": id, "name": "Bash", "args": {}}),
        )
    };
    let before = [
        json!({"type": "metadata", "protocol_version": "1.4", "created_at": 1}),
        json!({"type": "turn.prompt", "input": []}),
        step("s1"),
        call("Bash:0"),
        call("Bash:1"),
        kimi(json!({"type": "tool.result", "toolCallId": "Bash:0", "result": {"output": "ok"}})),
        kimi(json!({"type": "step.end", "uuid": "s1"})),
        step("s2"),
        kimi(json!({"type": "step.end", "uuid": "s2"})),
    ];
    dir.write("a.jsonl", log(&before));
    assert_eq!(kinds(&dir, "a.jsonl"), [found(5, "dangling")]);
    let after = dir.repaired(&before);
    let mut new = kimi(json!({
        "type": "tool.result", "parentUuid": "c-Bash:1", "toolCallId": "Bash:1",
        "result": {"output": unknown(), "isError": true},
    }));
    new["onward"] = json!({"synthetic": true, "cause": "outcome_unknown"});
    let mut expected = before.to_vec();
    expected.insert(6, new);
    assert_eq!(after, expected);
}

#[test]
fn ignores_the_calls_before_a_compaction_of_a_kimi_log() {
    let dir = Harness::new("kimi-compacted");
    let lines = [
        json!({"type": "turn.prompt", "input": []}),
        kimi(json!({"type": "step.begin", "uuid": "s1"})),
        kimi(json!({"type": "tool.call", "stepUuid": "s1", "toolCallId": "a", "name": "Bash"})),
        json!({"type": "context.apply_compaction", "summary": "So far."}),
        kimi(json!({"type": "step.begin", "uuid": "s2"})),
    ];
    dir.write("a.jsonl", log(&lines));
    assert_eq!(kinds(&dir, "a.jsonl"), []);
}

#[test]
fn reports_but_does_not_repair_copilot_and_gemini_sessions() {
    let dir = Harness::new("unsupported");
    let request = json!({"toolCallId": "a", "name": "bash", "arguments": {}});
    let message = |requests: Value| json!({"type": "assistant.message", "data": {"content": "", "toolRequests": requests}, "timestamp": AT});
    let copilot = [message(json!([request])), message(json!([]))];
    let gemini = [
        json!({"sessionId": "5e55", "projectHash": "9a7e", "startTime": AT}),
        json!({"id": "m1", "type": "gemini", "timestamp": AT, "content": "",
            "toolCalls": [{"id": "a", "name": "run_shell_command", "args": {}, "status": "executing"}]}),
        json!({"id": "m2", "type": "gemini", "timestamp": AT, "content": "So."}),
    ];
    for (name, lines, line) in [
        ("copilot.jsonl", &copilot[..], 1),
        ("gemini.jsonl", &gemini[..], 2),
    ] {
        dir.write(name, log(lines));
        assert_eq!(kinds(&dir, name), [found(line, "dangling")]);
        let run = dir.run(&["repair", name]);
        assert_eq!(run.code, Some(1), "{run:?}");
        assert!(run.stderr.contains("\nhint: "), "{run:?}");
        assert_eq!(parse_lines(&dir.read(name)), lines);
    }
}

#[test]
fn finds_no_problems_in_complete_sessions() {
    let dir = Harness::new("complete");
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/transcript");
    for name in [
        "codex.jsonl",
        "copilot.jsonl",
        "gemini.jsonl",
        "kimi.jsonl",
        "openai-responses.json",
        "opencode.json",
    ] {
        let run = dir.run(&["check", "--ended", &format!("{fixtures}/{name}")]);
        assert_eq!(
            (run.code, run.stdout.as_str()),
            (Some(0), ""),
            "{name}: {run:?}"
        );
    }
}
