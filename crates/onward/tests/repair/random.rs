//! Logs that nobody would write: results anywhere, parents anywhere, also in circles. Whatever it is, it
//! is repaired at once, nothing but what is doubled or blank is lost, and the parents still hold together.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::desk::{Scratch, log, values};

/// Dice that fall the same way every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

fn session(dice: &mut Dice) -> Vec<Value> {
    let count = 2 + dice.below(14);
    (0..count)
        .map(|number| {
            let parent = match dice.below(8) {
                0 => Value::Null,
                1 => format!("u{}", dice.below(count + 1)).into(),
                _ if number == 0 => Value::Null,
                _ => format!("u{}", number - 1).into(),
            };
            let id = format!("t{}", dice.below(5));
            let (kind, content) = match dice.below(6) {
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
                line["message"]["id"] = format!("m{}", number - dice.below(2).min(number)).into();
            }
            if dice.below(6) == 0 {
                line["isSidechain"] = true.into();
                line["agentId"] = format!("a{}", dice.below(2)).into();
            }
            line
        })
        .collect()
}

/// Whether every parent was known before, as far as it was known then.
fn parents_hold(before: &[Value], after: &[Value]) {
    let uuids: BTreeMap<&str, &Value> = after
        .iter()
        .map(|line| (line["uuid"].as_str().expect("an id"), line))
        .collect();
    assert_eq!(uuids.len(), after.len(), "an id comes twice");
    let known: BTreeSet<&str> = before
        .iter()
        .filter_map(|line| line["uuid"].as_str())
        .collect();
    for line in after {
        if let Some(parent) = line["parentUuid"].as_str() {
            // One that was never there stays missing; no other one may be.
            assert!(
                uuids.contains_key(parent) || !known.contains(parent),
                "{parent} is gone"
            );
        }
    }
}

#[test]
fn whatever_the_log_is_it_is_repaired_at_once_and_holds_together() {
    let scratch = Scratch::new("random");
    let mut repaired = 0;
    for seed in 0..150 {
        let before = session(&mut Dice(seed * 7919 + 1));
        scratch.write("a.jsonl", log(&before));
        let found = scratch.run(&["check", "--ended", "--json", "a.jsonl"]);
        let doubled = found.stdout.matches("\"what\":\"doubled\"").count();
        let rows = found.stdout.matches("_row\"").count();
        let run = scratch.run(&["repair", "--ended", "--in-place", "a.jsonl"]);
        assert_eq!(run.code, Some(0), "seed {seed}: {run:?}");
        let text = scratch.read("a.jsonl");
        let again = scratch.run(&["check", "--ended", "a.jsonl"]);
        assert_eq!(
            again.code,
            Some(0),
            "seed {seed}: {again:?}\n{}\n{text}",
            log(&before)
        );
        let after = values(&text);
        parents_hold(&before, &after);
        let kept = before
            .iter()
            .filter(|line| after.iter().any(|other| other["uuid"] == line["uuid"]));
        assert!(
            kept.count() + doubled + rows >= before.len(),
            "seed {seed}: a line is lost"
        );
        for mark in before
            .iter()
            .filter_map(|line| line["message"]["content"].as_str())
        {
            assert!(text.contains(mark), "seed {seed}: `{mark}` is lost");
        }
        repaired += usize::from(found.code == Some(10));
    }
    assert!(repaired > 75, "the logs are too tame: {repaired}");
}
