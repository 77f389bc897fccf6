//! Mutation of inputs: of bytes, and of the values of a JSON document, which stays valid.

use onward_testbed::Rng;
use serde_json::{Value, json};

/// Maximum size of an input.
const MAX_BYTES: usize = 64 << 10;

/// Texts that parsers treat specially.
const WORDS: [&str; 40] = [
    "\"",
    "\\",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    "<",
    ">",
    "\n",
    "\r\n",
    "\n\n",
    "\0",
    "\u{feff}",
    "\u{202e}",
    "é",
    "\u{1f600}",
    "\\ud800",
    "\\u0000",
    "data: ",
    "event: ",
    "null",
    "true",
    "1e999",
    "-0",
    "9223372036854775808",
    "..",
    "../",
    "`",
    "```",
    "|",
    "---",
    "#",
    "*",
    "&&",
    "==",
    "'",
    "= ",
    "%",
];

/// An input that is derived from one or two of the seeds.
pub(super) fn mutate(seeds: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    let seed = rng.pick(seeds).cloned().unwrap_or_default();
    let mut input = match serde_json::from_slice::<Value>(&seed) {
        Ok(mut value) if rng.percent(60) => {
            for _ in 0..=rng.index(4) {
                mutate_json(&mut value, rng);
            }
            value.to_string().into_bytes()
        }
        Ok(_) | Err(_) => mutate_lines(seed, rng),
    };
    if rng.percent(50) {
        for _ in 0..=rng.index(6) {
            let other = rng.pick(seeds).cloned().unwrap_or_default();
            mutate_bytes(&mut input, &other, rng);
        }
    }
    input.truncate(MAX_BYTES);
    input
}

/// Mutates some lines that are JSON documents.
fn mutate_lines(text: Vec<u8>, rng: &mut Rng) -> Vec<u8> {
    let mut lines: Vec<Vec<u8>> = text
        .split(|byte| *byte == b'\n')
        .map(<[u8]>::to_vec)
        .collect();
    for _ in 0..=rng.index(3) {
        let at = rng.index(lines.len());
        let Some(line) = lines.get_mut(at) else {
            continue;
        };
        let json_at = line.iter().position(|byte| *byte == b'{').unwrap_or(0);
        let (prefix, json) = line.split_at(json_at);
        if let Ok(mut value) = serde_json::from_slice::<Value>(json) {
            mutate_json(&mut value, rng);
            *line = [prefix, value.to_string().as_bytes()].concat();
        }
    }
    if rng.percent(20) {
        let from = rng.index(lines.len());
        let to = rng.index(lines.len());
        lines.swap(from, to);
    }
    lines.join(&b'\n')
}

fn mutate_bytes(input: &mut Vec<u8>, other: &[u8], rng: &mut Rng) {
    let at = rng.index(input.len() + 1);
    let length = rng.index(input.len().saturating_sub(at).min(200) + 1);
    match rng.index(8) {
        0 => {
            if let Some(byte) = input.get_mut(at) {
                *byte ^= 1 << rng.index(8);
            }
        }
        1 => {
            let word = rng.pick(&WORDS).copied().unwrap_or_default();
            input.splice(at..at, word.bytes());
        }
        2 => drop(input.drain(at..at + length)),
        3 => input.truncate(at),
        4 => {
            let part = input.get(at..at + length).unwrap_or_default();
            let part = part.repeat(1 + count(rng, 300));
            input.splice(at..at, part);
        }
        5 => {
            let from = rng.index(other.len() + 1);
            input.truncate(at);
            input.extend_from_slice(other.get(from..).unwrap_or_default());
        }
        6 => {
            let word = rng.pick(&WORDS).copied().unwrap_or_default();
            let words = word.repeat(1 + count(rng, 5_000));
            input.splice(at..at, words.bytes());
        }
        _ => {
            let mut bytes = vec![0; rng.index(16)];
            rng.fill(&mut bytes);
            input.splice(at..at, bytes);
        }
    }
    input.truncate(MAX_BYTES);
}

/// A number below the limit: mostly small, so that most inputs are processed quickly.
fn count(rng: &mut Rng, limit: usize) -> usize {
    let limit = if rng.percent(10) {
        limit
    } else {
        limit.min(10)
    };
    rng.index(limit)
}

fn mutate_json(value: &mut Value, rng: &mut Rng) {
    let copy = node(value, rng).clone();
    let node = node(value, rng);
    match rng.index(8) {
        0 | 1 => *node = special_value(rng),
        2 => *node = copy,
        3 => match node {
            Value::Object(fields) => {
                let name = fields.keys().nth(rng.index(fields.len())).cloned();
                name.and_then(|name| fields.remove(&name));
            }
            Value::Array(values) if !values.is_empty() => {
                drop(values.remove(rng.index(values.len())));
            }
            other => *other = Value::Null,
        },
        4 => match node {
            Value::Array(values) => {
                let element = rng.pick(values).cloned().unwrap_or(copy);
                values.extend(std::iter::repeat_n(element, count(rng, 100)));
            }
            Value::String(text) => *text = text.repeat(rng.index(20)),
            other => *other = json!([copy, other.take()]),
        },
        5 => match node {
            Value::Object(fields) => {
                let word = rng.pick(&WORDS).copied().unwrap_or_default();
                fields.insert(word.to_owned(), copy);
            }
            other => *other = json!({ "id": other.take() }),
        },
        6 => match node {
            Value::String(text) => {
                let at = text.char_indices().nth(rng.index(text.len() + 1));
                let word = rng.pick(&WORDS).copied().unwrap_or_default();
                text.insert_str(at.map_or(0, |(at, _)| at), word);
            }
            Value::Number(number) => {
                let sum = number.as_i64().map(|number| number.wrapping_add(1));
                *node = json!(sum);
            }
            other => *other = json!(other.to_string()),
        },
        _ => {
            for _ in 0..count(rng, 150) {
                *node = json!([node.take()]);
            }
        }
    }
}

/// A random node of a document.
fn node<'v>(value: &'v mut Value, rng: &mut Rng) -> &'v mut Value {
    let children = match value {
        Value::Object(fields) => fields.len(),
        Value::Array(values) => values.len(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    };
    if children == 0 || rng.percent(25) {
        return value;
    }
    let index = rng.index(children);
    let child = match value {
        Value::Object(fields) => fields.values_mut().nth(index),
        Value::Array(values) => values.get_mut(index),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    };
    node(child.expect("index of a child"), rng)
}

fn special_value(rng: &mut Rng) -> Value {
    match rng.index(12) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(-1),
        3 => json!(i64::MAX),
        4 => json!(1e308),
        5 => json!(""),
        6 => json!("a".repeat(count(rng, 20_000))),
        7 => json!("\0\u{1b}[31m\u{202e}"),
        8 => json!([]),
        9 => json!({}),
        10 => json!(u64::MAX),
        _ => json!(rng.pick(&WORDS)),
    }
}
