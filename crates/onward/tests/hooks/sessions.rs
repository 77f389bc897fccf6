//! `onward session` for sessions that hooks reported.

use serde_json::json;

use crate::harness::{Harness, is_denied};

#[test]
fn lists_and_shows_a_session() {
    let harness = Harness::new("show", "claude-code");
    let empty = harness.run(&["session", "list"], b"");
    // The first hook creates the database.
    assert_eq!((empty.code, empty.stdout.as_str()), (Some(3), ""));
    harness.send("prompt").assert_empty();
    harness.send_idle_steps(8);
    harness.send("before_tool");
    let list = harness.run_json(&["session", "list", "--json"]);
    let session = &list["sessions"][0];
    assert_eq!(session["agent"], "claude-code");
    assert_eq!(
        session["directory"],
        harness.work_dir().display().to_string()
    );
    assert_eq!(
        (&session["turns"], &session["heldTurns"]),
        (&1.into(), &1.into())
    );
    let session = harness.run_json(&["session", "show", "7d0c1f6e", "--json"]);
    let turn = &session["turns"][0];
    assert_eq!(
        (
            &turn["verdict"],
            &turn["held"],
            &turn["refusals"],
            &turn["threshold"]
        ),
        (&json!("stalled"), &json!("stalled"), &json!(1), &json!(8))
    );
    assert_eq!(turn["steps"][7]["calls"][0]["input"], ":");
    let text = harness.run(&["session", "show", "7d0c1f6e"], b"").stdout;
    assert!(text.contains("7d0c1f6e"), "{text}");
    let table = harness.run(&["session", "list"], b"").stdout;
    assert!(table.contains("7d0c1f6e"), "{table}");
    let missing = harness.run(&["session", "show", "missing"], b"");
    assert_eq!(missing.code, Some(3));
    assert!(
        missing.stderr.contains("`onward session list`"),
        "{}",
        missing.stderr
    );
}

#[test]
fn turns_loop_control_off_and_on_for_a_session() {
    let harness = Harness::new("loop-control", "claude-code");
    harness.send("prompt").assert_empty();
    let off = harness.run(&["session", "off", "7d0c"], b"");
    assert_eq!(off.code, Some(0), "{off:?}");
    for _ in 0..9 {
        harness.send("idle").assert_empty();
    }
    harness.send("before_tool").assert_empty();
    assert_eq!(harness.session()["switchedOff"], true);
    harness.run(&["session", "on", "7d0c"], b"");
    assert!(is_denied(&harness.send("before_tool")));
}
