//! Conversations that nobody would write: calls and results with few ids, in any order, in rows of
//! anybody, among things that are no rows at all. Every text and every result in one is unlike all
//! others, so that it can be told whether it is still there.

use onward_core::transcript::Api;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

/// A piece of a row, before it is written in the way of an API.
#[derive(Debug, Clone)]
enum Bit {
    Text,
    Blank,
    Call(u8),
    Result(u8),
    /// A call that the server runs, where an API has such.
    Search(u8),
    /// The result of one.
    Found(u8),
    Thing,
}

#[derive(Debug, Clone)]
struct Sketch {
    role: u8,
    bits: Vec<Bit>,
    extra: bool,
}

fn bits() -> impl Strategy<Value = Bit> {
    prop_oneof![
        3 => Just(Bit::Text),
        1 => Just(Bit::Blank),
        4 => (0u8..3).prop_map(Bit::Call),
        4 => (0u8..3).prop_map(Bit::Result),
        1 => (0u8..3).prop_map(Bit::Search),
        1 => (0u8..3).prop_map(Bit::Found),
        1 => Just(Bit::Thing),
    ]
}

fn sketches() -> impl Strategy<Value = Vec<Sketch>> {
    let sketch = (0u8..8, vec(bits(), 0..4), prop::bool::weighted(0.1))
        .prop_map(|(role, bits, extra)| Sketch { role, bits, extra });
    vec(sketch, 0..9)
}

/// Lists of messages of an API.
pub(crate) fn lists(api: Api) -> impl Strategy<Value = Vec<Value>> {
    sketches().prop_map(move |sketches| {
        let mut count = 0;
        let mut rows = Vec::new();
        for sketch in sketches {
            match api {
                Api::Anthropic => rows.push(anthropic(&sketch, &mut count)),
                Api::Chat => rows.extend(chat(&sketch, &mut count)),
                Api::Responses => rows.extend(responses(&sketch, &mut count)),
            }
        }
        rows
    })
}

fn id(number: u8) -> String {
    format!("call-{number}")
}

fn fresh(count: &mut u32, kind: &str) -> String {
    *count += 1;
    format!("{kind} {count}.")
}

fn anthropic(sketch: &Sketch, count: &mut u32) -> Value {
    let role = match sketch.role {
        0..=3 => "user",
        4..=6 => "assistant",
        _ => return json!([sketch.role, "no row"]),
    };
    let blocks: Vec<Value> = sketch
        .bits
        .iter()
        .map(|bit| match bit {
            Bit::Text => json!({"type": "text", "text": fresh(count, "text")}),
            Bit::Blank => json!({"type": "text", "text": " "}),
            Bit::Call(n) if role == "assistant" => {
                json!({"type": "tool_use", "id": id(*n), "name": "t", "input": {"n": fresh(count, "input")}})
            }
            Bit::Result(n) | Bit::Call(n) => {
                json!({"type": "tool_result", "tool_use_id": id(*n), "content": fresh(count, "result")})
            }
            Bit::Search(n) if role == "assistant" => {
                json!({"type": "server_tool_use", "id": id(*n), "name": "web_search", "input": {"n": fresh(count, "input")}})
            }
            Bit::Found(n) if role == "assistant" => {
                json!({"type": "web_search_tool_result", "tool_use_id": id(*n), "content": [fresh(count, "thing")]})
            }
            Bit::Search(_) | Bit::Found(_) | Bit::Thing => {
                json!({"type": "image", "source": fresh(count, "thing")})
            }
        })
        .collect();
    let mut row = match blocks.as_slice() {
        [only] if only["type"] == "text" => json!({"role": role, "content": only["text"]}),
        _ => json!({"role": role, "content": blocks}),
    };
    if sketch.extra {
        row["extra"] = json!(1);
    }
    row
}

fn chat(sketch: &Sketch, count: &mut u32) -> Vec<Value> {
    let role = match sketch.role {
        0..=2 => "user",
        3..=6 => "assistant",
        _ => return vec![json!({"role": "system", "content": fresh(count, "text")})],
    };
    let mut calls = Vec::new();
    let mut rows = Vec::new();
    let mut said = json!(null);
    for bit in &sketch.bits {
        match bit {
            Bit::Text | Bit::Thing | Bit::Search(_) | Bit::Found(_) => {
                said = fresh(count, "text").into();
            }
            Bit::Blank => said = " ".into(),
            Bit::Call(n) if role == "assistant" => calls.push(json!({
                "id": id(*n), "type": "function",
                "function": {"name": "t", "arguments": fresh(count, "input")},
            })),
            Bit::Call(n) | Bit::Result(n) => rows.push(json!({
                "role": "tool", "tool_call_id": id(*n), "content": fresh(count, "result"),
            })),
        }
    }
    let mut row = json!({"role": role, "content": said});
    if !calls.is_empty() {
        row["tool_calls"] = calls.into();
    }
    rows.insert(usize::from(sketch.extra).min(rows.len()), row);
    rows
}

fn responses(sketch: &Sketch, count: &mut u32) -> Vec<Value> {
    let role = if sketch.role < 4 { "user" } else { "assistant" };
    let item = |bit: &Bit| match bit {
        Bit::Text => json!({"type": "message", "role": role, "content": fresh(count, "text")}),
        Bit::Blank => json!({"role": role, "content": " "}),
        Bit::Call(n) => {
            json!({"type": "function_call", "call_id": id(*n), "name": "t", "arguments": fresh(count, "input")})
        }
        Bit::Result(n) => {
            json!({"type": "function_call_output", "call_id": id(*n), "output": fresh(count, "result")})
        }
        Bit::Search(_) | Bit::Found(_) | Bit::Thing => {
            json!({"type": "reasoning", "summary": fresh(count, "thing")})
        }
    };
    sketch.bits.iter().map(item).collect()
}
