//! What is kept between two processes, and what a person is shown.

use onward_core::turn::{Evidence, Nothing, ProgressDetector, TurnPolicy, Verdict};
use serde_json::json;

use crate::desk::{Desk, read, sentence, shell, tool};

#[test]
fn a_detector_that_is_put_away_after_each_step_judges_as_one_that_is_not() {
    let steps = || {
        let looks = (0..6).map(|nth| read(&format!("f{}", nth % 3), &sentence(nth % 3)));
        looks.chain((0..9).map(|nth| shell("make", "error: no rule").failed().waiting_at(nth)))
    };
    let mut kept = Desk::default();
    let mut policy_only = Desk::default();
    for step in steps() {
        let state = policy_only.detector.state();
        policy_only.detector = ProgressDetector::resume(TurnPolicy::default(), state);
        assert_eq!(policy_only.see(&step), kept.see(&step));
    }
    assert_eq!(policy_only.detector, kept.detector);
}

#[test]
fn the_evidence_names_the_calls_and_why_each_counted_for_nothing() {
    let mut desk = Desk::default();
    desk.see(&read("a.rs", &sentence(1)));
    desk.see(&read("a.rs", &sentence(1)));
    desk.see(&shell("true", "Command executed successfully."));
    desk.see(&shell("make", "error: no rule").failed());
    desk.see(&shell("make", "error: no rule").failed());
    let batch = shell("grep -n x y", "").and(shell("git branch --show-current", "main"));
    desk.see(&batch);
    let Verdict::Stalled { steps, evidence } = (0..7)
        .map(|_| desk.see(&shell("make", "error: no rule").failed()))
        .last()
        .unwrap()
    else {
        panic!("not stalled");
    };
    assert_eq!(steps, 8);
    // Since the last progress, the new error of step 4.
    let told: Vec<(u32, &str, Nothing)> = evidence
        .iter()
        .map(|call| (call.step, call.input.as_str(), call.why))
        .take(4)
        .collect();
    assert_eq!(
        told,
        [
            (5, "make", Nothing::SameError),
            (6, "grep -n x y", Nothing::Empty),
            (6, "git branch --show-current", Nothing::Short),
            (7, "make", Nothing::SameError),
        ]
    );
    assert_eq!(
        evidence[0].to_string(),
        "step 5: Bash `make`: it failed as it did before"
    );
}

#[test]
fn every_reason_is_given_where_it_applies() {
    let last = |desk: &Desk| desk.detector.state().evidence.last().unwrap().why;
    let mut desk = Desk::default();
    desk.see(&read("a", &sentence(1)));
    desk.see(&read("a", &sentence(1)));
    assert_eq!(last(&desk), Nothing::Seen);
    desk.see(&shell(":", &sentence(2)));
    assert_eq!(last(&desk), Nothing::NoOp);
    let mut plain = Desk::plain();
    plain.see(&shell("make", &sentence(1)).failed());
    assert_eq!(last(&plain), Nothing::Failed);
}

#[test]
fn previews_are_short_and_on_one_line() {
    let mut desk = Desk::default();
    let huge = format!("{}\n\n{}", "word ".repeat(9000), "x".repeat(90_000));
    desk.see(&tool(&huge, json!({ "text": huge }), &huge));
    desk.see(&tool(&huge, json!({ "text": huge }), &huge));
    let Evidence {
        tool,
        input,
        output,
        ..
    } = desk.detector.state().evidence.pop().unwrap();
    for preview in [tool, input, output] {
        assert!(preview.chars().count() <= 81, "{preview}");
        assert!(!preview.contains('\n'));
    }
}

#[test]
fn the_state_stays_within_its_bounds() {
    let mut desk = Desk::default();
    for nth in 0..30 {
        let lines: String = (0..300)
            .map(|line| sentence(nth * 300 + line) + "\n")
            .collect();
        let calls = (0..60).map(|call| read(&format!("{nth}/{call}"), &format!("{nth} {call}")));
        desk.see(&calls.fold(read("many", &lines), crate::desk::Step::and));
        desk.see(&shell("true", ""));
    }
    let state = desk.detector.state();
    assert_eq!(state.lines.len(), 8192);
    assert_eq!(state.outputs.len(), 1024);
    assert_eq!(state.calls.len(), 1024);
    assert!(state.evidence.len() <= 16);
}

#[test]
fn a_loop_is_seen_however_long_the_turn_was_before_it() {
    let mut desk = Desk::default();
    for nth in 0..900 {
        assert!(
            desk.why(&read(&format!("f{nth}"), &sentence(nth)))
                .is_some()
        );
    }
    assert_eq!(
        desk.stalls_after((0..20).map(|_| read("f899", &sentence(899)))),
        Some(8)
    );
}

#[test]
fn a_state_from_elsewhere_that_is_too_large_is_cut() {
    let mut state = Desk::default().detector.state();
    state.lines = (0..20_000).collect();
    state.outputs = vec![7; 5000];
    let resumed = ProgressDetector::resume(TurnPolicy::default(), state).state();
    assert_eq!(
        (resumed.lines.len(), resumed.lines[0]),
        (8192, 20_000 - 8192)
    );
    assert_eq!(resumed.outputs, [7]);
}
