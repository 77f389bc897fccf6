//! A whole plan over `/api/v1`: created, branched, reviewed, completed, read and deleted; and input
//! validation.

use onward_testbed::{Server, send};
use reqwest::Method;
use serde_json::{Value, json};

use crate::program;

#[tokio::test]
async fn completes_a_plan() {
    complete_plan(program("plan").serve()).await;
}

#[tokio::test]
async fn completes_a_plan_on_postgresql() {
    let database = onward_testbed::Cluster::shared().database();
    complete_plan(program("plan-postgres").with_database(database).serve()).await;
}

fn text(value: &Value) -> &str {
    value
        .as_str()
        .unwrap_or_else(|| panic!("not a string: {value}"))
}

/// A plan with a branch and a checkpoint.
fn branching_plan() -> Value {
    json!({
        "name": "Boats",
        "researchQuestion": "Which one?",
        "steps": [
            { "stepType": "search", "instructions": "Find offers." },
            { "stepType": "analyze", "instructions": "Dig deeper." },
            { "stepType": "checkpoint", "instructions": "Ask." },
            { "stepType": "synthesize", "instructions": "Write." },
        ],
        "branchingConditions": [{
            "afterStepOrder": 1,
            "conditionExpression": "confidence >= 0.8",
            "ifTrueAction": "skip_to",
            "actionParams": { "targetStepOrder": 3 },
        }],
        "idempotencyKey": "once",
    })
}

async fn complete_plan(server: Server) {
    let input = branching_plan();
    let response = server.post("/api/v1/plans", input.clone()).await;
    assert_eq!(response.status.as_u16(), 201);
    let plan = response.expect_success();
    assert_eq!(
        server.post("/api/v1/plans", input).await.expect_success()["planId"],
        plan["planId"]
    );
    let at = format!("/api/v1/plans/{}", text(&plan["planId"]));

    let first = server
        .post(&format!("{at}/next"), json!({ "sessionId": "s" }))
        .await
        .expect_success();
    assert_eq!(first["status"], "step_started");
    let result = json!({
        "resultSummary": "three offers",
        "confidence": 0.9,
        "claimToken": first["claimToken"],
        "claimNext": true,
    });
    let step = format!("/api/v1/steps/{}", text(&first["stepId"]));
    let progress = server
        .post(&format!("{step}/progress"), json!({ "note": "one" }))
        .await;
    assert_eq!(progress.expect_success()["planStatus"], "executing");
    let submitted = server
        .post(&format!("{step}/result"), result.clone())
        .await
        .expect_success();
    assert_eq!(submitted["branchTaken"]["action"], "skip_to");
    // A retry returns the same response.
    let again = server
        .post(&format!("{step}/result"), result)
        .await
        .expect_success();
    assert_eq!(again, submitted);
    let checkpoint = &submitted["nextStep"];
    assert_eq!(checkpoint["stepOrder"], 3);

    let step = format!("/api/v1/steps/{}", text(&checkpoint["stepId"]));
    let request = json!({ "summary": "the blue one", "questions": ["fine?"] });
    let review = server
        .post(&format!("{step}/review"), request)
        .await
        .expect_success();
    assert_eq!(review["planStatus"], "awaiting_review");
    let pending = server.get("/api/v1/reviews").await.expect_success();
    assert_eq!(pending["reviews"][0]["reviewId"], review["reviewId"]);
    assert_eq!(pending["reviews"][0]["planName"], "Boats");
    let invalid = server
        .post(&format!("{step}/decision"), json!({ "decision": "modify" }))
        .await;
    invalid.expect_problem(400, "feedback_required");
    let decision = json!({ "decision": "approve" });
    let decision = server
        .post(&format!("{step}/decision"), decision)
        .await
        .expect_success();
    assert_eq!(decision["stepStatus"], "completed");

    let last = server
        .post(&format!("{at}/next"), json!({}))
        .await
        .expect_success();
    let step = format!("/api/v1/steps/{}", text(&last["stepId"]));
    let end = server
        .post(
            &format!("{step}/result"),
            json!({ "resultSummary": "blue" }),
        )
        .await;
    assert_eq!(end.expect_success()["next"], "plan_complete");
    let status = server.get(&at).await.expect_success();
    assert_eq!(status["status"], "completed");
    assert_eq!(status["counts"]["skipped"], 1);
    let late = server
        .post(&format!("{step}/result"), json!({ "resultSummary": "red" }))
        .await;
    let problem = late.expect_problem(409, "plan_is_terminal");
    assert!(
        problem["details"]["keptArtifactId"].is_string(),
        "{problem}"
    );
    read_and_delete(&server, &at).await;
}

