//! Anthropic's Messages: `/v1/messages`.
//!
//! Results stand first in the user's next row, so what is added comes after them in the same row, as
//! Claude Code itself does it; never in `system`, whose first block has to stay where it is. `tool_choice`
//! `none` is taken with thinking as without. A history with calls needs `tools`, so where these go, calls
//! and results become words.

use onward_core::transcript::json::{self, Object};
use serde_json::{Map, Value, json};

use super::dialect::{Answer, Dialect, Piece, RESULT, called, sse};
use super::request::{Answered, Asked, Edit, Request, Row, append, person, set, text, words};

pub(super) struct Anthropic;

impl Dialect for Anthropic {
    fn list(&self) -> &'static str {
        "messages"
    }

    fn system(&self) -> Option<&'static str> {
        Some("system")
    }

    fn row(&self, row: &Value) -> Row {
        let content = &row["content"];
        if row["role"] == "assistant" {
            let calls = blocks(content).filter(|block| block["type"] == "tool_use");
            return Row::Model(calls.map(asked).collect());
        }
        if row["role"] != "user" {
            return Row::Aside;
        }
        let results: Vec<Answered> = blocks(content)
            .filter(|block| block["type"] == "tool_result")
            .map(|block| Answered {
                id: text(block, "tool_use_id"),
                ok: Some(!block["is_error"].as_bool().unwrap_or(false)),
                output: words(&block["content"]),
            })
            .collect();
        match results.is_empty() {
            true => person(&words(content)),
            // What else stands in such a row was put there by the agent.
            false => Row::Results(results),
        }
    }

    fn say(&self, request: &Request<'_>, said: &str) -> Vec<Edit> {
        let block = format!(r#"{{"type":"text","text":{}}}"#, json::quoted(said));
        for index in (0..request.rows().len()).rev() {
            let (Some(row), Some(span)) = (request.row(index), request.rows().get(index)) else {
                continue;
            };
            let Some(fields) = Object::of(row) else {
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
                None => vec![append(request.text, &place, &block)],
            };
        }
        Vec::new()
    }

    fn forbid(&self, request: &Request<'_>) -> Vec<Edit> {
        vec![set(request, "tool_choice", r#"{"type":"none"}"#)]
    }

    fn without_tools(&self, mut request: Value, said: &str) -> Value {
        if let Some(fields) = request.as_object_mut() {
            for key in ["tools", "tool_choice", "mcp_servers"] {
                fields.remove(key);
            }
        }
        let rows = request["messages"].as_array_mut().into_iter().flatten();
        for row in rows {
            if let Some(content) = row["content"].as_array_mut() {
                *content = std::mem::take(content).into_iter().flat_map(told).collect();
            }
        }
        let last = request["messages"].as_array_mut();
        let last = last.and_then(|rows| rows.iter_mut().rev().find(|row| row["role"] == "user"));
        if let Some(row) = last {
            if let Some(text) = row["content"].as_str() {
                row["content"] = json!([{ "type": "text", "text": text }]);
            }
            if let Some(content) = row["content"].as_array_mut() {
                content.push(json!({ "type": "text", "text": said }));
            }
        }
        request
    }

    fn event(&self, answer: &mut Answer, event: &Value) -> Piece {
        match event["type"].as_str().unwrap_or_default() {
            "message_start" => {
                answer.started = true;
                answer.named(&event["message"]);
                Piece::Other
            }
            "content_block_start" => {
                let block = &event["content_block"];
                if block["type"] == "tool_use" {
                    answer.calls.push(asked(block));
                    // The input comes in pieces of its text.
                    if let Some(call) = answer.calls.last_mut() {
                        call.input = json!("");
                    }
                    return Piece::Call;
                }
                answer.blocks = event["index"].as_u64().unwrap_or(answer.blocks) + 1;
                Piece::Other
            }
            "content_block_delta" => {
                let delta = &event["delta"];
                if let Some(words) = delta["text"].as_str() {
                    return Piece::Text(words.to_owned());
                }
                if let (Some(more), Some(call)) =
                    (delta["partial_json"].as_str(), answer.calls.last_mut())
                    && let Value::String(input) = &mut call.input
                {
                    input.push_str(more);
                }
                Piece::Other
            }
            "message_delta" => {
                // A pause of tools that the server runs: the turn goes on.
                answer.finished = event["delta"]["stop_reason"] != "pause_turn";
                Piece::Other
            }
            _ => Piece::Other,
        }
    }

    fn whole(&self, answer: &mut Answer, body: &Value) {
        if body["type"] != "message" {
            return;
        }
        answer.started = true;
        answer.finished = body["stop_reason"] != "pause_turn";
        answer.named(body);
        for block in blocks(&body["content"]) {
            if block["type"] == "tool_use" {
                answer.calls.push(asked(block));
            } else if let Some(words) = block["text"].as_str() {
                answer.text.push_str(words);
            }
        }
    }

    fn sentence(&self, mut body: Value, said: &str) -> Value {
        if !body.is_object() {
            body = Value::Object(Map::new());
        }
        body["type"] = json!("message");
        body["role"] = json!("assistant");
        body["content"] = json!([{ "type": "text", "text": said }]);
        body["stop_reason"] = json!("end_turn");
        body["stop_sequence"] = Value::Null;
        body
    }

    fn begin(&self, answer: &mut Answer) -> String {
        let mut out = String::new();
        if !answer.started {
            answer.started = true;
            let message = json!({
                "id": answer.id, "type": "message", "role": "assistant", "model": answer.model,
                "content": [], "stop_reason": null, "stop_sequence": null,
                "usage": { "input_tokens": 0, "output_tokens": 0 },
            });
            let start = json!({ "type": "message_start", "message": message });
            out.push_str(&sse(Some("message_start"), &start));
        }
        let start = json!({
            "type": "content_block_start", "index": answer.blocks,
            "content_block": { "type": "text", "text": "" },
        });
        out.push_str(&sse(Some("content_block_start"), &start));
        out
    }

    fn piece(&self, answer: &mut Answer, said: &str) -> String {
        let delta = json!({
            "type": "content_block_delta", "index": answer.blocks,
            "delta": { "type": "text_delta", "text": said },
        });
        sse(Some("content_block_delta"), &delta)
    }

    fn end(&self, answer: &mut Answer, _: &str) -> String {
        let stop = json!({ "type": "content_block_stop", "index": answer.blocks });
        let delta = json!({
            "type": "message_delta",
            "delta": { "stop_reason": "end_turn", "stop_sequence": null },
            "usage": { "output_tokens": 0 },
        });
        [
            sse(Some("content_block_stop"), &stop),
            sse(Some("message_delta"), &delta),
            sse(Some("message_stop"), &json!({ "type": "message_stop" })),
        ]
        .concat()
    }

    fn error(&self, message: &str) -> Value {
        json!({ "type": "error", "error": { "type": "api_error", "message": message } })
    }
}

fn blocks(content: &Value) -> impl Iterator<Item = &Value> {
    content.as_array().into_iter().flatten()
}

fn asked(block: &Value) -> Asked {
    Asked {
        id: text(block, "id"),
        tool: text(block, "name"),
        input: block["input"].clone(),
    }
}

/// A block in words, where it is a call or a result; pictures stay what they are.
fn told(block: Value) -> Vec<Value> {
    let says = |said: &str| json!({ "type": "text", "text": said });
    if block["type"] == "tool_use" {
        let tool = block["name"].as_str().unwrap_or_default();
        return vec![says(&called(tool, &block["input"]))];
    }
    if block["type"] != "tool_result" {
        return vec![block];
    }
    let Some(inside) = block["content"].as_array() else {
        return vec![says(&format!("{RESULT}\n{}", words(&block["content"])))];
    };
    let inside = inside
        .iter()
        .filter(|block| block["type"] != "tool_reference");
    std::iter::once(says(RESULT))
        .chain(inside.cloned())
        .collect()
}
