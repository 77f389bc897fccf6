//! `extract_data` by the agent's own model, where none is configured and its client lends it.
//!
//! As with forms, a client of 2025-11-25 is sent a request and waited for; one of 2026-07-28 is answered
//! with what to ask its model and comes back with the answer, and with a signed state that says the how
//! many-th it is. There is one more round where an answer does not fit, and no third.

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

use super::{Setup, closed, form, result};
use crate::extraction::{Job, Judged, MOST_TOKENS, SYSTEM, Talk};
use crate::model::completion::texts;
use crate::tools::extract_data::{self, Input};
use crate::tools::{Call, Desk, Refused, Tool};

/// The one question.
const QUESTION: &str = "extraction";
/// How long a client's model may take. A person may have to allow it first.
const PATIENCE: Duration = Duration::from_secs(120);
/// For how long a client may come back with an answer.
const STATE_HOLDS: Duration = Duration::from_secs(60 * 60);

/// The how many-th answer is awaited.
#[derive(Serialize, Deserialize)]
struct State {
    round: u8,
}

/// What a client's model said.
struct Said {
    text: String,
    model: String,
    is_cut: bool,
}

/// Whether the client lends its model.
pub(super) fn is_offered(context: &RequestContext<RoleServer>) -> bool {
    let client = context.client_capabilities();
    client.is_some_and(|client| client.sampling.is_some())
}

