//! The tools, prompts and resources that the official conformance suite requires. Tools that send
//! requests to the client are in `client_requests.rs`.

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ErrorCode, ErrorData, GetPromptRequestParams,
    GetPromptResponse, ProgressNotificationParam, Prompt, ProtocolVersion, ReadResourceResult,
    Resource, ResourceTemplate, Tool,
};
use rmcp::service::RequestContext;
use serde_json::{Value, json};

use crate::client_requests;
use crate::results::{complete, complete_result, convert, text_result};

/// A one-pixel image and an empty sound.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=";

/// Tools without arguments.
const PLAIN: [&str; 20] = [
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_error_handling",
    "test_tool_with_logging",
    "test_logging_tool",
    "test_tool_with_progress",
    "test_reconnection",
    "test_missing_capability",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "test_input_required_result_elicitation",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
    "test_input_required_result_request_state",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_multi_round",
    "test_input_required_result_tampered_state",
];

/// `None` if the name is not part of the suite.
type Response<T> = Option<Result<T, ErrorData>>;

pub(crate) fn tools() -> Vec<Tool> {
    let nothing = json!({ "type": "object", "properties": {} });
    let text = |name: &str| json!({ "type": "object", "properties": { name: { "type": "string" } }, "required": [name] });
    let header = json!({
        "type": "object",
        "properties": { "region": { "type": "string", "x-mcp-header": "Region" } },
    });
    let plain = PLAIN.into_iter().map(|name| (name, nothing.clone()));
    let more = [
        ("test_streaming_elicitation", nothing.clone()),
        ("test_input_required_result_capabilities", nothing.clone()),
        ("test_sampling", text("prompt")),
        ("test_elicitation", text("message")),
        ("test_custom_header", header),
        ("json_schema_2020_12_tool", schema()),
    ];
    let all = plain.chain(more).map(|(name, schema)| {
        json!({ "name": name, "description": "Conformance test", "inputSchema": schema })
    });
    all.filter_map(|tool| convert(tool).ok()).collect()
}

/// A schema with every keyword that must be passed through unchanged.
fn schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
            },
        },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": {
            "properties": { "contactMethod": { "const": "phone" } },
            "required": ["contactMethod"],
        },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    })
}

