//! Claim tokens and sessions in tool calls: checks, the session of the audit trail, repeated calls
//! and changed instructions.

use onward_testbed::mcp_client::{Client, Era};
use serde_json::{Value, json};

use crate::fixtures;
use crate::program;

/// The audit entries of a plan.
fn audit_trail(client: &mut Client, plan: &str) -> Vec<Value> {
    let uri = format!("onward://plan/{plan}/audit");
    let read = client.request("resources/read", json!({ "uri": uri }));
    let text = read["result"]["contents"][0]["text"].as_str();
    let audit: Value = serde_json::from_str(text.expect("audit trail")).expect("JSON");
    audit["events"].as_array().expect("events").clone()
}

#[test]
fn modify_plan_and_submit_user_decision_check_the_token_and_record_the_session() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Handshake);
    let plan = fixtures::create_plan(&mut client, 2);
    let (step, first) = fixtures::claim_step(&mut client, &plan);
    let requeue = json!({
        "planId": plan, "action": "requeue_step", "stepId": step, "sessionId": "supervisor",
    });
    client.call("modify_plan", requeue);
    let trail = audit_trail(&mut client, &plan);
    let modified = trail
        .iter()
        .rfind(|event| event["eventType"] == "plan_modified")
        .expect("modification");
    assert_eq!(modified["sessionId"], "supervisor", "{modified}");
    let (_, second) = fixtures::claim_step(&mut client, &plan);
    let fail = json!({
        "planId": plan, "action": "fail_step", "stepId": step, "claimToken": first,
    });
    let rejected = client.call_rejected("modify_plan", fail);
    assert_eq!(rejected.code, "claim_superseded");
    let review = json!({ "stepId": step, "summary": "Ready", "claimToken": second });
    let requested = client.call("request_user_review", review.clone());
    assert_eq!(client.call("request_user_review", review), requested);
    let decision = |token: &str| {
        json!({
            "stepId": step, "decision": "modify", "feedback": "Shorter", "claimToken": token,
            "sessionId": "reviewer",
        })
    };
    let rejected = client.call_rejected("submit_user_decision", decision(&first));
    assert_eq!(rejected.code, "claim_superseded");
    let decided = client.call("submit_user_decision", decision(&second));
    assert_eq!(
        client.call("submit_user_decision", decision(&second)),
        decided
    );
    let trail = audit_trail(&mut client, &plan);
    let last = trail.last().expect("status change");
    assert_eq!(last["eventType"], "plan_status_changed");
    assert_eq!(last["details"]["from"], "awaiting_review");
    assert_eq!(last["details"]["to"], "executing");
    assert_eq!(last["sessionId"], "reviewer");
}

#[test]
fn keeps_work_for_a_step_that_the_caller_does_not_hold() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Handshake);
    let mut plan = fixtures::plan(3);
    plan["steps"][2]["dependsOn"] = json!([1, 2]);
    let created = client.call("create_research_plan", plan);
    let plan = created["planId"].as_str().expect("plan id").to_owned();
    let (_, token) = fixtures::claim_step(&mut client, &plan);
    let (second, third) = (
        &created["steps"][1]["stepId"],
        &created["steps"][2]["stepId"],
    );
    let confused = json!({ "stepId": second, "resultSummary": "Done", "claimToken": token });
    let rejected = client.call_rejected("submit_step_result", confused);
    assert_eq!(rejected.code, "claim_superseded");
    assert!(rejected.error["details"]["keptArtifactId"].is_string());
    let early = json!({ "stepId": third, "resultSummary": "Too early" });
    let rejected = client.call_rejected("submit_step_result", early);
    assert_eq!(rejected.code, "dependencies_open");
    assert!(rejected.error["details"]["keptArtifactId"].is_string());
    assert_eq!(rejected.error["details"]["openDependencies"], 2);
    let orders = json!([1, 2]);
    let steps = rejected.error["details"]["steps"]
        .as_array()
        .expect("open steps");
    let named: Vec<&Value> = steps.iter().map(|step| &step["stepOrder"]).collect();
    assert_eq!(json!(named), orders);
    assert_eq!(&steps[1]["stepId"], second);
}

#[test]
fn new_instructions_reach_the_agent_with_a_progress_report_and_a_result() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Handshake);
    let plan = fixtures::create_plan(&mut client, 1);
    let (step, token) = fixtures::claim_step(&mut client, &plan);
    let update = |text: &str| {
        json!({
            "planId": plan, "action": "update_step_instructions", "stepId": step,
            "instructions": text, "sessionId": "another",
        })
    };
    client.call("modify_plan", update("Read two sources"));
    let report = json!({ "stepId": step, "claimToken": token });
    let reported = client.call("report_step_progress", report.clone());
    assert_eq!(reported["instructions"], "Read two sources");
    let reported = client.call("report_step_progress", report);
    assert_eq!(reported.get("instructions"), None);
    client.call("modify_plan", update("Read three sources"));
    let result = json!({ "stepId": step, "resultSummary": "Done", "claimToken": token });
    let submitted = client.call("submit_step_result", result.clone());
    assert_eq!(submitted["instructionsChanged"], true);
    assert_eq!(submitted["instructions"], "Read three sources");
    assert_eq!(client.call("submit_step_result", result), submitted);
}

#[test]
fn dependencies_by_id_and_order_are_in_modifications_and_lists() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Stateless);
    let plan = fixtures::create_plan(&mut client, 3);
    let listed = client.call("list_plan_steps", json!({ "planId": plan }));
    let third = listed["steps"][2]["stepId"].clone();
    // Orders are those before the insertion: step 2 becomes step 3, and step 3 becomes step 4.
    let add = json!({
        "planId": plan,
        "action": "add_steps",
        "insertAfterOrder": 1,
        "steps": [{ "stepType": "search", "instructions": "New", "dependsOn": [2, third] }],
    });
    let modified = client.call("modify_plan", add);
    assert_eq!(modified["steps"][0]["stepOrder"], 2, "{modified}");
    assert_eq!(
        modified["steps"][0]["dependsOn"],
        json!([3, 4]),
        "{modified}"
    );
    let listed = client.call("list_plan_steps", json!({ "planId": plan }));
    assert_eq!(listed["steps"][1]["dependsOn"], json!([3, 4]), "{listed}");
}
