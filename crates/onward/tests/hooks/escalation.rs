//! Steps and calls that count for the escalation, and those that do not.

use onward_core::turn::Progress;
use onward_core::turn::escalation::{self, EscalationState, TextOnlyReason};
use onward_testbed::Run;

use crate::harness::{Harness, is_denied};

#[test]
fn never_escalates_while_outputs_are_new() {
    let harness = Harness::new("new-output", "claude-code");
    harness.send("prompt").assert_empty();
    for _ in 0..12 {
        harness.send("new_output").assert_empty();
        harness.send("before_tool").assert_empty();
    }
}

#[test]
fn ignores_echoed_rejections_and_enables_tools_after_an_answer() {
    let harness = Harness::new("echo", "claude-code");
    harness.send("prompt").assert_empty();
    harness.send_idle_steps(8);
    assert!(is_denied(&harness.send("before_tool")));
    for _ in 0..3 {
        harness.send("denied_batch").assert_empty();
    }
    assert_eq!(harness.session()["turns"][0]["stepCount"], 8);
    harness.send("stop").assert_empty();
    harness.send("before_tool").assert_empty();
}

#[test]
fn judges_subagents_separately() {
    let harness = Harness::new("subagents", "claude-code");
    harness.send("prompt").assert_empty();
    for _ in 0..8 {
        harness.send("subagent_idle");
    }
    assert!(is_denied(&harness.send("subagent_before_tool")));
    harness.send("before_tool").assert_empty();
    harness.send("subagent_stop").assert_empty();
    harness.send("subagent_before_tool").assert_empty();
}

#[test]
fn counts_single_calls_if_no_batch_is_reported() {
    let harness = Harness::new("single-calls", "claude-code");
    harness.send("prompt").assert_empty();
    // Claude Code reports the calls of a batch separately before the batch.
    for _ in 0..32 {
        harness.send("idle_single_call").assert_empty();
    }
    harness.send("before_tool").assert_empty();
    for _ in 0..8 {
        harness.send("idle_single_call");
    }
    assert!(is_denied(&harness.send("before_tool")));
}

#[test]
fn counts_an_error_as_progress_only_once() {
    let harness = Harness::new("failure", "claude-code");
    harness.send("prompt").assert_empty();
    for _ in 0..32 {
        harness.send("idle_single_call").assert_empty();
    }
    for _ in 0..8 {
        assert_empty_or_context(&harness.send("failed_single_call"));
    }
    let session = harness.session();
    let steps = session["turns"][0]["steps"].as_array().unwrap();
    assert_eq!(steps[0]["why"], Progress::NewError { call: 0 }.to_string());
    assert_eq!(steps[0]["calls"][0]["ok"], false);
    assert_eq!(session["turns"][0]["idleSteps"], 7);
}

#[test]
fn on_stall_limits_the_escalation() {
    let harness = Harness::new("warn", "claude-code")
        .with_env("ONWARD_LOOP_CONTROL__ON_STALL", "warn")
        .with_env("ONWARD_LOOP_CONTROL__PROGRESS_STALL_THRESHOLD", 2);
    harness.send("idle").assert_empty();
    let warning = harness.send("idle").json();
    let state = EscalationState {
        idle_steps: 2,
        ..EscalationState::default()
    };
    let message = warning["systemMessage"].as_str().unwrap();
    assert!(message.contains(&escalation::for_user(&state)), "{message}");
    harness.send("before_tool").assert_empty();

    let harness = Harness::new("nudge", "claude-code")
        .with_env("ONWARD_LOOP_CONTROL__ON_STALL", "nudge")
        .with_env("ONWARD_LOOP_CONTROL__PROGRESS_STALL_THRESHOLD", 2);
    let context = harness.send_idle_steps(2).json();
    assert!(context["hookSpecificOutput"]["additionalContext"].is_string());
    harness.send("before_tool").assert_empty();

    let harness =
        Harness::new("off", "claude-code").with_env("ONWARD_LOOP_CONTROL__ON_STALL", "off");
    for _ in 0..9 {
        harness.send("idle").assert_empty();
    }
    harness.send("before_tool").assert_empty();
}

#[test]
fn rejects_calls_after_the_step_limit() {
    let harness =
        Harness::new("limit", "claude-code").with_env("ONWARD_LOOP_CONTROL__MAX_STEPS_PER_TURN", 2);
    harness.send("prompt").assert_empty();
    harness.send("new_output").assert_empty();
    let reminder = harness.send("new_output").json();
    assert!(reminder["hookSpecificOutput"]["additionalContext"].is_string());
    assert_eq!(
        harness.session()["turns"][0]["held"],
        TextOnlyReason::MaxSteps.as_str()
    );
    assert!(is_denied(&harness.send("before_tool")));
}

#[test]
fn skips_claude_code_hooks_that_cursor_runs() {
    let harness = Harness::new("run-by-cursor", "claude-code");
    harness.send("run_by_cursor").assert_empty();
    assert!(!harness.program.dir.join("onward.db").exists());
}

/// Asserts that the hook printed nothing, or text for the model.
#[track_caller]
fn assert_empty_or_context(output: &Run) {
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""));
    assert!(output.stdout.is_empty() || output.stdout.contains("additionalContext"));
}
