//! Subagents that fall silent, with the payloads of Claude Code and Codex.

use onward_testbed::golden;

use crate::harness::{Harness, golden_path};

/// The payload of a fixture for a subagent with this id.
fn send_as(harness: &Harness, fixture: &str, id: &str) {
    let payload = harness.payload(fixture);
    let mut payload: serde_json::Value = serde_json::from_str(&payload).unwrap();
    payload["agent_id"] = id.into();
    harness.send_payload(&payload.to_string());
}

/// Moves all turns into the past.
fn age(harness: &Harness, minutes: i64) {
    let file = rusqlite::Connection::open(harness.program.dir.join("onward.db")).unwrap();
    file.execute_batch(&format!(
        "UPDATE turns SET began_at = began_at - {0}, seen_at = seen_at - {0},
            ended_at = ended_at - {0}",
        minutes * 60_000
    ))
    .unwrap();
}

fn begin_two_of_which_one_ends(harness: &Harness) {
    harness.send("prompt").assert_empty();
    for id in ["agent-1", "agent-2"] {
        send_as(harness, "subagent_start", id);
    }
    send_as(harness, "subagent_stop", "agent-2");
}

#[test]
fn shows_a_stale_subagent_with_the_answers_of_its_siblings() {
    for agent in ["claude-code", "codex"] {
        let harness = Harness::new("stale-subagent", agent);
        begin_two_of_which_one_ends(&harness);
        age(&harness, 3);
        let session = harness.session();
        let subagents = session["subagents"].as_array().unwrap();
        let found: Vec<_> = subagents
            .iter()
            .map(|one| {
                (
                    one["subagent"].as_str().unwrap(),
                    one["status"].as_str().unwrap(),
                )
            })
            .collect();
        assert_eq!(
            found,
            [("agent-1", "stale"), ("agent-2", "ended")],
            "{agent}"
        );
        let answer = subagents[1]["answer"].as_str().unwrap();
        assert!(answer.starts_with("Sub"), "{agent}: {answer}");
        let list = harness.run_json(&["session", "list", "--json"]);
        assert_eq!(list["sessions"][0]["status"], "stale_subagent", "{agent}");
    }
}

#[test]
fn a_task_that_follows_the_start_is_not_activity() {
    let harness = Harness::new("stale-subagent-task", "codex");
    harness.send("prompt").assert_empty();
    harness.send("subagent_start");
    harness.send("subagent_prompt");
    age(&harness, 3);
    assert_eq!(harness.session()["subagents"][0]["status"], "stale");
}

#[test]
fn the_command_line_names_the_stale_subagent() {
    let harness = Harness::new("stale-subagent-text", "claude-code");
    begin_two_of_which_one_ends(&harness);
    age(&harness, 3);
    let id = harness.session()["sessionId"].as_str().unwrap().to_owned();
    let shown = harness.run(&["session", "show", &id], b"").stdout;
    let (_, subagents) = shown.split_once("\nSubagents\n").expect("a section");
    let (subagents, _) = subagents.split_once("\n\n").expect("turns follow");
    let status = harness.run(&["status"], b"").stdout;
    // Without the age of the state, which depends on the duration of the test.
    let (before, _) = status.split_once(" stale ").expect("a row of the session");
    let start = before.find("  1/2 ").expect("the number of subagents");
    let text = format!("{subagents}\n\n{} stale\n", before[start..].trim_start());
    golden::assert_matches(golden_path("subagents"), &text);
}
