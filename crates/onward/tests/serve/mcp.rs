//! `/mcp`: a whole plan with a real client in both protocol versions, session isolation, shutdown
//! and revoked tokens.

use onward_testbed::mcp_client::{ERAS, Era};
use onward_testbed::sdk_client::SdkClient;
use onward_testbed::{Response, Server, send};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::basics::plan;
use crate::program;

#[tokio::test]
async fn an_agent_completes_a_plan_in_both_protocols() {
    let setup = program("mcp").with_config("[access]\nrequire_tokens = true");
    let token = setup.token("acme", "claude", "member");
    let server = setup.serve();
    for era in ERAS {
        complete_plan(&server, era, &token).await;
    }
}

#[tokio::test]
async fn an_agent_completes_a_plan_on_postgresql() {
    let database = onward_testbed::Cluster::shared().database();
    let setup = program("mcp-postgres").with_database(database);
    let token = setup.token("acme", "claude", "member");
    let server = setup.serve();
    complete_plan(&server, Era::Stateless, &token).await;
}

async fn complete_plan(server: &Server, era: Era, token: &str) {
    let agent = SdkClient::connect(server, era, Some(token)).await;
    let pong = agent.call("ping", json!({})).await;
    assert_eq!(pong["tenant"], "acme", "{era:?}");
    assert_eq!(pong["user"], "token:claude", "the token is the user");
    let created = agent.call("create_research_plan", plan()).await;
    let plan = json!({ "planId": created["planId"] });
    let first = agent.call("get_next_step", plan.clone()).await;
    let result = json!({
        "stepId": first["stepId"],
        "claimToken": first["claimToken"],
        "resultSummary": "three sources",
        "claimNext": true,
    });
    let second = agent.call("submit_step_result", result).await["nextStep"].clone();
    let review = json!({ "stepId": second["stepId"], "summary": "fine?" });
    let review = agent.call("request_user_review", review).await;
    assert_eq!(review["planStatus"], "awaiting_review");
    // The reviewer decides over the API.
    let step = second["stepId"].as_str().expect("id is a string");
    let decision = json!({ "decision": "approve" });
    let at = format!("/api/v1/steps/{step}/decision");
    server.post_as(token, &at, decision).await.expect_success();
    let end = agent.call("get_next_step", plan).await;
    assert_eq!(end["status"], "plan_complete");
    let missing = json!({ "planId": "none" });
    agent.call_rejected("get_next_step", missing).await;
    agent.close().await;
}

#[tokio::test]
async fn every_tool_has_a_route_with_the_same_description() {
    let server = program("mcp-routes").serve();
    let agent = SdkClient::connect(&server, Era::Handshake, None).await;
    let document = server.get("/api/v1/openapi.json").await.expect_success();
    let operations: Vec<&Value> = document["paths"]
        .as_object()
        .expect("document has paths")
        .values()
        .flat_map(|methods| methods.as_object().expect("path has methods").iter())
        .map(|(_, operation)| operation)
        .collect();
    let method_of = |name: &str| {
        let all = document["paths"]
            .as_object()
            .expect("document has paths")
            .values();
        all.flat_map(|methods| methods.as_object().expect("path has methods"))
            .find(|(_, operation)| operation["operationId"] == name)
            .map(|(method, _)| method.clone())
    };
    let tools = agent.connection.list_all_tools().await;
    for tool in tools.expect("value is a list") {
        let operation = operations
            .iter()
            .find(|operation| operation["operationId"] == *tool.name)
            .unwrap_or_else(|| panic!("`{}` has no route", tool.name));
        assert_eq!(
            operation["description"],
            tool.description.expect("tool has a description").as_ref()
        );
        let read_only = tool.annotations.and_then(|hints| hints.read_only_hint);
        let method = method_of(&tool.name).expect("route exists");
        assert_eq!(method == "get", read_only == Some(true), "{}", tool.name);
    }
}

