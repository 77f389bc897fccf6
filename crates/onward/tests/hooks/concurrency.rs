//! Concurrent hooks of one session, each in a separate process, and the size of the write-ahead
//! log.

use std::process::Child;

use onward_testbed::Run;

use crate::harness::{Harness, is_denied};

fn start_all(harness: &Harness, name: &str, count: usize) -> Vec<Child> {
    (0..count).map(|_| harness.start(name)).collect()
}

#[test]
fn counts_all_concurrent_steps() {
    let harness = Harness::new("concurrent-steps", "codex");
    harness.send("prompt").assert_empty();
    let mut messages = 0;
    for hook in start_all(&harness, "idle", 16) {
        let output = Run::from(hook.wait_with_output().unwrap());
        assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""));
        messages += usize::from(!output.stdout.is_empty());
    }
    assert_eq!(messages, 2, "one nudge and one reminder");
    let session = harness.session();
    let turn = &session["turns"][0];
    assert_eq!(
        (&turn["stepCount"], &turn["idleSteps"]),
        (&16.into(), &16.into())
    );
    assert_eq!(turn["steps"].as_array().unwrap().len(), 16);
}

#[test]
fn rejects_all_concurrent_calls() {
    let harness = Harness::new("concurrent-calls", "claude-code");
    harness.send("prompt").assert_empty();
    harness.send_idle_steps(8);
    let outputs: Vec<Run> = start_all(&harness, "before_tool", 8)
        .into_iter()
        .map(|hook| Run::from(hook.wait_with_output().unwrap()))
        .collect();
    assert!(outputs.iter().all(is_denied));
    let is_stopped = |output: &&Run| output.stdout.contains("\"continue\":false");
    assert_eq!(
        outputs.iter().filter(is_stopped).count(),
        6,
        "all but the first two"
    );
}

/// The size of the write-ahead log.
fn wal_size(harness: &Harness) -> u64 {
    let wal = harness.program.dir.join("onward.db-wal");
    std::fs::metadata(wal).map_or(0, |metadata| metadata.len())
}

#[test]
fn checkpoints_the_wal_at_the_end_of_a_turn() {
    let harness = Harness::new("wal", "claude-code");
    harness.send("prompt").assert_empty();
    for _ in 0..12 {
        harness.send("new_output").assert_empty();
    }
    let size = wal_size(&harness);
    assert!(size > 300_000, "no checkpoint after each step: {size}");
    harness.send("stop").assert_empty();
    assert_eq!(wal_size(&harness), 0);
}

#[test]
fn limits_the_wal_during_a_long_turn() {
    let harness = Harness::new("long-wal", "claude-code");
    harness.send("prompt").assert_empty();
    // Distinct words, each stored separately, fill the turn's state to its maximum size.
    let word = |number: u32| {
        let letter = |position: u32| char::from_u32(97 + number / 26_u32.pow(position) % 26);
        (0..4).filter_map(letter).collect::<String>()
    };
    let lines: Vec<String> = (0..8_000).map(word).collect();
    let large = harness
        .payload("new_output")
        .replace("A long enough line", &lines.join("\\n"));
    harness.send_payload(&large).assert_empty();
    let mut largest = 0;
    let checkpointed = (0..90).any(|_| {
        harness.send("new_output").assert_empty();
        let size = wal_size(&harness);
        let shrank = size < largest;
        largest = largest.max(size);
        shrank
    });
    assert!(checkpointed, "{largest}");
    assert!((1 << 20..9 << 20).contains(&largest), "{largest}");
}
