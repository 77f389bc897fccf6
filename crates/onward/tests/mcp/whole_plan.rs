//! The official client completes a whole plan in both eras on both databases, with branches, a
//! review, a takeover and a late result.

use onward_testbed::Program;
use onward_testbed::mcp_client::{ERAS, Era};
use onward_testbed::sdk_client::SdkClient;
use serde_json::{Value, json};

use crate::program;

/// Claims the next step.
async fn claim_next(client: &SdkClient, plan: &Value) -> Value {
    let next = client
        .call("get_next_step", json!({ "planId": plan }))
        .await;
    assert_eq!(next["status"], "step_started", "{next}");
    next
}

/// Five steps and two branches: one skips a step, one adds a step.
fn plan() -> Value {
    let step =
        |kind: &str, instructions: &str| json!({ "stepType": kind, "instructions": instructions });
    json!({
        "name": "Whole",
        "researchQuestion": "Does all of it work?",
        "sessionId": "first",
        "outputFormattingNotes": "Short.",
        "steps": [
            step("search", "Find"),
            step("extract", "Skipped"),
            step("analyze", "Interpret"),
            step("critique", "Check"),
            step("synthesize", "Write"),
        ],
        "branchingConditions": [
            {
                "afterStepOrder": 1,
                "conditionExpression": "result.sources.size() >= 2",
                "ifTrueAction": "skip_to",
                "actionParams": { "targetStepOrder": 3 },
            },
            {
                "afterStepOrder": 3,
                "conditionExpression": "confidence < 0.5",
                "ifTrueAction": "add_steps",
                "actionParams": { "steps": [step("search", "Search again")] },
            },
        ],
    })
}

