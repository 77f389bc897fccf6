//! `extract_data` through MCP sampling, for clients that offer their model when none is configured.
//!
//! As with forms, a 2025-11-25 client gets a request, and the call waits for the response. A
//! 2026-07-28 client gets an `input_required` result and retries the call with the answer and a
//! signed state that holds the round number. An invalid answer is retried once.

use std::time::Duration;

use onward_core::Code;
use onward_engine::Caller;
use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, InputRequest, InputRequests, InputRequiredResult,
    ProtocolVersion, SealOptions,
};
use rmcp::service::RequestContext;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Setup, form, result};
use crate::extraction::{Evaluation, Job, SYSTEM_PROMPT};
use crate::model::completion::{MAX_TOKENS, Messages, join_text_parts};
use crate::tools::extract_data::{self, Input};
use crate::tools::{Call, Tool, ToolContext, ToolError, wait_for_shutdown};

/// The key of the request in `inputRequests`.
const INPUT_KEY: &str = "extraction";
/// How long the client's model may take. The user may have to allow the request first.
const TIMEOUT: Duration = Duration::from_secs(120);
/// How long a client may retry with an answer.
const STATE_TTL: Duration = Duration::from_secs(60 * 60);

/// The request state: the number of the expected answer, from 1.
#[derive(Serialize, Deserialize)]
struct State {
    round: u8,
}

/// The text of the client's model.
struct Sampled {
    text: String,
    model: String,
    truncated: bool,
}

/// Whether the client supports sampling.
pub(super) fn is_supported(context: &RequestContext<RoleServer>) -> bool {
    let client = context.client_capabilities();
    client.is_some_and(|client| client.sampling.is_some())
}

