//! What the agents really send, where it is not what their documentation lets one expect.

use onward_testbed::Cluster;
use serde_json::{Value, json};

use crate::desk::Desk;

fn shown(desk: &Desk) -> Value {
    let list = desk.ask(&["session", "list", "--json"]);
    let id = list["sessions"][0]["sessionId"]
        .as_str()
        .unwrap()
        .to_owned();
    desk.ask(&["session", "show", &id, "--json"])
}

fn turns(desk: &Desk) -> usize {
    shown(desk)["turns"].as_array().unwrap().len()
}

/// The first call of the last step.
fn last_call(desk: &Desk) -> Value {
    let shown = shown(desk);
    let turn = shown["turns"].as_array().unwrap().last().unwrap().clone();
    let steps = turn["steps"].as_array().unwrap().clone();
    steps.last().unwrap()["calls"][0].clone()
}

#[test]
fn claude_codes_notice_of_a_task_opens_the_turn_and_begins_none() {
    let desk = Desk::new("notice", "claude-code");
    desk.tell("prompt").is_silent();
    desk.idle(8);
    assert!(desk.tell("before").stdout.contains("\"deny\""));
    desk.tell("task_notification").is_silent();
    desk.tell("before").is_silent();
    assert_eq!(turns(&desk), 1);
}

/// How many idle steps the last turn has.
fn idle_steps(desk: &Desk) -> u64 {
    let shown = shown(desk);
    let turn = shown["turns"].as_array().unwrap().last().unwrap().clone();
    turn["idleSteps"].as_u64().unwrap()
}

fn claude_waits_for_a_task(desk: &Desk, sent: &str, task: &str) {
    desk.tell("prompt").is_silent();
    for _ in 0..4 {
        desk.tell("waits");
    }
    assert_eq!(idle_steps(desk), 4, "nothing runs");
    desk.tell(sent).is_silent();
    assert_eq!(idle_steps(desk), 0);
    for _ in 0..9 {
        desk.tell("waits").is_silent();
    }
    assert_eq!(idle_steps(desk), 0, "within a minute");
    desk.tell("before").is_silent();
    let notice = desk.payload("task_notification").replace("task-1", task);
    desk.send(&["hook", "claude-code"], notice.as_bytes())
        .is_silent();
    for _ in 0..8 {
        desk.tell("waits");
    }
    assert_eq!(idle_steps(desk), 8, "nothing runs any more");
    assert!(desk.tell("before").stdout.contains("\"deny\""));
}

#[test]
fn claude_code_waits_by_the_clock_from_the_start_of_a_task_to_its_end() {
    let desk = Desk::new("task", "claude-code");
    claude_waits_for_a_task(&desk, "sent_to_background", "task-1");
}

#[test]
fn claude_code_waits_for_its_agents_as_well() {
    let desk = Desk::new("agents", "claude-code");
    claude_waits_for_a_task(&desk, "agent_launched", "agent-1");
}

#[test]
fn tasks_are_kept_on_a_server_too() {
    let desk = Desk::new("task-server", "claude-code").on(Cluster::shared().database());
    claude_waits_for_a_task(&desk, "sent_to_background", "task-1");
}

#[test]
fn codexes_subagent_begins_one_turn_although_it_is_told_of_twice() {
    let desk = Desk::new("subagent-codex", "codex");
    desk.tell("prompt").is_silent();
    desk.tell("sub_start").is_silent();
    desk.tell("sub_prompt").is_silent();
    desk.tell("sub_stop").is_silent();
    assert_eq!(turns(&desk), 2);
}

#[test]
fn codexes_results_are_plain_texts_and_those_of_tools_objects() {
    let desk = Desk::new("results-codex", "codex");
    desk.tell("prompt").is_silent();
    desk.tell("failed").is_silent();
    let failed = last_call(&desk);
    assert!(failed["output"].as_str().unwrap().starts_with("make: ***"));
    assert_eq!(failed["ok"], Value::Null, "nothing says that it failed");
    desk.tell("mcp").is_silent();
    let pong = last_call(&desk);
    assert_eq!(pong["ok"], Value::Null);
    assert!(pong["output"].as_str().unwrap().contains("pong"));
    desk.tell("patched").is_silent();
    let patched = last_call(&desk);
    assert_eq!(patched["tool"], "apply_patch");
}

#[test]
fn kimis_subagent_that_answers_ends_no_turn() {
    let desk = Desk::new("subagent-kimi", "kimi");
    desk.tell("prompt").is_silent();
    desk.tell("agent_before").is_silent();
    desk.tell("stop").is_silent();
    assert_eq!(shown(&desk)["turns"][0].get("endedAt"), None);
    desk.tell("agent_after").is_silent();
    desk.tell("stop").is_silent();
    let turn = &shown(&desk)["turns"][0];
    assert!(turn["endedAt"].is_string(), "{turn}");
    assert_eq!(turns(&desk), 1);
}

#[test]
fn kimis_failures_are_told_in_words() {
    let desk = Desk::new("failure-kimi", "kimi");
    desk.tell("prompt").is_silent();
    desk.tell("failed").is_silent();
    let call = last_call(&desk);
    assert_eq!(call["ok"], false);
    assert!(
        call["output"]
            .as_str()
            .unwrap()
            .starts_with("make: no rule")
    );
}

