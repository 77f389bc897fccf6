//! Random logs with arbitrary results and parents, including cycles. One repair must fix every log,
//! must not lose lines except duplicates and blank ones, and must keep the parents valid.

use std::collections::{BTreeMap, BTreeSet};

use onward_testbed::Rng;
use serde_json::{Value, json};

use crate::harness::{Harness, log, parse_lines, path_to_root};

fn session(rng: &mut Rng) -> Vec<Value> {
    let count = 2 + rng.below(14);
    (0..count)
        .map(|number| {
            let parent = match rng.below(8) {
                0 => Value::Null,
                1 => format!("u{}", rng.below(count + 1)).into(),
                _ if number == 0 => Value::Null,
                _ => format!("u{}", number - 1).into(),
            };
            let id = format!("t{}", rng.below(5));
            let (kind, content) = match rng.below(6) {
                0 => ("user", json!(format!("said {number}"))),
                1 => ("assistant", json!([{"type": "text", "text": format!("said {number}")}])),
                2 | 3 => ("assistant", json!([{"type": "tool_use", "id": id, "name": "Bash", "input": {}}])),
                _ => ("user", json!([{"type": "tool_result", "tool_use_id": id, "content": format!("result {number}")}])),
            };
            let mut line = json!({
                "parentUuid": parent, "uuid": format!("u{number}"), "type": kind, "sessionId": "s",
                "timestamp": "2026-03-01T10:00:00.000Z",
                "message": {"role": kind, "content": content},
            });
            if kind == "assistant" {
                line["message"]["id"] = format!("m{}", number - rng.below(2).min(number)).into();
            }
            if rng.below(6) == 0 {
                line["isSidechain"] = true.into();
                line["agentId"] = format!("a{}", rng.below(2)).into();
            }
            line
        })
        .collect()
}

/// Asserts that every parent exists, unless it was missing before.
fn assert_valid_parents(before: &[Value], after: &[Value]) {
    let uuids: BTreeMap<&str, &Value> = after
        .iter()
        .map(|line| (line["uuid"].as_str().expect("uuid is a string"), line))
        .collect();
    assert_eq!(uuids.len(), after.len(), "duplicate uuid");
    let uuids_before: BTreeSet<&str> = before
        .iter()
        .filter_map(|line| line["uuid"].as_str())
        .collect();
    for line in after {
        if let Some(parent) = line["parentUuid"].as_str() {
            assert!(
                uuids.contains_key(parent) || !uuids_before.contains(parent),
                "{parent} is missing"
            );
        }
    }
}

#[test]
fn repairs_random_logs_in_one_run() {
    let dir = Harness::new("random");
    let mut repaired = 0;
    for seed in 0..150 {
        let before = session(&mut Rng::new(seed));
        dir.write("a.jsonl", log(&before));
        let found = dir.run(&["check", "--ended", "--json", "a.jsonl"]);
        let duplicates = found.stdout.matches("\"what\":\"doubled\"").count();
        let rows = found.stdout.matches("_row\"").count();
        let run = dir.run(&["repair", "--ended", "--in-place", "a.jsonl"]);
        assert_eq!(run.code, Some(0), "seed {seed}: {run:?}");
        let text = dir.read("a.jsonl");
        let again = dir.run(&["check", "--ended", "a.jsonl"]);
        assert_eq!(
            again.code,
            Some(0),
            "seed {seed}: {again:?}\n{}\n{text}",
            log(&before)
        );
        let after = parse_lines(&text);
        assert_valid_parents(&before, &after);
        let kept = before
            .iter()
            .filter(|line| after.iter().any(|other| other["uuid"] == line["uuid"]));
        assert!(
            kept.count() + duplicates + rows >= before.len(),
            "seed {seed}: a line is lost"
        );
        for text_before in before
            .iter()
            .filter_map(|line| line["message"]["content"].as_str())
        {
            assert!(
                text.contains(text_before),
                "seed {seed}: `{text_before}` is lost"
            );
        }
        repaired += usize::from(found.code == Some(10));
    }
    assert!(repaired > 75, "too few logs needed a repair: {repaired}");
}

