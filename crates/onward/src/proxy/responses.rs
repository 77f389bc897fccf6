//! OpenAI's Responses: `/v1/responses`.
//!
//! Each call and each result is an item of its own, so what is added is an item after them. Where the
//! server remembers the conversation (`previous_response_id`), a request holds only what is new: then the
//! calls are known from the answers that passed here.

use onward_core::transcript::json;
use serde_json::{Map, Value, json};

use super::dialect::{Answer, Dialect, Piece, RESULT, called, sse};
use super::request::{
    Answered, Asked, Edit, MORE_TOOLS, Request, Row, append, arguments, person, set, text, words,
};

pub(super) struct Responses;

impl Dialect for Responses {
    fn list(&self) -> &'static str {
        "input"
    }

    fn system(&self) -> Option<&'static str> {
        Some("instructions")
    }

    fn row(&self, item: &Value) -> Row {
        let kind = item["type"].as_str().unwrap_or("message");
        if kind == "message" {
            return match item["role"].as_str().unwrap_or_default() {
                "user" => person(&words(&item["content"])),
                "assistant" => Row::Model(Vec::new()),
                _ => Row::Aside,
            };
        }
        match item["call_id"].as_str() {
            Some(id) if kind.ends_with("_output") => Row::Results(vec![answered(id, item)]),
            Some(_) => Row::Model(vec![asked(item)]),
            None => Row::Aside,
        }
    }

    fn say(&self, request: &Request<'_>, said: &str) -> Vec<Edit> {
        let item = |text: &str| {
            format!(
                r#"{{"type":"message","role":"user","content":[{{"type":"input_text","text":{text}}}]}}"#
            )
        };
        let said = item(&json::quoted(said));
        let list = request.list();
        let was = request.text.get(list.clone()).unwrap_or_default();
        match json::string(was) {
            Some(_) => vec![(list, format!("[{},{said}]", item(was)))],
            None => vec![append(request.text, &list, &said)],
        }
    }

    fn forbid(&self, request: &Request<'_>) -> Vec<Edit> {
        vec![set(request, "tool_choice", r#""none""#)]
    }

    fn without_tools(&self, mut request: Value, said: &str) -> Value {
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
        let remembered = ["previous_response_id", "conversation"]
            .iter()
            .any(|key| !request[*key].is_null());
        if let Some(text) = request["input"].as_str() {
            request["input"] = json!([user(text)]);
        }
        if let Some(items) = request["input"].as_array_mut() {
            items.retain(|item| item["type"] != MORE_TOOLS);
            // Results whose calls the server remembers have to stay what they are.
            if !remembered {
                *items = std::mem::take(items).into_iter().filter_map(told).collect();
            }
            items.push(user(said));
        }
        request
    }

    fn event(&self, answer: &mut Answer, event: &Value) -> Piece {
        if let Some(number) = event["sequence_number"].as_u64() {
            answer.sequence = number + 1;
        }
        match event["type"].as_str().unwrap_or_default() {
            "response.created" => {
                answer.started = true;
                answer.named(&event["response"]);
                answer.response = event["response"].clone();
                Piece::Other
            }
            "response.output_item.added" => {
                if is_call(&event["item"]) {
                    // Whoever goes on in its place goes on with its number.
                    answer.sequence = answer.sequence.saturating_sub(1);
                    return Piece::Call;
                }
                answer.blocks = event["output_index"].as_u64().unwrap_or(answer.blocks) + 1;
                Piece::Other
            }
            "response.output_item.done" => {
                let item = &event["item"];
                match is_call(item) {
                    true => answer.calls.push(asked(item)),
                    false => answer.items.push(item.clone()),
                }
                Piece::Other
            }
            "response.output_text.delta" => match event["delta"].as_str() {
                Some(words) => Piece::Text(words.to_owned()),
                None => Piece::Other,
            },
            "response.completed" | "response.incomplete" => {
                answer.finished = true;
                Piece::Other
            }
            _ => Piece::Other,
        }
    }

    fn whole(&self, answer: &mut Answer, body: &Value) {
        let Some(output) = body["output"].as_array() else {
            return;
        };
        answer.started = true;
        answer.finished = matches!(
            body["status"].as_str(),
            Some("completed" | "incomplete") | None
        );
        answer.named(body);
        for item in output {
            match is_call(item) {
                true => answer.calls.push(asked(item)),
                false if item["type"] == "message" => {
                    answer.text.push_str(&words(&item["content"]))
                }
                false => {}
            }
        }
    }

    fn sentence(&self, mut body: Value, said: &str) -> Value {
        if !body.is_object() {
            body = Value::Object(Map::new());
        }
        body["object"] = json!("response");
        body["status"] = json!("completed");
        body["output"] = json!([message(&body, said)]);
        body
    }

    fn begin(&self, answer: &mut Answer) -> String {
        let mut out = String::new();
        if !answer.started {
            answer.started = true;
            answer.response = json!({
                "id": answer.id, "object": "response", "created_at": answer.created,
                "status": "in_progress", "model": answer.model, "output": [],
            });
            let response = answer.response.clone();
            out.push_str(&numbered(
                answer,
                "response.created",
                json!({ "response": response }),
            ));
        }
        let mut item = message(&json!({ "id": answer.id }), "");
        item["status"] = json!("in_progress");
        item["content"] = json!([]);
        let index = answer.blocks;
        let added = json!({ "output_index": index, "item": item });
        out.push_str(&numbered(answer, "response.output_item.added", added));
        let part = json!({
            "item_id": item["id"], "output_index": index, "content_index": 0,
            "part": { "type": "output_text", "text": "", "annotations": [] },
        });
        out.push_str(&numbered(answer, "response.content_part.added", part));
        out
    }

    fn piece(&self, answer: &mut Answer, said: &str) -> String {
        let delta = json!({
            "item_id": message_id(&answer.id), "output_index": answer.blocks, "content_index": 0,
            "delta": said,
        });
        numbered(answer, "response.output_text.delta", delta)
    }

    fn end(&self, answer: &mut Answer, text: &str) -> String {
        let item = message(&json!({ "id": answer.id }), text);
        let place = |more: Value| {
            let mut event = json!({
                "item_id": item["id"], "output_index": answer.blocks, "content_index": 0,
            });
            if let (Some(event), Value::Object(more)) = (event.as_object_mut(), more) {
                event.extend(more);
            }
            event
        };
        let text_done = place(json!({ "text": text }));
        let part_done = place(json!({ "part": item["content"][0] }));
        let item_done = json!({ "output_index": answer.blocks, "item": item });
        answer.items.push(item);
        let mut response = answer.response.clone();
        if !response.is_object() {
            response = json!({ "id": answer.id, "object": "response", "model": answer.model });
        }
        response["status"] = json!("completed");
        response["output"] = json!(answer.items);
        [
            numbered(answer, "response.output_text.done", text_done),
            numbered(answer, "response.content_part.done", part_done),
            numbered(answer, "response.output_item.done", item_done),
            numbered(
                answer,
                "response.completed",
                json!({ "response": response }),
            ),
        ]
        .concat()
    }

    fn error(&self, message: &str) -> Value {
        json!({ "error": {
            "message": message, "type": "server_error", "param": null, "code": null,
        } })
    }
}

/// An event with its name and the next number.
fn numbered(answer: &mut Answer, name: &str, mut event: Value) -> String {
    event["type"] = json!(name);
    event["sequence_number"] = json!(answer.sequence);
    answer.sequence += 1;
    sse(Some(name), &event)
}

/// Whether an item is something that the agent has to do. What the server does itself has no such id.
fn is_call(item: &Value) -> bool {
    let kind = item["type"].as_str().unwrap_or_default();
    kind.ends_with("_call") && item["call_id"].is_string()
}

fn asked(item: &Value) -> Asked {
    let given = ["arguments", "input", "action"]
        .into_iter()
        .find(|key| !item[*key].is_null());
    let input = match given {
        Some("arguments") => arguments(&item["arguments"]),
        Some(key) => item[key].clone(),
        None => Value::Null,
    };
    let name = text(item, "name");
    Asked {
        id: text(item, "call_id"),
        tool: match name.is_empty() {
            true => text(item, "type"),
            false => name,
        },
        input,
    }
}

/// A result. Codex tells the exit code along with the output.
fn answered(id: &str, item: &Value) -> Answered {
    let given = words(&item["output"]);
    let told: Option<Value> = serde_json::from_str(&given).ok();
    let code = |told: &Value| told["metadata"]["exit_code"].as_i64();
    let (ok, output) = match told {
        Some(told) if code(&told).is_some() && told["output"].is_string() => {
            (code(&told).map(|code| code == 0), text(&told, "output"))
        }
        Some(_) | None => {
            let code = given.strip_prefix("Exit code: ");
            let code = code.and_then(|rest| rest.lines().next());
            let ok = match code {
                Some(code) => Some(code.trim() == "0"),
                None => given.starts_with("Error").then_some(false),
            };
            (ok, given)
        }
    };
    Answered {
        id: id.to_owned(),
        ok,
        output,
    }
}

/// An item in words, where it is a call or a result. A thought goes: it may only stand before its call.
fn told(item: Value) -> Option<Value> {
    if is_call(&item) {
        let call = asked(&item);
        return Some(json!({
            "type": "message", "role": "assistant",
            "content": [{ "type": "output_text", "text": called(&call.tool, &call.input) }],
        }));
    }
    let kind = item["type"].as_str().unwrap_or("message");
    if kind.ends_with("_output") {
        return Some(user(&format!("{RESULT}\n{}", words(&item["output"]))));
    }
    (kind != "reasoning").then_some(item)
}

fn user(said: &str) -> Value {
    json!({
        "type": "message", "role": "user", "content": [{ "type": "input_text", "text": said }],
    })
}

/// A message of the model that says this.
fn message(of: &Value, said: &str) -> Value {
    json!({
        "id": message_id(of["id"].as_str().unwrap_or_default()),
        "type": "message", "status": "completed", "role": "assistant",
        "content": [{ "type": "output_text", "text": said, "annotations": [] }],
    })
}

fn message_id(response: &str) -> String {
    format!("msg_{}", response.trim_start_matches("resp_"))
}
