//! Plans that tests work on.

use serde_json::{Value, json};

use crate::agent::Agent;

/// A plan of so many steps.
pub(crate) fn plan(steps: usize) -> Value {
    let steps: Vec<Value> = (1..=steps)
        .map(|number| json!({ "stepType": "search", "instructions": format!("Do {number}") }))
        .collect();
    json!({ "name": "A plan", "researchQuestion": "Why?", "steps": steps })
}

/// A plan of so many steps that is stored.
pub(crate) fn created(agent: &mut Agent, steps: usize) -> String {
    let made = agent.call("create_research_plan", plan(steps));
    made["planId"].as_str().expect("an id").to_owned()
}

/// A step that is handed out, with its token.
pub(crate) fn next(agent: &mut Agent, plan: &str) -> (String, String) {
    let next = agent.call("get_next_step", json!({ "planId": plan }));
    assert_eq!(next["status"], "step_started", "{next}");
    let text = |name: &str| next[name].as_str().expect("a text").to_owned();
    (text("stepId"), text("claimToken"))
}
