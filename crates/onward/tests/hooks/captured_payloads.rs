//! Captured payloads that differ from the agents' documentation.

use onward_testbed::Cluster;
use serde_json::{Value, json};

use crate::harness::{Harness, is_denied};

fn turns(harness: &Harness) -> usize {
    harness.session()["turns"].as_array().unwrap().len()
}

fn last_turn(harness: &Harness) -> Value {
    let session = harness.session();
    session["turns"].as_array().unwrap().last().unwrap().clone()
}

fn idle_steps(harness: &Harness) -> u64 {
    last_turn(harness)["idleSteps"].as_u64().unwrap()
}

/// The first call of the last step.
fn last_call(harness: &Harness) -> Value {
    let turn = last_turn(harness);
    turn["steps"].as_array().unwrap().last().unwrap()["calls"][0].clone()
}

#[track_caller]
fn assert_output_starts_with(call: &Value, start: &str) {
    let output = call["output"].as_str().unwrap();
    assert!(output.starts_with(start), "{output}");
}

#[test]
fn claude_code_task_notification_enables_tools_in_the_same_turn() {
    let harness = Harness::new("notification", "claude-code");
    harness.send("prompt").assert_empty();
    harness.send_idle_steps(8);
    assert!(is_denied(&harness.send("before_tool")));
    harness.send("task_notification").assert_empty();
    harness.send("before_tool").assert_empty();
    assert_eq!(turns(&harness), 1);
}

/// Polls without a background task, while one runs, and after it has ended.
fn polls_a_background_task(harness: &Harness, started: &str, task: &str) {
    harness.send("prompt").assert_empty();
    for _ in 0..4 {
        harness.send("sleep_command");
    }
    assert_eq!(idle_steps(harness), 4, "no task is running");
    harness.send(started).assert_empty();
    assert_eq!(idle_steps(harness), 0);
    for _ in 0..9 {
        harness.send("sleep_command").assert_empty();
    }
    assert_eq!(idle_steps(harness), 0, "within a minute");
    harness.send("before_tool").assert_empty();
    let ended = harness.payload("task_notification").replace("task-1", task);
    harness.send_payload(&ended).assert_empty();
    for _ in 0..8 {
        harness.send("sleep_command");
    }
    assert_eq!(idle_steps(harness), 8, "the task has ended");
    assert!(is_denied(&harness.send("before_tool")));
}

#[test]
fn claude_code_may_poll_a_background_task_until_it_ends() {
    let harness = Harness::new("task", "claude-code");
    polls_a_background_task(&harness, "background_command", "task-1");
}

#[test]
fn claude_code_may_poll_a_background_agent_until_it_ends() {
    let harness = Harness::new("agents", "claude-code");
    polls_a_background_task(&harness, "background_agent", "agent-1");
}

#[test]
fn background_tasks_are_stored_on_postgresql() {
    let harness =
        Harness::new("task-server", "claude-code").with_database(Cluster::shared().database());
    polls_a_background_task(&harness, "background_command", "task-1");
}

#[test]
fn codex_subagent_with_two_start_events_has_one_turn() {
    let harness = Harness::new("subagent-codex", "codex");
    harness.send("prompt").assert_empty();
    harness.send("subagent_start").assert_empty();
    harness.send("subagent_prompt").assert_empty();
    harness.send("subagent_stop").assert_empty();
    assert_eq!(turns(&harness), 2);
}

#[test]
fn codex_results_are_text_and_mcp_results_are_objects() {
    let harness = Harness::new("results-codex", "codex");
    harness.send("prompt").assert_empty();
    harness.send("failed").assert_empty();
    let failed = last_call(&harness);
    assert_output_starts_with(&failed, "make: ***");
    assert_eq!(failed["ok"], Value::Null, "the payload has no status");
    harness.send("mcp").assert_empty();
    let pong = last_call(&harness);
    assert_eq!(pong["ok"], Value::Null);
    assert!(pong["output"].as_str().unwrap().contains("pong"));
    harness.send("apply_patch").assert_empty();
    assert_eq!(last_call(&harness)["tool"], "apply_patch");
}

#[test]
fn kimi_subagent_answer_does_not_end_the_turn() {
    let harness = Harness::new("subagent-kimi", "kimi");
    harness.send("prompt").assert_empty();
    harness.send("before_agent_tool").assert_empty();
    harness.send("stop").assert_empty();
    assert_eq!(last_turn(&harness).get("endedAt"), None);
    harness.send("after_agent_tool").assert_empty();
    harness.send("stop").assert_empty();
    let turn = last_turn(&harness);
    assert!(turn["endedAt"].is_string(), "{turn}");
    assert_eq!(turns(&harness), 1);
}

#[test]
fn kimi_failure_has_its_error_message_as_output() {
    let harness = Harness::new("failure-kimi", "kimi");
    harness.send("prompt").assert_empty();
    harness.send("failed").assert_empty();
    let call = last_call(&harness);
    assert_eq!(call["ok"], false);
    assert_output_starts_with(&call, "make: no rule");
}

