//! The stored state of the detector, and the evidence for users.

use onward_core::turn::{Evidence, IdleReason, ProgressDetector, TurnPolicy, Verdict};
use serde_json::json;

use crate::harness::{Harness, read, sentence, shell, tool};

#[test]
fn storing_and_restoring_the_state_does_not_change_verdicts() {
    let steps = || {
        let reads = (0..6).map(|nth| read(&format!("f{}", nth % 3), &sentence(nth % 3)));
        reads.chain((0..9).map(|nth| shell("make", "error: no rule").failed().with_task_at(nth)))
    };
    let mut kept = Harness::default();
    let mut restored = Harness::default();
    for step in steps() {
        let state = restored.detector.state();
        restored.detector = ProgressDetector::resume(TurnPolicy::default(), state);
        assert_eq!(restored.observe(&step), kept.observe(&step));
    }
    assert_eq!(restored.detector, kept.detector);
}

#[test]
fn the_evidence_lists_idle_calls_with_their_reasons() {
    let mut harness = Harness::default();
    harness.observe(&read("a.rs", &sentence(1)));
    harness.observe(&read("a.rs", &sentence(1)));
    harness.observe(&shell("true", "Command executed successfully."));
    harness.observe(&shell("make", "error: no rule").failed());
    harness.observe(&shell("make", "error: no rule").failed());
    let batch = shell("grep -n x y", "").and(shell("find . -name q", ""));
    harness.observe(&batch);
    let Verdict::Stalled { steps, evidence } = (0..7)
        .map(|_| harness.observe(&shell("make", "error: no rule").failed()))
        .last()
        .unwrap()
    else {
        panic!("turn is not stalled");
    };
    assert_eq!(steps, 8);
    // Evidence starts after the last progress, the new error of step 4.
    let calls: Vec<(u32, &str, IdleReason)> = evidence
        .iter()
        .map(|call| (call.step, call.input.as_str(), call.reason))
        .take(4)
        .collect();
    assert_eq!(
        calls,
        [
            (5, "make", IdleReason::SameError),
            (6, "grep -n x y", IdleReason::Empty),
            (6, "find . -name q", IdleReason::Empty),
            (7, "make", IdleReason::SameError),
        ]
    );
    let text = evidence[0].to_string();
    assert!(text.starts_with("response 5: Bash `make`: "), "{text}");
}

#[test]
fn each_idle_call_has_the_matching_reason() {
    let last = |harness: &Harness| harness.detector.state().evidence.last().unwrap().reason;
    let mut harness = Harness::default();
    harness.observe(&read("a", &sentence(1)));
    harness.observe(&read("a", &sentence(1)));
    assert_eq!(last(&harness), IdleReason::Seen);
    harness.observe(&shell(":", &sentence(2)));
    assert_eq!(last(&harness), IdleReason::NoOp);
    let mut plain = Harness::plain();
    plain.observe(&shell("make", &sentence(1)).failed());
    assert_eq!(last(&plain), IdleReason::Failed);
}

#[test]
fn previews_are_short_and_on_one_line() {
    let mut harness = Harness::default();
    let huge = format!("{}\n\n{}", "word ".repeat(9000), "x".repeat(90_000));
    harness.observe(&tool(&huge, json!({ "text": huge }), &huge));
    harness.observe(&tool(&huge, json!({ "text": huge }), &huge));
    let Evidence {
        tool,
        input,
        output,
        ..
    } = harness.detector.state().evidence.pop().unwrap();
    for preview in [tool, input, output] {
        assert!(preview.chars().count() <= 81, "{preview}");
        assert!(!preview.contains('\n'));
    }
}

#[test]
fn previews_mask_secrets_before_they_are_cut() {
    let mut harness = Harness::default();
    let command = format!("{} DB_PASS='open sesame' make", "x".repeat(65));
    harness.observe(&shell(&command, &command));
    harness.observe(&shell(&command, &command));
    let evidence = harness.detector.state().evidence.pop().unwrap();
    for preview in [evidence.input, evidence.output] {
        assert!(preview.contains("DB_PASS='["), "{preview}");
        assert!(!preview.contains("open"), "{preview}");
    }
}

#[test]
fn the_state_is_limited() {
    let mut harness = Harness::default();
    for nth in 0..30 {
        let lines: String = (0..300)
            .map(|line| sentence(nth * 300 + line) + "\n")
            .collect();
        let calls = (0..60).map(|call| read(&format!("{nth}/{call}"), &format!("{nth} {call}")));
        harness.observe(&calls.fold(read("many", &lines), crate::harness::Step::and));
        harness.observe(&shell("true", ""));
    }
    let state = harness.detector.state();
    assert_eq!(state.lines.len(), 8192);
    assert_eq!(state.outputs.len(), 1024);
    assert_eq!(state.calls.len(), 1024);
    assert!(state.evidence.len() <= 16);
}

#[test]
fn detects_a_loop_after_a_long_turn() {
    let mut harness = Harness::default();
    for nth in 0..900 {
        assert!(
            harness
                .progress(&read(&format!("f{nth}"), &sentence(nth)))
                .is_some()
        );
    }
    assert_eq!(
        harness.stalls_after((0..20).map(|_| read("f899", &sentence(899)))),
        Some(8)
    );
}

#[test]
fn truncates_a_restored_state_that_is_too_large() {
    let mut state = Harness::default().detector.state();
    state.lines = (0..20_000).collect();
    state.outputs = vec![7; 5000];
    let resumed = ProgressDetector::resume(TurnPolicy::default(), state).state();
    assert_eq!(
        (resumed.lines.len(), resumed.lines[0]),
        (8192, 20_000 - 8192)
    );
    assert_eq!(resumed.outputs, [7]);
}