pub(crate) async fn call(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Response<CallToolResponse> {
    let name: &str = &request.name;
    if !tools().iter().any(|tool| tool.name == name) {
        return None;
    }
    Some(match name {
        "test_missing_capability" => missing_capability(context),
        "test_tool_with_logging" | "test_logging_tool" => {
            log(context).await;
            text_result("logged")
        }
        "test_tool_with_progress" => {
            progress(context).await;
            text_result("done")
        }
        name => match content(name) {
            Some(content) => complete(json!({ "content": content })),
            None if name == "test_error_handling" => complete(json!({
                "isError": true,
                "content": [{ "type": "text", "text": "this tool fails on purpose" }],
            })),
            None => client_requests::call(request, context).await,
        },
    })
}

/// The static content of a tool.
fn content(name: &str) -> Option<Value> {
    let text = |text: &str| json!({ "type": "text", "text": text });
    let image = || json!({ "type": "image", "data": PNG, "mimeType": "image/png" });
    let embedded = |uri: &str, kind: &str, text: &str| {
        let resource = json!({ "uri": uri, "mimeType": kind, "text": text });
        json!({ "type": "resource", "resource": resource })
    };
    Some(match name {
        "test_simple_text" | "test_reconnection" => json!([text("simple text")]),
        "test_custom_header" | "json_schema_2020_12_tool" => json!([text("ok")]),
        "test_image_content" => json!([image()]),
        "test_audio_content" => {
            json!([{ "type": "audio", "data": WAV, "mimeType": "audio/wav" }])
        }
        "test_embedded_resource" => {
            json!([embedded(
                "test://embedded-resource",
                "text/plain",
                "embedded"
            )])
        }
        "test_multiple_content_types" => json!([
            text("mixed content"),
            image(),
            embedded(
                "test://mixed-content-resource",
                "application/json",
                r#"{"test":"data","value":123}"#
            ),
        ]),
        _ => return None,
    })
}

fn missing_capability(context: &RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
    let can = context.client_capabilities().is_some_and(|client| {
        #[allow(deprecated, reason = "the conformance suite requires it")]
        client.sampling.is_some()
    });
    if can {
        return text_result("ok");
    }
    Err(ErrorData::new(
        ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY,
        "sampling is required",
        Some(json!({ "requiredCapabilities": { "sampling": {} } })),
    ))
}

/// Sends three log messages; in 2026-07-28 only if the request enables them.
#[allow(deprecated, reason = "the conformance suite requires it")]
async fn log(context: &RequestContext<RoleServer>) {
    let stateless = ProtocolVersion::V_2026_07_28;
    let is_stateless = context
        .protocol_version()
        .is_some_and(|version| version.as_str() >= stateless.as_str());
    if is_stateless && context.meta.log_level().is_none() {
        return;
    }
    for line in ["started", "working", "finished"] {
        let level = rmcp::model::LoggingLevel::Info;
        let line = rmcp::model::LoggingMessageNotificationParam::new(level, line.into());
        // A failed notification changes nothing.
        drop(context.peer.notify_logging_message(line).await);
    }
}

async fn progress(context: &RequestContext<RoleServer>) {
    let Some(token) = context.meta.get_progress_token() else {
        return;
    };
    for done in [0.0, 50.0, 100.0] {
        let progress = ProgressNotificationParam::new(token.clone(), done).with_total(100.0);
        drop(context.peer.notify_progress(progress).await);
    }
}

pub(crate) fn resources() -> Vec<Resource> {
    let all = [
        json!({ "uri": "test://static-text", "name": "text", "mimeType": "text/plain" }),
        json!({ "uri": "test://static-binary", "name": "binary", "mimeType": "image/png" }),
    ];
    all.into_iter()
        .filter_map(|resource| convert(resource).ok())
        .collect()
}

pub(crate) fn resource_template() -> ResourceTemplate {
    ResourceTemplate::new("test://template/{id}/data", "template")
}

/// Whether the suite subscribes to the resource. It never changes.
pub(crate) fn is_subscribable(uri: &str) -> bool {
    uri == "test://watched-resource"
}

pub(crate) fn read(uri: &str) -> Response<ReadResourceResult> {
    let id = uri.strip_prefix("test://template/");
    let id = id.and_then(|rest| rest.strip_suffix("/data"));
    let contents = match (uri, id) {
        ("test://static-text", _) => {
            json!({ "uri": uri, "mimeType": "text/plain", "text": "static text" })
        }
        ("test://static-binary", _) => json!({ "uri": uri, "mimeType": "image/png", "blob": PNG }),
        (_, Some(id)) => {
            let text = json!({ "id": id }).to_string();
            json!({ "uri": uri, "mimeType": "application/json", "text": text })
        }
        (_, None) => return None,
    };
    Some(complete_result(json!({ "contents": [contents] })))
}

pub(crate) fn prompts() -> Vec<Prompt> {
    let all = [
        ("test_simple_prompt", vec![]),
        ("test_prompt_with_arguments", vec!["arg1", "arg2"]),
        ("test_prompt_with_embedded_resource", vec!["resourceUri"]),
        ("test_prompt_with_image", vec![]),
        ("test_input_required_result_prompt", vec![]),
    ];
    let all = all.into_iter().map(|(name, arguments)| {
        let arguments: Vec<Value> = arguments
            .into_iter()
            .map(|name| json!({ "name": name, "required": true }))
            .collect();
        json!({ "name": name, "description": "Conformance test", "arguments": arguments })
    });
    all.filter_map(|prompt| convert(prompt).ok()).collect()
}

pub(crate) fn prompt(request: &GetPromptRequestParams) -> Response<GetPromptResponse> {
    let argument = |name: &str| {
        let value = request.arguments.as_ref().and_then(|all| all.get(name));
        value.and_then(Value::as_str).unwrap_or_default()
    };
    let text = |text: String| json!({ "type": "text", "text": text });
    let contents = match request.name.as_str() {
        "test_simple_prompt" => vec![text("a simple prompt".to_owned())],
        "test_prompt_with_arguments" => {
            vec![text(format!(
                "{} and {}",
                argument("arg1"),
                argument("arg2")
            ))]
        }
        "test_prompt_with_embedded_resource" => {
            let uri = argument("resourceUri");
            let resource = json!({ "uri": uri, "mimeType": "text/plain", "text": "embedded" });
            vec![json!({ "type": "resource", "resource": resource })]
        }
        "test_prompt_with_image" => {
            vec![json!({ "type": "image", "data": PNG, "mimeType": "image/png" })]
        }
        "test_input_required_result_prompt" => match client_requests::prompt(request) {
            Ok(Some(input)) => return Some(Ok(GetPromptResponse::InputRequired(input))),
            Ok(None) => vec![text("ok".to_owned())],
            Err(why) => return Some(Err(why)),
        },
        _ => return None,
    };
    let messages: Vec<Value> = contents
        .into_iter()
        .map(|content| json!({ "role": "user", "content": content }))
        .collect();
    Some(complete_result(json!({ "messages": messages })).map(GetPromptResponse::Complete))
}
