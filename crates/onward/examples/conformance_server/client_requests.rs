//! The suite's tools that request input from the client: with a request in 2025-11-25, with an
//! `input_required` result in 2026-07-28. Their state is sealed, as for the product's review forms.

use std::sync::LazyLock;

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientCapabilities, ElicitRequestParams, ErrorData,
    GetPromptRequestParams, InputRequests, InputRequiredResult, InputResponses, RequestStateCodec,
};
use rmcp::service::RequestContext;
use serde_json::{Value, json};

use crate::results::{convert, text_result};

static CODEC: LazyLock<RequestStateCodec> =
    LazyLock::new(|| RequestStateCodec::new_unchecked([7; 32]));

pub(crate) async fn call(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let name: &str = &request.name;
    let argument = |name: &str| {
        let value = request.arguments.as_ref().and_then(|all| all.get(name));
        value.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let text = match name {
        "test_sampling" => sample(context, &argument("prompt")).await?,
        "test_elicitation" => {
            let field = json!({ "type": "string" });
            let schema = json!({
                "type": "object",
                "properties": { "username": field, "email": field },
                "required": ["username", "email"],
            });
            elicit(context, &argument("message"), schema).await?
        }
        "test_elicitation_sep1034_defaults" => elicit(context, "Defaults", defaults()).await?,
        "test_elicitation_sep1330_enums" => elicit(context, "Choices", choices()).await?,
        name => {
            let client = context.client_capabilities().unwrap_or_default();
            let answers = request.input_responses.as_ref();
            let state = request.request_state.as_deref();
            match next_round(name, &client, answers, state)? {
                Some(input) => return Ok(CallToolResponse::InputRequired(input)),
                None => "state-ok".to_owned(),
            }
        }
    };
    text_result(&text)
}

/// Returns `None` if the prompt needs no further input.
pub(crate) fn prompt(
    request: &GetPromptRequestParams,
) -> Result<Option<InputRequiredResult>, ErrorData> {
    let (answers, state) = (
        request.input_responses.as_ref(),
        request.request_state.as_deref(),
    );
    let client = ClientCapabilities::default();
    next_round(&request.name, &client, answers, state)
}

fn internal_error(why: &dyn std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(why.to_string(), None)
}

#[allow(deprecated, reason = "the conformance suite requires it")]
async fn sample(context: &RequestContext<RoleServer>, text: &str) -> Result<String, ErrorData> {
    let message = json!({ "role": "user", "content": { "type": "text", "text": text } });
    let params = convert(json!({ "messages": [message], "maxTokens": 100 }))?;
    let response = context.peer.create_message(params).await;
    let response = response.map_err(|why| internal_error(&why))?;
    serde_json::to_string(&response).map_err(|why| internal_error(&why))
}

async fn elicit(
    context: &RequestContext<RoleServer>,
    message: &str,
    schema: Value,
) -> Result<String, ErrorData> {
    let params = ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: message.to_owned(),
        requested_schema: convert(schema)?,
    };
    let response = context.peer.create_elicitation(params).await;
    let response = response.map_err(|why| internal_error(&why))?;
    serde_json::to_string(&response).map_err(|why| internal_error(&why))
}

fn defaults() -> Value {
    let status = ["active", "inactive", "pending"];
    json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "default": "John Doe" },
            "age": { "type": "integer", "default": 30 },
            "score": { "type": "number", "default": 95.5 },
            "status": { "type": "string", "enum": status, "default": "active" },
            "verified": { "type": "boolean", "default": true },
        },
    })
}

fn choices() -> Value {
    let plain = ["option1", "option2", "option3"];
    let titled = json!([
        { "const": "value1", "title": "First" },
        { "const": "value2", "title": "Second" },
        { "const": "value3", "title": "Third" },
    ]);
    json!({
        "type": "object",
        "properties": {
            "untitledSingle": { "type": "string", "enum": plain },
            "titledSingle": { "type": "string", "oneOf": titled },
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": { "type": "array", "items": { "type": "string", "enum": plain } },
            "titledMulti": { "type": "array", "items": { "anyOf": titled } },
        },
    })
}

/// The input requests of a round, or `None` after the last round.
fn questions(name: &str, round: usize, client: &ClientCapabilities) -> Option<Value> {
    let form = |message: &str, field: &str| {
        let schema = json!({
            "type": "object",
            "properties": { field: { "type": "string" } },
            "required": [field],
        });
        let params = json!({ "mode": "form", "message": message, "requestedSchema": schema });
        json!({ "method": "elicitation/create", "params": params })
    };
    let sample = |text: &str| {
        let message = json!({ "role": "user", "content": { "type": "text", "text": text } });
        let params = json!({ "messages": [message], "maxTokens": 100 });
        json!({ "method": "sampling/createMessage", "params": params })
    };
    let roots = || json!({ "method": "roots/list" });
    let name = name.strip_prefix("test_input_required_result_");
    Some(match (name, round) {
        (Some("sampling"), 0) => json!({ "capital_question": sample("Which city?") }),
        (Some("list_roots"), 0) => json!({ "client_roots": roots() }),
        (Some("request_state" | "tampered_state"), 0) => json!({ "confirm": form("Sure?", "ok") }),
        (Some("multiple_inputs"), 0) => json!({
            "user_name": form("What is your name?", "name"),
            "greeting": sample("Generate a greeting"),
            "client_roots": roots(),
        }),
        (Some("multi_round"), 0) => json!({ "step1": form("What is your name?", "name") }),
        (Some("multi_round"), 1) => json!({ "step2": form("Which color?", "color") }),
        // Only what the client supports.
        (Some("capabilities"), 0) if client.elicitation.is_none() => {
            json!({ "capital_question": sample("Which city?") })
        }
        (Some("prompt"), 0) => json!({ "user_context": form("Which context?", "context") }),
        (_, 0) => json!({ "user_name": form("What is your name?", "name") }),
        (_, _) => return None,
    })
}

/// The next input requests. A round is repeated if an answer is missing or invalid.
fn next_round(
    name: &str,
    client: &ClientCapabilities,
    answers: Option<&InputResponses>,
    state: Option<&str>,
) -> Result<Option<InputRequiredResult>, ErrorData> {
    let mut round: usize = match state {
        Some(sealed) => CODEC
            .open_json_with(sealed, name.as_bytes())
            .map_err(|why| {
                let message = format!("not a state of this call: {why}");
                ErrorData::invalid_params(message, None)
            })?,
        None => 0,
    };
    let pending = questions(name, round, client).unwrap_or_default();
    let mut pending = pending.as_object().into_iter().flat_map(|all| all.keys());
    let answer = |question: &String| answers?.get(question)?.as_object();
    if pending.all(|question| answer(question).is_some()) {
        round += 1;
    }
    let Some(questions) = questions(name, round, client) else {
        return Ok(None);
    };
    let requests: InputRequests = convert(questions)?;
    let options = rmcp::model::SealOptions::new().associated_data(name.as_bytes());
    let sealed = CODEC.seal_json_with(&round, &options);
    let sealed = sealed.map_err(|why| internal_error(&why))?;
    Ok(Some(InputRequiredResult::new(Some(requests), Some(sealed))))
}
