//! Logs and traces of the server, and that they contain no secrets.

use onward_testbed::mock_server::MockServer;
use serde_json::Value;

use crate::basics::plan;
use crate::program;

#[tokio::test]
async fn writes_json_log_lines_without_secrets() {
    let setup = program("log")
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
    let log = server.log();
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
        let setup = program("log-invalid").with_env(name, value);
        let output = setup.run(&["serve", "--bind", "127.0.0.1:0"]);
        assert_eq!(output.code, Some(2), "{name}");
        assert!(output.stderr.contains(name));
    }
}

#[tokio::test]
async fn sends_traces_to_the_configured_collector() {
    let collector = MockServer::start();
    let setup = program("traces").with_env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url);
    let token = setup.token("local", "spy", "owner");
    let server = setup.serve();
    server
        .post_as(&token, "/api/v1/plans", plan())
        .await
        .expect_success();
    server.stop();
    let mut traces = String::new();
    for request in collector.requests() {
        assert_eq!(request.path, "/v1/traces");
        traces.push_str(&String::from_utf8_lossy(&request.body));
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
    let setup =
        program("no-collector").with_env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9");
    let mut server = setup.serve();
    server.post("/api/v1/plans", plan()).await.expect_success();
    server.signal("-TERM");
    assert_eq!(server.wait().code(), Some(0));
}

#[tokio::test]
async fn a_tool_call_continues_the_trace_of_the_client() {
    const TRACE: [u8; 16] = *b"trace-of-client!";
    let collector = MockServer::start();
    let setup = program("trace-parent").with_env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url);
    let server = setup.serve();
    let trace: String = TRACE.iter().map(|byte| format!("{byte:02x}")).collect();
    let meta = serde_json::json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "traceparent": format!("00-{trace}-00f067aa0ba902b7-01"),
    });
    let call = serde_json::json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "list_active_plans", "arguments": {}, "_meta": meta },
    });
    let request = server.request(reqwest::Method::POST, "/mcp").json(&call);
    let response = request
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "list_active_plans")
        .send()
        .await;
    let response = response.expect("response received");
    assert!(response.status().is_success(), "{response:?}");
    response.bytes().await.expect("response is complete");
    server.stop();
    let contains = |bytes: &[u8], part: &[u8]| {
        let mut windows = bytes.windows(part.len());
        windows.any(|window| window == part)
    };
    let joined = collector.requests().iter().any(|request| {
        contains(&request.body, &TRACE) && contains(&request.body, b"list_active_plans")
    });
    assert!(joined, "no span has the client's trace id");
}
