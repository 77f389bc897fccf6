//! `/metrics`: values, labels and access.

use std::time::{Duration, Instant};

use onward_testbed::{Cluster, Program, Server, TIMEOUT};
use serde_json::{Value, json};

use crate::basics::plan;
use crate::program;

/// The value of the first metric that starts with this name and these labels.
async fn metric(server: &Server, prefix: &str) -> Option<f64> {
    let response = server.get("/metrics").await;
    assert!(response.status.is_success(), "{response:?}");
    assert!(
        response
            .header("content-type")
            .starts_with("text/plain; version=0.0.4"),
        "{}",
        response.header("content-type")
    );
    value(response.text(), prefix)
}

/// The value of the first metric of a scrape that starts with this name and these labels.
fn value(metrics: &str, prefix: &str) -> Option<f64> {
    let line = metrics.lines().find(|line| line.starts_with(prefix))?;
    line.rsplit(' ').next()?.parse().ok()
}

fn next(created: &Value) -> String {
    format!("/api/v1/plans/{}/next", text(&created["planId"]))
}

fn text(id: &Value) -> &str {
    id.as_str().expect("id is a string")
}

#[tokio::test]
async fn counts_tool_calls_by_tool_and_outcome() {
    let server = program("metrics").serve();
    for _ in 0..3 {
        server.post("/api/v1/plans", plan()).await.expect_success();
    }
    server
        .post("/api/v1/plans", json!({}))
        .await
        .expect_problem(400, "invalid_input");
    let calls = "onward_tool_calls_total{tool=\"create_research_plan\",outcome=";
    assert_eq!(
        metric(&server, &format!("{calls}\"ok\"}}")).await,
        Some(3.0)
    );
    assert_eq!(
        metric(&server, &format!("{calls}\"invalid_input\"}}")).await,
        Some(1.0)
    );
    let timed = "onward_tool_call_seconds_count{tool=\"create_research_plan\"}";
    assert_eq!(metric(&server, timed).await, Some(4.0));
    assert_eq!(
        metric(&server, "onward_plans{status=\"planning\"}").await,
        Some(3.0)
    );
    assert_eq!(
        metric(&server, "onward_plans{status=\"stalled\"}").await,
        Some(0.0)
    );
    assert_eq!(metric(&server, "onward_open_streams").await, Some(0.0));
    let stream = server
        .client
        .get(format!("{}/api/v1/events", server.url))
        .send()
        .await;
    let stream = stream.expect("stream opened");
    assert_eq!(metric(&server, "onward_open_streams").await, Some(1.0));
    drop(stream);
    assert!(
        metric(&server, "onward_sweep_rounds_total{outcome=\"ok\"}")
            .await
            .is_some()
    );
    let route =
        "onward_http_requests_total{route=\"/api/v1/plans\",method=\"POST\",status=\"201\"}";
    assert_eq!(metric(&server, route).await, Some(3.0));
}