/// Reads a completed plan, and deletes it.
async fn read_and_delete(server: &Server, at: &str) {
    let steps = server
        .get(&format!("{at}/steps?limit=2"))
        .await
        .expect_success();
    assert_eq!(steps["steps"].as_array().map(Vec::len), Some(2));
    let cursor = text(&steps["nextCursor"]);
    let rest = server
        .get(&format!("{at}/steps?cursor={cursor}&status=completed"))
        .await
        .expect_success();
    assert_eq!(rest["steps"].as_array().map(Vec::len), Some(2));
    let invalid = server.get(&format!("{at}/steps?limit=many")).await;
    let issues = &invalid.expect_problem(400, "invalid_input")["details"]["issues"];
    assert_eq!(issues[0]["path"], "limit");
    server
        .get(&format!("{at}/steps?limt=2"))
        .await
        .expect_problem(400, "invalid_input");
    server
        .get(&format!("{at}/steps?limit=2&limit=3"))
        .await
        .expect_problem(400, "invalid_input");

    let audit = server
        .get(&format!("{at}/audit?limit=3"))
        .await
        .expect_success();
    let events = audit["events"].as_array().expect("list of events");
    assert_eq!(events.len(), 3);
    let after = events[2]["seq"].as_u64().expect("value is a number");
    let rest = server
        .get(&format!("{at}/audit?after={after}"))
        .await
        .expect_success();
    let rest = rest["events"].as_array().expect("list of events").clone();
    assert_eq!(rest[0]["seq"], after + 1);
    let has_event = |name: &str| rest.iter().any(|event| event["eventType"] == name);
    assert!(
        has_event("plan_completed") && has_event("late_result_kept"),
        "{rest:?}"
    );

    assert!(
        server.get("/api/v1/plans").await.expect_success()["plans"]
            .as_array()
            .is_some_and(Vec::is_empty)
    );
    let all = server
        .get("/api/v1/plans?includeFinished=true")
        .await
        .expect_success();
    assert_eq!(all["plans"].as_array().map(Vec::len), Some(1));
    let document = server.get(&format!("{at}/export")).await.expect_success();
    assert!(document.is_object());
    let again = server.post(&format!("{at}/abandon"), json!({})).await;
    again.expect_problem(409, "plan_is_terminal");
    let deleted = send(server.request(Method::DELETE, at))
        .await
        .expect_success();
    assert_eq!(deleted["name"], "Boats");
    server.get(at).await.expect_problem(404, "plan_not_found");
}

#[tokio::test]
async fn reads_artifacts_and_outputs_in_pages() {
    let server = program("texts").serve();
    let content = "é€🌊\n".repeat(10_000);
    let artifact = json!({ "title": "Tides", "content": content });
    let artifact = server.post("/api/v1/artifacts", artifact).await;
    let artifact = artifact.expect_success();
    let plan = server.post("/api/v1/plans", branching_plan()).await;
    let outputs = format!(
        "/api/v1/plans/{}/outputs",
        text(&plan.expect_success()["planId"])
    );
    let output = json!({ "title": "Tides", "content": content });
    let output = server.post(&outputs, output).await.expect_success();
    for at in [
        format!("/api/v1/artifacts/{}", text(&artifact["artifactId"])),
        format!("/api/v1/outputs/{}", text(&output["outputId"])),
    ] {
        let mut read = String::new();
        loop {
            let offset = read.chars().count();
            let page = server
                .get(&format!("{at}?offset={offset}&maxChars=15000"))
                .await
                .expect_success();
            assert_eq!(page["totalChars"], 40_000);
            read.push_str(text(&page["content"]));
            if page["truncated"] == false {
                break;
            }
            assert_eq!(page["nextOffset"], read.chars().count());
        }
        assert!(read == content, "{at}");
    }
}

