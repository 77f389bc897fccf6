//! The server and the official client in one process: forms, sampling and callers with limited
//! roles.
//!
//! Everything that can be tested with the binary is in `tests/mcp`. Over stdio the caller is always
//! an owner, so role checks are tested here.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a broken precondition fails the test"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use onward_core::Role;
use onward_core::role::TenantPolicy;
use onward_engine::engine::Settings;
use onward_engine::{Address, Caller, Engine};
use onward_testbed::TestDir;
use onward_testbed::mcp_client::{ERAS, Era};
use onward_testbed::sdk_client::SdkClient;
use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult,
    ElicitationAction, ErrorData, Implementation,
};
use rmcp::service::RequestContext;
use rmcp::{ClientHandler, RoleClient};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{Forms, Server, Setup, ToolSet};
use crate::hint::Interface;
use crate::serving::Dashboard;
use crate::tools::ToolContext;

/// A client that approves every form and counts them.
#[derive(Clone, Default)]
struct FormClient(Arc<AtomicUsize>);

impl ClientHandler for FormClient {
    fn get_info(&self) -> ClientConfig {
        let capabilities = ClientCapabilities::builder().enable_elicitation().build();
        ClientConfig::new(capabilities, Implementation::new("test", "0"))
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.0.fetch_add(1, Ordering::SeqCst);
        let approved = json!({ "decision": "approve" });
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(approved))
    }
}

