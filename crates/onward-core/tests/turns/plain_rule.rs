//! The plain rule: a step makes progress if the external state changed, or if a successful output
//! is long enough and new.

use onward_core::turn::{ExternalChange, Progress, TurnPolicy, Verdict};

use crate::harness::{Harness, Step, answer, read, sentence, shell};

const SIXTY: &str = "It is exactly sixty characters long, this line that we read.";
const LEARNED: Option<Progress> = Some(Progress::Learned { call: 0 });

fn idle(steps: u32) -> Verdict {
    Verdict::Idle {
        steps,
        threshold: 8,
    }
}

#[test]
fn an_external_change_is_progress_with_any_output() {
    let mut harness = Harness::plain();
    assert_eq!(
        harness.progress(&shell("make", "").changed()),
        Some(Progress::Changed)
    );
    assert_eq!(
        harness.progress(&shell("make", "").failed().changed()),
        Some(Progress::Changed)
    );
}

#[test]
fn long_new_output_is_progress_once() {
    let mut harness = Harness::plain();
    assert_eq!(harness.progress(&read("a", &sentence(1))), LEARNED);
    assert_eq!(harness.observe(&read("b", &sentence(1))), idle(1));
    assert_eq!(harness.progress(&read("a", &sentence(2))), LEARNED);
}

#[test]
fn the_minimum_output_length_is_60_characters() {
    assert_eq!(SIXTY.chars().count(), 60);
    let mut harness = Harness::plain();
    assert_eq!(harness.observe(&read("a", &SIXTY[1..])), idle(1));
    assert_eq!(harness.progress(&read("a", SIXTY)), LEARNED);
    // Characters, not bytes.
    let umlauts = "ä".repeat(59);
    assert_eq!(harness.observe(&read("a", &umlauts)), idle(1));
    assert_eq!(
        harness.progress(&read("a", &format!("{umlauts}ö"))),
        LEARNED
    );
}

#[test]
fn surrounding_whitespace_and_terminal_codes_do_not_count() {
    let mut harness = Harness::plain();
    let padded = format!("  \n{}\t\n\n", &SIXTY[1..]);
    assert_eq!(harness.observe(&read("a", &padded)), idle(1));
    let coloured = format!("\u{1b}[1;31m{}\u{1b}[0m\u{1b}]0;title\u{7}", &SIXTY[1..]);
    assert_eq!(harness.observe(&read("a", &coloured)), idle(2));
    assert_eq!(harness.progress(&read("a", SIXTY)), LEARNED);
    assert_eq!(
        harness.observe(&read("a", &format!("\u{1b}(B\u{1b}[32m{SIXTY}"))),
        idle(1)
    );
}

#[test]
fn outputs_that_differ_only_in_numbers_are_equal() {
    let mut harness = Harness::plain();
    let total =
        |n: &str| format!("The total of all the things that were counted here today is {n}.");
    assert_eq!(harness.progress(&read("a", &total("7"))), LEARNED);
    for same in ["8", "1024", "1,024", "0.35", "-7"] {
        assert_eq!(
            harness.idle_halves(&read("a", &total(same))),
            Some(2),
            "{same}"
        );
    }
    assert_eq!(harness.progress(&read("a", &total("seven"))), LEARNED);
}

#[test]
fn output_of_a_failed_call_is_not_progress_and_a_missing_status_counts_as_success() {
    let mut harness = Harness::plain();
    assert_eq!(harness.observe(&read("a", &sentence(1)).failed()), idle(1));
    assert_eq!(
        harness.progress(&read("a", &sentence(2)).unflagged()),
        LEARNED
    );
}

#[test]
fn records_all_outputs_of_a_step() {
    let mut harness = Harness::plain();
    let both = read("a", &sentence(1)).and(read("b", &sentence(2)));
    assert_eq!(harness.progress(&both), LEARNED);
    assert_eq!(harness.observe(&read("b", &sentence(2))), idle(1));
    // Even if the external state changed, or if that is unknown.
    harness.observe(&read("c", &sentence(3)).changed());
    harness.observe(&read("d", &sentence(4)).external(ExternalChange::TimedOut));
    assert_eq!(harness.observe(&read("c", &sentence(3))), idle(1));
    assert_eq!(harness.observe(&read("d", &sentence(4))), idle(2));
}