#[tokio::test]
async fn rejects_invalid_input_with_its_path() {
    let server = program("input").serve();
    let post = async |content_type: &str, body: &str| {
        let request = server.request(Method::POST, "/api/v1/plans");
        send(
            request
                .header("content-type", content_type)
                .body(body.to_owned()),
        )
        .await
    };
    let json = "application/json";
    post(json, "{").await.expect_problem(400, "invalid_input");
    post(json, "[]").await.expect_problem(400, "invalid_input");
    post(json, &"[".repeat(100_000))
        .await
        .expect_problem(400, "invalid_input");
    post("text/plain", "{}")
        .await
        .expect_problem(415, "invalid_input");
    post("application/x-www-form-urlencoded", "name=a")
        .await
        .expect_problem(415, "invalid_input");
    let empty = post(json, "").await.expect_problem(400, "invalid_input");
    let missing: Vec<&str> = empty["details"]["issues"]
        .as_array()
        .expect("list of issues")
        .iter()
        .map(|issue| issue["path"].as_str().expect("issue has a path"))
        .collect();
    assert_eq!(missing.len(), 3, "{missing:?}");
    let plan = server
        .post("/api/v1/plans", crate::basics::plan())
        .await
        .expect_success();
    let at = format!("/api/v1/plans/{}", text(&plan["planId"]));
    // The id of the path is not allowed in the body.
    let twice = server
        .post(&format!("{at}/next"), json!({ "planId": plan["planId"] }))
        .await;
    twice.expect_problem(400, "invalid_input");
    let hostile = server
        .get("/api/v1/plans/%27%3B%20drop%20table%20plans%3B--")
        .await;
    hostile.expect_problem(404, "plan_not_found");
    let bytes = server.get("/api/v1/plans/%FF%FE").await;
    assert!(bytes.status.is_client_error(), "{bytes:?}");
    assert!(
        server.get(&at).await.status.is_success(),
        "the next request succeeds"
    );
}

#[tokio::test]
async fn keeps_work_that_the_parser_rejects() {
    let server = program("rejected-json").serve();
    let plan = json!({
        "name": "Boats", "researchQuestion": "Which?",
        "steps": [{ "stepType": "custom", "instructions": "Do it." }],
    });
    let plan = server.post("/api/v1/plans", plan).await.expect_success();
    let next = format!("/api/v1/plans/{}/next", plan["planId"].as_str().unwrap());
    let next = server.post(&next, json!({})).await.expect_success();
    let step = next["stepId"].as_str().unwrap();
    let api = format!("/api/v1/steps/{step}/result");
    for body in [
        "{\"resultSummary\":\"s\",\"result\":{\"n\":1e999}}",
        "{\"resultSummary\":\"s\",\"result\":{\"t\":\"\\ud800\"}}",
        "{\"resultSummary\":\"s\",",
    ] {
        let request = server.request(reqwest::Method::POST, &api);
        let request = request.header("content-type", "application/json");
        let response = request.body(body).send().await.unwrap();
        let response = onward_testbed::Response::read(response).await;
        response.expect_problem(400, "invalid_input");
        let kept = &response.json()["details"]["keptArtifactId"];
        assert!(kept.is_string(), "{}", response.text());
    }
    // The same over MCP.
    let arguments =
        format!("{{\"stepId\":\"{step}\",\"resultSummary\":\"s\",\"result\":{{\"n\":1e999}}}}");
    let params = format!(
        "{{\"name\":\"submit_step_result\",\"arguments\":{arguments},\
        \"_meta\":{{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\
        \"io.modelcontextprotocol/clientInfo\":{{\"name\":\"t\",\"version\":\"1\"}},\
        \"io.modelcontextprotocol/clientCapabilities\":{{}}}}}}"
    );
    let body =
        format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{params}}}");
    let request = server.request(reqwest::Method::POST, "/mcp");
    let request = request.header("content-type", "application/json");
    let request = request.header("accept", "application/json, text/event-stream");
    let request = request.header("mcp-protocol-version", "2026-07-28");
    let request = request.header("mcp-method", "tools/call");
    let request = request.header("mcp-name", "submit_step_result");
    let response = request.body(body).send().await.unwrap();
    let response = onward_testbed::Response::read(response).await;
    assert!(
        response.text().contains("keptArtifactId"),
        "{}",
        response.text()
    );
}
