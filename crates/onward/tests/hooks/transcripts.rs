//! Golden transcripts, one per agent: all escalation levels, then the next turn.

use std::fmt::Write;

use crate::harness::{Harness, compare_golden, golden_path};

#[track_caller]
fn compare(agent: &'static str) {
    let script = std::fs::read_to_string(golden_path(agent)).expect("script exists");
    let harness = Harness::new(agent, agent);
    let mut transcript = String::new();
    for line in script.lines().take_while(|line| line.starts_with('#')) {
        let _ = writeln!(transcript, "{line}");
    }
    for name in script.lines().filter_map(|line| line.strip_prefix("$ ")) {
        let output = harness.send(name);
        let _ = writeln!(transcript, "\n$ {name}");
        transcript.push_str(&output.stdout);
        for line in output.stderr.lines() {
            let _ = writeln!(transcript, "! {line}");
        }
        if output.code != Some(0) {
            let _ = writeln!(transcript, "[{:?}]", output.code);
        }
    }
    compare_golden(agent, &transcript);
}

#[test]
fn claude_code_is_nudged_reminded_rejected_and_stopped() {
    compare("claude-code");
}

#[test]
fn codex_is_nudged_reminded_and_rejected() {
    compare("codex");
}

#[test]
fn gemini_has_its_tools_disabled() {
    compare("gemini");
}

#[test]
fn kimi_is_rejected() {
    compare("kimi");
}

#[test]
fn cursor_is_nudged_reminded_and_rejected() {
    compare("cursor");
}

#[test]
fn opencode_is_nudged_reminded_rejected_and_stopped() {
    compare("opencode");
}
