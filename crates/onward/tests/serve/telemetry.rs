//! Logs and traces of the server, and that they contain no secrets.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::basics::plan;
use crate::test_server::TestServer;

#[tokio::test]
async fn writes_json_log_lines_without_secrets() {
    let setup = TestServer::new("log")
        .with_env("ONWARD_LOG", "trace,rmcp=trace")
        .with_env("ONWARD_LOG_FORMAT", "json");
    let token = setup.token("local", "spy", "owner");
    let mut server = setup.serve();
    server
        .post_as(&token, "/api/v1/plans", plan())
        .await
        .expect_success();
    let invalid = format!("onw_{}", "a1".repeat(20));
    server
        .get_as(&invalid, "/api/v1/plans?query=hush")
        .await
        .expect_problem(401, "unauthorized");
    let call = serde_json::json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": { "name": "hush", "version": "0" },
        },
    });
    let initialize = server
        .request(reqwest::Method::POST, "/mcp")
        .bearer_auth(&token)
        .json(&call);
    let initialize = initialize
        .header("accept", "application/json, text/event-stream")
        .send()
        .await;
    assert!(initialize.expect("response received").status().is_success());
    server.signal("-TERM");
    assert_eq!(server.wait().code(), Some(0));
    let log = server.setup.stderr();
    let lines: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    let response = |status: u16| {
        let has_status = |line: &&Value| line["fields"]["status"] == status;
        lines
            .iter()
            .find(has_status)
            .unwrap_or_else(|| panic!("{status}: {log}"))
    };
    assert_eq!(response(201)["span"]["route"], "/api/v1/plans");
    assert_eq!(response(401)["span"]["method"], "GET");
    for secret in [token.as_str(), invalid.as_str(), "hush", "Tides"] {
        assert!(!log.contains(secret), "`{secret}` is in the log: {log}");
    }
}

#[tokio::test]
async fn rejects_invalid_log_settings() {
    for (name, value) in [("ONWARD_LOG_FORMAT", "xml"), ("ONWARD_LOG", "onward=loud")] {
        let setup = TestServer::new("log-invalid").with_env(name, value);
        let output = setup.run(&["serve", "--bind", "127.0.0.1:0"]);
        assert_eq!(output.status.code(), Some(2), "{name}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(name));
    }
}

type Received = Arc<mpsc::UnboundedSender<Bytes>>;

async fn receive(State(received): State<Received>, body: Bytes) {
    drop(received.send(body));
}

// The collector responds while this thread waits for the server to exit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sends_traces_to_the_configured_collector() {
    let (sender, mut received) = mpsc::unbounded_channel();
    let collector = Router::new()
        .route("/v1/traces", post(receive))
        .with_state(Arc::new(sender));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("port bound");
    let endpoint = format!(
        "http://{}",
        listener.local_addr().expect("address is valid")
    );
    tokio::spawn(async move { axum::serve(listener, collector).await });

    let setup = TestServer::new("traces").with_env("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint);
    let token = setup.token("local", "spy", "owner");
    let mut server = setup.serve();
    server
        .post_as(&token, "/api/v1/plans", plan())
        .await
        .expect_success();
    server.signal("-TERM");
    assert_eq!(server.wait().code(), Some(0), "{}", server.setup.stderr());
    let mut traces = String::new();
    while let Ok(body) = received.try_recv() {
        traces.push_str(&String::from_utf8_lossy(&body));
    }
    assert!(
        traces.contains("/api/v1/plans") && traces.contains("onward"),
        "{traces:?}"
    );
    assert!(
        !traces.contains(&token) && !traces.contains("Tides"),
        "{traces:?}"
    );
}

#[tokio::test]
async fn an_unreachable_collector_does_not_affect_the_server() {
    let setup = TestServer::new("no-collector")
        .with_env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9");
    let mut server = setup.serve();
    server.post("/api/v1/plans", plan()).await.expect_success();
    server.signal("-TERM");
    assert_eq!(server.wait().code(), Some(0));
}
