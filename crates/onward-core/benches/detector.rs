//! Time of the turn detector per step: `cargo bench -p onward-core --bench detector -- FILE...`.
//!
//! Each file contains turns in the format `turns` (JSON lines). Without a file, a generated turn with
//! outputs of 1 to 100 kB is judged. Each turn is judged five times from its start; the time of a step is
//! the shortest of the five, because other load on the machine interrupts some of them. Without
//! `--bench` (`cargo test --benches`), only ten generated steps run.

#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    reason = "a benchmark needs a clock, arguments and output, and cannot run if its setup fails"
)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use onward_core::turn::{Call, ExternalChange, Observation, ProgressDetector, TurnPolicy};
use serde_json::{Value, json};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_bench = arguments.iter().any(|argument| argument == "--bench");
    let files = arguments
        .iter()
        .filter(|argument| !argument.starts_with('-'));
    let mut turns: Vec<Value> = Vec::new();
    for file in files.filter(|_| is_bench) {
        let text = std::fs::read_to_string(file).expect("file is readable");
        let parsed = text.lines().map(serde_json::from_str);
        turns.extend(parsed.map(|turn| turn.expect("line is a turn")));
    }
    if turns.is_empty() {
        turns.push(generated(if is_bench { 500 } else { 10 }));
    }
    let mut times: Vec<Duration> = turns.iter().flat_map(shortest).collect();
    times.sort();
    let quantile = |share: f64| {
        let index = (times.len() as f64 * share) as usize;
        let time = times.get(index.min(times.len().saturating_sub(1)));
        time.map_or(0.0, |time| time.as_secs_f64() * 1e6)
    };
    println!(
        "{} turns, {} steps: p50 {:.0} µs, p99 {:.0} µs, max {:.0} µs per step",
        turns.len(),
        times.len(),
        quantile(0.5),
        quantile(0.99),
        quantile(1.0),
    );
}

/// The shortest time of each step of a turn.
fn shortest(turn: &Value) -> Vec<Duration> {
    let mut times = judge(turn);
    for _ in 1..5 {
        let again = judge(turn);
        times = times
            .into_iter()
            .zip(again)
            .map(|(one, other)| one.min(other))
            .collect();
    }
    times
}

/// The time of each step of a turn. The turn is judged to its end, also after a stall.
fn judge(turn: &Value) -> Vec<Duration> {
    let mut detector = ProgressDetector::new(TurnPolicy::default());
    let none = Vec::new();
    let steps = turn["steps"].as_array().unwrap_or(&none).iter();
    steps
        .map(|step| {
            let calls = step["calls"].as_array().unwrap_or(&none).iter();
            let calls: Vec<Call<'_>> = calls
                .map(|call| Call {
                    tool: call["tool"].as_str().unwrap_or_default(),
                    input: &call["input"],
                    ok: call["ok"].as_bool(),
                    output: call["output"].as_str().unwrap_or_default(),
                })
                .collect();
            let observation = Observation {
                calls: &calls,
                external: match step["changed"].as_bool() {
                    None => ExternalChange::Unknown,
                    Some(false) => ExternalChange::Unchanged,
                    Some(true) => ExternalChange::Changed,
                },
                tree: None,
                at: None,
                background: false,
            };
            let began = Instant::now();
            black_box(detector.observe(black_box(&observation)));
            began.elapsed()
        })
        .collect()
}

/// A turn that reads one file after another; every tenth output is the same error.
fn generated(steps: usize) -> Value {
    let output = |number: usize| {
        let line = |row: usize| format!("{row}: let value_{number} = compute({row}, {number});\n");
        let lines = [20, 200, 2_000][number % 3];
        if number.is_multiple_of(10) {
            "error: no such file or directory\n".to_owned()
        } else {
            (0..lines).map(line).collect()
        }
    };
    let step = |number| {
        json!({
            "calls": [{
                "tool": "Bash",
                "input": { "command": format!("cat src/file_{number}.rs") },
                "ok": !usize::is_multiple_of(number, 10),
                "output": output(number),
            }],
        })
    };
    json!({ "steps": (0..steps).map(step).collect::<Vec<_>>() })
}
