//! The codec of Anthropic Messages: `/v1/messages`.
//!
//! Tool results come first in the next user message, so a text is appended after them in that
//! message, as Claude Code does, and never to `system`, whose first block must stay in place.
//! `tool_choice` `none` works with and without thinking. A history with tool calls requires
//! `tools`, so without tools, calls and results are converted to text.

use onward_core::transcript::json::{self, Object};
use onward_core::usage::TokenUsage;
use serde_json::{Map, Value, json};

use super::{Codec, EventContent, ModelResponse, RESULT_HEADING, call_as_text, sse_event};
use crate::proxy::request::{
    Edit, Request, Row, ToolCall, ToolResult, append_element, content_text, parse_user_text,
    prompt_beside_results, set_field, string_field,
};

pub(super) struct Anthropic;

impl Codec for Anthropic {
    fn parse_row(&self, row: &Value) -> Row {
        let content = &row["content"];
        if row["role"] == "assistant" {
            let calls = blocks(content).filter(|block| block["type"] == "tool_use");
            return Row::Assistant(calls.map(parse_call).collect());
        }
        if row["role"] != "user" {
            return Row::Other;
        }
        let results: Vec<ToolResult> = blocks(content)
            .filter(|block| block["type"] == "tool_result")
            .map(|block| ToolResult {
                id: string_field(block, "tool_use_id"),
                ok: Some(!block["is_error"].as_bool().unwrap_or(false)),
                output: content_text(&block["content"]),
            })
            .collect();
        if results.is_empty() {
            return parse_user_text(&content_text(content));
        }
        // After an interruption, Claude Code sends the user's next message beside the results.
        let texts = blocks(content).filter(|block| block["type"] == "text");
        let texts: Vec<&str> = texts.filter_map(|block| block["text"].as_str()).collect();
        match prompt_beside_results(&texts.join("\n")) {
            Some(prompt) => Row::ResultsAndPrompt(results, prompt),
            None => Row::ToolResults(results),
        }
    }