/// A log in which each line is the child of the previous one, with rows on several lines, duplicate
/// ids, and results in any place.
fn linear_session(rng: &mut Rng) -> Vec<Value> {
    let mut contents: Vec<(&str, u64, Value)> = vec![("user", 0, json!("Go."))];
    for row in 1..4 + rng.below(10) {
        let result = |rng: &mut Rng, n: u64| {
            let id = format!("t{}", rng.below(4));
            json!({"type": "tool_result", "tool_use_id": id, "content": format!("result {row}.{n}")})
        };
        let text = json!({"type": "text", "text": format!("said {row}")});
        match rng.below(6) {
            0 => contents.push(("user", 0, json!(format!("said {row}")))),
            1 => contents.push(("assistant", row, json!([text]))),
            2 | 3 => {
                let mut blocks: Vec<Value> = (0..1 + rng.below(3))
                    .map(|n| {
                        let id = format!("t{}", rng.below(4));
                        json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"n": n}})
                    })
                    .collect();
                if rng.below(2) == 0 {
                    let last = blocks.split_off(blocks.len() - 1);
                    contents.push(("assistant", row, blocks.into()));
                    blocks = last;
                }
                contents.push(("assistant", row, blocks.into()));
            }
            kind => {
                let mut blocks: Vec<Value> =
                    (0..1 + rng.below(2)).map(|n| result(rng, n)).collect();
                if kind == 5 && rng.below(2) == 0 {
                    blocks.push(text);
                }
                contents.push(("user", 0, blocks.into()));
            }
        }
    }
    let line = |(number, (kind, row, content)): (usize, (&str, u64, Value))| {
        let parent = number.checked_sub(1).map(|parent| format!("u{parent}"));
        let mut line = json!({
            "parentUuid": parent, "uuid": format!("u{number}"), "type": kind, "sessionId": "s",
            "timestamp": "2026-03-01T10:00:00.000Z",
            "message": {"role": kind, "content": content},
        });
        if kind == "assistant" {
            line["message"]["id"] = format!("m{row}").into();
        }
        line
    };
    contents.into_iter().enumerate().map(line).collect()
}

/// The messages that an agent sends for a log: lines of one role in a row form one message.
fn sent_messages(lines: &[Value]) -> Vec<(String, Vec<Value>)> {
    let mut messages: Vec<(String, Vec<Value>)> = Vec::new();
    for line in path_to_root(lines).into_iter().rev() {
        let message = &line["message"];
        let role = message["role"].as_str().expect("role is a string");
        let blocks = match message["content"].as_str() {
            Some(text) => vec![json!({"type": "text", "text": text})],
            None => message["content"]
                .as_array()
                .expect("list of blocks")
                .clone(),
        };
        match messages.last_mut() {
            Some((last, content)) if last == role => content.extend(blocks),
            _ => messages.push((role.to_owned(), blocks)),
        }
    }
    messages
}

/// The rules of the Messages API, and nothing else: the ids of the calls in a message differ, and
/// the next message starts with exactly one result of each.
fn check_api_rules(messages: &[(String, Vec<Value>)]) -> Result<(), String> {
    let mut pending: BTreeSet<&str> = BTreeSet::new();
    for (number, (role, blocks)) in messages.iter().enumerate() {
        let is_result = |block: &&Value| block["type"] == "tool_result";
        let leading = blocks.iter().take_while(is_result).count();
        if blocks.iter().filter(is_result).count() != leading {
            return Err(format!("message {number}: a result after other content"));
        }
        for block in &blocks[..leading] {
            let id = block["tool_use_id"].as_str().unwrap_or_default();
            if role != "user" || !pending.remove(id) {
                return Err(format!("message {number}: unexpected result of {id}"));
            }
        }
        if !pending.is_empty() {
            return Err(format!("message {number}: no results of {pending:?}"));
        }
        for block in blocks.iter().filter(|block| block["type"] == "tool_use") {
            let id = block["id"].as_str().unwrap_or_default();
            if !pending.insert(id) {
                return Err(format!("message {number}: duplicate id {id}"));
            }
        }
    }
    if pending.is_empty() {
        return Ok(());
    }
    Err(format!("no results of {pending:?} at the end"))
}

#[test]
fn repaired_logs_satisfy_the_rules_of_the_api() {
    let dir = Harness::new("rules");
    let mut rejected = 0;
    for seed in 0..200 {
        let before = linear_session(&mut Rng::new(seed));
        rejected += usize::from(check_api_rules(&sent_messages(&before)).is_err());
        dir.write("a.jsonl", log(&before));
        let run = dir.run(&["repair", "--ended", "--in-place", "a.jsonl"]);
        assert_eq!(run.code, Some(0), "seed {seed}: {run:?}");
        let after = dir.read("a.jsonl");
        let context = || format!("seed {seed}\n{}\n{after}", log(&before));
        let messages = sent_messages(&parse_lines(&after));
        assert_eq!(check_api_rules(&messages), Ok(()), "{}", context());
        let again = dir.run(&["check", "--ended", "a.jsonl"]);
        assert_eq!(again.code, Some(0), "{again:?}\n{}", context());
        std::fs::remove_file(dir.join("a.jsonl.bak")).ok();
    }
    assert!(rejected > 100, "too few logs needed a repair: {rejected}");
}
