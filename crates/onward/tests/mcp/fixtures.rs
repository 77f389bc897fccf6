//! Plans for the tests.

use onward_testbed::mcp_client::Client;
use serde_json::{Value, json};

/// The arguments of a plan with this many steps.
pub(crate) fn plan(steps: usize) -> Value {
    let steps: Vec<Value> = (1..=steps)
        .map(|number| json!({ "stepType": "search", "instructions": format!("Do {number}") }))
        .collect();
    json!({ "name": "A plan", "researchQuestion": "Why?", "steps": steps })
}

/// Creates a plan with this many steps. Returns its id.
pub(crate) fn create_plan(client: &mut Client, steps: usize) -> String {
    let created = client.call("create_research_plan", plan(steps));
    created["planId"].as_str().expect("plan id").to_owned()
}

/// Claims the next step. Returns its id and token.
pub(crate) fn claim_step(client: &mut Client, plan: &str) -> (String, String) {
    let next = client.call("get_next_step", json!({ "planId": plan }));
    assert_eq!(next["status"], "step_started", "{next}");
    let text = |name: &str| next[name].as_str().expect("string field").to_owned();
    (text("stepId"), text("claimToken"))
}
