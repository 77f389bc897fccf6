//! Bounded work: hostile schemas, request bodies before the role check, requests without
//! authentication, and fair shares.

use onward_testbed::{Program, Response, Server, send};
use reqwest::Method;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::basics::plan;
use crate::events::EventStream;
use crate::program;

const TOKENS_REQUIRED: &str = "[access]\nrequire_tokens = true";

/// A schema of 40 definitions that each refer to the next one twice.
fn schema_bomb() -> Value {
    let definition = |level: usize| {
        let next = json!({ "$ref": format!("#/$defs/d{}", level + 1) });
        (format!("d{level}"), json!({ "allOf": [next, next] }))
    };
    let mut definitions: Map<String, Value> = (0..40).map(definition).collect();
    definitions.insert("d40".to_owned(), json!({ "type": "string" }));
    json!({ "$ref": "#/$defs/d0", "$defs": definitions })
}

#[tokio::test]
async fn rejects_schema_bombs_and_still_stops() {
    let mut server = program("schema-bomb").serve();
    let body = json!({ "schema": schema_bomb(), "sourceText": "a" });
    let bombs = (0..8).map(|_| server.post("/api/v1/extractions", body.clone()));
    for response in futures_util::future::join_all(bombs).await {
        response.expect_problem(400, "invalid_input");
    }
    server.get("/api/v1/ping").await.expect_success();
    server.signal("-TERM");
    assert_eq!(server.wait().code(), Some(0));
}

/// Sends the head of a request and waits for the response. The body is never sent.
async fn send_head(server: &Server, token: Option<&str>, path: &str, length: usize) -> String {
    let mut connection = connect(server).await;
    let token = token.map_or(String::new(), |token| {
        format!("authorization: Bearer {token}\r\n")
    });
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\n{token}connection: close\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    );
    connection
        .write_all(head.as_bytes())
        .await
        .expect("head written");
    let mut response = String::new();
    connection
        .read_to_string(&mut response)
        .await
        .expect("response read");
    response
}

async fn connect(server: &Server) -> TcpStream {
    let address = server.url.trim_start_matches("http://");
    TcpStream::connect(address).await.expect("connected")
}

#[track_caller]
fn assert_status(response: &str, status: u16) {
    let expected = format!("HTTP/1.1 {status} ");
    assert!(response.starts_with(&expected), "{response}");
}

#[tokio::test]
async fn checks_the_role_before_it_reads_the_body() {
    let setup = program("role-first").with_config(TOKENS_REQUIRED);
    let viewer = setup.token("local", "reader", "viewer");
    let server = setup.serve();
    let large = 16 * 1024 * 1024;
    for path in ["/api/v1/plans", "/api/v1/artifacts", "/api/v1/tokens"] {
        let response = send_head(&server, Some(&viewer), path, large).await;
        assert_status(&response, 403);
    }
    let response = send_head(&server, Some(&viewer), "/mcp", large).await;
    assert_status(&response, 413);
    let response = send_head(&server, None, "/api/v1/plans", large).await;
    assert_status(&response, 401);
}

#[tokio::test]
async fn most_routes_accept_small_bodies_only() {
    let server = program("route-limits").serve();
    let created = server.post("/api/v1/plans", plan()).await.expect_success();
    let id = created["planId"].as_str().expect("id is a string");
    for path in ["next", "resume", "abandon", "context", "feedback"] {
        let path = format!("/api/v1/plans/{id}/{path}");
        let response = send_head(&server, None, &path, 64 * 1024 + 1).await;
        assert_status(&response, 413);
    }
    let content = "a".repeat(1024 * 1024);
    let artifact = json!({ "title": "t", "content": content });
    let stored = server.post("/api/v1/artifacts", artifact).await;
    stored.expect_success();
}

#[tokio::test]
async fn rejects_bodies_that_are_much_larger_in_memory() {
    let server = program("json-values").serve();
    let values = format!("[{}{{}}]", "{\"a\":0},".repeat(200_000));
    for path in ["/api/v1/plans", "/mcp"] {
        let response = server.send(path, format!("{{\"steps\":{values}}}")).await;
        response.expect_problem(413, "limit_exceeded");
    }
}

#[tokio::test]
async fn rejects_results_with_too_many_values() {
    let server = program("result-values").serve();
    let created = server.post("/api/v1/plans", plan()).await.expect_success();
    let id = created["planId"].as_str().expect("id is a string");
    let next = format!("/api/v1/plans/{id}/next");
    let step = server.post(&next, json!({})).await.expect_success();
    let step = step["stepId"].as_str().expect("id is a string").to_owned();
    let at = format!("/api/v1/steps/{step}/result");
    let result = |values: usize| {
        let list = vec![0; values];
        json!({ "resultSummary": "s", "result": { "list": list } })
    };
    let rejected = server.post(&at, result(20_001)).await;
    rejected.expect_problem(400, "invalid_input");
    server.post(&at, result(19_000)).await.expect_success();
}