/// Calls the tool with the client's model.
pub(super) async fn call(
    setup: &Setup,
    caller: &Caller,
    tool: &'static Tool,
    request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> CallToolResponse {
    let arguments = request.arguments.unwrap_or_default();
    let binding = form::state_binding(caller, &arguments);
    let call = Call::parse(tool, Value::Object(arguments));
    let job = match call.input::<Input>() {
        Ok(input) => prepare(&setup.tool_context, caller, input).await,
        Err(error) => Err(error),
    };
    let stateless = ProtocolVersion::V_2026_07_28;
    let is_stateless = context
        .protocol_version()
        .is_some_and(|version| version.as_str() >= stateless.as_str());
    let outcome = match job {
        Err(error) => Err(error),
        Ok(job) if is_stateless => {
            let answers = request.input_responses.unwrap_or_default();
            let sampled = answers.into_iter().find(|(key, _)| key == INPUT_KEY);
            let sampled = sampled.and_then(|(_, answer)| parse_sampled(&answer));
            let state = request.request_state;
            match advance(setup, job, &binding, state.as_deref(), sampled).await {
                Ok(Step::Ask(input_required)) => {
                    let logged = Ok(json!({ "inputRequired": INPUT_KEY }));
                    call.log(&setup.tool_context, caller, &logged);
                    return input_required.into();
                }
                Ok(Step::Done(job, evaluation, model)) => {
                    finish(&setup.tool_context, caller, job, evaluation, model).await
                }
                Err(error) => Err(error),
            }
        }
        Ok(job) => match sample_with_retry(setup, context, &job).await {
            Ok((evaluation, model)) => {
                finish(&setup.tool_context, caller, job, evaluation, model).await
            }
            Err(error) => Err(error),
        },
    };
    let outcome = call.bound(&setup.tool_context, outcome);
    call.log(&setup.tool_context, caller, &outcome);
    result(setup, outcome).into()
}

/// Runs in a separate task, so that a panic becomes an error response.
async fn prepare(context: &ToolContext, caller: &Caller, input: Input) -> Result<Job, ToolError> {
    let (context, caller) = (context.clone(), caller.clone());
    let task = tokio::spawn(async move { extract_data::prepare(&context, &caller, input).await });
    let panicked = |_| Err(ToolError::internal(extract_data::NAME));
    task.await.unwrap_or_else(panicked)
}

/// The outcome of one 2026-07-28 request.
enum Step {
    Ask(InputRequiredResult),
    Done(Job, Evaluation, String),
}

async fn advance(
    setup: &Setup,
    job: Job,
    binding: &[u8],
    state: Option<&str>,
    sampled: Option<Sampled>,
) -> Result<Step, ToolError> {
    let Some(sealed) = state else {
        return input_required(setup, &job.initial_messages(), 1, binding).map(Step::Ask);
    };
    let opened = setup.forms.codec.open_json_with(sealed, binding);
    let state: State = opened.map_err(|why| {
        let message = format!("is not a state of this call: {why}");
        ToolError::invalid("requestState", message)
    })?;
    let sampled = sampled.ok_or_else(no_answer)?;
    let evaluation = job.evaluate(&sampled.text, sampled.truncated).await;
    if evaluation.issues.is_empty() || state.round > 1 {
        return Ok(Step::Done(job, evaluation, sampled.model));
    }
    let messages = job.retry_messages(&sampled.text, &evaluation);
    input_required(setup, &messages, 2, binding).map(Step::Ask)
}

#[allow(deprecated, reason = "MCP sampling is deprecated but still in use")]
fn input_required(
    setup: &Setup,
    messages: &Messages,
    round: u8,
    binding: &[u8],
) -> Result<InputRequiredResult, ToolError> {
    let internal = || ToolError::internal(extract_data::NAME);
    let params = serde_json::from_value(params(messages)).map_err(|_| internal())?;
    let request = InputRequest::CreateMessage(rmcp::model::CreateMessageRequest::new(params));
    let options = SealOptions::new().associated_data(binding).ttl(STATE_TTL);
    let sealed = setup.forms.codec.seal_json_with(&State { round }, &options);
    let sealed = sealed.map_err(|_| internal())?;
    let requests = InputRequests::from([(INPUT_KEY.to_owned(), request)]);
    Ok(InputRequiredResult::new(Some(requests), Some(sealed)))
}

/// The parameters of `sampling/createMessage`.
fn params(messages: &Messages) -> Value {
    let messages = messages.iter().map(
        |(role, text)| json!({ "role": role.as_str(), "content": { "type": "text", "text": text } }),
    );
    json!({
        "messages": messages.collect::<Vec<_>>(),
        "systemPrompt": SYSTEM_PROMPT,
        "maxTokens": MAX_TOKENS,
    })
}

/// Samples with a 2025-11-25 client, and once more if the answer is invalid.
async fn sample_with_retry(
    setup: &Setup,
    context: &RequestContext<RoleServer>,
    job: &Job,
) -> Result<(Evaluation, String), ToolError> {
    let first = sample(setup, context, &job.initial_messages()).await;
    let first = first.ok_or_else(no_answer)?;
    let evaluation = job.evaluate(&first.text, first.truncated).await;
    if evaluation.issues.is_empty() {
        return Ok((evaluation, first.model));
    }
    let messages = job.retry_messages(&first.text, &evaluation);
    Ok(match sample(setup, context, &messages).await {
        Some(second) => {
            let evaluation = job.evaluate(&second.text, second.truncated).await;
            (evaluation, second.model)
        }
        None => (evaluation, first.model),
    })
}

#[allow(deprecated, reason = "MCP sampling is deprecated but still in use")]
async fn sample(
    setup: &Setup,
    context: &RequestContext<RoleServer>,
    messages: &Messages,
) -> Option<Sampled> {
    let params = serde_json::from_value(params(messages)).ok()?;
    let response = context.peer.create_message(params);
    tokio::select! {
        response = tokio::time::timeout(TIMEOUT, response) => {
            parse_sampled(&serde_json::to_value(response.ok()?.ok()?).ok()?)
        }
        () = context.ct.cancelled() => None,
        () = wait_for_shutdown(setup.tool_context.closing.clone()) => None,
    }
}

/// Returns `None` if the response contains no text.
fn parse_sampled(response: &Value) -> Option<Sampled> {
    let content = response.get("content")?;
    let text = if content.is_array() {
        join_text_parts(content)
    } else {
        content.get("text")?.as_str()?.to_owned()
    };
    let model = response.get("model").and_then(Value::as_str);
    let reason = response.get("stopReason").and_then(Value::as_str);
    Some(Sampled {
        text,
        model: model.unwrap_or("client").chars().take(200).collect(),
        truncated: reason == Some("maxTokens"),
    })
}

async fn finish(
    context: &ToolContext,
    caller: &Caller,
    job: Job,
    evaluation: Evaluation,
    model: String,
) -> Result<Value, ToolError> {
    let stored =
        extract_data::store(context, caller, job.into_extracted(evaluation, model)).await?;
    serde_json::to_value(stored).map_err(|_| ToolError::internal(extract_data::NAME))
}

fn no_answer() -> ToolError {
    ToolError {
        code: Code::Unavailable,
        message: "the client's model returned no answer".to_owned(),
        hint: "call again, or extract the data yourself".to_owned(),
        needs_operator: false,
        details: None,
        not_found: false,
    }
}
