//! `onward session`: what people see of it.

use serde_json::json;

use crate::desk::Desk;

#[test]
fn a_session_is_listed_and_shown() {
    let desk = Desk::new("shown", "claude-code");
    let empty = desk.send(&["session", "list"], b"");
    assert_eq!((empty.code, empty.stdout.as_str()), (Some(0), ""));
    assert!(empty.stderr.contains("`onward install AGENT`"));
    desk.tell("prompt").is_silent();
    desk.idle(8);
    desk.tell("before");
    let listed = desk.ask(&["session", "list", "--json"]);
    let session = &listed["sessions"][0];
    assert_eq!(session["agent"], "claude-code");
    assert_eq!(session["directory"], desk.work().display().to_string());
    assert_eq!(
        (&session["turns"], &session["heldTurns"]),
        (&1.into(), &1.into())
    );
    let shown = desk.ask(&["session", "show", "7d0c1f6e", "--json"]);
    let turn = &shown["turns"][0];
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
    let text = desk.send(&["session", "show", "7d0c1f6e"], b"").stdout;
    assert!(
        text.contains("stalled, 8 steps, 8 idle of 8, 1 call refused"),
        "{text}"
    );
    assert!(text.contains("idle 8"), "{text}");
    let table = desk.send(&["session", "list"], b"").stdout;
    assert!(table.contains("claude-code"), "{table}");
    let lost = desk.send(&["session", "show", "nobody"], b"");
    assert_eq!(lost.code, Some(3));
    assert!(
        lost.stderr.contains("`onward session list`"),
        "{}",
        lost.stderr
    );
}

#[test]
fn a_session_is_switched_off_and_on() {
    let desk = Desk::new("switched", "claude-code");
    desk.tell("prompt").is_silent();
    let off = desk.send(&["session", "off", "7d0c"], b"");
    assert_eq!(off.code, Some(0), "{off:?}");
    for _ in 0..9 {
        desk.tell("idle").is_silent();
    }
    desk.tell("before").is_silent();
    assert!(desk.send(&["session", "list"], b"").stdout.contains("off"));
    desk.send(&["session", "on", "7d0c"], b"");
    assert!(desk.tell("before").stdout.contains("\"deny\""));
}