#[test]
fn a_batch_is_one_step_and_needs_one_call_with_progress() {
    let mut harness = Harness::plain();
    let batch = shell("true", "")
        .and(shell("ls", "a"))
        .and(read("a", &sentence(1)));
    assert_eq!(
        harness.progress(&batch),
        Some(Progress::Learned { call: 2 })
    );
    assert_eq!(harness.observe(&batch), idle(1));
}

#[test]
fn without_a_fingerprint_the_output_decides() {
    let mut harness = Harness::plain();
    let unknown = |step: Step| step.external(ExternalChange::Unknown);
    assert_eq!(harness.progress(&unknown(read("a", &sentence(1)))), LEARNED);
    assert_eq!(harness.observe(&unknown(read("a", &sentence(1)))), idle(1));
}

#[test]
fn a_fingerprint_timeout_neither_counts_nor_resets() {
    let mut harness = Harness::plain();
    harness.observe(&shell("true", ""));
    for late in [shell("true", ""), read("a", &sentence(1))] {
        let verdict = harness.observe(&late.external(ExternalChange::TimedOut));
        assert_eq!(verdict, Verdict::Unjudged { steps: 1 });
    }
    assert_eq!(harness.observe(&shell("true", "")), idle(2));
}

#[test]
fn the_first_fingerprint_is_the_baseline_and_a_missing_one_is_unknown() {
    assert_eq!(
        ExternalChange::compare(None, Some(&1)),
        ExternalChange::Unchanged
    );
    assert_eq!(
        ExternalChange::compare(Some(&1), Some(&1)),
        ExternalChange::Unchanged
    );
    assert_eq!(
        ExternalChange::compare(Some(&1), Some(&2)),
        ExternalChange::Changed
    );
    assert_eq!(
        ExternalChange::compare(Some(&1), None),
        ExternalChange::Unknown
    );
    assert_eq!(
        ExternalChange::compare::<u8>(None, None),
        ExternalChange::Unknown
    );
}

#[test]
fn the_turn_is_stalled_from_the_eighth_consecutive_idle_step_on() {
    let mut harness = Harness::plain();
    for step in 1..8 {
        assert_eq!(harness.observe(&shell("true", "")), idle(step));
    }
    for step in 8..11 {
        let Verdict::Stalled { steps, .. } = harness.observe(&shell("true", "")) else {
            panic!("step {step} is not a stall");
        };
        assert_eq!(steps, step);
    }
}

#[test]
fn progress_resets_the_idle_count() {
    let mut harness = Harness::plain();
    for _ in 0..7 {
        harness.observe(&shell("true", ""));
    }
    assert_eq!(harness.progress(&read("a", &sentence(1))), LEARNED);
    assert_eq!(harness.observe(&shell("true", "")), idle(1));
}

#[test]
fn a_step_without_calls_ends_the_turn_and_is_never_idle() {
    let mut harness = Harness::plain();
    for _ in 0..12 {
        harness.observe(&shell("true", ""));
    }
    for external in [
        ExternalChange::Unknown,
        ExternalChange::Unchanged,
        ExternalChange::Changed,
        ExternalChange::TimedOut,
    ] {
        assert_eq!(
            harness.observe(&answer().external(external)),
            Verdict::Ended
        );
    }
    assert_eq!(harness.observe(&shell("true", "")), idle(1));
}

#[test]
fn a_new_turn_resets_the_idle_count_and_known_outputs() {
    let mut harness = Harness::plain();
    harness.observe(&read("a", &sentence(1)));
    harness.observe(&read("a", &sentence(1)));
    harness.detector.begin_turn();
    assert_eq!(harness.detector.idle_steps(), 0);
    assert_eq!(harness.progress(&read("a", &sentence(1))), LEARNED);
}

#[test]
fn both_thresholds_are_configurable() {
    let mut harness = Harness::with_policy(TurnPolicy {
        stall_threshold: 2,
        min_info_gain_length: 5,
        ..TurnPolicy::plain()
    });
    assert_eq!(harness.progress(&shell("ls", "abcde")), LEARNED);
    let stalls = harness.stalls_after((0..9).map(|_| shell("ls", "abcd")));
    assert_eq!(stalls, Some(2));
}

#[test]
fn the_defaults_are_8_steps_and_60_characters() {
    let policy = TurnPolicy::default();
    assert_eq!(
        (policy.stall_threshold, policy.min_info_gain_length),
        (8, 60)
    );
}
