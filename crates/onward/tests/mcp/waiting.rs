//! `get_next_step` with `waitMs`: returns when a step is ready or a review is decided, ends with a
//! cancellation and with the server, and claims nothing then.

use onward_testbed::mcp_client::{Client, ERAS, Era, success};
use serde_json::{Value, json};

use crate::fixtures;
use crate::program;

const LONG: u32 = 60_000;

/// A plan whose second step depends on the first, which is claimed. Returns the ids of the plan and
/// of the claimed step.
fn started_plan(client: &mut Client) -> (String, String) {
    let mut plan = fixtures::plan(2);
    plan["steps"][1]["dependsOn"] = json!([1]);
    let created = client.call("create_research_plan", plan);
    let plan = created["planId"].as_str().expect("plan id").to_owned();
    let (step, _) = fixtures::claim_step(client, &plan);
    (plan, step)
}

fn wait(client: &mut Client, plan: &str, wait_ms: u32) -> u64 {
    // Another session than the one that holds the first step.
    let arguments = json!({ "planId": plan, "waitMs": wait_ms, "sessionId": "waiter" });
    client.send_call("get_next_step", arguments)
}

fn submit(client: &mut Client, step: &str) {
    client.call(
        "submit_step_result",
        json!({ "stepId": step, "resultSummary": "done" }),
    );
}

fn response(client: &mut Client, id: u64) -> Value {
    let response = client.response_to(id);
    success("get_next_step", &response)
}

#[test]
fn a_waiting_call_returns_the_step_that_becomes_ready() {
    for era in ERAS {
        let dir = program();
        let mut client = Client::start(&dir, era);
        let (plan, step) = started_plan(&mut client);
        let waiting = wait(&mut client, &plan, LONG);
        submit(&mut client, &step);
        let next = response(&mut client, waiting);
        assert_eq!(next["status"], "step_started", "{next}");
        assert_eq!(next["stepOrder"], 2);
    }
}

#[test]
fn another_process_ends_the_wait() {
    for dir in [program(), program().on_postgres()] {
        let mut client = Client::start(&dir, Era::Stateless);
        let (plan, step) = started_plan(&mut client);
        let waiting = wait(&mut client, &plan, LONG);
        let mut other = Client::start(&dir, Era::Stateless);
        submit(&mut other, &step);
        assert_eq!(response(&mut client, waiting)["status"], "step_started");
    }
}

#[test]
fn a_decided_review_ends_the_wait_even_if_no_step_is_ready() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Stateless);
    let plan = fixtures::create_plan(&mut client, 1);
    let claim = json!({ "planId": plan, "sessionId": "worker" });
    let step = client.call("get_next_step", claim)["stepId"].clone();
    let review = json!({ "stepId": step, "summary": "so?", "sessionId": "worker" });
    client.call("request_user_review", review);
    let wait = json!({ "planId": plan, "sessionId": "other", "waitMs": LONG });
    let waiting = client.send_call("get_next_step", wait);
    // The decision is pending: this call returns first.
    let now = client.call("get_next_step", json!({ "planId": plan }));
    assert_eq!(now["status"], "awaiting_review", "{now}");
    assert!(client.notifications.is_empty());
    let decision = json!({ "stepId": step, "decision": "modify", "feedback": "again" });
    client.call("submit_user_decision", decision);
    let next = response(&mut client, waiting);
    assert_eq!(next["status"], "no_pending_steps", "{next}");
}

#[test]
fn the_end_of_a_plan_ends_the_wait() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Stateless);
    let plan = fixtures::create_plan(&mut client, 1);
    let (step, _) = fixtures::claim_step(&mut client, &plan);
    let waiting = wait(&mut client, &plan, LONG);
    submit(&mut client, &step);
    assert_eq!(response(&mut client, waiting)["status"], "plan_complete");
}

#[test]
fn the_call_returns_the_reason_when_the_time_is_up() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Stateless);
    let (plan, _) = started_plan(&mut client);
    for wait_ms in [0, 20] {
        let waiting = wait(&mut client, &plan, wait_ms);
        let next = response(&mut client, waiting);
        assert_eq!(next["status"], "no_pending_steps");
    }
    let arguments = json!({ "planId": plan, "waitMs": LONG + 1 });
    let rejected = client.call_rejected("get_next_step", arguments);
    assert_eq!(rejected.paths(), ["waitMs"]);
}

#[test]
fn a_cancelled_wait_claims_no_step() {
    for era in ERAS {
        let dir = program();
        let mut client = Client::start(&dir, era);
        let (plan, step) = started_plan(&mut client);
        let waiting = wait(&mut client, &plan, LONG);
        client.send_message(&json!({
            "jsonrpc": "2.0",
            "method": "notifications/cancelled",
            "params": { "requestId": waiting },
        }));
        submit(&mut client, &step);
        let next = client.call("get_next_step", json!({ "planId": plan }));
        assert_eq!(next["status"], "step_started", "{next}");
    }
}

#[test]
fn shutdown_ends_the_wait() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Stateless);
    let (plan, _) = started_plan(&mut client);
    let waiting = wait(&mut client, &plan, LONG);
    client.close_input();
    let next = response(&mut client, waiting);
    assert_eq!(next["status"], "no_pending_steps");
    assert!(client.wait().success());
}
