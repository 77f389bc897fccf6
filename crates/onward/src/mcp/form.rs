//! `request_user_review` with elicitation: the review is recorded first, then the client shows the
//! review page or a form, and the call returns the decision.
//!
//! URL mode opens the review page, which checks the permission of the person who opens it. The form
//! is for clients without URL mode and for servers without a dashboard; its answer is submitted like
//! any other decision. A caller who may not decide reviews gets no form: an agent must not approve
//! its own work.
//!
//! A 2025-11-25 client gets a request, and the call waits for the response. A 2026-07-28 client
//! gets an `input_required` result and retries the call with the answer and a signed state that
//! identifies the review. Without a decision (declined, cancelled, timed out) the review stays
//! open. A decision that is made elsewhere ends the wait.

mod fields;

use std::time::Duration;

use onward_core::event::Decision as CoreDecision;
use onward_core::role::Permission;
use onward_core::step::{Review, Step};
use onward_core::{StepId, StepStatus};
use onward_engine::step::ReviewDecision;
use onward_engine::{Caller, Sheet};
use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelledNotificationParam, ClientResult,
    CustomNotification, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
    InputRequest, InputRequests, InputRequiredResult, InputResponses, JsonObject,
    ProgressNotificationParam, ProtocolVersion, RequestStateCodec, SealOptions, ServerNotification,
    ServerRequest,
};
use rmcp::service::{PeerRequestOptions, RequestContext};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use super::{Setup, result};
use crate::tools::{Call, Tool, ToolError, wait_for_shutdown};
use crate::wire::review::{ReviewLinks, ReviewOutcome};
use fields::{Asked, Form};

/// The key of the form in `inputRequests`.
const INPUT_KEY: &str = "review";
/// How long a client may retry with an answer. The review itself does not expire.
const STATE_TTL: Duration = Duration::from_secs(24 * 60 * 60);
/// The interval of progress notifications, for clients that time out calls without activity.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);

/// The settings of elicitation forms.
#[derive(Clone)]
pub(crate) struct Forms {
    pub(super) codec: RequestStateCodec,
    /// How long a call waits for a decision. Zero disables elicitation.
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
    /// Whether the client opens the review page.
    #[serde(default)]
    page: bool,
}

/// How the user is asked to decide.
enum Elicitation {
    Unavailable,
    /// With a form.
    Form(Delivery),
    /// With the review page.
    Page(Delivery),
}

/// How a question reaches the client.
#[derive(Clone, Copy)]
enum Delivery {
    /// By a request to the client (2025-11-25).
    Request,
    /// By an `input_required` result, after which the client retries (2026-07-28).
    Retry,
}

/// The modes in which this client can ask this caller's user.
struct Modes {
    form: bool,
    page: bool,
}

impl Modes {
    fn new(setup: &Setup, caller: &Caller, context: &RequestContext<RoleServer>) -> Self {
        let client = context.client_capabilities();
        let modes = client.and_then(|client| client.elicitation);
        let modes = modes.filter(|_| !setup.forms.wait.is_zero());
        let has_page = setup.tool_context.dashboard.base_url().is_some();
        let may_decide = caller.allow(Permission::DecideReview).is_ok();
        let (form, url) = modes.map_or((false, false), |modes| {
            (
                modes.form.is_some() || modes.url.is_none(),
                modes.url.is_some(),
            )
        });
        Self {
            form: form && may_decide,
            page: url && has_page,
        }
    }
}

fn elicitation(
    setup: &Setup,
    caller: &Caller,
    context: &RequestContext<RoleServer>,
) -> Elicitation {
    let stateless = ProtocolVersion::V_2026_07_28;
    let delivery = match context.protocol_version() {
        Some(version) if version.as_str() >= stateless.as_str() => Delivery::Retry,
        Some(_) | None => Delivery::Request,
    };
    match Modes::new(setup, caller, context) {
        Modes { page: true, .. } => Elicitation::Page(delivery),
        Modes { form: true, .. } => Elicitation::Form(delivery),
        Modes { .. } => Elicitation::Unavailable,
    }
}

/// The question in URL mode.
fn page(asked: &Asked, url: String, review: String) -> ElicitRequestParams {
    ElicitRequestParams::UrlElicitationParams {
        meta: None,
        message: asked.message(),
        url,
        elicitation_id: review,
    }
}

