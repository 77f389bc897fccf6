//! The words that Onward adds to the context of a whole session, per agent: start, compaction, and a
//! stop while the session holds a step.

use std::fmt::Write;

use onward_testbed::Run;
use serde_json::Value;

use crate::harness::{Harness, compare_golden};
use crate::plan_offers::create_plan;
use crate::prime::claim;

/// The agents, each with the payload that reports a compaction: the fixture and the changed field.
const AGENTS: [(&str, Option<(&str, &str)>); 6] = [
    ("claude-code", Some(("source", "compact"))),
    ("codex", Some(("source", "compact"))),
    ("gemini", Some(("hook_event_name", "PreCompress"))),
    ("kimi", Some(("hook_event_name", "PostCompact"))),
    ("cursor", None),
    ("opencode", Some(("hook", "session.compacted"))),
];

/// The number of words in the longest text of a reply. A reply may repeat its text for the user.
fn words(reply: &Run) -> usize {
    fn longest(value: &Value) -> usize {
        match value {
            Value::String(text) => text.split_whitespace().count(),
            Value::Array(items) => items.iter().map(longest).max().unwrap_or(0),
            Value::Object(fields) => fields.values().map(longest).max().unwrap_or(0),
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        }
    }
    match serde_json::from_str(&reply.stdout) {
        Ok(value) => longest(&value),
        Err(_) => reply.stdout.split_whitespace().count(),
    }
}

/// One session with an open plan: the words after each event.
fn session(agent: &'static str, compaction: Option<(&str, &str)>) -> Vec<(&'static str, usize)> {
    let harness = Harness::new("session-words", agent);
    let plan = create_plan(&harness, "Tides");
    link(&harness, &plan);
    let mut events = vec![
        ("start", words(&harness.send("session_start"))),
        ("prompt", words(&harness.send("prompt"))),
    ];
    for _ in 0..2 {
        events.push(("call", words(&harness.send("before_tool"))));
        events.push(("result", words(&harness.send("idle"))));
    }
    if let Some((field, value)) = compaction {
        let mut payload: Value = serde_json::from_str(&harness.payload("session_start")).unwrap();
        payload[field] = value.into();
        let reply = harness.send_payload(&payload.to_string());
        events.push(("compaction", words(&reply)));
        events.push(("prompt", words(&harness.send("prompt"))));
    }
    let id = harness.session()["sessionId"].as_str().unwrap().to_owned();
    claim(&harness, &plan, &id);
    events.push(("stop", words(&harness.send("stop"))));
    events.push(("stop", words(&harness.send("stop"))));
    events.push(("end", words(&harness.send("session_end"))));
    events
}

/// Links the plan to the directory, as a call in an earlier session does.
fn link(harness: &Harness, plan: &str) {
    let claude = Harness::new("session-words-plan", "claude-code");
    let payload = claude.payload("plan_created").replace("{plan}", plan);
    let mut payload: Value = serde_json::from_str(&payload).unwrap();
    payload["session_id"] = "earlier".into();
    payload["cwd"] = harness.work_dir().to_str().into();
    let reply = harness.run(&["hook", "claude-code"], payload.to_string().as_bytes());
    reply.assert_empty();
}

#[test]
fn a_session_receives_few_words() {
    let mut golden =
        "# Words that Onward adds to one session of each agent. The project has an open \
                      plan, the skill is\n# installed, and the session stops while it holds a \
                      step.\n"
            .to_owned();
    for (agent, compaction) in AGENTS {
        let events = session(agent, compaction);
        let total: usize = events.iter().map(|(_, words)| words).sum();
        let _ = writeln!(golden, "\n{agent}: {total}");
        for (event, words) in events {
            let _ = writeln!(golden, "  {event:<10} {words:>3}");
        }
    }
    compare_golden("session_words", &golden);
}
