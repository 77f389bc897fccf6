//! `request_user_review` with an elicitation form: the review is recorded first, then the client
//! shows the form, and the answer is submitted like any other decision.
//!
//! A 2025-11-25 client gets a request, and the call waits for the response. A 2026-07-28 client
//! gets an `input_required` result and retries the call with the answer and a signed state that
//! identifies the review. Without a decision (declined, cancelled, timed out) the review stays
//! open. A caller who may not decide reviews gets no form: an agent must not approve its own work.

use std::time::Duration;

use onward_core::event::Decision as CoreDecision;
use onward_core::role::Permission;
use onward_core::step::{Step, StepState};
use onward_core::{StepId, StepStatus};
use onward_engine::Caller;
use onward_engine::step::ReviewDecision;
use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ElicitRequest, ElicitRequestParams, ElicitResult,
    ElicitationAction, ElicitationSchema, InputRequest, InputRequests, InputRequiredResult,
    InputResponses, JsonObject, ProgressNotificationParam, ProtocolVersion, RequestStateCodec,
    SealOptions,
};
use rmcp::service::RequestContext;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Setup, result, wait_for_shutdown};
use crate::tools::submit_user_decision::Decision;
use crate::tools::{Call, Tool, ToolContext, ToolError};
use crate::wire::review::ReviewOutcome;

/// The key of the form in `inputRequests`.
const INPUT_KEY: &str = "review";
/// How long a client may retry with an answer. The review itself does not expire.
const STATE_TTL: Duration = Duration::from_secs(24 * 60 * 60);
/// The interval of progress notifications, for clients that time out calls without activity.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
/// Characters of the form's message. The dashboard shows the full text.
const MAX_MESSAGE: usize = 4_000;

/// The settings of elicitation forms.
#[derive(Clone)]
pub(crate) struct Forms {
    pub(super) codec: RequestStateCodec,
    /// How long a call waits for an answer. Zero disables forms.
    wait: Duration,
}

impl Forms {
    /// `key` signs the request states. Servers that serve the same clients must share it.
    pub(crate) fn new(key: [u8; 32], wait: Duration) -> Self {
        Self {
            codec: RequestStateCodec::new_unchecked(key),
            wait,
        }
    }
}

/// The request state: the review that an answer belongs to.
#[derive(Serialize, Deserialize)]
struct State {
    review: String,
    step: String,
}

/// How the form reaches the client.
enum Elicitation {
    /// No form.
    Unavailable,
    /// By a request to the client (2025-11-25).
    Request,
    /// By an `input_required` result, after which the client retries (2026-07-28).
    Retry,
}

fn elicitation(
    setup: &Setup,
    caller: &Caller,
    context: &RequestContext<RoleServer>,
) -> Elicitation {
    let supports_forms = context
        .client_capabilities()
        .and_then(|client| client.elicitation)
        .is_some_and(|modes| modes.form.is_some() || modes.url.is_none());
    let allowed = caller.allow(Permission::DecideReview).is_ok();
    if !supports_forms || !allowed || setup.forms.wait.is_zero() {
        return Elicitation::Unavailable;
    }
    let stateless = ProtocolVersion::V_2026_07_28;
    match context.protocol_version() {
        Some(version) if version.as_str() >= stateless.as_str() => Elicitation::Retry,
        Some(_) | None => Elicitation::Request,
    }
}

