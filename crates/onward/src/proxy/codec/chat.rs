//! The codec of OpenAI Chat Completions and compatible APIs: `/v1/chat/completions`.
//!
//! Each tool result is a separate message, so a text is appended as a user message after the
//! results. Servers of open models may ignore `tool_choice`, and their templates may require
//! alternating roles: without tools, consecutive user messages are merged.

use onward_core::transcript::json;
use serde_json::{Map, Value, json};

use super::{Codec, EventContent, ModelResponse, RESULT_HEADING, call_as_text, sse_event};
use crate::proxy::request::{
    Edit, Request, Row, ToolCall, ToolResult, append_element, content_text, parse_arguments,
    parse_user_text, set_field, string_field,
};

pub(super) struct Chat;

impl Codec for Chat {
    fn parse_row(&self, row: &Value) -> Row {
        match row["role"].as_str().unwrap_or_default() {
            "user" => parse_user_text(&content_text(&row["content"])),
            "assistant" => Row::Assistant(parse_calls(row)),
            "tool" => Row::ToolResults(vec![parse_result(row, "tool_call_id")]),
            // The older function API: results have the name of the function instead of a call id.
            "function" => Row::ToolResults(vec![parse_result(row, "name")]),
            _ => Row::Other,
        }
    }

    fn inject(&self, request: &Request<'_>, text: &str) -> Vec<Edit> {
        let row = format!(r#"{{"role":"user","content":{}}}"#, json::quoted(text));
        vec![append_element(request.text, &request.rows_span(), &row)]
    }

    fn forbid_tools(&self, request: &Request<'_>) -> Vec<Edit> {
        let keys = [("tools", "tool_choice"), ("functions", "function_call")];
        let present = keys
            .iter()
            .filter(|(tools, _)| request.fields.get(tools).is_some());
        present
            .map(|(_, key)| set_field(request, key, r#""none""#))
            .collect()
    }

    fn without_tools(&self, mut request: Value, text: &str) -> Value {
        if let Some(fields) = request.as_object_mut() {
            for key in [
                "tools",
                "tool_choice",
                "parallel_tool_calls",
                "functions",
                "function_call",
            ] {
                fields.remove(key);
            }
        }
        if let Some(rows) = request["messages"].as_array_mut() {
            let converted = std::mem::take(rows).into_iter().map(row_as_text);
            let last = json!({ "role": "user", "content": text });
            for row in converted.chain([last]) {
                push_merged(rows, row);
            }
        }
        request
    }

    fn read_event(&self, response: &mut ModelResponse, event: &Value) -> EventContent {
        if !event["choices"].is_array() {
            return EventContent::Other;
        }
        if !response.started {
            response.started = true;
            response.set_identity(event);
            response.created = event["created"].clone();
        }
        response.set_usage(&event["usage"], "prompt_tokens", "completion_tokens");
        let choice = &event["choices"][0];
        let delta = &choice["delta"];
        let mut started = false;
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            started |= add_call_delta(response, call);
        }
        if let Some(name) = delta["function_call"]["name"].as_str() {
            response.calls.push(ToolCall {
                id: name.to_owned(),
                tool: name.to_owned(),
                input: json!(""),
            });
            started = true;
        }
        let reason = choice["finish_reason"].as_str();
        response.finished |= reason.is_some();
        // Some servers report tool calls and send them as text.
        let reports_calls = matches!(reason, Some("tool_calls" | "function_call"));
        if started || (reports_calls && response.calls.is_empty()) {
            return EventContent::ToolCall;
        }
        match delta["content"].as_str() {
            Some(text) if !text.is_empty() => EventContent::Text(text.to_owned()),
            Some(_) | None => EventContent::Other,
        }
    }

    fn read_body(&self, response: &mut ModelResponse, body: &Value) {
        let choice = &body["choices"][0];
        if !choice["message"].is_object() {
            return;
        }
        response.started = true;
        response.finished = true;
        response.set_identity(body);
        response.set_usage(&body["usage"], "prompt_tokens", "completion_tokens");
        response.created = body["created"].clone();
        response.calls = parse_calls(&choice["message"]);
        response.text = content_text(&choice["message"]["content"]);
        let reason = choice["finish_reason"].as_str();
        if response.calls.is_empty() && matches!(reason, Some("tool_calls" | "function_call")) {
            response.finished = false;
        }
    }

    fn text_body(&self, mut body: Value, text: &str) -> Value {
        if !body.is_object() {
            body = Value::Object(Map::new());
        }
        body["object"] = json!("chat.completion");
        body["choices"] = json!([{
            "index": 0, "finish_reason": "stop", "logprobs": null,
            "message": { "role": "assistant", "content": text },
        }]);
        body
    }

    fn begin_text(&self, response: &mut ModelResponse) -> String {
        if std::mem::replace(&mut response.started, true) {
            String::new()
        } else {
            chunk(
                response,
                &json!({ "role": "assistant", "content": "" }),
                None,
            )
        }
    }

    fn text_delta(&self, response: &mut ModelResponse, text: &str) -> String {
        chunk(response, &json!({ "content": text }), None)
    }

    fn end_text(&self, response: &mut ModelResponse, _: &str) -> String {
        let last = chunk(response, &json!({}), Some("stop"));
        format!("{last}data: [DONE]\n\n")
    }

    fn error_body(&self, message: &str) -> Value {
        json!({ "error": {
            "message": message, "type": "server_error", "param": null, "code": null,
        } })
    }
}

fn chunk(response: &ModelResponse, delta: &Value, reason: Option<&str>) -> String {
    let chunk = json!({
        "id": response.id, "object": "chat.completion.chunk", "created": response.created,
        "model": response.model,
        "choices": [{ "index": 0, "delta": delta, "finish_reason": reason }],
    });
    sse_event(None, &chunk)
}

/// Adds a part of a tool call. Returns whether it starts a call.
fn add_call_delta(response: &mut ModelResponse, part: &Value) -> bool {
    let function = if part["function"].is_object() {
        &part["function"]
    } else {
        &part["custom"]
    };
    let more = function["arguments"]
        .as_str()
        .or_else(|| function["input"].as_str())
        .unwrap_or_default();
    let index = part["index"].as_u64().unwrap_or(0);
    let existing = usize::try_from(index).ok();
    let existing = existing.and_then(|index| response.calls.get_mut(index));
    if let Some(call) = existing {
        if let Value::String(input) = &mut call.input {
            input.push_str(more);
        }
        return false;
    }
    response.calls.push(ToolCall {
        id: string_field(part, "id"),
        tool: string_field(function, "name"),
        input: json!(more),
    });
    true
}

fn parse_calls(row: &Value) -> Vec<ToolCall> {
    let list = row["tool_calls"].as_array().into_iter().flatten();
    let calls = list.map(|call| {
        let function = &call["function"];
        // The input of a custom tool is plain text.
        let (function, input) = if function.is_object() {
            (function, parse_arguments(&function["arguments"]))
        } else {
            (&call["custom"], call["custom"]["input"].clone())
        };
        ToolCall {
            id: string_field(call, "id"),
            tool: string_field(function, "name"),
            input,
        }
    });
    let old = &row["function_call"];
    let old = old["name"].as_str().map(|name| ToolCall {
        id: name.to_owned(),
        tool: name.to_owned(),
        input: parse_arguments(&old["arguments"]),
    });
    calls.chain(old).collect()
}

fn parse_result(row: &Value, key: &str) -> ToolResult {
    let output = content_text(&row["content"]);
    ToolResult {
        id: string_field(row, key),
        // The API has no error flag.
        ok: output.starts_with("Error").then_some(false),
        output,
    }
}

/// Converts the calls or the result of a message to text.
fn row_as_text(mut row: Value) -> Value {
    let role = string_field(&row, "role");
    if role == "tool" || role == "function" {
        let result = format!("{RESULT_HEADING}\n{}", content_text(&row["content"]));
        return json!({ "role": "user", "content": result });
    }
    let calls = parse_calls(&row);
    if calls.is_empty() {
        return row;
    }
    let mut text = content_text(&row["content"]);
    for call in &calls {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&call_as_text(&call.tool, &call.input));
    }
    if let Some(fields) = row.as_object_mut() {
        fields.remove("tool_calls");
        fields.remove("function_call");
    }
    row["content"] = json!(text);
    row
}

/// Adds a message, or appends a user message to a preceding one.
fn push_merged(rows: &mut Vec<Value>, row: Value) {
    if let Some(last) = rows.last_mut()
        && last["role"] == "user"
        && row["role"] == "user"
        && let (Some(before), Some(after)) = (last["content"].as_str(), row["content"].as_str())
    {
        let both = format!("{before}\n\n{after}");
        last["content"] = json!(both);
        return;
    }
    rows.push(row);
}
