//! Redoing a step and forking a plan through the tools.

use onward_testbed::mcp_client::{Client, Era};
use serde_json::{Value, json};

use crate::fixtures;
use crate::program;

fn complete(client: &mut Client, plan: &str) -> String {
    let (step, token) = fixtures::claim_step(client, plan);
    let result = json!({ "stepId": step, "claimToken": token, "resultSummary": "Found" });
    client.call("submit_step_result", result);
    step
}

#[test]
fn redoes_a_step_and_forks_the_ended_plan() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Handshake);
    let plan = fixtures::create_plan(&mut client, 2);
    let first = complete(&mut client, &plan);
    let redo = json!({
        "planId": plan, "action": "redo_step", "stepId": first, "reason": "Outdated source",
    });
    let redone = client.call("modify_plan", redo.clone());
    let successor = redone["steps"][1]["stepId"].clone();
    assert_eq!(redone["steps"][1]["supersedes"], first.as_str());
    assert_eq!(redone["stepCount"], 2);
    let again = client.call_rejected("modify_plan", redo);
    assert_eq!(again.code, "illegal_transition");
    let next = client.call("get_next_step", json!({ "planId": plan }));
    assert_eq!(next["stepId"], successor);
    assert_eq!(next["supersedes"], first.as_str());
    let result = json!({ "stepId": successor, "resultSummary": "Found again" });
    client.call("submit_step_result", result);
    complete(&mut client, &plan);
    let fork = json!({ "fromPlanId": plan, "fromStepOrder": 3 });
    let forked = client.call("create_research_plan", fork);
    assert_eq!(forked["forkedFrom"]["planId"], plan.as_str());
    assert_eq!(forked["stepsTakenOver"], 1);
    assert_eq!(forked["firstStep"]["stepOrder"], 2);
    let status = client.call("get_plan_status", json!({ "planId": plan }));
    assert_eq!(status["forks"], json!([forked["planId"]]));
    assert_eq!(status["counts"]["superseded"], 1);
}

#[test]
fn reports_missing_and_misplaced_fields_of_redo_and_fork() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Handshake);
    let plan = fixtures::create_plan(&mut client, 1);
    let step = complete(&mut client, &plan);
    let calls = [
        (
            "modify_plan",
            json!({ "planId": plan, "action": "redo_step", "stepId": step }),
            "reason",
        ),
        (
            "modify_plan",
            json!({ "planId": plan, "action": "fail_step", "stepId": step, "cascade": true }),
            "cascade",
        ),
        (
            "create_research_plan",
            json!({ "fromPlanId": plan }),
            "fromStepOrder",
        ),
        (
            "create_research_plan",
            json!({ "fromPlanId": plan, "fromStepOrder": 1, "onStall": "fail" }),
            "onStall",
        ),
        (
            "create_research_plan",
            json!({ "name": "Tides", "researchQuestion": "Why?" }),
            "steps",
        ),
    ];
    for (tool, arguments, path) in calls {
        let rejected = client.call_rejected(tool, arguments);
        assert_eq!(rejected.code, "invalid_input");
        let paths = rejected.error["details"]["issues"]
            .as_array()
            .expect("issues");
        let paths: Vec<&Value> = paths.iter().map(|issue| &issue["path"]).collect();
        assert_eq!(paths, [path], "{tool}");
    }
}