/// Calls the tool and asks the user if the client supports it.
pub(super) async fn call(
    setup: &Setup,
    caller: &Caller,
    tool: &'static Tool,
    request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> CallToolResponse {
    let arguments = request.arguments.unwrap_or_default();
    let binding = state_binding(caller, &arguments);
    let call = Call::parse(tool, Value::Object(arguments));
    let review = ReviewCall {
        setup,
        caller,
        context,
    };
    if let Some(sealed) = request.request_state {
        let answers = request.input_responses.unwrap_or_default();
        let outcome = review.resume(&sealed, &binding, answers).await;
        let outcome = call.bound(&setup.tool_context, outcome);
        call.log(&setup.tool_context, caller, &outcome);
        return result(setup, outcome).into();
    }
    let requested = call.run(&setup.tool_context, caller).await;
    let elicitation = elicitation(setup, caller, context);
    let (outcome, question) = match (requested, elicitation) {
        (Err(error), _) => (Err(error), None),
        (Ok(opened), Elicitation::Unavailable) => (Ok(opened), None),
        (Ok(opened), Elicitation::Form(delivery)) => review.elicit(opened, delivery, false).await,
        (Ok(opened), Elicitation::Page(delivery)) => review.elicit(opened, delivery, true).await,
    };
    let outcome = call.bound(&setup.tool_context, outcome);
    call.log(&setup.tool_context, caller, &outcome);
    let question = question.and_then(|(state, params)| state.seal(setup, &binding, params));
    match question {
        Some(input_required) => input_required.into(),
        None => result(setup, outcome).into(),
    }
}

/// A question for the client, with the state that it sends back.
type Question = (State, ElicitRequestParams);

/// One call, whose user is asked to decide.
struct ReviewCall<'a> {
    setup: &'a Setup,
    caller: &'a Caller,
    context: &'a RequestContext<RoleServer>,
}

/// What the open review of a step asks.
fn asked(step: &Step) -> Asked {
    step.open_review().map(Asked::from).unwrap_or_default()
}

impl State {
    /// The state for a response of `request_user_review`.
    fn new(review: &Value, page: bool) -> Self {
        let text = |name: &str| {
            let text = review.get(name).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        Self {
            review: text("reviewId"),
            step: text("stepId"),
            page,
        }
    }

    /// The result that asks the client for input.
    fn seal(
        &self,
        setup: &Setup,
        binding: &[u8],
        params: ElicitRequestParams,
    ) -> Option<InputRequiredResult> {
        let request = InputRequest::Elicitation(ElicitRequest::new(params));
        let options = SealOptions::new().associated_data(binding).ttl(STATE_TTL);
        let sealed = setup.forms.codec.seal_json_with(self, &options).ok()?;
        let requests = InputRequests::from([(INPUT_KEY.to_owned(), request)]);
        Some(InputRequiredResult::new(Some(requests), Some(sealed)))
    }

    fn step(&self) -> Result<StepId, ToolError> {
        self.step.parse().map_err(|_| {
            let step = self.step.clone();
            onward_engine::Error::StepNotFound { step, kept: None }.into()
        })
    }

    /// Whether the review has no decision yet.
    fn is_open(&self, plan: &Sheet, step: &Step) -> bool {
        let review = step.open_review();
        review.is_some_and(|review| review.id.to_string() == self.review)
            && plan.head.ended_at().is_none()
    }
}

/// Associated data that binds a request state to its caller and arguments.
pub(super) fn state_binding(caller: &Caller, arguments: &JsonObject) -> Vec<u8> {
    json!([caller.tenant, caller.name, arguments])
        .to_string()
        .into_bytes()
}

impl ReviewCall<'_> {
    /// Asks the user, and returns the response of the call, or the question of an `input_required`
    /// result.
    async fn elicit(
        &self,
        review: Value,
        delivery: Delivery,
        page: bool,
    ) -> (Result<Value, ToolError>, Option<Question>) {
        let state = State::new(&review, page);
        let asked = match self.asked(&state).await {
            Ok(asked) => asked,
            Err(error) => return (Err(error), None),
        };
        let Some(params) = self.params(&asked, &review, page) else {
            return (Ok(review), None);
        };
        match delivery {
            Delivery::Retry => (Ok(review), Some((state, params))),
            Delivery::Request => match self.ask(&state, &asked, params).await {
                Some(outcome) => (outcome, None),
                None => (Ok(review), None),
            },
        }
    }

    async fn asked(&self, state: &State) -> Result<Asked, ToolError> {
        let engine = &self.setup.tool_context.engine;
        let (_, step) = engine.step(self.caller, state.step()?).await?;
        Ok(asked(&step))
    }

