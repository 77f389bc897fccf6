//! URL mode elicitation: `request_user_review` opens the review page and returns the decision that
//! is made there.

use onward_testbed::mcp_client::{ERAS, Era};
use onward_testbed::sdk_client::SdkClient;
use onward_testbed::{Server, TIMEOUT};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientCapabilities, ClientConfig, CustomNotification,
    ElicitRequestParams, ElicitResult, ElicitationAction, ErrorData, GetTaskParams, InputResponses,
    UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, RoleClient};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::basics::plan;
use crate::program;

/// A client with URL mode. Its user opens the page or declines.
#[derive(Clone)]
struct Host {
    action: ElicitationAction,
    capabilities: Value,
    /// The opened pages.
    opened: mpsc::UnboundedSender<ElicitRequestParams>,
    completed: mpsc::UnboundedSender<Value>,
}

impl ClientHandler for Host {
    fn get_info(&self) -> ClientConfig {
        let mut config = ClientConfig::default();
        let capabilities = serde_json::from_value::<ClientCapabilities>(self.capabilities.clone());
        config.capabilities = capabilities.expect("capabilities are valid");
        config
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.opened.send(request).expect("test runs");
        Ok(ElicitResult::new(self.action.clone()))
    }

    async fn on_custom_notification(
        &self,
        notification: CustomNotification,
        _: NotificationContext<RoleClient>,
    ) {
        assert_eq!(notification.method, "notifications/elicitation/complete");
        let params = notification.params.expect("parameters");
        self.completed.send(params).expect("test runs");
    }
}

/// The receivers of a [`Host`].
struct Received {
    opened: mpsc::UnboundedReceiver<ElicitRequestParams>,
    completed: mpsc::UnboundedReceiver<Value>,
}

async fn next<T>(received: &mut mpsc::UnboundedReceiver<T>) -> T {
    let next = tokio::time::timeout(TIMEOUT, received.recv()).await;
    next.expect("message in time").expect("client runs")
}

impl Host {
    fn new(action: ElicitationAction, modes: Value) -> (Self, Received) {
        let (open, opened) = mpsc::unbounded_channel();
        let (complete, completed) = mpsc::unbounded_channel();
        let host = Self {
            action,
            capabilities: json!({ "elicitation": modes }),
            opened: open,
            completed: complete,
        };
        (host, Received { opened, completed })
    }

    async fn connect(self, server: &Server, era: Era, token: &str) -> SdkClient<Self> {
        SdkClient::with_handler(self, server, era, Some(token)).await
    }
}

/// Claims the first step of a new plan and returns its id.
async fn claimed_step(client: &SdkClient<Host>) -> Value {
    let created = client.call("create_research_plan", plan()).await;
    let next = json!({ "planId": created["planId"] });
    client.call("get_next_step", next).await["stepId"].clone()
}

fn review(step: &Value) -> Value {
    json!({ "stepId": step, "summary": "Ready", "questions": ["Under which name?"] })
}

#[tokio::test]
async fn a_decision_on_the_page_is_the_response_of_an_agent_that_may_not_decide() {
    let setup = program("review-page").with_config("[access]\nrequire_tokens = true");
    let agent = setup.token("acme", "bot", "agent");
    let user = setup.token("acme", "ann", "member");
    let server = setup.serve();
    for era in ERAS {
        for modes in [json!({ "url": {} }), json!({ "form": {}, "url": {} })] {
            let (host, mut received) = Host::new(ElicitationAction::Accept, modes);
            let client = host.connect(&server, era, &agent).await;
            let step = claimed_step(&client).await;
            let decide = async {
                let ElicitRequestParams::UrlElicitationParams {
                    url,
                    message,
                    elicitation_id,
                    ..
                } = next(&mut received.opened).await
                else {
                    panic!("not in URL mode");
                };
                assert_eq!(url, format!("{}/reviews/{elicitation_id}", server.url));
                assert!(message.contains("Under which name?"), "{message}");
                // Consent to open the page is not a decision.
                let at = format!("/api/v1/steps/{}/decision", step.as_str().unwrap());
                let decision = json!({ "decision": "modify", "feedback": "Louder" });
                server.post_as(&user, &at, decision).await.expect_success();
                elicitation_id
            };
            let (response, id) =
                tokio::join!(client.call("request_user_review", review(&step)), decide);
            assert_eq!(response["decision"], "modify", "{era:?}: {response}");
            assert_eq!(response["stepStatus"], "in_progress");
            let instructions = response["instructions"].as_str().unwrap_or_default();
            assert!(instructions.contains("Louder"), "{response}");
            if era == Era::Handshake {
                let completed = next(&mut received.completed).await;
                assert_eq!(completed, json!({ "elicitationId": id }));
            }
            client.close().await;
        }
    }
}

