//! Generates invalid conversations: calls and results with few ids, in any order and role, mixed
//! with invalid rows. Every text and result contains a unique marker, so that tests can find it in
//! the output.

use onward_core::transcript::Api;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

/// The content of a row, independent of the API.
#[derive(Debug, Clone)]
enum Item {
    Text,
    Blank,
    Call(u8),
    Result(u8),
    /// A call that the API server executes, if the API has such calls.
    ServerCall(u8),
    /// The result of a server call.
    ServerResult(u8),
    Other,
}

#[derive(Debug, Clone)]
struct RowSpec {
    role: u8,
    items: Vec<Item>,
    extra: bool,
}

fn items() -> impl Strategy<Value = Item> {
    prop_oneof![
        3 => Just(Item::Text),
        1 => Just(Item::Blank),
        4 => (0u8..3).prop_map(Item::Call),
        4 => (0u8..3).prop_map(Item::Result),
        1 => (0u8..3).prop_map(Item::ServerCall),
        1 => (0u8..3).prop_map(Item::ServerResult),
        1 => Just(Item::Other),
    ]
}

fn row_specs() -> impl Strategy<Value = Vec<RowSpec>> {
    let spec = (0u8..8, vec(items(), 0..4), prop::bool::weighted(0.1))
        .prop_map(|(role, items, extra)| RowSpec { role, items, extra });
    vec(spec, 0..9)
}

/// Message lists of an API.
pub(crate) fn lists(api: Api) -> impl Strategy<Value = Vec<Value>> {
    row_specs().prop_map(move |row_specs| {
        let mut count = 0;
        let mut rows = Vec::new();
        for spec in row_specs {
            match api {
                Api::Anthropic => rows.push(anthropic(&spec, &mut count)),
                Api::Chat => rows.extend(chat(&spec, &mut count)),
                Api::Responses => rows.extend(responses(&spec, &mut count)),
            }
        }
        rows
    })
}

fn id(number: u8) -> String {
    format!("call-{number}")
}

fn marker(count: &mut u32, kind: &str) -> String {
    *count += 1;
    format!("{kind} {count}.")
}

fn anthropic(spec: &RowSpec, count: &mut u32) -> Value {
    let role = match spec.role {
        0..=3 => "user",
        4..=6 => "assistant",
        _ => return json!([spec.role, "invalid row"]),
    };
    let blocks: Vec<Value> = spec
        .items
        .iter()
        .map(|item| match item {
            Item::Text => json!({"type": "text", "text": marker(count, "text")}),
            Item::Blank => json!({"type": "text", "text": " "}),
            Item::Call(n) if role == "assistant" => {
                json!({"type": "tool_use", "id": id(*n), "name": "t", "input": {"n": marker(count, "input")}})
            }
            Item::Result(n) | Item::Call(n) => {
                json!({"type": "tool_result", "tool_use_id": id(*n), "content": marker(count, "result")})
            }
            Item::ServerCall(n) if role == "assistant" => {
                json!({"type": "server_tool_use", "id": id(*n), "name": "web_search", "input": {"n": marker(count, "input")}})
            }
            Item::ServerResult(n) if role == "assistant" => {
                json!({"type": "web_search_tool_result", "tool_use_id": id(*n), "content": [marker(count, "other")]})
            }
            Item::ServerCall(_) | Item::ServerResult(_) | Item::Other => {
                json!({"type": "image", "source": marker(count, "other")})
            }
        })
        .collect();
    let mut row = match blocks.as_slice() {
        [only] if only["type"] == "text" => json!({"role": role, "content": only["text"]}),
        _ => json!({"role": role, "content": blocks}),
    };
    if spec.extra {
        row["extra"] = json!(1);
    }
    row
}

fn chat(spec: &RowSpec, count: &mut u32) -> Vec<Value> {
    let role = match spec.role {
        0..=2 => "user",
        3..=6 => "assistant",
        _ => return vec![json!({"role": "system", "content": marker(count, "text")})],
    };
    let mut calls = Vec::new();
    let mut rows = Vec::new();
    let mut text = json!(null);
    for item in &spec.items {
        match item {
            Item::Text | Item::Other | Item::ServerCall(_) | Item::ServerResult(_) => {
                text = marker(count, "text").into();
            }
            Item::Blank => text = " ".into(),
            Item::Call(n) if role == "assistant" => calls.push(json!({
                "id": id(*n), "type": "function",
                "function": {"name": "t", "arguments": marker(count, "input")},
            })),
            Item::Call(n) | Item::Result(n) => rows.push(json!({
                "role": "tool", "tool_call_id": id(*n), "content": marker(count, "result"),
            })),
        }
    }
    let mut row = json!({"role": role, "content": text});
    if !calls.is_empty() {
        row["tool_calls"] = calls.into();
    }
    rows.insert(usize::from(spec.extra).min(rows.len()), row);
    rows
}

fn responses(spec: &RowSpec, count: &mut u32) -> Vec<Value> {
    let role = if spec.role < 4 { "user" } else { "assistant" };
    let item = |item: &Item| match item {
        Item::Text => json!({"type": "message", "role": role, "content": marker(count, "text")}),
        Item::Blank => json!({"role": role, "content": " "}),
        Item::Call(n) => {
            json!({"type": "function_call", "call_id": id(*n), "name": "t", "arguments": marker(count, "input")})
        }
        Item::Result(n) => {
            json!({"type": "function_call_output", "call_id": id(*n), "output": marker(count, "result")})
        }
        Item::ServerCall(_) | Item::ServerResult(_) | Item::Other => {
            json!({"type": "reasoning", "summary": marker(count, "other")})
        }
    };
    spec.items.iter().map(item).collect()
}