    fn inject(&self, request: &Request<'_>, text: &str) -> Vec<Edit> {
        let block = format!(r#"{{"type":"text","text":{}}}"#, json::quoted(text));
        for index in (0..request.rows().len()).rev() {
            let (Some(row), Some(span)) = (request.row_text(index), request.rows().get(index))
            else {
                continue;
            };
            let Some(fields) = Object::parse(row) else {
                continue;
            };
            if fields.string("role").as_deref() != Some("user") {
                continue;
            }
            let Some(content) = fields.span("content") else {
                continue;
            };
            let place = span.start + content.start..span.start + content.end;
            let was = row.get(content).unwrap_or_default();
            return match json::string(was) {
                Some(_) => vec![(
                    place,
                    format!(r#"[{{"type":"text","text":{was}}},{block}]"#),
                )],
                None => vec![append_element(request.text, &place, &block)],
            };
        }
        Vec::new()
    }

    fn forbid_tools(&self, request: &Request<'_>) -> Vec<Edit> {
        vec![set_field(request, "tool_choice", r#"{"type":"none"}"#)]
    }

    fn without_tools(&self, mut request: Value, text: &str) -> Value {
        if let Some(fields) = request.as_object_mut() {
            for key in ["tools", "tool_choice", "mcp_servers"] {
                fields.remove(key);
            }
        }
        let rows = request["messages"].as_array_mut().into_iter().flatten();
        for row in rows {
            let content = row.get_mut("content").and_then(Value::as_array_mut);
            if let Some(content) = content {
                *content = std::mem::take(content)
                    .into_iter()
                    .flat_map(block_as_text)
                    .collect();
            }
        }
        let last = request["messages"].as_array_mut();
        let last = last.and_then(|rows| rows.iter_mut().rev().find(|row| row["role"] == "user"));
        if let Some(row) = last {
            if let Some(text) = row["content"].as_str() {
                row["content"] = json!([{ "type": "text", "text": text }]);
            }
            if let Some(content) = row["content"].as_array_mut() {
                content.push(json!({ "type": "text", "text": text }));
            }
        }
        request
    }

    fn read_event(&self, response: &mut ModelResponse, event: &Value) -> EventContent {
        match event["type"].as_str().unwrap_or_default() {
            "message_start" => {
                response.started = true;
                response.set_identity(&event["message"]);
                add_usage(response, &event["message"]["usage"]);
                EventContent::Other
            }
            "content_block_start" => {
                let block = &event["content_block"];
                if block["type"] == "tool_use" {
                    response.calls.push(parse_call(block));
                    // The input is streamed as partial JSON.
                    if let Some(call) = response.calls.last_mut() {
                        call.input = json!("");
                    }
                    return EventContent::ToolCall;
                }
                let index = event["index"].as_u64().unwrap_or(response.block_count);
                response.block_count = index.saturating_add(1);
                EventContent::Other
            }
            "content_block_delta" => {
                let delta = &event["delta"];
                if let Some(text) = delta["text"].as_str() {
                    return EventContent::Text(text.to_owned());
                }
                if let (Some(more), Some(call)) =
                    (delta["partial_json"].as_str(), response.calls.last_mut())
                    && let Value::String(input) = &mut call.input
                {
                    input.push_str(more);
                }
                EventContent::Other
            }
            "message_delta" => {
                // A pause for server tools does not end the turn.
                response.finished = event["delta"]["stop_reason"] != "pause_turn";
                add_usage(response, &event["usage"]);
                EventContent::Other
            }
            _ => EventContent::Other,
        }
    }

    fn read_body(&self, response: &mut ModelResponse, body: &Value) {
        if body["type"] != "message" {
            return;
        }
        response.started = true;
        response.finished = body["stop_reason"] != "pause_turn";
        response.set_identity(body);
        add_usage(response, &body["usage"]);
        for block in blocks(&body["content"]) {
            if block["type"] == "tool_use" {
                response.calls.push(parse_call(block));
            } else if let Some(text) = block["text"].as_str() {
                response.text.push_str(text);
            }
        }
    }

    fn text_body(&self, mut body: Value, text: &str) -> Value {
        if !body.is_object() {
            body = Value::Object(Map::new());
        }
        body["type"] = json!("message");
        body["role"] = json!("assistant");
        body["content"] = json!([{ "type": "text", "text": text }]);
        body["stop_reason"] = json!("end_turn");
        body["stop_sequence"] = Value::Null;
        body
    }

    fn begin_text(&self, response: &mut ModelResponse) -> String {
        let mut out = String::new();
        if !response.started {
            response.started = true;
            let message = json!({
                "id": response.id, "type": "message", "role": "assistant", "model": response.model,
                "content": [], "stop_reason": null, "stop_sequence": null,
                "usage": { "input_tokens": 0, "output_tokens": 0 },
            });
            let start = json!({ "type": "message_start", "message": message });
            out.push_str(&sse_event(Some("message_start"), &start));
        }
        let start = json!({
            "type": "content_block_start", "index": response.block_count,
            "content_block": { "type": "text", "text": "" },
        });
        out.push_str(&sse_event(Some("content_block_start"), &start));
        out
    }

    fn text_delta(&self, response: &mut ModelResponse, text: &str) -> String {
        let delta = json!({
            "type": "content_block_delta", "index": response.block_count,
            "delta": { "type": "text_delta", "text": text },
        });
        sse_event(Some("content_block_delta"), &delta)
    }

    fn end_text(&self, response: &mut ModelResponse, _: &str) -> String {
        let stop = json!({ "type": "content_block_stop", "index": response.block_count });
        let delta = json!({
            "type": "message_delta",
            "delta": { "stop_reason": "end_turn", "stop_sequence": null },
            "usage": { "output_tokens": 0 },
        });
        [
            sse_event(Some("content_block_stop"), &stop),
            sse_event(Some("message_delta"), &delta),
            sse_event(Some("message_stop"), &json!({ "type": "message_stop" })),
        ]
        .concat()
    }

    fn error_body(&self, message: &str) -> Value {
        json!({ "type": "error", "error": { "type": "api_error", "message": message } })
    }
}

fn blocks(content: &Value) -> impl Iterator<Item = &Value> {
    content.as_array().into_iter().flatten()
}

/// Sets the token counts. Those of the end of a stream replace those of its start.
fn add_usage(response: &mut ModelResponse, usage: &Value) {
    let count = |name: &str| usage[name].as_u64();
    let counted = response.usage.unwrap_or_default();
    let counts = TokenUsage {
        input: count("input_tokens").unwrap_or(counted.input),
        cache_creation: count("cache_creation_input_tokens").unwrap_or(counted.cache_creation),
        cache_read: count("cache_read_input_tokens").unwrap_or(counted.cache_read),
        output: count("output_tokens").unwrap_or(counted.output),
    };
    if usage.is_object() {
        response.usage = Some(counts);
    }
}

fn parse_call(block: &Value) -> ToolCall {
    ToolCall {
        id: string_field(block, "id"),
        tool: string_field(block, "name"),
        input: block["input"].clone(),
    }
}

/// Converts a call or result block to text blocks. Other blocks are unchanged.
fn block_as_text(block: Value) -> Vec<Value> {
    let text_block = |text: &str| json!({ "type": "text", "text": text });
    if block["type"] == "tool_use" {
        let tool = block["name"].as_str().unwrap_or_default();
        return vec![text_block(&call_as_text(tool, &block["input"]))];
    }
    if block["type"] != "tool_result" {
        return vec![block];
    }
    let Some(inside) = block["content"].as_array() else {
        return vec![text_block(&format!(
            "{RESULT_HEADING}\n{}",
            content_text(&block["content"])
        ))];
    };
    let inside = inside
        .iter()
        .filter(|block| block["type"] != "tool_reference");
    std::iter::once(text_block(RESULT_HEADING))
        .chain(inside.cloned())
        .collect()
}
