//! Budgets through the tools, the command line and plan files.

use onward_testbed::mcp_client::{Client, Era};
use serde_json::{Value, json};

use crate::fixtures;
use crate::program;

fn create(client: &mut Client, steps: usize, budget: &Value) -> String {
    let mut plan = fixtures::plan(steps);
    plan["budget"] = budget.clone();
    let created = client.call("create_research_plan", plan);
    created["planId"].as_str().expect("plan id").to_owned()
}

fn submit(client: &mut Client, step: &Value, claim_next: bool) -> Value {
    let result = json!({
        "stepId": step["stepId"], "claimToken": step["claimToken"], "resultSummary": "done",
        "claimNext": claim_next,
    });
    client.call("submit_step_result", result)
}

#[test]
fn an_exhausted_budget_is_the_reason_for_no_step() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Stateless);
    let plan = create(
        &mut client,
        3,
        &json!({ "maxSteps": 2, "maxTokens": 1_000 }),
    );
    let next = json!({ "planId": plan });
    let first = client.call("get_next_step", next.clone());
    let second = client.call("get_next_step", next.clone());
    let other = json!({ "planId": plan, "sessionId": "other" });
    let denied = client.call("get_next_step", other);
    assert_eq!(denied["status"], "budget_exhausted");
    let exhausted = json!({ "limit": "maxSteps", "max": 2, "used": 2 });
    assert_eq!(denied["exhausted"], exhausted);
    assert_eq!(denied["inProgressCount"], 2);
    submit(&mut client, &first, false);
    let response = submit(&mut client, &second, true);
    assert_eq!(response["planStatus"], "stalled");
    assert_eq!(response["nextStep"]["status"], "budget_exhausted");
    let status = client.call("get_plan_status", next.clone());
    assert_eq!(
        (&status["status"], &status["stalled"]),
        (&json!("stalled"), &json!(true))
    );
    assert!(status["reason"].is_string(), "{status}");
    let budget = &status["budget"];
    assert_eq!(
        (&budget["maxSteps"], &budget["maxTokens"]),
        (&json!(2), &json!(1_000))
    );
    assert_eq!(budget["exhausted"], exhausted);
    assert_eq!(
        (&budget["used"]["steps"], &budget["used"]["attempts"]),
        (&json!(2), &json!(2))
    );
    // No count is known, which is not zero.
    assert_eq!(budget["used"].get("tokens"), None);
    let listed = client.call("list_active_plans", json!({}));
    assert_eq!(listed["plans"][0]["budget"]["exhausted"], exhausted);
    // An agent lowers a budget; a person raises it.
    let set = |budget: Value| json!({ "planId": plan, "action": "set_budget", "budget": budget });
    for raised in [json!({}), json!({ "maxSteps": 3, "maxTokens": 1_000 })] {
        let error = client.call_rejected("modify_plan", set(raised));
        assert_eq!(error.code, "forbidden");
    }
    let change = json!({ "planId": plan, "action": "add_steps", "steps": [
        { "stepType": "custom", "instructions": "More" },
    ] });
    let error = client.call_rejected("modify_plan", change);
    assert_eq!(error.code, "budget_exhausted");
    let raised = dir.run_json(&["--json", "plan", "budget", &plan, "--max-steps", "3"]);
    assert_eq!(raised["status"], "executing");
    assert_eq!(raised["budget"]["maxTokens"], 1_000);
    let lowered = client.call(
        "modify_plan",
        set(json!({ "maxSteps": 3, "maxTokens": 900 })),
    );
    assert_eq!(lowered["budget"]["maxTokens"], 900);
    let third = client.call("get_next_step", next);
    assert_eq!(third["status"], "step_started");
    let log = dir.run_json(&["--json", "plan", "log", &plan]);
    let events = log["events"].as_array().unwrap().iter();
    let recorded = events.filter(|event| event["eventType"] == "budget_exhausted");
    let details: Vec<&Value> = recorded
        .map(|event| &event["details"]["exhausted"])
        .collect();
    assert_eq!(details, [&exhausted]);
}

#[test]
fn a_caller_that_waits_gets_the_step_when_the_budget_is_raised() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Stateless);
    let plan = create(&mut client, 2, &json!({ "maxAttempts": 1 }));
    let first = client.call("get_next_step", json!({ "planId": plan }));
    submit(&mut client, &first, false);
    let wait = json!({ "planId": plan, "waitMs": 60_000 });
    let id = client.send_call("get_next_step", wait);
    dir.run_json(&["--json", "plan", "budget", &plan, "--remove"]);
    let response = client.response_to(id);
    let next = &response["result"]["structuredContent"];
    assert_eq!(next["status"], "step_started", "{response}");
}

#[test]
fn invalid_limits_are_rejected_with_their_paths() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Stateless);
    for (budget, path) in [
        (json!({ "maxSteps": 0 }), "budget.maxSteps"),
        (
            json!({ "maxDurationMs": 31_536_000_001_u64 }),
            "budget.maxDurationMs",
        ),
        (json!({ "maxMoney": 5 }), "budget.maxMoney"),
    ] {
        let mut plan = fixtures::plan(1);
        plan["budget"] = budget;
        let error = client.call_rejected("create_research_plan", plan);
        assert_eq!(error.paths(), [path]);
    }
    let plan = create(&mut client, 1, &json!({}));
    let missing = json!({ "planId": plan, "action": "set_budget" });
    let error = client.call_rejected("modify_plan", missing);
    assert_eq!(error.paths(), ["budget"]);
    let fork = json!({ "fromPlanId": plan, "fromStepOrder": 1, "budget": { "maxSteps": 1 } });
    let error = client.call_rejected("create_research_plan", fork);
    assert_eq!(error.paths(), ["budget"]);
}

#[test]
fn a_plan_file_contains_the_budget() {
    let dir = program();
    let file = dir.dir.write("plan.md", "+++\nbudget = { maxSteps = 3, maxDurationMs = 60_000 }\n+++\n\n# Boats\n\nWhich?\n\n## Offers\n\nFind them.\n");
    let created = dir.run_json(&["--json", "plan", "create", &file.display().to_string()]);
    let plan = created["planId"].as_str().expect("plan id");
    let shown = dir.run_json(&["--json", "plan", "show", plan]);
    assert_eq!(shown["budget"]["maxDurationMs"], 60_000);
    let arguments = dir.run_json(&["--json", "plan", "show", plan, "--as-file"]);
    assert_eq!(
        arguments["budget"],
        json!({ "maxDurationMs": 60_000, "maxSteps": 3 })
    );
    let text = dir.run_ok(&["plan", "show", plan, "--as-file"]);
    let file = dir.dir.write("again.md", text);
    let again = dir.run_json(&["--json", "plan", "create", &file.display().to_string()]);
    let again = again["planId"].as_str().expect("plan id");
    let shown = dir.run_json(&["--json", "plan", "show", again]);
    assert_eq!(shown["budget"]["maxSteps"], 3);
}