#[test]
fn gemini_wrapping_of_a_short_output_does_not_count_as_new_output() {
    let harness = Harness::new("short-gemini", "gemini")
        .with_env("ONWARD_LOOP_CONTROL__PROGRESS_RULE", "plain");
    harness.send("prompt").assert_empty();
    let outputs: Vec<String> = (0..8)
        .map(|_| harness.send("short_output").stdout)
        .collect();
    assert_eq!(idle_steps(&harness), 8);
    let messages: Vec<usize> = (0..8).filter(|step| !outputs[*step].is_empty()).collect();
    assert_eq!(messages, [3, 7], "nudge and reminder: {outputs:?}");
}

#[test]
fn a_failed_command_is_recognized_by_its_exit_code() {
    // Fixtures of a failed command and a failed tool, and the start of an MCP result.
    for (agent, failed_command, failed_tool, mcp_output) in [
        ("gemini", "failed", "missing_file", "{\"message\""),
        ("cursor", "exit_code", "failed", "pong"),
    ] {
        let harness = Harness::new(&format!("exit-code-{agent}"), agent);
        harness.send("prompt").assert_empty();
        harness.send(failed_command).assert_empty();
        let call = last_call(&harness);
        assert_eq!(call["ok"], false, "{agent}");
        assert_output_starts_with(&call, "make: no rule");
        harness.send(failed_tool).assert_empty();
        assert_eq!(last_call(&harness)["ok"], false, "{agent}");
        harness.send("mcp").assert_empty();
        let pong = last_call(&harness);
        assert_eq!(pong["ok"], true, "{agent}");
        assert_output_starts_with(&pong, mcp_output);
    }
}

#[test]
fn opencode_steps_include_failed_tools_and_mcp_tools() {
    let harness = Harness::new("tool-error", "opencode");
    harness.send("prompt").assert_empty();
    harness.send("tool_error").assert_empty();
    let failed = last_call(&harness);
    assert_eq!(failed["ok"], false);
    assert_output_starts_with(&failed, "File not found");
    harness.send("mcp").assert_empty();
    let pong = last_call(&harness);
    assert!(pong["output"].as_str().unwrap().contains("pong"));
}

#[test]
fn opencode_call_rejected_by_the_user_is_denied() {
    let harness = Harness::new("denied-opencode", "opencode");
    for name in ["before_tool", "permission", "permission_denied"] {
        let payload = harness
            .payload(name)
            .replace("before_1", "before_0")
            .replace("before_2", "before_0");
        harness.send_payload(&payload).assert_empty();
    }
    let calls = harness.session()["calls"].clone();
    assert_eq!(calls[0]["status"], json!("denied"), "{calls}");
}

#[test]
fn cursor_call_rejected_by_onward_is_not_a_step() {
    let harness = Harness::new("denied-cursor", "cursor");
    harness.send("prompt").assert_empty();
    harness.send_idle_steps(8);
    // From the third rejection on, the reason also contains the message to the user.
    for _ in 0..4 {
        let denied = harness.send("before_tool").json();
        assert_eq!(denied["permission"], "deny");
        let mut failed: Value = serde_json::from_str(&harness.payload("failed")).unwrap();
        failed["error_message"] = denied["user_message"].clone();
        failed["failure_type"] = json!("permission_denied");
        harness.send_payload(&failed.to_string()).assert_empty();
    }
    assert_eq!(idle_steps(&harness), 8);
}

#[test]
fn cursor_turn_starts_with_a_prompt_or_a_new_generation() {
    let harness = Harness::new("turns-cursor", "cursor");
    for _ in 0..2 {
        harness.send("prompt").assert_empty();
        harness.send("idle").assert_empty();
    }
    assert_eq!(turns(&harness), 2, "the generations have the same id");
    let mut other: Value = serde_json::from_str(&harness.payload("idle")).unwrap();
    other["generation_id"] = json!("another");
    harness.send_payload(&other.to_string()).assert_empty();
    assert_eq!(turns(&harness), 3);
}

#[test]
fn cursor_call_without_reported_output_counts_as_idle_only_if_repeated() {
    let harness = Harness::new("no-output-cursor", "cursor");
    harness.send("prompt").assert_empty();
    for _ in 0..20 {
        harness.send("read_file").assert_empty();
    }
    let call = last_call(&harness);
    assert_eq!(call["output"], onward_core::turn::OUTPUT_NOT_REPORTED);
    assert!(!is_denied(&harness.send("before_tool")));
    let is_denied = (0..20).any(|_| {
        let mut again: Value = serde_json::from_str(&harness.payload("read_file")).unwrap();
        again["tool_input"] = json!({ "file_path": "the same" });
        harness.send_payload(&again.to_string());
        is_denied(&harness.send("before_tool"))
    });
    assert!(is_denied, "the same file is read again and again");
}
