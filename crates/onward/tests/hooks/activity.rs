//! Hook events count as activity on the steps that the session holds.

use onward_testbed::mcp_client::{Client, Era};
use serde_json::{Value, json};

use crate::harness::Harness;

/// The session of the fixtures.
const SESSION: &str = "7d0c1f6e-6a3f-4c55-9f0e-2b8f6f1c0a11";

/// Creates a plan whose threshold is so short that every hook event is recorded, and claims its
/// step.
fn claim(client: &mut Client, session: Option<&str>) -> (String, Value) {
    let plan = client.call(
        "create_research_plan",
        json!({
            "name": "Tides",
            "researchQuestion": "Why two?",
            "steps": [{ "stepType": "search", "instructions": "Look." }],
            "stallThresholdMs": 4,
            "onStall": "ignore",
        }),
    );
    let plan = plan["planId"].as_str().unwrap().to_owned();
    let arguments = json!({ "planId": plan, "sessionId": session });
    let claimed = client.call("get_next_step", arguments);
    (plan, claimed)
}

fn last_progress_at(client: &mut Client, plan: &str) -> Option<String> {
    let status = client.call("get_plan_status", json!({ "planId": plan }));
    let at = status["currentStep"]["lastProgressAt"].as_str();
    at.map(str::to_owned)
}

#[test]
fn every_event_advances_the_last_progress_of_the_held_step() {
    let harness = Harness::new("activity", "claude-code");
    let mut client = Client::start(&harness.program, Era::Stateless);
    let (plan, _) = claim(&mut client, Some(SESSION));
    let mut last = last_progress_at(&mut client, &plan);
    assert_eq!(last, None);
    for event in [
        "session_start",
        "prompt",
        "before_tool",
        "permission",
        "idle",
        "subagent_start",
        "subagent_idle",
        "stop",
    ] {
        harness.send(event);
        let next = last_progress_at(&mut client, &plan);
        assert!(next > last, "{event}: {next:?}");
        last = next;
    }
}

#[test]
fn finds_the_held_step_in_the_result_of_a_call_without_a_session_id() {
    let harness = Harness::new("activity-seen", "claude-code");
    let mut client = Client::start(&harness.program, Era::Stateless);
    let (plan, claimed) = claim(&mut client, None);
    harness.send("prompt");
    assert_eq!(last_progress_at(&mut client, &plan), None);
    let payload: Value = serde_json::from_str(&harness.payload("plan_created")).unwrap();
    let mut payload = payload;
    payload["tool_calls"][0]["tool_name"] = "mcp__onward__get_next_step".into();
    payload["tool_calls"][0]["tool_response"] = claimed.to_string().into();
    harness.send_payload(&payload.to_string());
    harness.send("before_tool");
    assert!(last_progress_at(&mut client, &plan).is_some());
}
