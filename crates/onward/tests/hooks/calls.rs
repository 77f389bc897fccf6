//! Tool calls recorded by the hooks of each agent.

use onward_core::Timestamp;
use onward_core::call::CallStatus;
use serde_json::{Value, json};

use crate::harness::Harness;

fn calls(harness: &Harness) -> Vec<Value> {
    harness.session()["calls"].as_array().unwrap().clone()
}

/// Sends a payload, with the id of the first call that `before` reported.
fn send_for_first_call(harness: &Harness, name: &str) {
    let payload = harness.payload(name);
    let payload = match payload.split_once("before_") {
        Some((start, rest)) => {
            let (_, end) = rest.split_once('"').unwrap();
            format!("{start}before_0\"{end}")
        }
        None => payload,
    };
    let output = harness.send_payload(&payload);
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""));
}

#[test]
fn records_a_call_of_every_agent_before_it_runs() {
    for agent in [
        "claude-code",
        "codex",
        "gemini",
        "kimi",
        "cursor",
        "opencode",
    ] {
        let harness = Harness::new(&format!("calls-{agent}"), agent);
        harness.send("before_tool");
        let calls = calls(&harness);
        assert_eq!(calls.len(), 1, "{agent}");
        let call = &calls[0];
        assert_eq!(call["status"], "running", "{agent}");
        assert!(
            call["input"].as_str().unwrap().contains("ls"),
            "{agent}: {call}"
        );
        // The test process started the hook, like an agent.
        let owner = &call["owner"]["processId"];
        assert_eq!(owner, &json!(std::process::id()), "{agent}: {call}");
        assert!(call["staleAt"].is_string(), "{agent}: {call}");
    }
}

#[test]
fn a_call_awaiting_approval_has_no_timeout() {
    for agent in ["claude-code", "codex", "kimi", "opencode"] {
        let harness = Harness::new(&format!("permission-{agent}"), agent);
        harness.send("before_tool");
        send_for_first_call(&harness, "permission");
        let call = &calls(&harness)[0];
        assert_eq!(call["status"], "awaiting_approval", "{agent}: {call}");
        assert_eq!(call.get("staleAt"), None, "{agent}: {call}");
    }
}

#[test]
fn assigns_single_and_batched_results_to_their_calls() {
    let harness = Harness::new("results", "claude-code");
    let before = |id: &str, tool: &str| {
        let payload = json!({
            "session_id": "s", "hook_event_name": "PreToolUse", "tool_name": tool,
            "tool_input": { "command": id }, "tool_use_id": id,
        });
        harness.send_payload(&payload.to_string()).assert_empty();
    };
    before("a", "Bash");
    before("b", "Bash");
    before("c", "Task");
    let single = json!({
        "session_id": "s", "hook_event_name": "PostToolUseFailure", "tool_name": "Bash",
        "tool_input": { "command": "a" }, "tool_use_id": "a", "error": "Exit code 2",
    });
    harness.send_payload(&single.to_string()).assert_empty();
    let statuses = || {
        let calls = calls(&harness);
        let status = |call: &Value| call["status"].as_str().unwrap().to_owned();
        calls.iter().map(status).collect::<Vec<_>>()
    };
    assert_eq!(statuses(), ["failed", "running", "running"]);
    let result = |id: &str| {
        json!({ "tool_name": "Bash", "tool_input": { "command": id }, "tool_use_id": id,
                "tool_response": "made" })
    };
    let batch = json!({
        "session_id": "s", "hook_event_name": "PostToolBatch",
        "tool_calls": [result("a"), result("b")],
    });
    harness.send_payload(&batch.to_string()).assert_empty();
    assert_eq!(statuses(), ["failed", "completed", "running"]);
    // A call that starts a subagent has no timeout while its owner is alive.
    assert_eq!(calls(&harness)[2].get("staleAt"), None);
    let text = harness
        .run(&["session", "show", "s", "--calls"], b"")
        .stdout;
    for status in [
        CallStatus::Failed,
        CallStatus::Completed,
        CallStatus::Running,
    ] {
        assert!(text.contains(status.as_str()), "{status:?}: {text}");
    }
}

#[test]
fn records_results_if_loop_control_is_off() {
    let harness =
        Harness::new("results-off", "codex").with_env("ONWARD_LOOP_CONTROL__ON_STALL", "off");
    harness.send("before_tool");
    let before = harness.payload("before_tool");
    let mut result: Value = serde_json::from_str(&before).unwrap();
    result["hook_event_name"] = json!("PostToolUse");
    result["tool_response"] = json!("files");
    result["tool_use_id"] = calls(&harness)[0]["callId"].clone();
    harness.send_payload(&result.to_string()).assert_empty();
    assert_eq!(calls(&harness)[0]["status"], "completed");
}

#[test]
fn kimi_reports_the_decision_of_the_user() {
    for (decision, status) in [
        ("approved", "running"),
        ("rejected", "denied"),
        ("cancelled", "denied"),
    ] {
        let harness = Harness::new(&format!("decision-{decision}"), "kimi");
        harness.send("before_tool");
        send_for_first_call(&harness, "permission");
        let payload = harness.payload("permission_result");
        let payload = payload
            .replace("approved", decision)
            .replace("before_2", "before_0");
        harness.send_payload(&payload);
        assert_eq!(calls(&harness)[0]["status"], status, "{decision}");
    }
}

#[test]
fn a_call_has_the_timeout_of_its_agent_and_its_environment() {
    for (agent, timeout) in [
        ("claude-code", 120_000),
        ("codex", 10_000),
        ("gemini", 300_000),
        ("kimi", 60_000),
        ("opencode", 120_000),
    ] {
        let harness = Harness::new(&format!("timeout-{agent}"), agent);
        harness.send("before_tool");
        assert_eq!(calls(&harness)[0]["timeoutMs"], timeout, "{agent}");
    }
    let harness = Harness::new("timeout-variable", "claude-code");
    let harness = harness.with_env("BASH_DEFAULT_TIMEOUT_MS", 300_000);
    harness.send("before_tool");
    assert_eq!(calls(&harness)[0]["timeoutMs"], 300_000);
}

#[test]
fn the_configuration_of_the_payloads_directory_sets_timeouts() {
    let harness = Harness::new("timeout-configuration", "kimi");
    let project = harness.program.dir.join("project");
    std::fs::create_dir_all(project.join("src")).unwrap();
    let config = "[calls]\ngrace_ms = 1000\ntool_timeouts_ms = [\"kimi/Bash=7000\"]\n";
    std::fs::write(project.join("onward.toml"), config).unwrap();
    let payload = harness.payload("before_tool");
    let folder = harness.work_dir().display().to_string();
    let inside = project.join("src").display().to_string();
    harness.send_payload(&payload.replace(&folder, &inside));
    let call = &calls(&harness)[0];
    assert_eq!(call["timeoutMs"], 7_000);
    let at = |key: &str| call[key].as_str().unwrap().parse::<Timestamp>().unwrap();
    let span = at("staleAt").as_millis() - at("startedAt").as_millis();
    assert_eq!(span, 8_000);
}
