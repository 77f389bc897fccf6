//! Faults never block the agent: the hook exits with code 0, prints nothing on standard output and
//! one line on standard error.

use std::process::Stdio;

use onward_testbed::{Cluster, Run};
use serde_json::Value;

use crate::harness::{Harness, compare_golden, is_denied};

/// Asserts that the output reports a fault, and returns its line.
#[track_caller]
fn fault(output: &Run) -> &str {
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (Some(0), ""),
        "{output:?}"
    );
    assert_eq!(output.stderr.lines().count(), 1, "{output:?}");
    &output.stderr
}

#[test]
fn reports_invalid_arguments() {
    let harness = Harness::new("arguments", "codex");
    let mut lines = String::new();
    for arguments in [
        &["hook"] as &[&str],
        &["hook", "clippy"],
        &["hook", "codex", "extra"],
        &["hook", "codex", "--loud"],
        &["hook", "codex", "--json", "--color", "blue"],
        &["--json", "--database", "hook", "hook", "x"],
        &["--unsupported", "hook", "codex"],
    ] {
        lines.push_str(fault(&harness.run(arguments, b"{}")));
    }
    compare_golden("faults/arguments", &lines);
    // Only the command `hook` always exits with code 0.
    let output = harness.run(&["--config", "hook", "plan", "lost"], b"");
    assert_eq!(output.code, Some(2));
}

#[test]
fn reports_invalid_input() {
    let harness = Harness::new("input", "claude-code");
    let hook = ["hook", "claude-code"];
    let deep = "[".repeat(100_000);
    let mut lines = String::new();
    for input in [
        b"" as &[u8],
        b"garbage",
        b"{\"hook_event_name\":\"Stop\"",
        b"[]",
        b"\xff\xfe",
        b"{\"hook_event_name\":\"Stop\"}",
        b"{\"hook_event_name\":\"Stop\",\"session_id\":7}",
        deep.as_bytes(),
    ] {
        lines.push_str(fault(&harness.run(&hook, input)));
    }
    compare_golden("faults/input", &lines);
    // Irrelevant events are not faults.
    harness.run(&hook, b"{}").assert_empty();
    harness.send("notification").assert_empty();
    let malformed = br#"{"hook_event_name":"PostToolBatch","session_id":"s","tool_calls":[1,{"tool_name":[]}]}"#;
    assert_eq!(harness.run(&hook, malformed).code, Some(0));
}

#[test]
fn reports_an_invalid_configuration() {
    let harness = Harness::new("configuration", "codex");
    let file = harness.work_dir().join("onward.toml");
    std::fs::write(&file, "[loop_control]\nprogress_stall_threshold = 0\n").unwrap();
    let output = harness.send("prompt");
    assert!(
        fault(&output).contains("progress_stall_threshold"),
        "{output:?}"
    );
}

#[test]
fn reports_an_unusable_database() {
    let harness = Harness::new("no-folder", "codex");
    std::fs::write(harness.program.dir.join("file"), "not a directory").unwrap();
    let inside = harness
        .program
        .dir
        .join("file/onward.db")
        .display()
        .to_string();
    fault(&harness.with_database(inside).send("prompt"));

    let harness = Harness::new("no-database", "codex");
    let letter = harness.program.dir.join("letter.txt");
    std::fs::write(&letter, "Dear Sir or Madam, ".repeat(100)).unwrap();
    let letter = letter.display().to_string();
    let output = harness.with_database(letter.clone()).send("prompt");
    assert!(fault(&output).contains(&letter), "{output:?}");

    let harness = Harness::new("no-server", "codex");
    let unreachable = "postgres://user@127.0.0.1:1/none".to_owned();
    fault(&harness.with_database(unreachable).send("prompt"));
}

#[test]
fn times_out_on_a_locked_database() {
    let harness = Harness::new("locked", "codex");
    harness.send("prompt").assert_empty();
    let lock = rusqlite::Connection::open(harness.program.dir.join("onward.db")).unwrap();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    compare_golden("faults/timeout", fault(&harness.send("idle")));
    // A call that cannot be recorded is allowed.
    compare_golden("faults/timeout", fault(&harness.send("before_tool")));
    lock.execute_batch("ROLLBACK").unwrap();
    harness.send("idle").assert_empty();
}

#[test]
fn times_out_if_standard_input_is_not_closed() {
    let harness = Harness::new("endless", "codex");
    let mut child = harness
        .program
        .command(&["hook", "codex"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stdin = child.stdin.take();
    let output = Run::from(child.wait_with_output().unwrap());
    compare_golden("faults/timeout", fault(&output));
    drop(stdin);
}

#[test]
fn starts_over_if_the_stored_state_is_unreadable() {
    let harness = Harness::new("unreadable", "codex");
    harness.send("prompt").assert_empty();
    harness.send("idle").assert_empty();
    let file = rusqlite::Connection::open(harness.program.dir.join("onward.db")).unwrap();
    file.execute_batch("UPDATE session_agents SET state = 'x'")
        .unwrap();
    compare_golden("faults/unreadable_state", fault(&harness.send("idle")));
    harness.send("idle").assert_empty();
}

#[test]
fn escalates_on_postgresql_as_on_sqlite() {
    let harness = Harness::new("server", "claude-code").with_database(Cluster::shared().database());
    harness.send("prompt").assert_empty();
    harness.send_idle_steps(8);
    assert!(is_denied(&harness.send("before_tool")));
}

#[test]
fn rejects_input_that_is_much_larger_in_memory() {
    let harness = Harness::new("json-values", "claude-code");
    let mut payload: Value = serde_json::from_str(&harness.payload("before_tool")).unwrap();
    assert_eq!(harness.send_payload(&payload.to_string()).stderr, "");
    payload["tool_input"] = serde_json::json!({ "list": vec![serde_json::json!({}); 200_000] });
    let rejected = harness.send_payload(&payload.to_string());
    assert_eq!((rejected.code, rejected.stdout.as_str()), (Some(0), ""));
    assert_ne!(rejected.stderr, "");
}
