//! What the server tells while it runs: its log, and its traces; and that no secret is in them.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::basics::plan;
use crate::house::House;

#[tokio::test]
async fn the_log_is_lines_of_json_where_that_is_wanted() {
    let house = House::new("log")
        .with("ONWARD_LOG", "trace,rmcp=trace")
        .with("ONWARD_LOG_FORMAT", "json");
    let token = house.token("local", "spy", "owner");
    let mut server = house.serve();
    server.post_as(&token, "/api/v1/plans", plan()).await.done();
    let wrong = format!("onw_{}", "a1".repeat(20));
    server
        .get_as(&wrong, "/api/v1/plans?query=hush")
        .await
        .refused(401, "unauthorized");
    let call = serde_json::json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": { "name": "hush", "version": "0" },
        },
    });
    let hello = server
        .ask(reqwest::Method::POST, "/mcp")
        .bearer_auth(&token)
        .json(&call);
    let hello = hello
        .header("accept", "application/json, text/event-stream")
        .send()
        .await;
    assert!(hello.expect("it answers").status().is_success());
    server.signal("-TERM");
    assert_eq!(server.ended().code(), Some(0));
    let told = server.house.told();
    let lines: Vec<Value> = told
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {line}")))
        .collect();
    let answered = |status: u16| {
        let said = |line: &&Value| line["fields"]["status"] == status;
        lines
            .iter()
            .find(said)
            .unwrap_or_else(|| panic!("{status}: {told}"))
    };
    assert_eq!(answered(201)["span"]["route"], "/api/v1/plans");
    assert_eq!(answered(401)["span"]["method"], "GET");
    for secret in [token.as_str(), wrong.as_str(), "hush", "Tides"] {
        assert!(!told.contains(secret), "`{secret}` is in the log: {told}");
    }
}

#[tokio::test]
async fn a_setting_of_the_log_that_makes_no_sense_is_refused() {
    for (name, value) in [("ONWARD_LOG_FORMAT", "xml"), ("ONWARD_LOG", "onward=loud")] {
        let house = House::new("log-wrong").with(name, value);
        let output = house.run(&["serve", "--bind", "127.0.0.1:0"]);
        assert_eq!(output.status.code(), Some(2), "{name}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(name));
    }
}

type Sent = Arc<mpsc::UnboundedSender<Bytes>>;

async fn take(State(sent): State<Sent>, body: Bytes) {
    drop(sent.send(body));
}

// The collector answers while this thread waits for the server's end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn traces_are_sent_where_a_collector_is_named() {
    let (sent, mut received) = mpsc::unbounded_channel();
    let collector = Router::new()
        .route("/v1/traces", post(take))
        .with_state(Arc::new(sent));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let at = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, collector).await });

    let house = House::new("traces").with("OTEL_EXPORTER_OTLP_ENDPOINT", &at);
    let token = house.token("local", "spy", "owner");
    let mut server = house.serve();
    server.post_as(&token, "/api/v1/plans", plan()).await.done();
    server.signal("-TERM");
    assert_eq!(server.ended().code(), Some(0), "{}", server.house.told());
    let mut all = String::new();
    while let Ok(piece) = received.try_recv() {
        all.push_str(&String::from_utf8_lossy(&piece));
    }
    assert!(
        all.contains("/api/v1/plans") && all.contains("onward"),
        "{all:?}"
    );
    assert!(!all.contains(&token) && !all.contains("Tides"), "{all:?}");
}

#[tokio::test]
async fn a_collector_that_is_not_there_disturbs_nothing() {
    let house =
        House::new("no-collector").with("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9");
    let mut server = house.serve();
    server.post("/api/v1/plans", plan()).await.done();
    server.signal("-TERM");
    assert_eq!(server.ended().code(), Some(0));
}
