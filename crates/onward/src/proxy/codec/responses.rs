//! The codec of OpenAI Responses: `/v1/responses`.
//!
//! Each call and each result is an item, so a text is appended as an item after the results. If the
//! server stores the conversation (`previous_response_id`), a request contains only new items, and
//! the calls are known from the relayed responses.

use onward_core::transcript::json;
use serde_json::{Map, Value, json};

use super::{Codec, EventContent, ModelResponse, RESULT_HEADING, call_as_text, sse_event};
use crate::proxy::request::{
    ADDITIONAL_TOOLS, Edit, Request, Row, ToolCall, ToolResult, append_element, content_text,
    parse_arguments, parse_user_text, set_field, string_field,
};

pub(super) struct Responses;

impl Codec for Responses {
    fn parse_row(&self, item: &Value) -> Row {
        let kind = item["type"].as_str().unwrap_or("message");
        if kind == "message" {
            return match item["role"].as_str().unwrap_or_default() {
                "user" => parse_user_text(&content_text(&item["content"])),
                "assistant" => Row::Assistant(Vec::new()),
                _ => Row::Other,
            };
        }
        match item["call_id"].as_str() {
            Some(id) if kind.ends_with("_output") => Row::ToolResults(vec![parse_result(id, item)]),
            Some(_) => Row::Assistant(vec![parse_call(item)]),
            None => Row::Other,
        }
    }

    fn inject(&self, request: &Request<'_>, text: &str) -> Vec<Edit> {
        let item = |text: &str| {
            format!(
                r#"{{"type":"message","role":"user","content":[{{"type":"input_text","text":{text}}}]}}"#
            )
        };
        let injected = item(&json::quoted(text));
        let list = request.rows_span();
        let current = request.text.get(list.clone()).unwrap_or_default();
        match json::string(current) {
            Some(_) => vec![(list, format!("[{},{injected}]", item(current)))],
            None => vec![append_element(request.text, &list, &injected)],
        }
    }

