//! `request_user_review` where the agent's own window can show a form: the review is recorded first,
//! then the person is asked there, and their answer takes the way of every other decision.
//!
//! A client of 2025-11-25 is sent a request and waited for; one of 2026-07-28 is answered with what to
//! ask and comes back with the answer, and a signed state that says which review it is about. Whatever
//! does not end in a decision (declined, cancelled, no answer in time) leaves the review open. Who may
//! not decide reviews is not shown a form: an agent must not approve itself.

use std::time::Duration;

use onward_core::event::Decision as Decided;
use onward_core::role::Permission;
use onward_core::step::{Step, StepState};
use onward_core::{StepId, StepStatus};
use onward_engine::Caller;
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

use super::{Setup, closed, result};
use crate::tools::submit_user_decision::Decision;
use crate::tools::{Call, Desk, Refused, Tool};
use crate::wire::review::Reviewing;

/// The one question of a form.
const QUESTION: &str = "review";
/// For how long a client may come back with an answer. The review itself waits for ever.
const STATE_HOLDS: Duration = Duration::from_secs(24 * 60 * 60);
/// A sign that the call still waits, for clients that give up on silent ones.
const STILL_THERE: Duration = Duration::from_secs(10);
/// A form is no place for a long text; the dashboard is.
const LONGEST: usize = 4_000;

/// How forms are shown.
#[derive(Clone)]
pub(crate) struct Forms {
    pub(super) codec: RequestStateCodec,
    /// How long a call waits for an answer. Zero: no forms.
    wait: Duration,
}

impl Forms {
    /// Forms whose states are signed with this key; servers that share their clients share it.
    pub(crate) fn new(key: [u8; 32], wait: Duration) -> Self {
        Self {
            codec: RequestStateCodec::new_unchecked(key),
            wait,
        }
    }
}

/// Which review an answer is about.
#[derive(Serialize, Deserialize)]
struct State {
    review: String,
    step: String,
}

/// How a person can be asked.
enum Way {
    /// Not here.
    Not,
    /// By a request to the client.
    Request,
    /// By an answer that asks for more.
    Retry,
}

fn way(setup: &Setup, caller: &Caller, context: &RequestContext<RoleServer>) -> Way {
    let shows_forms = context
        .client_capabilities()
        .and_then(|client| client.elicitation)
        .is_some_and(|how| how.form.is_some() || how.url.is_none());
    let allowed = caller.allow(Permission::DecideReview).is_ok();
    if !shows_forms || !allowed || setup.forms.wait.is_zero() {
        return Way::Not;
    }
    let newest = ProtocolVersion::V_2026_07_28;
    match context.protocol_version() {
        Some(version) if version.as_str() >= newest.as_str() => Way::Retry,
        Some(_) | None => Way::Request,
    }
}