/// A request with a message of protocol version 2025-11-25.
pub(crate) fn message_request(
    server: &Server,
    token: Option<&str>,
    session: Option<&str>,
    message: Value,
) -> RequestBuilder {
    let mut request = server
        .request(Method::POST, "/mcp")
        .header("accept", "application/json, text/event-stream")
        .json(&message);
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    if let Some(session) = session {
        request = request.header("mcp-session-id", session);
    }
    request
}

/// Sends a message. Returns the session id header and the response.
pub(crate) async fn send_message(
    server: &Server,
    token: Option<&str>,
    session: Option<&str>,
    message: Value,
) -> (Option<String>, Response) {
    let response = message_request(server, token, session, message)
        .send()
        .await;
    let response = response.expect("response received");
    let session = response.headers().get("mcp-session-id");
    let session = session.map(|id| id.to_str().expect("value is a string").to_owned());
    (session, Response::read(response).await)
}

pub(crate) fn initialize_request() -> Value {
    json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": { "name": "test", "version": "0" },
        },
    })
}

#[tokio::test]
async fn a_session_is_visible_to_its_token_only() {
    let setup = program("mcp-sessions").with_config("[access]\nrequire_tokens = true");
    let ours = setup.token("acme", "ours", "owner");
    let other_token = setup.token("acme", "other", "owner");
    let theirs = setup.token("globex", "ours", "owner");
    let server = setup.serve();
    let (session, response) =
        send_message(&server, Some(&theirs), None, initialize_request()).await;
    assert!(response.status.is_success(), "{response:?}");
    let session = session.expect("session started");
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {} });
    let missing = "00000000-0000-0000-0000-000000000000";
    for token in [&ours, &other_token] {
        let (_, foreign) = send_message(&server, Some(token), Some(&session), list.clone()).await;
        let (_, unknown) = send_message(&server, Some(token), Some(missing), list.clone()).await;
        let [foreign, unknown] = [foreign, unknown].map(|response| {
            let mut problem = response.expect_problem(404, "invalid_input");
            problem["requestId"].take();
            (response.status, problem)
        });
        assert_eq!(foreign, unknown, "same as a missing session");
        for method in [Method::GET, Method::DELETE] {
            let request = server.request(method, "/mcp").bearer_auth(token);
            let request = request.header("accept", "text/event-stream");
            send(request.header("mcp-session-id", &session))
                .await
                .expect_problem(404, "invalid_input");
        }
    }
    let (_, own) = send_message(&server, Some(&theirs), Some(&session), list).await;
    assert!(
        own.status.is_success() && own.text().contains("get_next_step"),
        "{own:?}"
    );
}

#[tokio::test]
async fn open_streams_do_not_delay_shutdown() {
    let mut server = program("mcp-shutdown").serve();
    let agent = SdkClient::connect(&server, Era::Handshake, None).await;
    agent.call("ping", json!({})).await;
    server.signal("-TERM");
    assert_eq!(server.wait().code(), Some(0), "{}", server.log());
    assert_eq!(server.log(), "", "no warning about the timeout");
}

#[tokio::test]
async fn closes_a_stream_when_its_token_is_revoked() {
    let setup = program("mcp-revoked").with_config("[access]\nrequire_tokens = true");
    let token = setup.token("local", "temporary", "owner");
    let server = setup.serve();
    let (session, _) = send_message(&server, Some(&token), None, initialize_request()).await;
    let stream = server
        .request(Method::GET, "/mcp")
        .bearer_auth(&token)
        .header("accept", "text/event-stream")
        .header("mcp-session-id", session.expect("session started"));
    let stream = stream.send().await.expect("stream opened");
    assert!(stream.status().is_success(), "{stream:?}");
    server.program().run_ok(&["token", "revoke", "temporary"]);
    // The server can end the stream or break the connection.
    let body = stream.text().await;
    assert!(
        !body.is_err_and(|error| error.is_timeout()),
        "the stream is still open"
    );
}
