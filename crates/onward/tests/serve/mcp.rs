//! `/mcp`: a real client drives a whole plan in both eras; whose session it is; and how calls end with
//! the server.

use reqwest::{Method, RequestBuilder};
use rmcp::model::{CallToolRequestParams, CallToolResult, ClientConfig, ProtocolVersion};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{RoleClient, ServiceExt};
use serde_json::{Value, json};

use crate::basics::plan;
use crate::house::{Answer, House, Server, send};

/// Which way of speaking.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Era {
    Handshake,
    Stateless,
}

const ERAS: [Era; 2] = [Era::Handshake, Era::Stateless];

/// An agent that is connected.
struct Agent(RunningService<RoleClient, ClientConfig>);

impl Agent {
    async fn connect(server: &Server, era: Era, token: Option<&str>) -> Self {
        let at = format!("{}/mcp", server.url);
        let mut config = StreamableHttpClientTransportConfig::with_uri(at);
        if let Some(token) = token {
            config = config.auth_header(token);
        }
        let transport = StreamableHttpClientTransport::from_config(config);
        let client = ClientConfig::default();
        let connected = match era {
            Era::Handshake => client.serve(transport).await,
            Era::Stateless => {
                let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
                let lifecycle = ClientLifecycleMode::Discover { preferred_versions };
                client.serve_with_lifecycle(transport, lifecycle).await
            }
        };
        Self(connected.expect("it connects"))
    }

    async fn answer(&self, tool: &'static str, arguments: Value) -> CallToolResult {
        let arguments = arguments.as_object().expect("an object").clone();
        let params = CallToolRequestParams::new(tool).with_arguments(arguments);
        self.0.call_tool(params).await.expect("it answers")
    }

    async fn call(&self, tool: &'static str, arguments: Value) -> Value {
        let result = self.answer(tool, arguments).await;
        assert_ne!(result.is_error, Some(true), "{tool}: {result:?}");
        result.structured_content.expect("it is structured")
    }
}

#[tokio::test]
async fn an_agent_carries_a_plan_through_in_both_eras() {
    let house = House::new("mcp").configured("[access]\nrequire_tokens = true");
    let token = house.token("acme", "claude", "member");
    let server = house.serve();
    for era in ERAS {
        carried(&server, era, &token).await;
    }
}

#[tokio::test]
async fn an_agent_carries_a_plan_through_on_postgresql() {
    let database = onward_testbed::Cluster::shared().database();
    let house = House::new("mcp-postgres").on(database);
    let token = house.token("acme", "claude", "member");
    let server = house.serve();
    carried(&server, Era::Stateless, &token).await;
}

async fn carried(server: &Server, era: Era, token: &str) {
    let agent = Agent::connect(server, era, Some(token)).await;
    let pong = agent.call("ping", json!({})).await;
    assert_eq!(pong["tenant"], "acme", "{era:?}");
    assert_eq!(pong["user"], "token:claude", "the token says who it is");
    let made = agent.call("create_research_plan", plan()).await;
    let about = json!({ "planId": made["planId"] });
    let first = agent.call("get_next_step", about.clone()).await;
    let result = json!({
        "stepId": first["stepId"],
        "claimToken": first["claimToken"],
        "resultSummary": "three sources",
        "claimNext": true,
    });
    let second = agent.call("submit_step_result", result).await["nextStep"].clone();
    let asked = json!({ "stepId": second["stepId"], "summary": "fine?" });
    let asked = agent.call("request_user_review", asked).await;
    assert_eq!(asked["planStatus"], "awaiting_review");
    // A person decides elsewhere, over the API.
    let step = second["stepId"].as_str().expect("an id");
    let decision = json!({ "decision": "approve" });
    let at = format!("/api/v1/steps/{step}/decision");
    server.post_as(token, &at, decision).await.done();
    let end = agent.call("get_next_step", about).await;
    assert_eq!(end["status"], "plan_complete");
    let refused = agent
        .answer("get_next_step", json!({ "planId": "none" }))
        .await;
    assert_eq!(refused.is_error, Some(true));
    assert!(refused.structured_content.is_none());
    agent.0.cancel().await.expect("it ends");
}

