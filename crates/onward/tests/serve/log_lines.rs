//! The server log at the default level: why a plan stopped, and which request failed. The id of a
//! request is in its response, in its error body and in its lines.

use std::time::{Duration, Instant};

use onward_testbed::mcp_client::Era;
use onward_testbed::sdk_client::SdkClient;
use onward_testbed::{Cluster, Program, Response, Server, TIMEOUT, send};
use reqwest::Method;
use serde_json::{Value, json};

use crate::basics::plan;
use crate::program;

/// The lines of the log with these fields.
fn lines(server: &Server, fields: &Value) -> Vec<Value> {
    let log = server.log();
    // The last line may be incomplete.
    let lines = log
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    let has = |line: &Value| {
        let expected = fields.as_object().expect("fields are an object");
        let mut expected = expected.iter();
        expected.all(|(name, value)| line["fields"][name] == *value)
    };
    lines.filter(has).collect()
}

/// The first line with these fields.
async fn wait_for(server: &Server, fields: Value) -> Value {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        if let Some(line) = lines(server, &fields).into_iter().next() {
            return line;
        }
        assert!(Instant::now() < deadline, "{fields}: {}", server.log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn request_id(line: &Value) -> &Value {
    let spans = line["spans"].as_array().expect("the line has spans");
    let ids = spans.iter().map(|span| &span["request_id"]);
    ids.into_iter().find(|id| !id.is_null()).expect("an id")
}

async fn post(server: &Server, id: &str, path: &str, body: Value) -> Response {
    let request = server.request(Method::POST, path).json(&body);
    send(request.header("x-request-id", id)).await
}

/// Claims the first step of a new plan. Returns the ids of the plan and the step, and the token.
async fn claim(server: &Server, plan: Value) -> (Value, Value, Value) {
    let created = server.post("/api/v1/plans", plan).await.expect_success();
    let id = created["planId"].as_str().expect("id is a string");
    let next = json!({ "sessionId": "s-1" });
    let path = format!("/api/v1/plans/{id}/next");
    let next = server.post(&path, next).await.expect_success();
    (
        created["planId"].clone(),
        next["stepId"].clone(),
        next["claimToken"].clone(),
    )
}

fn json_log(setup: Program) -> Server {
    setup.with_env("ONWARD_LOG_FORMAT", "json").serve()
}

async fn reports_why_a_plan_stopped(setup: Program) {
    let server = json_log(setup);
    for (on_stall, message, cause) in [
        ("mark", "step stalled", "no_activity"),
        ("requeue", "step requeued", "stalled"),
        ("fail", "step failed", "stalled"),
    ] {
        let mut stalling = plan();
        stalling["stallThresholdMs"] = json!(1);
        stalling["onStall"] = json!(on_stall);
        let (plan, step, _) = claim(&server, stalling).await;
        let line = wait_for(&server, json!({ "plan": plan, "message": message })).await;
        assert_eq!(
            (line["level"].as_str(), line["target"].as_str()),
            (Some("INFO"), Some("onward::plan"))
        );
        let fields = &line["fields"];
        for (field, expected) in [
            ("tenant", json!("local")),
            ("step", step),
            ("session", json!("s-1")),
            ("policy", json!(on_stall)),
            ("cause", json!(cause)),
            ("actor", json!("sweep")),
        ] {
            assert_eq!(fields[field], expected, "{line}");
        }
        assert!(fields["last_activity"].is_string(), "{line}");
    }
    let mut limited = plan();
    limited["budget"] = json!({ "maxSteps": 1 });
    let (plan_id, step, _) = claim(&server, limited).await;
    let path = format!("/api/v1/plans/{}/modify", plan_id.as_str().expect("an id"));
    let fail = json!({ "action": "fail_step", "stepId": step, "reason": "hush" });
    post(&server, "by-hand", &path, fail).await.expect_success();
    let failed = wait_for(
        &server,
        json!({ "plan": plan_id, "message": "step failed" }),
    )
    .await;
    assert_eq!(failed["fields"]["cause"], "by_hand");
    assert_eq!(request_id(&failed), "by-hand");
    let path = format!("/api/v1/plans/{}/next", plan_id.as_str().expect("an id"));
    server.post(&path, json!({})).await;
    let line = wait_for(
        &server,
        json!({ "plan": plan_id, "message": "budget exhausted" }),
    )
    .await;
    assert_eq!(line["fields"]["cause"], "maxSteps");

    let (plan_id, step, _) = claim(&server, plan()).await;
    let path = format!("/api/v1/steps/{}", step.as_str().expect("an id"));
    let review = json!({ "summary": "hush" });
    post(&server, "ask", &format!("{path}/review"), review)
        .await
        .expect_success();
    let reject = json!({ "decision": "reject", "feedback": "hush" });
    post(&server, "reject", &format!("{path}/decision"), reject)
        .await
        .expect_success();
    for (id, message, cause) in [
        ("ask", "review requested", "plan"),
        ("reject", "review decided", "reject"),
        ("reject", "step failed", "rejected"),
        ("reject", "plan failed", "rejected"),
    ] {
        let line = wait_for(&server, json!({ "plan": plan_id, "message": message })).await;
        assert_eq!(line["fields"]["cause"], cause, "{line}");
        assert_eq!(request_id(&line), id, "{line}");
    }
    assert!(!server.log().contains("hush"), "{}", server.log());
}

#[tokio::test]
async fn reports_why_a_plan_stopped_on_sqlite() {
    reports_why_a_plan_stopped(program("plan-lines")).await;
}

#[tokio::test]
async fn reports_why_a_plan_stopped_on_postgresql() {
    let database = Cluster::shared().database();
    reports_why_a_plan_stopped(program("plan-lines-postgres").with_database(database)).await;
}

#[tokio::test]
async fn a_rejected_request_leaves_a_line_with_its_id() {
    let server = json_log(program("conflict"));
    let (plan, step, _) = claim(&server, plan()).await;
    let path = format!("/api/v1/plans/{}/abandon", plan.as_str().expect("an id"));
    server.post(&path, json!({})).await.expect_success();
    let path = format!("/api/v1/steps/{}/result", step.as_str().expect("an id"));
    let result = json!({ "resultSummary": "late" });
    let rejected = post(&server, "late.1", &path, result).await;
    assert_eq!(rejected.status.as_u16(), 409);
    assert_eq!(rejected.header("x-request-id"), "late.1");
    assert_eq!(rejected.json()["requestId"], "late.1");
    let code = rejected.json()["code"].clone();
    let line = wait_for(&server, json!({ "status": 409 })).await;
    let fields = &line["fields"];
    assert_eq!(
        [&fields["tenant"], &fields["step"], &fields["code"]],
        [&json!("local"), &step, &code]
    );
    assert_eq!(request_id(&line), "late.1");

    let agent = SdkClient::connect(&server, Era::Stateless, None).await;
    let arguments = json!({ "stepId": step, "resultSummary": "late" });
    let error = agent.call_rejected("submit_step_result", arguments).await;
    let id = error["requestId"].as_str().expect("an id");
    let line = wait_for(&server, json!({ "tool": "submit_step_result" })).await;
    assert_eq!(line["fields"]["step"], step, "{line}");
    assert_eq!(request_id(&line), id);
}

#[tokio::test]
async fn every_response_has_an_id() {
    let server = program("request-ids").serve();
    let mut ids = std::collections::BTreeSet::new();
    for path in [
        "/healthz",
        "/metrics",
        "/plans",
        "/api/v1/plans",
        "/none",
        "/api/v1/none",
    ] {
        let response = server.get(path).await;
        let id = response.header("x-request-id").to_owned();
        assert_eq!(id.len(), 32, "{path}");
        if response.header("content-type") == "application/problem+json" {
            assert_eq!(response.json()["requestId"], id.as_str(), "{path}");
        }
        assert!(ids.insert(id), "{path}");
    }
    let page = send(
        server
            .request(Method::GET, "/none")
            .header("accept", "text/html"),
    )
    .await;
    assert!(page.text().contains(page.header("x-request-id")));
    for invalid in ["two words", "a,b", &"x".repeat(129)] {
        let request = server.request(Method::GET, "/healthz");
        let response = send(request.header("x-request-id", invalid)).await;
        assert_eq!(response.header("x-request-id").len(), 32, "{invalid}");
    }
}
