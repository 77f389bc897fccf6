//! Random logs with arbitrary results and parents, including cycles. One repair must fix every log,
//! must not lose lines except duplicates and blank ones, and must keep the parents valid.

use std::collections::{BTreeMap, BTreeSet};

use onward_testbed::Rng;
use serde_json::{Value, json};

use crate::harness::{Harness, log, parse_lines};

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