    fn params(&self, asked: &Asked, review: &Value, in_page: bool) -> Option<ElicitRequestParams> {
        if !in_page {
            return asked.form(self.context.protocol_version().as_ref());
        }
        let text = |name: &str| review.get(name)?.as_str().map(str::to_owned);
        Some(page(asked, text("url")?, text("reviewId")?))
    }

    /// Sends the question to the client and waits. Returns `None` without a decision.
    async fn ask(
        &self,
        state: &State,
        asked: &Asked,
        params: ElicitRequestParams,
    ) -> Option<Result<Value, ToolError>> {
        let (peer, wait) = (&self.context.peer, self.setup.forms.wait);
        let deadline = Instant::now() + wait;
        let mut decided = std::pin::pin!(self.decided(state));
        let request = ServerRequest::ElicitRequest(ElicitRequest::new(params));
        let options = PeerRequestOptions::with_timeout(wait);
        let sent = peer.send_cancellable_request(request, options).await.ok()?;
        let request_id = sent.id.clone();
        let close = async |reason: &str| {
            let reason = Some(reason.to_owned());
            let cancelled = CancelledNotificationParam::new(Some(request_id), reason);
            // A failed notification changes nothing.
            drop(peer.notify_cancelled(cancelled).await);
        };
        let answer = tokio::select! {
            answer = sent.await_response() => answer.ok()?,
            outcome = &mut decided => {
                close("the review was decided elsewhere").await;
                self.notify_complete(state).await;
                return Some(outcome);
            }
            () = self.ended() => {
                // The client would show a form whose answer is not read.
                close("the call has ended; the review is still pending").await;
                return None;
            }
        };
        let ClientResult::ElicitResult(answer) = answer else {
            return None;
        };
        if !state.page {
            let form = asked.parse(answer)?;
            return Some(self.decide(state, form).await);
        }
        if answer.action != ElicitationAction::Accept {
            return None;
        }
        let outcome = tokio::select! {
            outcome = timeout_at(deadline, decided) => outcome.ok()?,
            () = self.ended() => return None,
        };
        self.notify_complete(state).await;
        Some(outcome)
    }

    /// Reports that the user has decided on the page.
    async fn notify_complete(&self, state: &State) {
        if !state.page {
            return;
        }
        let method = "notifications/elicitation/complete";
        let params = json!({ "elicitationId": state.review });
        let complete = CustomNotification::new(method, Some(params));
        let complete = ServerNotification::CustomNotification(complete);
        // A failed notification changes nothing.
        drop(self.context.peer.send_notification(complete).await);
    }

    /// Completes when the call ends without an answer.
    async fn ended(&self) {
        tokio::select! {
            () = self.context.ct.cancelled() => {}
            () = wait_for_shutdown(self.setup.tool_context.closing.clone()) => {}
            () = send_keepalives(self.context) => {}
        }
    }

    /// Waits for the decision, wherever it is made, and returns the response.
    async fn decided(&self, state: &State) -> Result<Value, ToolError> {
        let engine = &self.setup.tool_context.engine;
        let step = state.step()?;
        let (plan, _) = engine.step(self.caller, step).await?;
        let mut watch = engine.watch_plan(self.caller, plan.head.id)?;
        loop {
            let (plan, step) = engine.step(self.caller, step).await?;
            if !state.is_open(&plan, &step) {
                return self.current(state, &plan, &step, decision_of(&step));
            }
            watch.changed().await;
        }
    }

    /// The response for the current state.
    fn current(
        &self,
        state: &State,
        plan: &Sheet,
        step: &Step,
        decision: Option<CoreDecision>,
    ) -> Result<Value, ToolError> {
        let links = if state.is_open(plan, step) {
            self.setup.tool_context.dashboard.review_links()
        } else {
            ReviewLinks::None
        };
        let review = state.review.clone();
        let response = ReviewOutcome::current(review, plan, step, decision, &links);
        serde_json::to_value(response).map_err(|_| ToolError::internal("request_user_review"))
    }