async fn totals_cover_all_tenants(setup: Program, is_postgres: bool) {
    let setup =
        setup.with_config("[access]\nrequire_tokens = true\n[limits]\ntenant_stored_mib = 1");
    let ours = setup.token("local", "prometheus", "viewer");
    let agents = ["acme", "umbrella"].map(|tenant| setup.token(tenant, "agent", "owner"));
    let server = setup.serve();
    for agent in &agents {
        let mut stalling = plan();
        stalling["stallThresholdMs"] = json!(1);
        let created = server.post_as(agent, "/api/v1/plans", stalling).await;
        let path = next(&created.expect_success());
        let claimed = server.post_as(agent, &path, json!({})).await;
        claimed.expect_success();
        let created = server.post_as(agent, "/api/v1/plans", plan()).await;
        let path = next(&created.expect_success());
        let claimed = server.post_as(agent, &path, json!({})).await;
        let step = text(&claimed.expect_success()["stepId"]).to_owned();
        let path = format!("/api/v1/steps/{step}/review");
        let asked = server.post_as(agent, &path, json!({ "summary": "fine?" }));
        asked.await.expect_success();
    }
    let deadline = Instant::now() + TIMEOUT;
    let metrics = loop {
        let metrics = server.get_as(&ours, "/metrics").await.text().to_owned();
        // Readiness is checked at most every few seconds, and the sweep starts in the background.
        if value(&metrics, "onward_sweep_leader") == Some(1.0) {
            break metrics;
        }
        assert!(Instant::now() < deadline, "{metrics}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    for (name, expected) in [
        ("onward_plans{attention=\"stuck\"}", 2.0),
        ("onward_plans{attention=\"needs_you\"}", 2.0),
        ("onward_plans{attention=\"done\"}", 0.0),
        ("onward_plans{status=\"awaiting_review\"}", 2.0),
        ("onward_readiness{state=\"ready\"}", 1.0),
        ("onward_readiness{state=\"degraded\"}", 0.0),
        ("onward_readiness{state=\"unavailable\"}", 0.0),
    ] {
        assert_eq!(value(&metrics, name), Some(expected), "{name}: {metrics}");
    }
    assert!(value(&metrics, "onward_stored_bytes") > Some(0.0));
    // Measured before the first call of each tenant.
    let largest = value(&metrics, "onward_tenant_stored_bytes_max");
    assert_eq!(largest, Some(0.0));
    let open = value(&metrics, "onward_database_connections{state=\"open\"}");
    assert_eq!(open > Some(0.0), is_postgres, "{metrics}");
    assert!(!metrics.contains("acme") && !metrics.contains("umbrella"));
}

#[tokio::test]
async fn totals_cover_all_tenants_on_sqlite() {
    totals_cover_all_tenants(program("totals"), false).await;
}

#[tokio::test]
async fn totals_cover_all_tenants_on_postgresql() {
    let database = Cluster::shared().database();
    totals_cover_all_tenants(program("totals-postgres").with_database(database), true).await;
}

#[tokio::test]
async fn an_unavailable_database_is_a_metric() {
    let cluster = Cluster::start();
    let server = program("metrics-outage")
        .with_database(cluster.database())
        .serve();
    cluster.stop();
    let deadline = Instant::now() + TIMEOUT;
    // The last check is valid for a few seconds.
    while metric(&server, "onward_readiness{state=\"unavailable\"}").await != Some(1.0) {
        assert!(Instant::now() < deadline, "{}", server.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn labels_contain_no_caller_input() {
    let server = program("labels").serve();
    let created = server.post("/api/v1/plans", plan()).await.expect_success();
    let id = created["planId"].as_str().expect("id is a string");
    server
        .get(&format!("/api/v1/plans/{id}"))
        .await
        .expect_success();
    for number in 0..20 {
        server
            .get(&format!("/unknown/{number}"))
            .await
            .expect_problem(404, "invalid_input");
        let method = reqwest::Method::from_bytes(format!("CUSTOM{number}").as_bytes());
        let request = server.request(method.expect("valid method"), "/api/v1/plans");
        onward_testbed::send(request)
            .await
            .expect_problem(405, "invalid_input");
    }
    let text = server.get("/metrics").await.text().to_owned();
    assert!(
        !text.contains(id) && !text.contains("/unknown") && !text.contains("CUSTOM"),
        "{text}"
    );
}

#[tokio::test]
async fn only_the_operators_tenant_can_read_metrics() {
    let setup = program("metrics-access").with_config("[access]\nrequire_tokens = true");
    let ours = setup.token("local", "prometheus", "viewer");
    let others = setup.token("acme", "owner", "owner");
    let server = setup.serve();
    server
        .get_as(&others, "/metrics")
        .await
        .expect_problem(403, "forbidden");
    let metrics = server.get_as(&ours, "/metrics").await;
    assert!(metrics.status.is_success());
    assert!(!metrics.text().contains("acme") && !metrics.text().contains("prometheus"));
}
