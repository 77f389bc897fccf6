//! Calls, as the hooks of each agent tell of them.

use serde_json::{Value, json};

use crate::desk::Desk;

fn calls(desk: &Desk) -> Vec<Value> {
    let list = desk.ask(&["session", "list", "--json"]);
    let id = list["sessions"][0]["sessionId"]
        .as_str()
        .unwrap()
        .to_owned();
    let shown = desk.ask(&["session", "show", &id, "--json"]);
    shown["calls"].as_array().unwrap().clone()
}

/// The payload of an event, about the call that `before` told of first.
fn about_the_first(desk: &Desk, agent: &str, name: &str) {
    let number = |text: &str| {
        let start = text.find("before_").unwrap() + "before_".len();
        let rest = &text[start..];
        let end = rest.find('"').unwrap();
        rest[..end].to_owned()
    };
    let payload = desk.payload(name);
    let payload = match payload.contains("before_") {
        true => payload.replace(&format!("before_{}", number(&payload)), "before_0"),
        false => payload,
    };
    let answer = desk.send(&["hook", agent], payload.as_bytes());
    assert_eq!((answer.code, answer.stderr.as_str()), (Some(0), ""));
}

#[test]
fn every_agents_call_is_recorded_before_it_is_made() {
    for agent in [
        "claude-code",
        "codex",
        "gemini",
        "kimi",
        "cursor",
        "opencode",
    ] {
        let desk = Desk::new(&format!("calls-{agent}"), agent);
        desk.tell("before");
        let calls = calls(&desk);
        assert_eq!(calls.len(), 1, "{agent}");
        let call = &calls[0];
        assert_eq!(call["status"], "running", "{agent}");
        assert!(
            call["input"].as_str().unwrap().contains("ls"),
            "{agent}: {call}"
        );
        // The test itself started the hook, as the agent would.
        let owner = &call["owner"]["processId"];
        assert_eq!(owner, &json!(std::process::id()), "{agent}: {call}");
        assert!(call["staleAt"].is_string(), "{agent}: {call}");
    }
}

#[test]
fn a_person_who_is_asked_stops_the_clock() {
    for agent in ["claude-code", "codex", "kimi", "opencode"] {
        let desk = Desk::new(&format!("permission-{agent}"), agent);
        desk.tell("before");
        about_the_first(&desk, agent, "permission");
        let call = &calls(&desk)[0];
        assert_eq!(call["status"], "awaiting_approval", "{agent}: {call}");
        assert_eq!(call.get("staleAt"), None, "{agent}: {call}");
    }
}

#[test]
fn results_are_given_to_their_calls_alone_and_in_batches() {
    let desk = Desk::new("results", "claude-code");
    let before = |id: &str, tool: &str| {
        let payload = json!({
            "session_id": "s", "hook_event_name": "PreToolUse", "tool_name": tool,
            "tool_input": { "command": id }, "tool_use_id": id,
        });
        desk.send(&["hook", "claude-code"], payload.to_string().as_bytes())
            .is_silent();
    };
    before("a", "Bash");
    before("b", "Bash");
    before("c", "Task");
    let alone = json!({
        "session_id": "s", "hook_event_name": "PostToolUseFailure", "tool_name": "Bash",
        "tool_input": { "command": "a" }, "tool_use_id": "a", "error": "Exit code 2",
    });
    desk.send(&["hook", "claude-code"], alone.to_string().as_bytes())
        .is_silent();
    let status = || {
        let all = calls(&desk);
        let word = |call: &Value| call["status"].as_str().unwrap().to_owned();
        all.iter().map(word).collect::<Vec<_>>()
    };
    assert_eq!(status(), ["failed", "running", "running"]);
    let told = |id: &str| {
        json!({ "tool_name": "Bash", "tool_input": { "command": id }, "tool_use_id": id,
                "tool_response": "made" })
    };
    let batch = json!({
        "session_id": "s", "hook_event_name": "PostToolBatch",
        "tool_calls": [told("a"), told("b")],
    });
    desk.send(&["hook", "claude-code"], batch.to_string().as_bytes())
        .is_silent();
    assert_eq!(status(), ["failed", "completed", "running"]);
    // A subagent has no timeout, and so no clock while its owner lives.
    assert_eq!(calls(&desk)[2].get("staleAt"), None);
    let text = desk.send(&["session", "show", "s", "--calls"], b"").stdout;
    for words in ["failed just now", "completed just now", "it has no timeout"] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn results_are_taken_although_nothing_is_done_about_turns() {
    let desk = Desk::new("results-off", "codex").set("ONWARD_LOOP_CONTROL__ON_STALL", "off");
    desk.tell("before");
    let before = desk.payload("before");
    let mut result: Value = serde_json::from_str(&before).unwrap();
    result["hook_event_name"] = json!("PostToolUse");
    result["tool_response"] = json!("files");
    let id = calls(&desk)[0]["callId"].clone();
    result["tool_use_id"] = id;
    desk.send(&["hook", "codex"], result.to_string().as_bytes())
        .is_silent();
    assert_eq!(calls(&desk)[0]["status"], "completed");
}
