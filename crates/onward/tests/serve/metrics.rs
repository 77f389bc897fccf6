//! `/metrics`: values, labels and access.

use onward_testbed::Server;
use serde_json::json;

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
    let line = response
        .text()
        .lines()
        .find(|line| line.starts_with(prefix))?
        .to_owned();
    line.rsplit(' ').next()?.parse().ok()
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