    /// Handles the retried call with the user's answer. Idempotent.
    async fn resume(
        &self,
        sealed: &str,
        binding: &[u8],
        answers: InputResponses,
    ) -> Result<Value, ToolError> {
        let opened = self.setup.forms.codec.open_json_with(sealed, binding);
        let state: State = opened.map_err(|why| {
            let message = format!("is not a state of this call: {why}");
            ToolError::invalid("requestState", message)
        })?;
        let answer = answers.into_iter().find(|(key, _)| key == INPUT_KEY);
        let answer: Option<ElicitResult> =
            answer.and_then(|(_, answer)| serde_json::from_value(answer).ok());
        let engine = &self.setup.tool_context.engine;
        let (plan, step) = engine.step(self.caller, state.step()?).await?;
        let open = state.is_open(&plan, &step);
        if state.page {
            let accepted = answer.is_some_and(|answer| answer.action == ElicitationAction::Accept);
            // Consent to open the page is not yet a decision.
            if open && accepted {
                let wait = tokio::time::timeout(self.setup.forms.wait, self.decided(&state));
                let outcome = tokio::select! {
                    outcome = wait => outcome.ok(),
                    () = self.ended() => None,
                };
                if let Some(outcome) = outcome {
                    return outcome;
                }
            }
            let decision = decision_of(&step).filter(|_| !open);
            return self.current(&state, &plan, &step, decision);
        }
        match answer.and_then(|answer| asked(&step).parse(answer)) {
            Some(form) if open => self.decide(&state, form).await,
            form => {
                let decision = form.map(|form| CoreDecision::from(form.decision));
                let decision =
                    decision.filter(|decision| !open && decision_of(&step) == Some(*decision));
                self.current(&state, &plan, &step, decision)
            }
        }
    }

    async fn decide(&self, state: &State, form: Form) -> Result<Value, ToolError> {
        let decision = CoreDecision::from(form.decision);
        let review = ReviewDecision {
            review: state.review.parse().ok(),
            answers: form.answers,
            ..ReviewDecision::new(state.step()?, decision, form.feedback)
        };
        let engine = &self.setup.tool_context.engine;
        let reviewed = engine.decide_review(self.caller, review).await?;
        let response = ReviewOutcome::decided(state.review.clone(), decision, &reviewed);
        serde_json::to_value(response).map_err(|_| ToolError::internal("request_user_review"))
    }
}

/// The decision that results in the step's status.
fn decision_of(step: &Step) -> Option<CoreDecision> {
    match step.status() {
        StepStatus::Completed => Some(CoreDecision::Approve),
        StepStatus::Failed => Some(CoreDecision::Reject),
        StepStatus::InProgress => Some(CoreDecision::Modify),
        StepStatus::Skipped => Some(CoreDecision::Skip),
        StepStatus::Pending | StepStatus::AwaitingInput => None,
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

/// The question of an open review, for a task that follows it: the form, or the review page for a
/// client without forms. `None` if the client shows neither.
pub(super) fn input_requests(
    setup: &Setup,
    caller: &Caller,
    context: &RequestContext<RoleServer>,
    review: &Review,
) -> Option<InputRequests> {
    let modes = Modes::new(setup, caller, context);
    let asked = Asked::from(review);
    let params = if modes.form {
        asked.form(context.protocol_version().as_ref())?
    } else {
        let id = review.id.to_string();
        let links = Some(setup.tool_context.dashboard.review_links());
        let url = links.filter(|_| modes.page)?.url(&id)?;
        page(&asked, url, id)
    };
    let request = InputRequest::Elicitation(ElicitRequest::new(params));
    Some(InputRequests::from([(INPUT_KEY.to_owned(), request)]))
}

/// How a client answered the question of a task.
pub(super) enum FormAnswer {
    /// Not at all.
    Missing,
    /// Declined, dismissed, or opened the page: the user decides elsewhere.
    Elsewhere,
    /// The decision is stored.
    Decided,
}

/// Submits the answer to the question of a task.
pub(super) async fn answer(
    setup: &Setup,
    caller: &Caller,
    context: &RequestContext<RoleServer>,
    step: StepId,
    mut answers: InputResponses,
) -> Result<FormAnswer, ToolError> {
    let Some(answer) = answers.remove(INPUT_KEY) else {
        return Ok(FormAnswer::Missing);
    };
    let invalid = |why: &str| ToolError::invalid("inputResponses.review", why);
    let response: ElicitResult = serde_json::from_value(answer)
        .map_err(|_| invalid("must be the result of an elicitation"))?;
    let shows_form = Modes::new(setup, caller, context).form;
    if response.action != ElicitationAction::Accept || !shows_form {
        return Ok(FormAnswer::Elsewhere);
    }
    let engine = &setup.tool_context.engine;
    let (_, current) = engine.step(caller, step).await?;
    let form = asked(&current).parse(response);
    let form = form.ok_or_else(|| invalid("must contain a `decision`"))?;
    let decision = CoreDecision::from(form.decision);
    let review = ReviewDecision {
        answers: form.answers,
        ..ReviewDecision::new(step, decision, form.feedback)
    };
    engine.decide_review(caller, review).await?;
    Ok(FormAnswer::Decided)
}