/// Calls the tool and shows the form if the client supports it.
pub(super) async fn call(
    setup: &Setup,
    caller: &Caller,
    tool: &'static Tool,
    request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> CallToolResponse {
    let arguments = request.arguments.unwrap_or_default();
    let binding = state_binding(caller, &arguments);
    let message = message(&arguments);
    let call = Call::parse(tool, Value::Object(arguments));
    if let Some(sealed) = request.request_state {
        let answers = request.input_responses.unwrap_or_default();
        let outcome = resume(setup, caller, &sealed, &binding, answers).await;
        let outcome = call.bound(&setup.tool_context, outcome);
        call.log(&setup.tool_context, caller, &outcome);
        return result(setup, outcome).into();
    }
    let requested = call.run(&setup.tool_context, caller).await;
    let elicitation = elicitation(setup, caller, context);
    let (outcome, state) = match (requested, elicitation) {
        (Err(error), _) => (Err(error), None),
        (Ok(review), Elicitation::Unavailable) => (Ok(review), None),
        (Ok(review), Elicitation::Retry) => {
            let state = State::new(&review);
            (Ok(review), Some(state))
        }
        (Ok(review), Elicitation::Request) => match ask(setup, context, message.clone()).await {
            Some(form) => (
                decide(&setup.tool_context, caller, &State::new(&review), form).await,
                None,
            ),
            None => (Ok(review), None),
        },
    };
    let outcome = call.bound(&setup.tool_context, outcome);
    call.log(&setup.tool_context, caller, &outcome);
    match state.and_then(|state| input_required(setup, &state, &binding, message)) {
        Some(input_required) => input_required.into(),
        None => result(setup, outcome).into(),
    }
}

impl State {
    /// The state for a response of `request_user_review`.
    fn new(review: &Value) -> Self {
        let text = |name: &str| {
            let text = review.get(name).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        Self {
            review: text("reviewId"),
            step: text("stepId"),
        }
    }
}

/// Associated data that binds a request state to its caller and arguments.
pub(super) fn state_binding(caller: &Caller, arguments: &JsonObject) -> Vec<u8> {
    json!([caller.tenant, caller.name, arguments])
        .to_string()
        .into_bytes()
}

/// The form's message: the summary and the questions.
fn message(arguments: &JsonObject) -> String {
    let summary = arguments.get("summary").and_then(Value::as_str);
    let mut message = summary.unwrap_or_default().to_owned();
    let questions = arguments.get("questions").and_then(Value::as_array);
    for question in questions.into_iter().flatten().filter_map(Value::as_str) {
        message.push_str("\n\n- ");
        message.push_str(question);
    }
    if message.chars().count() > MAX_MESSAGE {
        message = message.chars().take(MAX_MESSAGE).chain(['…']).collect();
    }
    message
}

/// The form.
fn params(message: String) -> Option<ElicitRequestParams> {
    let schema = json!({
        "type": "object",
        "properties": {
            "decision": {
                "type": "string",
                "title": "Decision",
                "description": "approve: accept this as the step's result; reject: fail the plan; \
                    modify: the agent revises the step with your feedback; skip: skip the step",
                "enum": ["approve", "reject", "modify", "skip"],
            },
            "feedback": {
                "type": "string",
                "title": "Feedback",
                "description": "Your comment for the agent; required for modify",
            },
        },
        "required": ["decision"],
    });
    let requested_schema: ElicitationSchema = serde_json::from_value(schema).ok()?;
    Some(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message,
        requested_schema,
    })
}

/// Sends the form to the client and waits. Returns `None` without a decision.
async fn ask(setup: &Setup, context: &RequestContext<RoleServer>, message: String) -> Option<Form> {
    let params = params(message)?;
    let response = context
        .peer
        .create_elicitation_with_timeout(params, Some(setup.forms.wait));
    tokio::select! {
        response = response => parse_form(response.ok()?),
        () = context.ct.cancelled() => None,
        () = wait_for_shutdown(setup.closing.clone()) => None,
        () = send_keepalives(context) => None,
    }
}

/// Sends progress notifications if the client requested them. Never returns.
async fn send_keepalives(context: &RequestContext<RoleServer>) {
    let Some(token) = context.meta.get_progress_token() else {
        return std::future::pending().await;
    };
    let mut count = 0.0;
    loop {
        let progress = ProgressNotificationParam::new(token.clone(), count)
            .with_message("waiting for the user's decision");
        // A failed notification changes nothing.
        drop(context.peer.notify_progress(progress).await);
        count += 1.0;
        tokio::time::sleep(KEEPALIVE_INTERVAL).await;
    }
}

/// The user's answer.
#[derive(Deserialize)]
struct Form {
    decision: Decision,
    feedback: Option<String>,
}

/// Returns `None` without a decision.
fn parse_form(response: ElicitResult) -> Option<Form> {
    match response.action {
        ElicitationAction::Accept => {
            let mut form: Form = serde_json::from_value(response.content?).ok()?;
            form.feedback = form.feedback.filter(|text| !text.trim().is_empty());
            Some(form)
        }
        ElicitationAction::Decline | ElicitationAction::Cancel | _ => None,
    }
}

fn input_required(
    setup: &Setup,
    state: &State,
    binding: &[u8],
    message: String,
) -> Option<InputRequiredResult> {
    let request = InputRequest::Elicitation(ElicitRequest::new(params(message)?));
    let options = SealOptions::new().associated_data(binding).ttl(STATE_TTL);
    let sealed = setup.forms.codec.seal_json_with(state, &options).ok()?;
    let requests = InputRequests::from([(INPUT_KEY.to_owned(), request)]);
    Some(InputRequiredResult::new(Some(requests), Some(sealed)))
}

/// Handles the retried call with the user's answer. Idempotent.
async fn resume(
    setup: &Setup,
    caller: &Caller,
    sealed: &str,
    binding: &[u8],
    answers: InputResponses,
) -> Result<Value, ToolError> {
    let opened = setup.forms.codec.open_json_with(sealed, binding);
    let state: State = opened.map_err(|why| {
        let message = format!("is not a state of this call: {why}");
        ToolError::invalid("requestState", message)
    })?;
    let form = answers
        .into_iter()
        .find(|(key, _)| key == INPUT_KEY)
        .and_then(|(_, answer)| parse_form(serde_json::from_value(answer).ok()?));
    let step: StepId = state.step.parse().map_err(|_| step_not_found(&state))?;
    let (sheet, step) = setup.tool_context.engine.step(caller, step).await?;
    let mut open = false;
    if let StepState::AwaitingInput { review, .. } = &step.state {
        open = review.id.to_string() == state.review;
    }
    match form {
        Some(form) if open => decide(&setup.tool_context, caller, &state, form).await,
        form => {
            let decision = form.map(|form| CoreDecision::from(form.decision));
            let decision = decision.filter(|decision| !open && is_outcome_of(*decision, &step));
            let base_url = setup.tool_context.base_url.as_deref().filter(|_| open);
            let response = ReviewOutcome::current(state.review, &sheet, &step, decision, base_url);
            serde_json::to_value(response).map_err(|_| ToolError::internal("request_user_review"))
        }
    }
}

/// Whether the step has the status that results from the decision.
fn is_outcome_of(decision: CoreDecision, step: &Step) -> bool {
    let status = match decision {
        CoreDecision::Approve => StepStatus::Completed,
        CoreDecision::Reject => StepStatus::Failed,
        CoreDecision::Modify => StepStatus::InProgress,
        CoreDecision::Skip => StepStatus::Skipped,
    };
    step.status() == status
}

fn step_not_found(state: &State) -> ToolError {
    onward_engine::Error::StepNotFound {
        step: state.step.clone(),
        kept: None,
    }
    .into()
}

async fn decide(
    context: &ToolContext,
    caller: &Caller,
    state: &State,
    form: Form,
) -> Result<Value, ToolError> {
    let step: StepId = state.step.parse().map_err(|_| step_not_found(state))?;
    let decision = CoreDecision::from(form.decision);
    let review = ReviewDecision::new(step, decision, form.feedback);
    let reviewed = context.engine.decide_review(caller, review).await?;
    let response = ReviewOutcome::decided(state.review.clone(), decision, &reviewed);
    serde_json::to_value(response).map_err(|_| ToolError::internal("request_user_review"))
}
