//! `/metrics`: what is counted, and for whom.

use serde_json::json;

use crate::basics::plan;
use crate::house::{House, Server};

/// The value of a line, by the beginning that names it.
async fn figure(server: &Server, named: &str) -> Option<f64> {
    let answer = server.get("/metrics").await;
    assert!(answer.status.is_success(), "{answer:?}");
    assert!(
        answer.kind.starts_with("text/plain; version=0.0.4"),
        "{}",
        answer.kind
    );
    let line = answer
        .text
        .lines()
        .find(|line| line.starts_with(named))?
        .to_owned();
    line.rsplit(' ').next()?.parse().ok()
}

#[tokio::test]
async fn calls_are_counted_by_tool_and_outcome() {
    let server = House::new("figures").serve();
    for _ in 0..3 {
        server.post("/api/v1/plans", plan()).await.done();
    }
    server
        .post("/api/v1/plans", json!({}))
        .await
        .refused(400, "invalid_input");
    let calls = "onward_tool_calls_total{tool=\"create_research_plan\",outcome=";
    assert_eq!(
        figure(&server, &format!("{calls}\"ok\"}}")).await,
        Some(3.0)
    );
    assert_eq!(
        figure(&server, &format!("{calls}\"invalid_input\"}}")).await,
        Some(1.0)
    );
    let took = "onward_tool_call_seconds_count{tool=\"create_research_plan\"}";
    assert_eq!(figure(&server, took).await, Some(4.0));
    assert_eq!(
        figure(&server, "onward_plans{status=\"planning\"}").await,
        Some(3.0)
    );
    assert_eq!(
        figure(&server, "onward_plans{status=\"stalled\"}").await,
        Some(0.0)
    );
    assert_eq!(figure(&server, "onward_open_streams").await, Some(0.0));
    let stream = server
        .client
        .get(format!("{}/api/v1/events", server.url))
        .send()
        .await;
    let stream = stream.expect("it opens");
    assert_eq!(figure(&server, "onward_open_streams").await, Some(1.0));
    drop(stream);
    assert!(
        figure(&server, "onward_sweep_rounds_total{outcome=\"ok\"}")
            .await
            .is_some()
    );
    let route =
        "onward_http_requests_total{route=\"/api/v1/plans\",method=\"POST\",status=\"201\"}";
    assert_eq!(figure(&server, route).await, Some(3.0));
}

#[tokio::test]
async fn what_callers_make_up_is_no_label() {
    let server = House::new("labels").serve();
    let made = server.post("/api/v1/plans", plan()).await.done();
    let id = made["planId"].as_str().expect("an id");
    server.get(&format!("/api/v1/plans/{id}")).await.done();
    for number in 0..20 {
        server
            .get(&format!("/made/up/{number}"))
            .await
            .refused(404, "invalid_input");
        let method = reqwest::Method::from_bytes(format!("MADE{number}").as_bytes());
        let request = server.ask(method.expect("a method"), "/api/v1/plans");
        crate::house::send(request)
            .await
            .refused(405, "invalid_input");
    }
    let text = server.get("/metrics").await.text;
    assert!(
        !text.contains(id) && !text.contains("/made/up") && !text.contains("MADE"),
        "{text}"
    );
}

#[tokio::test]
async fn the_figures_are_for_whoever_runs_the_server() {
    let house = House::new("figures-closed").configured("[access]\nrequire_tokens = true");
    let ours = house.token("local", "prometheus", "viewer");
    let others = house.token("acme", "owner", "owner");
    let server = house.serve();
    server
        .get_as(&others, "/metrics")
        .await
        .refused(403, "forbidden");
    let text = server.get_as(&ours, "/metrics").await;
    assert!(text.status.is_success());
    assert!(!text.text.contains("acme") && !text.text.contains("prometheus"));
}
