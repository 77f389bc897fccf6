//! The server in one process with the official client: who is shown a form, and as whom a request is
//! served. What can be tried on the binary is tried there, in `tests/mcp`; over standard input nobody
//! comes in a lesser role.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on must fail"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use onward_core::Role;
use onward_core::role::TenantPolicy;
use onward_engine::engine::Settings;
use onward_engine::{Address, Caller, Engine};
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, ElicitRequestParams,
    ElicitResult, ElicitationAction, ErrorData, Implementation, ProtocolVersion,
};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt, RequestContext, RunningService};
use rmcp::{ClientHandler, RoleClient};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{Forms, Offered, Server, Setup};
use crate::tools::Desk;

/// A person who approves of everything, and counts how often they were asked.
#[derive(Clone, Default)]
struct Window(Arc<AtomicUsize>);

impl ClientHandler for Window {
    fn get_info(&self) -> ClientConfig {
        let shows_forms = ClientCapabilities::builder().enable_elicitation().build();
        ClientConfig::new(shows_forms, Implementation::new("test", "0"))
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

/// A client that lends its model, which answers as it is told, one after the other.
#[derive(Clone, Default)]
struct Lender(Arc<std::sync::Mutex<Vec<&'static str>>>);

impl ClientHandler for Lender {
    fn get_info(&self) -> ClientConfig {
        #[allow(deprecated, reason = "clients that lend their model do it this way")]
        let lends = ClientCapabilities::builder().enable_sampling().build();
        ClientConfig::new(lends, Implementation::new("test", "0"))
    }

    #[allow(deprecated, reason = "clients that lend their model do it this way")]
    async fn create_message(
        &self,
        params: rmcp::model::CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<rmcp::model::CreateMessageResult, ErrorData> {
        let mut left = self.0.lock().expect("no test panics here");
        let none = || ErrorData::internal_error("nothing is left to say", None);
        let said = left.pop().ok_or_else(none)?;
        let asked = serde_json::to_value(&params)
            .unwrap_or_default()
            .to_string();
        let answer = json!({
            "model": "lent",
            "role": "assistant",
            "content": { "type": "text", "text": said.replace("COUNT", &params.messages.len().to_string()) },
        });
        assert!(asked.contains("Io and Europa"), "{asked}");
        serde_json::from_value(answer).map_err(|_| none())
    }
}

#[tokio::test]
async fn a_clients_own_model_extracts_where_none_is_configured() {
    let scratch = Scratch::new("lent");
    let address = Address::File(scratch.0.join("a.db"));
    let engine = Engine::open(&address, Settings::default()).await;
    let engine = engine.expect("the database opens");
    for lifecycle in eras() {
        for (answers, valid, count) in [
            (vec![r#"{"moons": COUNT}"#], true, Some(1)),
            // The second one is asked with the first answer and what is wrong with it.
            (vec![r#"{"moons": COUNT}"#, "no JSON"], true, Some(3)),
            (vec![r#"{"moons": "two"}"#, "no JSON"], false, None),
        ] {
            let lender = Lender(Arc::new(std::sync::Mutex::new(answers)));
            let me = Some(Caller::local("test"));
            let client = connected(&engine, me, lender.clone(), lifecycle.clone()).await;
            let arguments = json!({
                "schema": {
                    "type": "object",
                    "properties": { "moons": { "type": "integer" } },
                    "required": ["moons"],
                },
                "sourceText": "Io and Europa",
            });
            let answer = done(&client, "extract_data", arguments).await;
            let found = |name: &str| answer.get(name).cloned().unwrap_or_default();
            assert_eq!(found("valid"), valid, "{answer}");
            assert_eq!(found("model"), "lent");
            if let Some(count) = count {
                assert_eq!(found("data"), json!({ "moons": count }));
            } else {
                assert_eq!(answer["issues"][0]["path"], "/moons");
            }
            assert!(lender.0.lock().expect("no test panics here").is_empty());
        }
        // It has nothing to say: the agent is told, and can go on.
        let me = Some(Caller::local("test"));
        let client = connected(&engine, me, Lender::default(), lifecycle.clone()).await;
        let arguments = json!({ "schema": {}, "sourceText": "Io and Europa" });
        let params = CallToolRequestParams::new("extract_data");
        let params = params.with_arguments(arguments.as_object().cloned().unwrap_or_default());
        if let Ok(answer) = client.call_tool(params).await {
            assert_eq!(answer.is_error, Some(true), "{answer:?}");
        }
        // Whoever may only read costs nobody anything.
        let viewer = Caller {
            role: Role::Viewer,
            ..Caller::local("test")
        };
        let client = connected(&engine, Some(viewer), Lender::default(), lifecycle).await;
        let arguments = json!({ "schema": {}, "sourceText": "Io and Europa" });
        let answer = send(&client, "extract_data", arguments).await;
        assert_eq!(answer.is_error, Some(true));
        assert!(format!("{answer:?}").contains("forbidden"), "{answer:?}");
    }
    engine.close().await;
}

/// A database that is gone when the test ends.
struct Scratch(std::path::PathBuf);

impl Scratch {
    fn new(test: &str) -> Self {
        let name = format!("onward-mcp-{test}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        drop(std::fs::remove_dir_all(&folder));
        Self(folder)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

async fn connected<C: ClientHandler>(
    engine: &Engine,
    caller: Option<Caller>,
    window: C,
    lifecycle: ClientLifecycleMode,
) -> RunningService<RoleClient, C> {
    let (_, closing) = watch::channel(false);
    let setup = Setup {
        desk: Desk {
            engine: engine.clone(),
            base_url: Some("http://127.0.0.1:7171/".into()),
            extractor: None,
        },
        offered: Offered::All,
        who: Arc::new(move |_| caller.clone()),
        forms: Forms::new([7; 32], Duration::from_secs(60)),
        closing,
    };
    let (near, far) = tokio::io::duplex(64 * 1024);
    // It lives as long as the connection does.
    tokio::spawn(async move {
        let served = rmcp::service::serve_directly(Server::new(setup), far, None);
        drop(served.waiting().await);
    });
    let client = window.serve_with_lifecycle(near, lifecycle).await;
    client.expect("they understand each other")
}

async fn send<C: ClientHandler>(
    client: &RunningService<RoleClient, C>,
    tool: &'static str,
    arguments: Value,
) -> CallToolResult {
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    let params = CallToolRequestParams::new(tool).with_arguments(arguments);
    let answer = client.call_tool(params).await;
    answer.unwrap_or_else(|why| panic!("{tool}: {why}"))
}

async fn done<C: ClientHandler>(
    client: &RunningService<RoleClient, C>,
    tool: &'static str,
    arguments: Value,
) -> Value {
    let answer = send(client, tool, arguments).await;
    assert_ne!(answer.is_error, Some(true), "{tool}: {answer:?}");
    answer.structured_content.expect("structured content")
}

/// Asks for a review; the answer, and how often the person was asked.
async fn review(
    engine: &Engine,
    role: Role,
    agents_decide_reviews: bool,
    lifecycle: ClientLifecycleMode,
) -> (Value, usize) {
    let caller = Caller {
        role,
        policy: TenantPolicy {
            agents_decide_reviews,
        },
        ..Caller::local("test")
    };
    let window = Window::default();
    let client = connected(engine, Some(caller), window.clone(), lifecycle).await;
    let plan = json!({
        "name": "n",
        "researchQuestion": "q",
        "steps": [{ "stepType": "custom", "instructions": "i" }],
    });
    let plan = done(&client, "create_research_plan", plan).await;
    let step = json!({ "planId": plan.get("planId") });
    let step = done(&client, "get_next_step", step).await;
    let question = json!({ "stepId": step.get("stepId"), "summary": "s" });
    let answer = done(&client, "request_user_review", question).await;
    (answer, window.0.load(Ordering::SeqCst))
}

fn eras() -> [ClientLifecycleMode; 2] {
    [
        ClientLifecycleMode::Initialize,
        ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        },
    ]
}

#[tokio::test]
async fn an_agent_is_shown_no_form_unless_its_tenant_allows_it() {
    let scratch = Scratch::new("forms");
    let address = Address::File(scratch.0.join("a.db"));
    let engine = Engine::open(&address, Settings::default()).await;
    let engine = engine.expect("the database opens");
    for lifecycle in eras() {
        for (role, allowed, asked) in [
            (Role::Owner, false, 1),
            (Role::Member, false, 1),
            (Role::Agent, false, 0),
            (Role::Agent, true, 1),
        ] {
            let (answer, was) = review(&engine, role, allowed, lifecycle.clone()).await;
            assert_eq!(was, asked, "{role}, allowed: {allowed}");
            let word = |name: &str| answer.get(name).and_then(Value::as_str);
            if asked == 1 {
                assert_eq!(word("decision"), Some("approve"));
                assert_eq!(word("planStatus"), Some("completed"));
            } else {
                assert_eq!(word("decision"), None);
                assert_eq!(word("planStatus"), Some("awaiting_review"));
                // Where a person can decide instead.
                let id = word("reviewId").expect("an id");
                let url = format!("http://127.0.0.1:7171/reviews/{id}");
                assert_eq!(word("url"), Some(url.as_str()));
            }
        }
    }
    engine.close().await;
}

#[tokio::test]
async fn nobody_who_is_not_known_is_served() {
    let scratch = Scratch::new("nobody");
    let address = Address::File(scratch.0.join("a.db"));
    let engine = Engine::open(&address, Settings::default()).await;
    let engine = engine.expect("the database opens");
    let [lifecycle, _] = eras();
    let client = connected(&engine, None, Window::default(), lifecycle).await;
    let call = client.call_tool(CallToolRequestParams::new("ping")).await;
    assert!(call.is_err(), "{call:?}");
    assert!(client.list_all_resources().await.is_err());
    engine.close().await;
}

#[tokio::test]
async fn who_may_only_read_is_refused_the_rest_by_name() {
    let scratch = Scratch::new("viewer");
    let address = Address::File(scratch.0.join("a.db"));
    let engine = Engine::open(&address, Settings::default()).await;
    let engine = engine.expect("the database opens");
    let viewer = Caller {
        role: Role::Viewer,
        ..Caller::local("test")
    };
    let [lifecycle, _] = eras();
    let client = connected(&engine, Some(viewer), Window::default(), lifecycle).await;
    done(&client, "list_active_plans", json!({})).await;
    let never = "00000000-0000-4000-8000-000000000000";
    for (tool, arguments) in [
        ("get_next_step", json!({ "planId": never })),
        (
            "submit_step_result",
            json!({ "stepId": never, "resultSummary": "s" }),
        ),
        (
            "submit_user_decision",
            json!({ "stepId": never, "decision": "approve" }),
        ),
        ("submit_feedback", json!({ "planId": never, "rating": 1 })),
        ("extract_data", json!({ "schema": {}, "sourceText": "s" })),
    ] {
        let answer = send(&client, tool, arguments).await;
        let text = answer.content.first().and_then(|block| block.as_text());
        let text = text.map(|block| block.text.clone()).unwrap_or_default();
        assert_eq!(answer.is_error, Some(true), "{tool}: {text}");
        assert!(text.contains("\"forbidden\""), "{tool}: {text}");
    }
    engine.close().await;
}
