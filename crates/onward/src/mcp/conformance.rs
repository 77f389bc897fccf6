//! What the official conformance suite drives a server with: tools, prompts and resources of fixed
//! names, which mean nothing to anybody else.
//!
//! Only a build with the feature `conformance` has them; `script/conformance` makes one. They come
//! through the same transport, gate and handler as everything else, and are not in the registry of
//! tools: no agent could do anything with them. What asks the client something stands in
//! `conformance/ask.rs`.

mod ask;

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ErrorCode, ErrorData, GetPromptRequestParams,
    GetPromptResponse, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ProgressNotificationParam, ProtocolVersion, ReadResourceResult, ResourceTemplate, Tool,
};
use rmcp::service::RequestContext;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::Setup;

/// A picture of one point, and a sound of none.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=";

/// Tools that take nothing.
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

type Answer<T> = Option<Result<T, ErrorData>>;

/// A type of the SDK from how the suite's documentation writes it.
fn made<T: DeserializeOwned>(json: Value) -> Result<T, ErrorData> {
    serde_json::from_value(json).map_err(|why| ErrorData::internal_error(why.to_string(), None))
}

pub(super) fn tools() -> Vec<Tool> {
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
        json!({ "name": name, "description": "For the conformance suite", "inputSchema": schema })
    });
    all.filter_map(|tool| made(tool).ok()).collect()
}

/// Every word of JSON Schema that must come through unchanged.
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