#[tokio::test]
async fn a_page_without_a_decision_leaves_the_review_open() {
    let setup = program("review-page-open").with_config("[reviews]\nform_seconds = 1");
    let agent = setup.token("local", "bot", "agent");
    let server = setup.serve();
    for era in ERAS {
        for action in [
            ElicitationAction::Accept,
            ElicitationAction::Decline,
            ElicitationAction::Cancel,
        ] {
            let (host, mut received) = Host::new(action, json!({ "url": {} }));
            let client = host.connect(&server, era, &agent).await;
            let step = claimed_step(&client).await;
            let response = client.call("request_user_review", review(&step)).await;
            assert_eq!(response["planStatus"], "awaiting_review", "{era:?}");
            assert!(response["url"].is_string(), "{response}");
            assert!(response.get("decision").is_none(), "{response}");
            next(&mut received.opened).await;
            client.close().await;
        }
    }
}

/// The current state of a task.
async fn task(client: &SdkClient<Host>, id: &str) -> Value {
    let task = client.connection.get_task(GetTaskParams::new(id)).await;
    serde_json::to_value(task.expect("task exists")).expect("task is JSON")
}

#[tokio::test]
async fn a_task_of_a_client_without_forms_opens_the_page() {
    let setup = program("review-page-task").with_config("[access]\nrequire_tokens = true");
    let agent = setup.token("acme", "bot", "agent");
    let user = setup.token("acme", "ann", "member");
    let server = setup.serve();
    let (mut host, _received) = Host::new(ElicitationAction::Accept, json!({ "url": {} }));
    host.capabilities["extensions"] = json!({ "io.modelcontextprotocol/tasks": {} });
    let client = host.connect(&server, Era::Stateless, &agent).await;
    let step = claimed_step(&client).await;
    let arguments = review(&step).as_object().expect("arguments").clone();
    let params = CallToolRequestParams::new("request_user_review").with_arguments(arguments);
    let created = client.connection.call_tool_once(params).await;
    let CallToolResponse::Task(created) = created.expect("response received") else {
        panic!("not a task");
    };
    let id = created.task.task_id;
    let waiting = task(&client, &id).await;
    assert_eq!(waiting["status"], "input_required", "{waiting}");
    let page = &waiting["inputRequests"]["review"]["params"];
    assert_eq!(page["mode"], "url", "{waiting}");
    assert!(page["url"].is_string(), "{waiting}");
    // Consent to open the page is not a decision.
    let answers = InputResponses::from([("review".to_owned(), json!({ "action": "accept" }))]);
    let update = UpdateTaskParams::new(id.clone(), answers);
    let updated = client.connection.update_task(update).await;
    updated.expect("task updated");
    assert_eq!(task(&client, &id).await["status"], "working");
    let at = format!("/api/v1/steps/{}/decision", step.as_str().unwrap());
    let decision = json!({ "decision": "approve" });
    server.post_as(&user, &at, decision).await.expect_success();
    let done = task(&client, &id).await;
    assert_eq!(done["status"], "completed", "{done}");
    assert_eq!(done["result"]["structuredContent"]["decision"], "approve");
}