/// Calls the tool by the client's model.
pub(super) async fn call(
    setup: &Setup,
    caller: &Caller,
    tool: &'static Tool,
    request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> CallToolResponse {
    let arguments = request.arguments.unwrap_or_default();
    let bound = form::bound(caller, &arguments);
    let call = Call::read(tool, Value::Object(arguments));
    let job = match call.input::<Input>() {
        Ok(input) => prepared(&setup.desk, caller, input).await,
        Err(refused) => Err(refused),
    };
    let newest = ProtocolVersion::V_2026_07_28;
    let comes_back = context
        .protocol_version()
        .is_some_and(|version| version.as_str() >= newest.as_str());
    let answer = match job {
        Err(refused) => Err(refused),
        Ok(job) if comes_back => {
            let answers = request.input_responses.unwrap_or_default();
            let said = answers
                .into_iter()
                .find(|(question, _)| question == QUESTION);
            let said = said.and_then(|(_, answer)| said_by(&answer));
            let state = request.request_state;
            match step(setup, job, &bound, state.as_deref(), said) {
                Ok(Step::Ask(more)) => {
                    let asked = Ok(json!({ "inputRequired": QUESTION }));
                    call.log(&setup.desk, caller, &asked);
                    return more.into();
                }
                Ok(Step::Done(job, judged, model)) => {
                    finish(&setup.desk, caller, job, judged, model).await
                }
                Err(refused) => Err(refused),
            }
        }
        Ok(job) => match ask_twice(setup, context, &job).await {
            Ok((judged, model)) => finish(&setup.desk, caller, job, judged, model).await,
            Err(refused) => Err(refused),
        },
    };
    call.log(&setup.desk, caller, &answer);
    result(answer).into()
}

/// In a task of its own: a schema that breaks something is answered like any other call.
async fn prepared(desk: &Desk, caller: &Caller, input: Input) -> Result<Job, Refused> {
    let (desk, caller) = (desk.clone(), caller.clone());
    let preparing = tokio::spawn(async move { extract_data::prepare(&desk, &caller, input).await });
    let broken = |_| Err(Refused::broken(extract_data::NAME));
    preparing.await.unwrap_or_else(broken)
}

/// What a call of 2026-07-28 leads to.
enum Step {
    Ask(InputRequiredResult),
    Done(Job, Judged, String),
}

fn step(
    setup: &Setup,
    job: Job,
    bound: &[u8],
    state: Option<&str>,
    said: Option<Said>,
) -> Result<Step, Refused> {
    let Some(sealed) = state else {
        return ask(setup, &job.opening(), 1, bound).map(Step::Ask);
    };
    let opened = setup.forms.codec.open_json_with(sealed, bound);
    let state: State = opened.map_err(|why| {
        let message = format!("is not what this call was given: {why}");
        Refused::invalid("requestState", message)
    })?;
    let said = said.ok_or_else(silent)?;
    let judged = job.judge(&said.text, said.is_cut);
    if judged.issues.is_empty() || state.round > 1 {
        return Ok(Step::Done(job, judged, said.model));
    }
    let talk = job.again(&said.text, &judged);
    ask(setup, &talk, 2, bound).map(Step::Ask)
}

/// An answer that asks for more.
#[allow(deprecated, reason = "clients that lend their model do it this way")]
fn ask(
    setup: &Setup,
    talk: &Talk,
    round: u8,
    bound: &[u8],
) -> Result<InputRequiredResult, Refused> {
    let broken = || Refused::broken(extract_data::NAME);
    let params = serde_json::from_value(params(talk)).map_err(|_| broken())?;
    let request = InputRequest::CreateMessage(rmcp::model::CreateMessageRequest::new(params));
    let options = SealOptions::new().associated_data(bound).ttl(STATE_HOLDS);
    let sealed = setup.forms.codec.seal_json_with(&State { round }, &options);
    let sealed = sealed.map_err(|_| broken())?;
    let requests = InputRequests::from([(QUESTION.to_owned(), request)]);
    Ok(InputRequiredResult::new(Some(requests), Some(sealed)))
}

/// What `sampling/createMessage` is given.
fn params(talk: &Talk) -> Value {
    let messages = talk.iter().map(
        |(who, text)| json!({ "role": who.as_str(), "content": { "type": "text", "text": text } }),
    );
    json!({
        "messages": messages.collect::<Vec<_>>(),
        "systemPrompt": SYSTEM,
        "maxTokens": MOST_TOKENS,
    })
}

/// Asks a client of 2025-11-25, and once more where its answer does not fit.
async fn ask_twice(
    setup: &Setup,
    context: &RequestContext<RoleServer>,
    job: &Job,
) -> Result<(Judged, String), Refused> {
    let first = request(setup, context, &job.opening()).await;
    let first = first.ok_or_else(silent)?;
    let judged = job.judge(&first.text, first.is_cut);
    if judged.issues.is_empty() {
        return Ok((judged, first.model));
    }
    let talk = job.again(&first.text, &judged);
    Ok(match request(setup, context, &talk).await {
        Some(second) => (job.judge(&second.text, second.is_cut), second.model),
        None => (judged, first.model),
    })
}

#[allow(deprecated, reason = "clients that lend their model do it this way")]
async fn request(setup: &Setup, context: &RequestContext<RoleServer>, talk: &Talk) -> Option<Said> {
    let params = serde_json::from_value(params(talk)).ok()?;
    let asked = context.peer.create_message(params);
    tokio::select! {
        answer = tokio::time::timeout(PATIENCE, asked) => {
            said_by(&serde_json::to_value(answer.ok()?.ok()?).ok()?)
        }
        () = context.ct.cancelled() => None,
        () = closed(setup.closing.clone()) => None,
    }
}

/// What the client's model said; none where it said nothing that can be read.
fn said_by(answer: &Value) -> Option<Said> {
    let content = answer.get("content")?;
    let text = match content.is_array() {
        true => texts(content),
        false => content.get("text")?.as_str()?.to_owned(),
    };
    let model = answer.get("model").and_then(Value::as_str);
    let reason = answer.get("stopReason").and_then(Value::as_str);
    Some(Said {
        text,
        model: model.unwrap_or("client").chars().take(200).collect(),
        is_cut: reason == Some("maxTokens"),
    })
}

async fn finish(
    desk: &Desk,
    caller: &Caller,
    job: Job,
    judged: Judged,
    model: String,
) -> Result<Value, Refused> {
    let kept = extract_data::keep(desk, caller, job.extracted(judged, model)).await?;
    serde_json::to_value(kept).map_err(|_| Refused::broken(extract_data::NAME))
}

fn silent() -> Refused {
    Refused {
        code: Code::Unavailable,
        message: "the client's own model was asked, and gave no answer".to_owned(),
        hint: "read the text and extract it yourself, or call again".to_owned(),
        details: None,
        missing: false,
    }
}