async fn complete(dir: &Program, era: Era) {
    let client = SdkClient::start(dir, era).await;
    let skill = client
        .call(
            "log_skill_execution",
            json!({
                "skillName": "research",
                "status": "started",
                "sessionId": "first",
                "metadata": { "outputMediaType": "text/markdown" },
            }),
        )
        .await;
    let created = client.call("create_research_plan", plan()).await;
    assert_eq!(created["skillExecutionId"], skill["executionId"]);
    assert_eq!(created["stepCount"], 5);
    assert_eq!(created["firstStep"]["instructions"], "Find");
    let plan = &created["planId"];

    branches(&client, plan).await;
    let late = take_over(&client, plan).await;
    review(&client, plan).await;
    finish(&client, plan, &late).await;

    client.close().await;
    let audit = dir.run_json(&["--json", "plan", "log", plan.as_str().expect("plan id")]);
    let events = audit["events"].as_array().expect("events");
    let names: Vec<&str> = events
        .iter()
        .filter_map(|event| event["eventType"].as_str())
        .collect();
    for name in [
        "branch_taken",
        "step_requeued",
        "user_reviewed",
        "plan_completed",
    ] {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
    dir.run_ok(&["doctor"]);
}

/// Steps 1 and 3: one branch skips step 2, the other adds a step.
async fn branches(client: &SdkClient, plan: &Value) {
    let step = claim_next(client, plan).await;
    let submitted = client
        .call(
            "submit_step_result",
            json!({
                "stepId": step["stepId"],
                "claimToken": step["claimToken"],
                "resultSummary": "Two",
                "result": { "sources": ["a", "b"] },
                "claimNext": true,
            }),
        )
        .await;
    assert_eq!(submitted["branchTaken"]["action"], "skip_to");
    let skipped = submitted["branchTaken"]["skippedStepIds"].as_array();
    assert_eq!(skipped.map(Vec::len), Some(1));
    let step = &submitted["nextStep"];
    assert_eq!(step["stepOrder"], 3);
    let context = json!({ "stepId": step["stepId"] });
    let context = client.call("get_step_context", context).await;
    assert_eq!(context["priorResults"][0]["resultSummary"], "Two");
    let submitted = client
        .call(
            "submit_step_result",
            json!({
                "stepId": step["stepId"],
                "claimToken": step["claimToken"],
                "resultSummary": "Not sure",
                "confidence": 0.2,
            }),
        )
        .await;
    assert_eq!(submitted["next"], "get_next_step");
    let added = submitted["branchTaken"]["addedStepIds"].as_array();
    assert_eq!(added.map(Vec::len), Some(1));
}

/// Step 4 is requeued and claimed again. The first result arrives too late and is stored as an
/// artifact.
async fn take_over(client: &SdkClient, plan: &Value) -> Value {
    let first = claim_next(client, plan).await;
    assert_eq!(first["instructions"], "Search again");
    // Instead of waiting for a stall.
    client
        .call(
            "modify_plan",
            json!({ "planId": plan, "action": "requeue_step", "stepId": first["stepId"] }),
        )
        .await;
    let second = claim_next(client, plan).await;
    assert_eq!(second["stepId"], first["stepId"]);
    assert_eq!(second["attempt"], 2);
    let late = client
        .call_rejected(
            "submit_step_result",
            json!({
                "stepId": first["stepId"],
                "claimToken": first["claimToken"],
                "resultSummary": "Too late",
            }),
        )
        .await;
    assert_eq!(late["code"], "claim_superseded");
    assert!(late["details"]["keptArtifactId"].is_string(), "{late}");
    let progress =
        json!({ "stepId": second["stepId"], "claimToken": second["claimToken"], "percent": 50 });
    let progress = client.call("report_step_progress", progress).await;
    assert_eq!(progress["planStatus"], "executing");
    let submission = json!({
        "stepId": second["stepId"],
        "claimToken": second["claimToken"],
        "resultSummary": "Found",
        "claimNext": true,
    });
    let once = client.call("submit_step_result", submission.clone()).await;
    let twice = client.call("submit_step_result", submission).await;
    assert_eq!(once, twice, "submitting is idempotent");
    late["details"]["keptArtifactId"].clone()
}

/// Step 5 is under review: the user requests a change, then approves.
async fn review(client: &SdkClient, plan: &Value) {
    let status = client
        .call("get_plan_status", json!({ "planId": plan }))
        .await;
    let step = &status["currentStep"]["stepId"];
    let review = json!({ "stepId": step, "summary": "Is it good?", "questions": ["Really?"] });
    let review = client.call("request_user_review", review).await;
    assert_eq!(review["planStatus"], "awaiting_review");
    assert!(review.get("decision").is_none(), "there is no form");
    let next = client
        .call("get_next_step", json!({ "planId": plan }))
        .await;
    assert_eq!(next["status"], "awaiting_review");
    assert_eq!(next["review"]["reviewId"], review["reviewId"]);
    let decide = |decision: &str, feedback: Value| json!({ "stepId": step, "decision": decision, "feedback": feedback });
    let rejected = client
        .call_rejected("submit_user_decision", decide("modify", Value::Null))
        .await;
    assert_eq!(rejected["code"], "feedback_required");
    let decided = client
        .call("submit_user_decision", decide("modify", "Shorter".into()))
        .await;
    assert_eq!(decided["stepStatus"], "in_progress");
    let instructions = decided["instructions"].as_str().expect("instructions");
    assert!(instructions.contains("Shorter"), "{instructions}");
    let next = claim_next(client, plan).await;
    assert_eq!(next["stepId"], *step, "the step is returned once");
    let review = json!({ "stepId": step, "summary": "Now?" });
    client.call("request_user_review", review).await;
    let decided = client
        .call("submit_user_decision", decide("approve", Value::Null))
        .await;
    assert_eq!(decided["stepStatus"], "completed");
}

/// The last step, and the state of the completed plan.
async fn finish(client: &SdkClient, plan: &Value, late: &Value) {
    let step = claim_next(client, plan).await;
    let submitted = client
        .call(
            "submit_step_result",
            json!({ "stepId": step["stepId"], "resultSummary": "All of it", "claimNext": true }),
        )
        .await;
    assert_eq!(submitted["next"], "plan_complete");
    let end = &submitted["nextStep"];
    assert_eq!(end["status"], "plan_complete");
    assert_eq!(end["outputMediaType"], "text/markdown");
    assert_eq!(end["planFormattingNotes"], "Short.");
    let status = client
        .call("get_plan_status", json!({ "planId": plan }))
        .await;
    assert_eq!(status["status"], "completed");
    assert_eq!(status["progress"], 100);
    let feedback = json!({ "planId": plan, "rating": 5 });
    let feedback = client.call("submit_feedback", feedback).await;
    assert!(feedback["feedbackId"].is_string());
    let context = json!({ "planId": plan, "sessionId": "second" });
    let context = client.call("get_research_context", context).await;
    let artifacts = context["artifacts"].as_array().expect("artifacts");
    assert!(
        artifacts.iter().any(|one| one["artifactId"] == *late),
        "{context}"
    );
    assert_eq!(context["steps"].as_array().map(Vec::len), Some(6));
    let active = client.call("list_active_plans", json!({})).await;
    assert_eq!(active["plans"], json!([]));
}

fn run(dir: &Program, era: Era) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("runtime starts");
    runtime.block_on(complete(dir, era));
}

#[test]
fn completes_a_plan_on_sqlite() {
    for era in ERAS {
        run(&program(), era);
    }
}

#[test]
fn completes_a_plan_on_postgres() {
    for era in ERAS {
        run(&program().on_postgres(), era);
    }
}

/// The sweep of `onward mcp` marks the plan as stalled; `includeStalled` then takes the step over.
#[test]
fn a_stalled_step_is_detected_and_taken_over() {
    let dir = program();
    let mut client = onward_testbed::mcp_client::Client::start(&dir, Era::Handshake);
    let mut plan = crate::fixtures::plan(1);
    plan["stallThresholdMs"] = json!(1);
    let plan = client.call("create_research_plan", plan)["planId"].clone();
    client.request("resources/subscribe", json!({ "uri": "onward://plans" }));
    let first = client.call("get_next_step", json!({ "planId": plan }));
    // Wait for notifications instead of polling.
    loop {
        client.notification("notifications/resources/updated");
        let status = client.call("get_plan_status", json!({ "planId": plan }));
        if status["status"] == "stalled" {
            assert_eq!(status["stalledSteps"][0]["stepId"], first["stepId"]);
            break;
        }
    }
    let second = client.call(
        "get_next_step",
        json!({ "planId": plan, "includeStalled": true, "sessionId": "second" }),
    );
    assert_eq!(second["stepId"], first["stepId"]);
    assert_eq!(second["attempt"], 2);
}