#[tokio::test]
async fn every_tool_has_a_route_that_says_the_same() {
    let server = House::new("mcp-routes").serve();
    let agent = Agent::connect(&server, Era::Handshake, None).await;
    let described = server.get("/api/v1/openapi.json").await.done();
    let operations: Vec<&Value> = described["paths"]
        .as_object()
        .expect("paths")
        .values()
        .flat_map(|methods| methods.as_object().expect("methods").iter())
        .map(|(_, operation)| operation)
        .collect();
    let methods = |name: &str| {
        let all = described["paths"].as_object().expect("paths").values();
        all.flat_map(|methods| methods.as_object().expect("methods"))
            .find(|(_, operation)| operation["operationId"] == name)
            .map(|(method, _)| method.clone())
    };
    for tool in agent.0.list_all_tools().await.expect("a list") {
        let operation = operations
            .iter()
            .find(|operation| operation["operationId"] == *tool.name)
            .unwrap_or_else(|| panic!("`{}` has no route", tool.name));
        assert_eq!(
            operation["description"],
            tool.description.expect("words").as_ref()
        );
        let reads = tool.annotations.and_then(|hints| hints.read_only_hint);
        let method = methods(&tool.name).expect("it is there");
        assert_eq!(method == "get", reads == Some(true), "{}", tool.name);
    }
}

/// A message as a client of 2025-11-25 sends it, by hand.
pub(crate) fn spoken(
    server: &Server,
    token: Option<&str>,
    session: Option<&str>,
    message: Value,
) -> RequestBuilder {
    let mut request = server
        .ask(Method::POST, "/mcp")
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

/// Says it; which session began, and what was answered.
pub(crate) async fn speak(
    server: &Server,
    token: Option<&str>,
    session: Option<&str>,
    message: Value,
) -> (Option<String>, Answer) {
    let response = spoken(server, token, session, message).send().await;
    let response = response.expect("it answers");
    let begun = response.headers().get("mcp-session-id");
    let begun = begun.map(|id| id.to_str().expect("a text").to_owned());
    (begun, Answer::of(response).await)
}

pub(crate) fn hello() -> Value {
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
async fn a_session_is_there_for_whoever_began_it_alone() {
    let house = House::new("mcp-sessions").configured("[access]\nrequire_tokens = true");
    let ours = house.token("acme", "ours", "owner");
    let ours_too = house.token("acme", "other", "owner");
    let theirs = house.token("globex", "ours", "owner");
    let server = house.serve();
    let (session, answer) = speak(&server, Some(&theirs), None, hello()).await;
    assert!(answer.status.is_success(), "{answer:?}");
    let session = session.expect("a session");
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {} });
    let never = "00000000-0000-0000-0000-000000000000";
    for token in [&ours, &ours_too] {
        let (_, foreign) = speak(&server, Some(token), Some(&session), list.clone()).await;
        let (_, nothing) = speak(&server, Some(token), Some(never), list.clone()).await;
        foreign.refused(404, "invalid_input");
        assert_eq!(foreign, nothing, "it is as one that never was");
        for method in [Method::GET, Method::DELETE] {
            let request = server.ask(method, "/mcp").bearer_auth(token);
            let request = request.header("accept", "text/event-stream");
            send(request.header("mcp-session-id", &session))
                .await
                .refused(404, "invalid_input");
        }
    }
    let (_, own) = speak(&server, Some(&theirs), Some(&session), list).await;
    assert!(
        own.status.is_success() && own.text.contains("get_next_step"),
        "{own:?}"
    );
}

#[tokio::test]
async fn open_streams_of_agents_do_not_hold_up_the_end() {
    let mut server = House::new("mcp-end").serve();
    let agent = Agent::connect(&server, Era::Handshake, None).await;
    agent.call("ping", json!({})).await;
    server.signal("-TERM");
    assert_eq!(server.ended().code(), Some(0), "{}", server.house.told());
    assert!(
        !server.house.told().contains("did not end in time"),
        "{}",
        server.house.told()
    );
}

#[tokio::test]
async fn a_stream_ends_when_its_token_is_taken_back() {
    let house = House::new("mcp-revoked").configured("[access]\nrequire_tokens = true");
    let token = house.token("local", "passing", "owner");
    let server = house.serve();
    let (session, _) = speak(&server, Some(&token), None, hello()).await;
    let stream = server
        .ask(Method::GET, "/mcp")
        .bearer_auth(&token)
        .header("accept", "text/event-stream")
        .header("mcp-session-id", session.expect("a session"));
    let stream = stream.send().await.expect("a stream");
    assert!(stream.status().is_success(), "{stream:?}");
    server.house.prints(&["token", "revoke", "passing"]);
    // It would stay open for hours otherwise; how it is cut off does not matter.
    let ended = tokio::time::timeout(std::time::Duration::from_secs(60), stream.text()).await;
    assert!(ended.is_ok(), "the stream is still open");
}