/// A client with sampling, whose model returns these answers, last one first.
#[derive(Clone, Default)]
struct SamplingClient(Arc<std::sync::Mutex<Vec<&'static str>>>);

impl ClientHandler for SamplingClient {
    fn get_info(&self) -> ClientConfig {
        #[allow(deprecated, reason = "MCP sampling is deprecated but still in use")]
        let capabilities = ClientCapabilities::builder().enable_sampling().build();
        ClientConfig::new(capabilities, Implementation::new("test", "0"))
    }

    #[allow(deprecated, reason = "MCP sampling is deprecated but still in use")]
    async fn create_message(
        &self,
        params: rmcp::model::CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<rmcp::model::CreateMessageResult, ErrorData> {
        let mut answers = self.0.lock().expect("mutex is not poisoned");
        let none = || ErrorData::internal_error("no answer left", None);
        let text = answers.pop().ok_or_else(none)?;
        let request = serde_json::to_value(&params)
            .unwrap_or_default()
            .to_string();
        let text = text.replace("COUNT", &params.messages.len().to_string());
        let response = json!({
            "model": "client-model",
            "role": "assistant",
            "content": { "type": "text", "text": text },
        });
        assert!(request.contains("Io and Europa"), "{request}");
        serde_json::from_value(response).map_err(|_| none())
    }
}

#[tokio::test]
async fn extracts_with_the_clients_model_if_none_is_configured() {
    let dir = TestDir::new("sampling");
    let engine = open(&dir).await;
    for era in ERAS {
        for (answers, valid, count) in [
            (vec![r#"{"moons": COUNT}"#], true, Some(1)),
            // The retry contains the first answer and its issues.
            (vec![r#"{"moons": COUNT}"#, "no JSON"], true, Some(3)),
            (vec![r#"{"moons": "two"}"#, "no JSON"], false, None),
        ] {
            let handler = SamplingClient(Arc::new(std::sync::Mutex::new(answers)));
            let caller = Some(Caller::local("test"));
            let client = connect(&engine, caller, handler.clone(), era).await;
            let arguments = json!({
                "schema": {
                    "type": "object",
                    "properties": { "moons": { "type": "integer" } },
                    "required": ["moons"],
                },
                "sourceText": "Io and Europa",
            });
            let response = client.call("extract_data", arguments).await;
            let field = |name: &str| response.get(name).cloned().unwrap_or_default();
            assert_eq!(field("valid"), valid, "{response}");
            assert_eq!(field("model"), "client-model");
            if let Some(count) = count {
                assert_eq!(field("data"), json!({ "moons": count }));
            } else {
                assert_eq!(response["issues"][0]["path"], "/moons");
            }
            let answers = handler.0.lock().expect("mutex is not poisoned");
            assert!(answers.is_empty());
        }
        // The model returns nothing: the agent gets an error.
        let caller = Some(Caller::local("test"));
        let handler = SamplingClient::default();
        let client = connect(&engine, caller, handler, era).await;
        let arguments = json!({ "schema": {}, "sourceText": "Io and Europa" });
        let params = CallToolRequestParams::new("extract_data");
        let params = params.with_arguments(arguments.as_object().cloned().unwrap_or_default());
        if let Ok(response) = client.connection.call_tool(params).await {
            assert_eq!(response.is_error, Some(true), "{response:?}");
        }
        // A viewer may not use the model.
        let handler = SamplingClient::default();
        let client = connect(&engine, Some(viewer()), handler, era).await;
        let arguments = json!({ "schema": {}, "sourceText": "Io and Europa" });
        let error = client.call_rejected("extract_data", arguments).await;
        assert_eq!(error["code"], "forbidden");
    }
    engine.close().await;
}

async fn open(dir: &TestDir) -> Engine {
    let address = Address::File(dir.join("a.db"));
    let engine = Engine::open(&address, Settings::default()).await;
    engine.expect("database opens")
}

fn viewer() -> Caller {
    Caller {
        role: Role::Viewer,
        ..Caller::local("test")
    }
}

async fn connect<C: ClientHandler>(
    engine: &Engine,
    caller: Option<Caller>,
    handler: C,
    era: Era,
) -> SdkClient<C> {
    let (_, closing) = watch::channel(false);
    let setup = Setup {
        tool_context: ToolContext {
            interface: Interface::Mcp(ToolSet::All),
            engine: engine.clone(),
            dashboard: Dashboard::Fixed(Some("http://127.0.0.1:7171/".into())),
            extractor: None,
            is_local: true,
            quota: None,
            closing,
        },
        tool_set: ToolSet::All,
        resolve_caller: Arc::new(move |_| caller.clone()),
        forms: Forms::new([7; 32], Duration::from_secs(60)),
        app: crate::web::APP,
        directory: None,
    };
    let (client_end, server_end) = tokio::io::duplex(64 * 1024);
    // The task ends with the connection.
    tokio::spawn(async move {
        let service = rmcp::service::serve_directly(Server::new(setup), server_end, None);
        drop(service.waiting().await);
    });
    SdkClient::with_transport(handler, client_end, era).await
}

/// Requests a review. Returns the response and the number of forms.
async fn review(
    engine: &Engine,
    role: Role,
    agents_decide_reviews: bool,
    era: Era,
) -> (Value, usize) {
    let caller = Caller {
        role,
        policy: TenantPolicy {
            agents_decide_reviews,
        },
        ..Caller::local("test")
    };
    let handler = FormClient::default();
    let client = connect(engine, Some(caller), handler.clone(), era).await;
    let plan = json!({
        "name": "n",
        "researchQuestion": "q",
        "steps": [{ "stepType": "custom", "instructions": "i" }],
    });
    let plan = client.call("create_research_plan", plan).await;
    let step = json!({ "planId": plan.get("planId") });
    let step = client.call("get_next_step", step).await;
    let arguments = json!({ "stepId": step.get("stepId"), "summary": "s" });
    let response = client.call("request_user_review", arguments).await;
    (response, handler.0.load(Ordering::SeqCst))
}

#[tokio::test]
async fn shows_no_form_to_an_agent_unless_its_tenant_allows_it() {
    let dir = TestDir::new("forms");
    let engine = open(&dir).await;
    for era in ERAS {
        for (role, allowed, expected) in [
            (Role::Owner, false, 1),
            (Role::Member, false, 1),
            (Role::Agent, false, 0),
            (Role::Agent, true, 1),
        ] {
            let (response, forms) = review(&engine, role, allowed, era).await;
            assert_eq!(forms, expected, "{role}, allowed: {allowed}");
            let field = |name: &str| response.get(name).and_then(Value::as_str);
            if expected == 1 {
                assert_eq!(field("decision"), Some("approve"));
                assert_eq!(field("planStatus"), Some("completed"));
            } else {
                assert_eq!(field("decision"), None);
                assert_eq!(field("planStatus"), Some("awaiting_review"));
                // The link to decide on the dashboard instead.
                let id = field("reviewId").expect("response has a review id");
                let url = format!("http://127.0.0.1:7171/reviews/{id}");
                assert_eq!(field("url"), Some(url.as_str()));
            }
        }
    }
    engine.close().await;
}

#[tokio::test]
async fn rejects_unauthenticated_requests() {
    let dir = TestDir::new("unauthenticated");
    let engine = open(&dir).await;
    let client = connect(&engine, None, FormClient::default(), Era::Handshake).await;
    let ping = CallToolRequestParams::new("ping");
    let call = client.connection.call_tool(ping).await;
    assert!(call.is_err(), "{call:?}");
    assert!(client.connection.list_all_resources().await.is_err());
    engine.close().await;
}

#[tokio::test]
async fn a_viewer_may_only_read() {
    let dir = TestDir::new("viewer");
    let engine = open(&dir).await;
    let handler = FormClient::default();
    let client = connect(&engine, Some(viewer()), handler, Era::Handshake).await;
    client.call("list_active_plans", json!({})).await;
    let id = "00000000-0000-4000-8000-000000000000";
    for (tool, arguments) in [
        ("get_next_step", json!({ "planId": id })),
        (
            "submit_step_result",
            json!({ "stepId": id, "resultSummary": "s" }),
        ),
        (
            "submit_user_decision",
            json!({ "stepId": id, "decision": "approve" }),
        ),
        ("submit_feedback", json!({ "planId": id, "rating": 1 })),
        ("extract_data", json!({ "schema": {}, "sourceText": "s" })),
    ] {
        let error = client.call_rejected(tool, arguments).await;
        assert_eq!(error["code"], "forbidden", "{tool}");
    }
    engine.close().await;
}