/// None where it is no tool of the suite.
pub(super) async fn call(
    setup: &Setup,
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Answer<CallToolResponse> {
    let name: &str = &request.name;
    if !tools().iter().any(|tool| tool.name == name) {
        return None;
    }
    Some(match name {
        "test_missing_capability" => missing_capability(context),
        "test_tool_with_logging" | "test_logging_tool" => {
            log(context).await;
            said("logged")
        }
        "test_tool_with_progress" => {
            progress(context).await;
            said("done")
        }
        name => match content(name) {
            Some(content) => complete(json!({ "content": content })),
            None if name == "test_error_handling" => complete(json!({
                "isError": true,
                "content": [{ "type": "text", "text": "this tool fails on purpose" }],
            })),
            None => ask::call(setup, request, context).await,
        },
    })
}

/// A whole result, as it is called in 2026-07-28. The SDK leaves the word out for those before.
fn whole<T: DeserializeOwned>(mut result: Value) -> Result<T, ErrorData> {
    if let Value::Object(result) = &mut result {
        result.insert("resultType".to_owned(), "complete".into());
    }
    made(result)
}

fn complete(result: Value) -> Result<CallToolResponse, ErrorData> {
    whole(result).map(CallToolResponse::Complete)
}

fn said(text: &str) -> Result<CallToolResponse, ErrorData> {
    complete(json!({ "content": [{ "type": "text", "text": text }] }))
}

/// What the tools answer that do nothing but answer.
fn content(name: &str) -> Option<Value> {
    let text = |text: &str| json!({ "type": "text", "text": text });
    let image = || json!({ "type": "image", "data": PNG, "mimeType": "image/png" });
    let embedded = |uri: &str, kind: &str, text: &str| {
        let resource = json!({ "uri": uri, "mimeType": kind, "text": text });
        json!({ "type": "resource", "resource": resource })
    };
    Some(match name {
        "test_simple_text" | "test_reconnection" => json!([text("a simple text")]),
        "test_custom_header" | "json_schema_2020_12_tool" => json!([text("understood")]),
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
            text("several kinds"),
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
        #[allow(deprecated, reason = "the suite asks for it")]
        client.sampling.is_some()
    });
    if can {
        return said("understood");
    }
    Err(ErrorData::new(
        ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY,
        "sampling is needed",
        Some(json!({ "requiredCapabilities": { "sampling": {} } })),
    ))
}

/// Three lines of log; in 2026-07-28 only where the request asks for them.
#[allow(deprecated, reason = "the suite asks for it")]
async fn log(context: &RequestContext<RoleServer>) {
    let newest = ProtocolVersion::V_2026_07_28;
    let stateless = context
        .protocol_version()
        .is_some_and(|version| version.as_str() >= newest.as_str());
    if stateless && context.meta.log_level().is_none() {
        return;
    }
    for line in ["began", "works", "ended"] {
        let level = rmcp::model::LoggingLevel::Info;
        let line = rmcp::model::LoggingMessageNotificationParam::new(level, line.into());
        // Whoever does not listen will not miss it.
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

pub(super) fn with_resources(mut listed: ListResourcesResult) -> ListResourcesResult {
    let all = [
        json!({ "uri": "test://static-text", "name": "text", "mimeType": "text/plain" }),
        json!({ "uri": "test://static-binary", "name": "binary", "mimeType": "image/png" }),
    ];
    let all = all.into_iter().filter_map(|resource| made(resource).ok());
    listed.resources.extend(all);
    listed
}

pub(super) fn with_template(
    mut listed: ListResourceTemplatesResult,
) -> ListResourceTemplatesResult {
    let template = ResourceTemplate::new("test://template/{id}/data", "template");
    listed.resource_templates.push(template);
    listed
}

/// Whether one of these may be watched. It never changes.
pub(super) fn is_watched(uri: &str) -> bool {
    uri == "test://watched-resource"
}

pub(super) fn read(uri: &str) -> Answer<ReadResourceResult> {
    let id = uri.strip_prefix("test://template/");
    let id = id.and_then(|rest| rest.strip_suffix("/data"));
    let contents = match (uri, id) {
        ("test://static-text", _) => {
            json!({ "uri": uri, "mimeType": "text/plain", "text": "a text that stays" })
        }
        ("test://static-binary", _) => json!({ "uri": uri, "mimeType": "image/png", "blob": PNG }),
        (_, Some(id)) => {
            let text = json!({ "id": id }).to_string();
            json!({ "uri": uri, "mimeType": "application/json", "text": text })
        }
        (_, None) => return None,
    };
    Some(whole(json!({ "contents": [contents] })))
}

pub(super) fn with_prompts(mut listed: ListPromptsResult) -> ListPromptsResult {
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
        json!({ "name": name, "description": "For the conformance suite", "arguments": arguments })
    });
    listed
        .prompts
        .extend(all.filter_map(|prompt| made(prompt).ok()));
    listed
}

/// None where it is no prompt of the suite.
pub(super) fn prompt(setup: &Setup, request: &GetPromptRequestParams) -> Answer<GetPromptResponse> {
    let given = |name: &str| {
        let given = request.arguments.as_ref().and_then(|all| all.get(name));
        given.and_then(Value::as_str).unwrap_or_default()
    };
    let text = |text: String| json!({ "type": "text", "text": text });
    let contents = match request.name.as_str() {
        "test_simple_prompt" => vec![text("a simple prompt".to_owned())],
        "test_prompt_with_arguments" => {
            vec![text(format!("{} and {}", given("arg1"), given("arg2")))]
        }
        "test_prompt_with_embedded_resource" => {
            let uri = given("resourceUri");
            let resource = json!({ "uri": uri, "mimeType": "text/plain", "text": "embedded" });
            vec![json!({ "type": "resource", "resource": resource })]
        }
        "test_prompt_with_image" => {
            vec![json!({ "type": "image", "data": PNG, "mimeType": "image/png" })]
        }
        "test_input_required_result_prompt" => match ask::prompt(setup, request) {
            Ok(Some(more)) => return Some(Ok(GetPromptResponse::InputRequired(more))),
            Ok(None) => vec![text("understood".to_owned())],
            Err(why) => return Some(Err(why)),
        },
        _ => return None,
    };
    let messages: Vec<Value> = contents
        .into_iter()
        .map(|content| json!({ "role": "user", "content": content }))
        .collect();
    Some(whole(json!({ "messages": messages })).map(GetPromptResponse::Complete))
}