#[test]
fn what_gemini_puts_around_a_short_output_makes_it_no_news() {
    let desk =
        Desk::new("short-gemini", "gemini").set("ONWARD_LOOP_CONTROL__PROGRESS_RULE", "plain");
    desk.tell("prompt").is_silent();
    let said: Vec<String> = (0..8).map(|_| desk.tell("short").stdout).collect();
    assert!(said[3].contains("In the last 4 steps"), "{said:?}");
    assert!(said[7].contains("answer in text"), "{said:?}");
}

#[test]
fn commands_that_fail_are_known_by_their_exit_code() {
    // A command that made nothing, a tool that failed, and what the tool of a server says.
    for (agent, exited, failed, said) in [
        ("gemini", "failed", "missing", "{\"message\""),
        ("cursor", "exited", "failed", "pong"),
    ] {
        let desk = Desk::new(&format!("exited-{agent}"), agent);
        desk.tell("prompt").is_silent();
        desk.tell(exited).is_silent();
        let call = last_call(&desk);
        assert_eq!(call["ok"], false, "{agent}");
        let output = call["output"].as_str().unwrap();
        assert!(output.starts_with("make: no rule"), "{agent}: {output}");
        desk.tell(failed).is_silent();
        assert_eq!(last_call(&desk)["ok"], false, "{agent}");
        desk.tell("mcp").is_silent();
        let pong = last_call(&desk);
        assert_eq!(pong["ok"], true, "{agent}");
        let output = pong["output"].as_str().unwrap();
        assert!(output.starts_with(said), "{agent}: {output}");
    }
}

#[test]
fn opencodes_tools_that_throw_and_those_of_servers_are_steps() {
    let desk = Desk::new("thrown", "opencode");
    desk.tell("prompt").is_silent();
    desk.tell("thrown").is_silent();
    let thrown = last_call(&desk);
    assert_eq!(thrown["ok"], false);
    assert!(
        thrown["output"]
            .as_str()
            .unwrap()
            .starts_with("File not found")
    );
    desk.tell("mcp").is_silent();
    assert!(
        last_call(&desk)["output"]
            .as_str()
            .unwrap()
            .contains("pong")
    );
}

#[test]
fn a_call_that_a_person_refuses_in_opencode_is_denied() {
    let desk = Desk::new("refused-opencode", "opencode");
    let payload = |name: &str| {
        desk.payload(name)
            .replace("before_1", "before_0")
            .replace("before_2", "before_0")
    };
    for name in ["before", "permission", "permission_refused"] {
        let payload = payload(name);
        desk.send(&["hook", "opencode"], payload.as_bytes())
            .is_silent();
    }
    let calls = shown(&desk)["calls"].clone();
    assert_eq!(calls[0]["status"], json!("denied"), "{calls}");
}

#[test]
fn a_call_that_is_refused_in_cursor_and_told_as_a_failure_is_no_step() {
    let desk = Desk::new("refused-cursor", "cursor");
    desk.tell("prompt").is_silent();
    desk.idle(8);
    // Twice refused, and then with what a person is told as well.
    for _ in 0..4 {
        let denied = desk.tell("before").json();
        assert_eq!(denied["permission"], "deny");
        let mut failed: Value = serde_json::from_str(&desk.payload("failed")).unwrap();
        failed["error_message"] = denied["user_message"].clone();
        failed["failure_type"] = json!("permission_denied");
        desk.send(&["hook", "cursor"], failed.to_string().as_bytes())
            .is_silent();
    }
    assert_eq!(idle_steps(&desk), 8);
}

#[test]
fn cursors_turns_begin_with_a_prompt_or_another_generation() {
    let desk = Desk::new("turns-cursor", "cursor");
    for _ in 0..2 {
        desk.tell("prompt").is_silent();
        desk.tell("idle").is_silent();
    }
    assert_eq!(turns(&desk), 2, "all generations have one id");
    let mut other: Value = serde_json::from_str(&desk.payload("idle")).unwrap();
    other["generation_id"] = json!("another");
    desk.send(&["hook", "cursor"], other.to_string().as_bytes())
        .is_silent();
    assert_eq!(turns(&desk), 3);
}

#[test]
fn what_cursor_does_not_tell_is_held_against_nobody_unless_it_is_asked_again() {
    let desk = Desk::new("untold-cursor", "cursor");
    desk.tell("prompt").is_silent();
    for _ in 0..20 {
        desk.tell("read").is_silent();
    }
    let call = last_call(&desk);
    assert_eq!(call["output"], onward_core::turn::NOT_TOLD);
    assert!(!desk.tell("before").stdout.contains("deny"));
    let refused = (0..20).any(|_| {
        let mut again: Value = serde_json::from_str(&desk.payload("read")).unwrap();
        again["tool_input"] = json!({ "file_path": "the same" });
        desk.send(&["hook", "cursor"], again.to_string().as_bytes());
        desk.tell("before").stdout.contains("deny")
    });
    assert!(refused, "the same file again and again");
}