#[tokio::test]
async fn sign_in_forms_are_small_and_need_no_request_slot() {
    let config = format!("{TOKENS_REQUIRED}\n[limits]\nrequests = 1");
    let setup = program("sign-in-limits").with_config(&config);
    let token = setup.token("local", "a", "agent");
    let server = setup.serve();
    let response = send_head(&server, None, "/login", 8 * 1024 + 1).await;
    assert_status(&response, 413);
    // An incomplete form.
    let mut slow = connect(&server).await;
    let head = "POST /login HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
                expect: 100-continue\r\n\
                content-type: application/x-www-form-urlencoded\r\ncontent-length: 100\r\n\r\n";
    slow.write_all(head.as_bytes()).await.expect("head written");
    let mut interim = [0; 25];
    slow.read_exact(&mut interim).await.expect("response read");
    assert!(interim.starts_with(b"HTTP/1.1 100"));
    slow.write_all(b"token=").await.expect("part written");
    let ping = server.get_as(&token, "/api/v1/ping").await;
    ping.expect_success();
    // The server does not wait for the rest longer than its deadline.
    let mut response = String::new();
    slow.read_to_string(&mut response)
        .await
        .expect("response read");
    assert_status(&response, 408);
}

#[tokio::test]
async fn one_address_cannot_use_all_requests_without_authentication() {
    let setup = program("address-limit").with_config(TOKENS_REQUIRED);
    setup.token("local", "a", "agent");
    let server = setup.serve();
    let login = |address: &'static str| {
        let request = server.request(Method::GET, "/login");
        send(request.header("x-forwarded-for", address))
    };
    // Concurrent: the limit is a rate, and one request after the other may be slower.
    let requests = (0..120).map(|_| login("192.0.2.1"));
    let responses = futures_util::future::join_all(requests).await;
    let is_rejected = |response: &Response| response.status.as_u16() == 429;
    assert!(responses.iter().any(is_rejected));
    assert_eq!(login("192.0.2.2").await.status.as_u16(), 200);
    assert_eq!(server.get("/healthz").await.status.as_u16(), 200);
}

fn shared_server(test: &str, limits: &str) -> (Server, String, String) {
    let config = format!("{TOKENS_REQUIRED}\n[limits]\n{limits}");
    let setup: Program = program(test).with_config(&config);
    let tokens = ["greedy", "modest"].map(|name| setup.token("local", name, "viewer"));
    let [greedy, modest] = tokens;
    (setup.serve(), greedy, modest)
}

#[tokio::test]
async fn one_token_cannot_take_all_streams() {
    let (server, greedy, modest) = shared_server("stream-shares", "streams = 4");
    let _open = EventStream::open(&server, Some(&greedy)).await;
    let rejected = server.get_as(&greedy, "/api/v1/events").await;
    rejected.expect_problem(429, "rate_limited");
    let _other = EventStream::open(&server, Some(&modest)).await;
}

#[tokio::test]
async fn a_new_session_closes_the_oldest_idle_one_of_its_owner() {
    let (server, greedy, modest) = shared_server("session-shares", "sessions = 8");
    let start = async |token: &str| {
        let message = crate::mcp::initialize_request();
        let (session, response) =
            crate::mcp::send_message(&server, Some(token), None, message).await;
        assert!(response.status.is_success(), "{response:?}");
        session.expect("session started")
    };
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    let is_open = async |token: &str, session: &str| {
        let message = list.clone();
        let (_, response) =
            crate::mcp::send_message(&server, Some(token), Some(session), message).await;
        response.status.is_success()
    };
    let other = start(&modest).await;
    let sessions = [
        start(&greedy).await,
        start(&greedy).await,
        start(&greedy).await,
    ];
    assert!(!is_open(&greedy, &sessions[0]).await);
    assert!(is_open(&greedy, &sessions[1]).await);
    assert!(is_open(&greedy, &sessions[2]).await);
    assert!(is_open(&modest, &other).await);
}

#[tokio::test]
async fn rejects_more_texts_than_the_quota() {
    let server = program("quota")
        .with_config("[limits]\ntenant_stored_mib = 1")
        .serve();
    let settings = server.request(Method::GET, "/settings/limits");
    let settings = send(settings.header("accept", "text/html")).await;
    assert!(settings.text().contains(" of 1 MiB"), "{}", settings.text());
    let metrics = server.get("/metrics").await;
    let quota = "onward_stored_bytes_quota 1048576";
    assert!(metrics.text().contains(quota), "{}", metrics.text());
    let created = server.post("/api/v1/plans", plan()).await.expect_success();
    let artifact = json!({ "title": "t", "content": "a".repeat(1024 * 1024) });
    let stored = server.post("/api/v1/artifacts", artifact.clone()).await;
    stored.expect_success();
    // The next server measures again.
    let server = server.stop().serve();
    let rejected = server.post("/api/v1/artifacts", artifact).await;
    rejected.expect_problem(422, "limit_exceeded");
    let id = created["planId"].as_str().expect("id is a string");
    let path = format!("/api/v1/plans/{id}");
    server.get(&path).await.expect_success();
    let deleted = send(server.request(Method::DELETE, &path)).await;
    deleted.expect_success();
}
