//! Plans that a person approves before their first step is assigned, over MCP.

use onward_testbed::mcp_client::{Client, Era};
use serde_json::{Value, json};

use crate::fixtures;
use crate::program;

fn create(client: &mut Client) -> Value {
    let mut plan = fixtures::plan(2);
    plan["requiresApproval"] = json!(true);
    client.call("create_research_plan", plan)
}

#[test]
fn an_agent_waits_for_the_approval_of_its_plan() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Stateless);
    let created = create(&mut client);
    assert_eq!(created["status"], "awaiting_review");
    let (plan, review) = (
        created["planId"].clone(),
        created["approval"]["reviewId"].clone(),
    );
    let next = client.call("get_next_step", json!({ "planId": plan }));
    assert_eq!(next["status"], "awaiting_review");
    assert_eq!(next["review"]["reviewId"], review);
    assert_eq!(next["review"]["scope"], "start");
    assert_eq!(next["review"]["reviewBy"], "person");
    let status = client.call("get_plan_status", json!({ "planId": plan }));
    assert_eq!(status["pendingReviews"][0]["scope"], "start");
    let step = created["approval"]["stepId"].clone();
    let decision = json!({ "stepId": step, "decision": "approve" });
    let error = client.call_rejected("submit_user_decision", decision);
    assert_eq!(error.code, "forbidden");
    let submission = json!({ "stepId": step, "resultSummary": "Done." });
    let error = client.call_rejected("submit_step_result", submission);
    assert_eq!(error.code, "illegal_transition");
}

#[test]
fn the_message_of_a_rejection_reaches_the_agent() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Stateless);
    let created = create(&mut client);
    let plan = created["planId"].as_str().expect("plan id");
    let arguments = ["review", "decide", plan, "reject", "--feedback", "too long"];
    dir.run_ok(&arguments);
    let next = client.call("get_next_step", json!({ "planId": plan }));
    assert_eq!(next["status"], "plan_failed");
    assert_eq!(next["reason"], "too long");
    let status = client.call("get_plan_status", json!({ "planId": plan }));
    assert_eq!(status["reason"], "too long");
}

#[test]
fn the_command_line_approves_a_plan_with_edits() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Stateless);
    let created = create(&mut client);
    let plan = created["planId"].as_str().expect("plan id");
    let edits = dir.current_dir().join("edits.json");
    let arguments = [
        "review",
        "decide",
        plan,
        "approve",
        "--edits",
        edits.to_str().expect("UTF-8"),
    ];
    std::fs::write(&edits, json!([{ "remove": true }]).to_string()).expect("file is written");
    assert_eq!(dir.run(&arguments).code, Some(1));
    let steps = &created["steps"];
    let list = json!([
        { "stepId": steps[0]["stepId"], "title": "Offers", "instructions": "Find offers." },
        { "stepId": steps[1]["stepId"], "remove": true },
        { "instructions": "Compare." },
    ]);
    std::fs::write(&edits, list.to_string()).expect("file is written");
    dir.run_ok(&arguments);
    let next = client.call("get_next_step", json!({ "planId": plan }));
    assert_eq!(next["title"], "Offers");
    assert_eq!(next["instructions"], "Find offers.");
    assert_eq!(next["totalSteps"], 2);
}

#[test]
fn a_fork_can_require_approval() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Stateless);
    let source = client.call("create_research_plan", fixtures::plan(1));
    let fork = json!({
        "fromPlanId": source["planId"], "fromStepOrder": 1, "requiresApproval": true,
    });
    let fork = client.call("create_research_plan", fork);
    assert_eq!(fork["status"], "awaiting_review");
    assert!(fork["approval"]["reviewId"].is_string());
}