/// Calls the tool, and asks the person where that is possible.
pub(super) async fn call(
    setup: &Setup,
    caller: &Caller,
    tool: &'static Tool,
    request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> CallToolResponse {
    let arguments = request.arguments.unwrap_or_default();
    let bound = bound(caller, &arguments);
    let message = message(&arguments);
    let call = Call::read(tool, Value::Object(arguments));
    if let Some(sealed) = request.request_state {
        let answers = request.input_responses.unwrap_or_default();
        let answer = come_back(setup, caller, &sealed, &bound, answers).await;
        call.log(&setup.desk, caller, &answer);
        return result(answer).into();
    }
    let asked = call.answer(&setup.desk, caller).await;
    let way = way(setup, caller, context);
    let (answer, state) = match (asked, way) {
        (Err(refused), _) => (Err(refused), None),
        (Ok(asked), Way::Not) => (Ok(asked), None),
        (Ok(asked), Way::Retry) => {
            let state = State::of(&asked);
            (Ok(asked), Some(state))
        }
        (Ok(asked), Way::Request) => match ask(setup, context, message.clone()).await {
            Some(form) => (
                decide(&setup.desk, caller, &State::of(&asked), form).await,
                None,
            ),
            None => (Ok(asked), None),
        },
    };
    call.log(&setup.desk, caller, &answer);
    match state.and_then(|state| input_required(setup, &state, &bound, message)) {
        Some(more) => more.into(),
        None => result(answer).into(),
    }
}

impl State {
    fn of(asked: &Value) -> Self {
        let text = |name: &str| {
            let text = asked.get(name).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        Self {
            review: text("reviewId"),
            step: text("stepId"),
        }
    }
}

/// What a state holds for: this caller, and this call.
pub(super) fn bound(caller: &Caller, arguments: &JsonObject) -> Vec<u8> {
    json!([caller.tenant, caller.name, arguments])
        .to_string()
        .into_bytes()
}

/// What the person reads.
fn message(arguments: &JsonObject) -> String {
    let summary = arguments.get("summary").and_then(Value::as_str);
    let mut message = summary.unwrap_or_default().to_owned();
    let questions = arguments.get("questions").and_then(Value::as_array);
    for question in questions.into_iter().flatten().filter_map(Value::as_str) {
        message.push_str("\n\n- ");
        message.push_str(question);
    }
    if message.chars().count() > LONGEST {
        message = message.chars().take(LONGEST).chain(['…']).collect();
    }
    message
}

/// What the person fills in.
fn params(message: String) -> Option<ElicitRequestParams> {
    let schema = json!({
        "type": "object",
        "properties": {
            "decision": {
                "type": "string",
                "title": "Decision",
                "description": "approve: it is the step's result; reject: the plan fails; \
                    modify: the agent goes on with your feedback; skip: the step is passed over",
                "enum": ["approve", "reject", "modify", "skip"],
            },
            "feedback": {
                "type": "string",
                "title": "Feedback",
                "description": "What the agent should know; `modify` needs it",
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

/// Asks the client and waits. None where nothing was decided.
async fn ask(setup: &Setup, context: &RequestContext<RoleServer>, message: String) -> Option<Form> {
    let params = params(message)?;
    let asked = context
        .peer
        .create_elicitation_with_timeout(params, Some(setup.forms.wait));
    tokio::select! {
        answer = asked => read(answer.ok()?),
        () = context.ct.cancelled() => None,
        () = closed(setup.closing.clone()) => None,
        () = still_there(context) => None,
    }
}

/// Shows now and then that the call still waits, where the client wants to know. Never ends.
async fn still_there(context: &RequestContext<RoleServer>) {
    let Some(token) = context.meta.get_progress_token() else {
        return std::future::pending().await;
    };
    let mut told = 0.0;
    loop {
        let progress = ProgressNotificationParam::new(token.clone(), told)
            .with_message("waiting for a person to decide");
        // Whoever does not listen will not miss it.
        drop(context.peer.notify_progress(progress).await);
        told += 1.0;
        tokio::time::sleep(STILL_THERE).await;
    }
}

/// What the person filled in.
#[derive(Deserialize)]
struct Form {
    decision: Decision,
    feedback: Option<String>,
}

/// None where they did not decide.
fn read(answer: ElicitResult) -> Option<Form> {
    match answer.action {
        ElicitationAction::Accept => {
            let mut form: Form = serde_json::from_value(answer.content?).ok()?;
            form.feedback = form.feedback.filter(|words| !words.trim().is_empty());
            Some(form)
        }
        ElicitationAction::Decline | ElicitationAction::Cancel | _ => None,
    }
}

fn input_required(
    setup: &Setup,
    state: &State,
    bound: &[u8],
    message: String,
) -> Option<InputRequiredResult> {
    let request = InputRequest::Elicitation(ElicitRequest::new(params(message)?));
    let options = SealOptions::new().associated_data(bound).ttl(STATE_HOLDS);
    let sealed = setup.forms.codec.seal_json_with(state, &options).ok()?;
    let requests = InputRequests::from([(QUESTION.to_owned(), request)]);
    Some(InputRequiredResult::new(Some(requests), Some(sealed)))
}

/// The same call once more, with what the person answered. Coming back twice is coming back once.
async fn come_back(
    setup: &Setup,
    caller: &Caller,
    sealed: &str,
    bound: &[u8],
    answers: InputResponses,
) -> Result<Value, Refused> {
    let opened = setup.forms.codec.open_json_with(sealed, bound);
    let state: State = opened.map_err(|why| {
        let message = format!("is not what this call was given: {why}");
        Refused::invalid("requestState", message)
    })?;
    let form = answers
        .into_iter()
        .find(|(question, _)| question == QUESTION)
        .and_then(|(_, answer)| read(serde_json::from_value(answer).ok()?));
    let step: StepId = state.step.parse().map_err(|_| unknown(&state))?;
    let (sheet, stands) = setup.desk.engine.step(caller, step).await?;
    let mut open = false;
    if let StepState::AwaitingInput { review, .. } = &stands.state {
        open = review.id.to_string() == state.review;
    }
    match form {
        Some(form) if open => decide(&setup.desk, caller, &state, form).await,
        form => {
            let made = form.map(|form| Decided::from(form.decision));
            let made = made.filter(|made| !open && leads_to(*made, &stands));
            let base_url = setup.desk.base_url.as_deref().filter(|_| open);
            let answer = Reviewing::standing(state.review, &sheet, &stands, made, base_url);
            serde_json::to_value(answer).map_err(|_| Refused::broken("request_user_review"))
        }
    }
}

/// Whether a step that stands like this can be what the decision led to.
fn leads_to(decision: Decided, step: &Step) -> bool {
    let led = match decision {
        Decided::Approve => StepStatus::Completed,
        Decided::Reject => StepStatus::Failed,
        Decided::Modify => StepStatus::InProgress,
        Decided::Skip => StepStatus::Skipped,
    };
    step.status() == led
}

fn unknown(state: &State) -> Refused {
    onward_engine::Error::StepNotFound {
        step: state.step.clone(),
        kept: None,
    }
    .into()
}

/// The way of every other decision.
async fn decide(desk: &Desk, caller: &Caller, state: &State, form: Form) -> Result<Value, Refused> {
    let step: StepId = state.step.parse().map_err(|_| unknown(state))?;
    let decision = Decided::from(form.decision);
    let reviewed = desk
        .engine
        .decide_review(caller, step, decision, form.feedback)
        .await?;
    let answer = Reviewing::decided(state.review.clone(), decision, &reviewed);
    serde_json::to_value(answer).map_err(|_| Refused::broken("request_user_review"))
}
