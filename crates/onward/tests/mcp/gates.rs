//! Gates of steps and scoped reviews over MCP.

use onward_testbed::mcp_client::{Client, Era};
use serde_json::{Value, json};

use crate::fixtures;
use crate::program;

/// Creates a plan of two steps; the first has these fields in addition.
fn gated_plan(client: &mut Client, gates: Value) -> String {
    let mut plan = fixtures::plan(2);
    for (name, value) in gates.as_object().expect("gates are an object") {
        plan["steps"][0][name] = value.clone();
    }
    let created = client.call("create_research_plan", plan);
    created["planId"].as_str().expect("plan id").to_owned()
}

/// Claims the next step in a session.
fn claim_in(client: &mut Client, plan: &str, session: &str) -> Value {
    let arguments = json!({ "planId": plan, "sessionId": session });
    client.call("get_next_step", arguments)
}

#[test]
fn a_submission_must_meet_the_gates_of_its_step() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Stateless);
    let schema = json!({
        "type": "object",
        "properties": { "moons": { "type": "array" } },
        "required": ["moons"],
    });
    let gates = json!({ "resultSchema": schema, "acceptanceCriteria": ["All are listed."] });
    let plan = gated_plan(&mut client, gates);
    let step = client.call("get_next_step", json!({ "planId": plan }));
    assert_eq!(step["resultSchema"], schema);
    assert_eq!(step["acceptanceCriteria"], json!(["All are listed."]));
    let id = step["stepId"].clone();
    let submission = |result: Value, evidence: Value| json!({ "stepId": id, "resultSummary": "Four.", "result": result, "evidence": evidence });
    let evidence = json!([
        { "criterion": 1, "kind": "test", "value": "counts_moons", "outcome": "passed" },
    ]);
    let without = submission(json!({ "moons": [] }), json!([]));
    let error = client.call_rejected("submit_step_result", without);
    assert_eq!(error.code, "invalid_input");
    assert_eq!(error.paths(), ["evidence"]);
    assert!(error.error["details"]["keptArtifactId"].is_string());
    let invalid = submission(json!({ "moons": 4 }), evidence.clone());
    let error = client.call_rejected("submit_step_result", invalid);
    assert_eq!(error.paths(), ["result.moons"]);
    assert!(error.error["details"]["keptArtifactId"].is_string());
    let unknown = json!([{ "criterion": 1, "kind": "rumour", "value": "x", "outcome": "y" }]);
    let unknown = submission(json!({ "moons": [] }), unknown);
    let error = client.call_rejected("submit_step_result", unknown);
    assert_eq!(error.code, "invalid_input");
    let accepted = client.call(
        "submit_step_result",
        submission(json!({ "moons": [] }), evidence),
    );
    assert_eq!(accepted["stepStatus"], "completed");

    let next = client.call("get_next_step", json!({ "planId": plan }));
    let context = client.call("get_step_context", json!({ "stepId": next["stepId"] }));
    let prior = &context["priorResults"][0]["evidence"][0];
    assert_eq!(prior["criterion"], "All are listed.");
    assert_eq!(prior["outcome"], "passed");
    let part = json!({ "planId": plan, "stepId": id, "part": "evidence" });
    let page = client.call("get_research_context", part);
    assert!(
        page["content"]
            .as_str()
            .expect("text")
            .contains("counts_moons")
    );
}

#[test]
fn rejects_a_reviewer_without_a_required_review() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Stateless);
    let mut plan = fixtures::plan(1);
    plan["steps"][0]["reviewBy"] = json!("person");
    let error = client.call_rejected("create_research_plan", plan.clone());
    assert_eq!(error.paths(), ["steps[0].reviewBy"]);
    plan["steps"][0] = json!({
        "stepType": "search", "instructions": "Do 1", "resultSchema": { "type": "moon" },
    });
    let error = client.call_rejected("create_research_plan", plan);
    assert_eq!(error.paths(), ["steps[0].resultSchema"]);
}

#[test]
fn an_agent_cannot_approve_a_result_that_a_person_reviews() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Stateless);
    let plan = gated_plan(&mut client, json!({ "reviewRequired": true }));
    let step = claim_in(&mut client, &plan, "worker");
    let submission = json!({ "stepId": step["stepId"], "resultSummary": "Four." });
    let submitted = client.call("submit_step_result", submission.clone());
    assert_eq!(submitted["stepStatus"], "awaiting_input");
    assert_eq!(submitted["planStatus"], "executing");
    assert_eq!(submitted["next"], "get_next_step");
    let review = submitted["reviewId"].clone();
    assert_eq!(
        client.call("submit_step_result", submission)["reviewId"],
        review
    );
    let status = client.call("get_plan_status", json!({ "planId": plan }));
    assert_eq!(status["status"], "executing");
    assert_eq!(status["derivedStatus"], "awaiting_review");
    let pending = &status["pendingReviews"][0];
    assert_eq!(pending["reviewId"], review);
    assert_eq!(pending["scope"], "step");
    assert_eq!(pending["reviewBy"], "person");
    for session in ["worker", "other"] {
        let decision = json!({
            "stepId": step["stepId"], "decision": "approve", "sessionId": session,
        });
        let error = client.call_rejected("submit_user_decision", decision);
        assert_eq!(error.code, "forbidden");
    }
    let id = review.as_str().expect("review id");
    dir.run_json(&["--json", "review", "decide", id, "approve"]);
    let step = step["stepId"].as_str().expect("step id").to_owned();
    let shown = dir.run_json(&["--json", "step", "show", &step]);
    assert_eq!(shown["status"], "completed");
    assert_eq!(shown["reviewBy"], "person");
}

#[test]
fn an_agent_in_another_session_reviews_a_result() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Stateless);
    let gates = json!({ "reviewRequired": true, "reviewBy": "other_session" });
    let plan = gated_plan(&mut client, gates);
    let step = claim_in(&mut client, &plan, "worker");
    let submission = json!({
        "stepId": step["stepId"], "resultSummary": "Four.", "claimToken": step["claimToken"],
    });
    let submitted = client.call("submit_step_result", submission);
    let decision = |session: &str| {
        json!({
            "reviewId": submitted["reviewId"], "decision": "approve", "sessionId": session,
        })
    };
    let error = client.call_rejected("submit_user_decision", decision("worker"));
    assert_eq!(error.code, "forbidden");
    let decided = client.call("submit_user_decision", decision("reviewer"));
    assert_eq!(decided["stepStatus"], "completed");
}

#[test]
fn a_review_of_a_step_does_not_stop_the_plan() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Stateless);
    let plan = fixtures::create_plan(&mut client, 2);
    let mut reviews = Vec::new();
    for _ in 0..2 {
        let (step, _) = fixtures::claim_step(&mut client, &plan);
        let request = json!({ "stepId": step, "summary": "Right?", "scope": "step" });
        let requested = client.call("request_user_review", request);
        assert_eq!(requested["planStatus"], "executing");
        reviews.push(requested["reviewId"].clone());
    }
    let next = client.call("get_next_step", json!({ "planId": plan }));
    assert_eq!(next["status"], "awaiting_review");
    assert_eq!(next["review"]["scope"], "step");
    let neither = json!({ "decision": "approve" });
    let error = client.call_rejected("submit_user_decision", neither);
    assert_eq!(error.paths(), ["stepId"]);
    for review in reviews {
        let decision = json!({ "reviewId": review, "decision": "skip" });
        client.call("submit_user_decision", decision);
    }
    let status = client.call("get_plan_status", json!({ "planId": plan }));
    assert_eq!(status["status"], "completed");
}