    fn forbid_tools(&self, request: &Request<'_>) -> Vec<Edit> {
        vec![set_field(request, "tool_choice", r#""none""#)]
    }

    fn without_tools(&self, mut request: Value, text: &str) -> Value {
        if let Some(fields) = request.as_object_mut() {
            for key in [
                "tools",
                "tool_choice",
                "parallel_tool_calls",
                "max_tool_calls",
            ] {
                fields.remove(key);
            }
        }
        let is_stored = ["previous_response_id", "conversation"]
            .iter()
            .any(|key| !request[*key].is_null());
        if let Some(input) = request["input"].as_str() {
            request["input"] = json!([user_message(input)]);
        }
        if let Some(items) = request["input"].as_array_mut() {
            items.retain(|item| item["type"] != ADDITIONAL_TOOLS);
            // Results must keep their form if the server stores the calls.
            if !is_stored {
                *items = std::mem::take(items)
                    .into_iter()
                    .filter_map(item_as_text)
                    .collect();
            }
            items.push(user_message(text));
        }
        request
    }

    fn read_event(&self, response: &mut ModelResponse, event: &Value) -> EventContent {
        if let Some(number) = event["sequence_number"].as_u64() {
            response.next_sequence = number.saturating_add(1);
        }
        match event["type"].as_str().unwrap_or_default() {
            "response.created" => {
                response.started = true;
                response.set_identity(&event["response"]);
                response.response = event["response"].clone();
                EventContent::Other
            }
            "response.output_item.added" => {
                if is_call(&event["item"]) {
                    // Replacement events continue with the number of this event.
                    response.next_sequence = response.next_sequence.saturating_sub(1);
                    return EventContent::ToolCall;
                }
                let index = event["output_index"].as_u64();
                let index = index.unwrap_or(response.block_count);
                response.block_count = index.saturating_add(1);
                EventContent::Other
            }
            "response.output_item.done" => {
                let item = &event["item"];
                if is_call(item) {
                    response.calls.push(parse_call(item));
                } else {
                    response.completed_items.push(item.clone());
                }
                EventContent::Other
            }
            "response.output_text.delta" => match event["delta"].as_str() {
                Some(text) => EventContent::Text(text.to_owned()),
                None => EventContent::Other,
            },
            "response.completed" | "response.incomplete" => {
                response.finished = true;
                response.set_usage(&event["response"]["usage"], "input_tokens", "output_tokens");
                EventContent::Other
            }
            _ => EventContent::Other,
        }
    }

    fn read_body(&self, response: &mut ModelResponse, body: &Value) {
        let Some(output) = body["output"].as_array() else {
            return;
        };
        response.started = true;
        response.finished = matches!(
            body["status"].as_str(),
            Some("completed" | "incomplete") | None
        );
        response.set_identity(body);
        response.set_usage(&body["usage"], "input_tokens", "output_tokens");
        for item in output {
            if is_call(item) {
                response.calls.push(parse_call(item));
            } else if item["type"] == "message" {
                response.text.push_str(&content_text(&item["content"]));
            }
        }
    }

    fn text_body(&self, mut body: Value, text: &str) -> Value {
        if !body.is_object() {
            body = Value::Object(Map::new());
        }
        body["object"] = json!("response");
        body["status"] = json!("completed");
        body["output"] = json!([message(&body, text)]);
        body
    }

    fn begin_text(&self, response: &mut ModelResponse) -> String {
        let mut out = String::new();
        if !response.started {
            response.started = true;
            response.response = json!({
                "id": response.id, "object": "response", "created_at": response.created,
                "status": "in_progress", "model": response.model, "output": [],
            });
            let created = json!({ "response": response.response });
            out.push_str(&numbered_event(response, "response.created", created));
        }
        let mut item = message(&json!({ "id": response.id }), "");
        item["status"] = json!("in_progress");
        item["content"] = json!([]);
        let index = response.block_count;
        let added = json!({ "output_index": index, "item": item });
        out.push_str(&numbered_event(
            response,
            "response.output_item.added",
            added,
        ));
        let part = json!({
            "item_id": item["id"], "output_index": index, "content_index": 0,
            "part": { "type": "output_text", "text": "", "annotations": [] },
        });
        out.push_str(&numbered_event(
            response,
            "response.content_part.added",
            part,
        ));
        out
    }

    fn text_delta(&self, response: &mut ModelResponse, text: &str) -> String {
        let delta = json!({
            "item_id": message_id(&response.id), "output_index": response.block_count, "content_index": 0,
            "delta": text,
        });
        numbered_event(response, "response.output_text.delta", delta)
    }

    fn end_text(&self, response: &mut ModelResponse, text: &str) -> String {
        let item = message(&json!({ "id": response.id }), text);
        let with_position = |more: Value| {
            let mut event = json!({
                "item_id": item["id"], "output_index": response.block_count, "content_index": 0,
            });
            if let (Some(event), Value::Object(more)) = (event.as_object_mut(), more) {
                event.extend(more);
            }
            event
        };
        let text_done = with_position(json!({ "text": text }));
        let part_done = with_position(json!({ "part": item["content"][0] }));
        let item_done = json!({ "output_index": response.block_count, "item": item });
        response.completed_items.push(item);
        let mut object = response.response.clone();
        if !object.is_object() {
            object = json!({ "id": response.id, "object": "response", "model": response.model });
        }
        object["status"] = json!("completed");
        object["output"] = json!(response.completed_items);
        [
            numbered_event(response, "response.output_text.done", text_done),
            numbered_event(response, "response.content_part.done", part_done),
            numbered_event(response, "response.output_item.done", item_done),
            numbered_event(
                response,
                "response.completed",
                json!({ "response": object }),
            ),
        ]
        .concat()
    }

    fn error_body(&self, message: &str) -> Value {
        json!({ "error": {
            "message": message, "type": "server_error", "param": null, "code": null,
        } })
    }
}

/// An event with its type and the next sequence number.
fn numbered_event(response: &mut ModelResponse, name: &str, mut event: Value) -> String {
    event["type"] = json!(name);
    event["sequence_number"] = json!(response.next_sequence);
    response.next_sequence = response.next_sequence.saturating_add(1);
    sse_event(Some(name), &event)
}

/// Whether an item is a call for the agent. Calls executed by the server have no `call_id`.
fn is_call(item: &Value) -> bool {
    let kind = item["type"].as_str().unwrap_or_default();
    kind.ends_with("_call") && item["call_id"].is_string()
}

fn parse_call(item: &Value) -> ToolCall {
    let key = ["arguments", "input", "action"]
        .into_iter()
        .find(|key| !item[*key].is_null());
    let input = match key {
        Some("arguments") => parse_arguments(&item["arguments"]),
        Some(key) => item[key].clone(),
        None => Value::Null,
    };
    let name = string_field(item, "name");
    ToolCall {
        id: string_field(item, "call_id"),
        tool: if name.is_empty() {
            string_field(item, "type")
        } else {
            name
        },
        input,
    }
}

/// Parses a result. Codex includes the exit code in the output.
/// The exit code in the header that Codex writes before the output of a command.
fn exit_code(text: &str) -> Option<i64> {
    const LABELS: [&str; 2] = ["Exit code: ", "Process exited with code "];
    let header = text.lines().take_while(|line| line.trim() != "Output:");
    let mut codes = header.take(10).filter_map(|line| {
        let code = LABELS.iter().find_map(|label| line.strip_prefix(label))?;
        code.trim().parse().ok()
    });
    codes.next()
}

fn parse_result(id: &str, item: &Value) -> ToolResult {
    let text = content_text(&item["output"]);
    let json: Option<Value> = serde_json::from_str(&text).ok();
    let code = |json: &Value| json["metadata"]["exit_code"].as_i64();
    let (ok, output) = match json {
        Some(json) if code(&json).is_some() && json["output"].is_string() => (
            code(&json).map(|code| code == 0),
            string_field(&json, "output"),
        ),
        Some(_) | None => {
            let ok = match exit_code(&text) {
                Some(code) => Some(code == 0),
                None => text.starts_with("Error").then_some(false),
            };
            (ok, text)
        }
    };
    ToolResult {
        id: id.to_owned(),
        ok,
        output,
    }
}

/// Converts a call or result item to a message. Reasoning items are removed: they must precede
/// their calls.
fn item_as_text(item: Value) -> Option<Value> {
    if is_call(&item) {
        let call = parse_call(&item);
        return Some(json!({
            "type": "message", "role": "assistant",
            "content": [{ "type": "output_text", "text": call_as_text(&call.tool, &call.input) }],
        }));
    }
    let kind = item["type"].as_str().unwrap_or("message");
    if kind.ends_with("_output") {
        return Some(user_message(&format!(
            "{RESULT_HEADING}\n{}",
            content_text(&item["output"])
        )));
    }
    (kind != "reasoning").then_some(item)
}

fn user_message(text: &str) -> Value {
    json!({
        "type": "message", "role": "user", "content": [{ "type": "input_text", "text": text }],
    })
}

/// An assistant message of a response.
fn message(response: &Value, text: &str) -> Value {
    json!({
        "id": message_id(response["id"].as_str().unwrap_or_default()),
        "type": "message", "status": "completed", "role": "assistant",
        "content": [{ "type": "output_text", "text": text, "annotations": [] }],
    })
}

fn message_id(response: &str) -> String {
    format!("msg_{}", response.trim_start_matches("resp_"))
}

#[cfg(test)]
mod tests {
    use onward_core::transcript::Api;
    use serde_json::json;

    use super::*;

    #[test]
    fn detects_and_removes_tools_in_an_item() {
        let body = |choice: &str| {
            json!({ "tool_choice": choice, "input": [
                { "type": ADDITIONAL_TOOLS, "role": "developer", "tools": [{ "type": "custom" }] },
                { "type": "message", "role": "user", "content": "Tides?" },
            ] })
        };
        for (choice, expected) in [("auto", true), ("none", false)] {
            let text = body(choice).to_string();
            let request = Request::parse(Api::Responses, &text).expect("valid request");
            assert_eq!(request.allows_tools(), expected, "{choice}");
        }
        let bare = Responses.without_tools(body("none"), "Answer in text.");
        assert!(!bare.to_string().contains(ADDITIONAL_TOOLS), "{bare}");
        assert_eq!(bare["input"].as_array().map(Vec::len), Some(2), "{bare}");
    }
}
