//! The plain rule: the outside changed, or a successful output is long enough and new.

use onward_core::turn::{Outside, Progress, TurnPolicy, Verdict};

use crate::desk::{Desk, Step, answer, read, sentence, shell};

const SIXTY: &str = "It is exactly sixty characters long, this line that we read.";
const LEARNED: Option<Progress> = Some(Progress::Learned { call: 0 });

fn idle(steps: u32) -> Verdict {
    Verdict::Idle {
        steps,
        threshold: 8,
    }
}

#[test]
fn a_change_outside_is_progress_whatever_was_printed() {
    let mut desk = Desk::plain();
    assert_eq!(
        desk.why(&shell("make", "").changed()),
        Some(Progress::Changed)
    );
    assert_eq!(
        desk.why(&shell("make", "").failed().changed()),
        Some(Progress::Changed)
    );
}

#[test]
fn a_long_new_output_is_progress_and_the_same_again_is_not() {
    let mut desk = Desk::plain();
    assert_eq!(desk.why(&read("a", &sentence(1))), LEARNED);
    assert_eq!(desk.see(&read("b", &sentence(1))), idle(1));
    assert_eq!(desk.why(&read("a", &sentence(2))), LEARNED);
}

#[test]
fn sixty_characters_are_enough_and_fifty_nine_are_not() {
    assert_eq!(SIXTY.chars().count(), 60);
    let mut desk = Desk::plain();
    assert_eq!(desk.see(&read("a", &SIXTY[1..])), idle(1));
    assert_eq!(desk.why(&read("a", SIXTY)), LEARNED);
    // Characters, not bytes.
    let umlauts = "ä".repeat(59);
    assert_eq!(desk.see(&read("a", &umlauts)), idle(1));
    assert_eq!(desk.why(&read("a", &format!("{umlauts}ö"))), LEARNED);
}

#[test]
fn blanks_around_an_output_and_terminal_codes_in_it_do_not_count() {
    let mut desk = Desk::plain();
    let padded = format!("  \n{}\t\n\n", &SIXTY[1..]);
    assert_eq!(desk.see(&read("a", &padded)), idle(1));
    let coloured = format!("\u{1b}[1;31m{}\u{1b}[0m\u{1b}]0;title\u{7}", &SIXTY[1..]);
    assert_eq!(desk.see(&read("a", &coloured)), idle(2));
    assert_eq!(desk.why(&read("a", SIXTY)), LEARNED);
    assert_eq!(
        desk.see(&read("a", &format!("\u{1b}(B\u{1b}[32m{SIXTY}"))),
        idle(1)
    );
}

#[test]
fn outputs_that_differ_only_in_a_number_are_the_same() {
    let mut desk = Desk::plain();
    let total =
        |n: &str| format!("The total of all the things that were counted here today is {n}.");
    assert_eq!(desk.why(&read("a", &total("7"))), LEARNED);
    for same in ["8", "1024", "1,024", "0.35", "-7"] {
        assert_eq!(desk.halves(&read("a", &total(same))), Some(2), "{same}");
    }
    assert_eq!(desk.why(&read("a", &total("seven"))), LEARNED);
}

#[test]
fn a_failed_output_is_not_news_and_one_that_nobody_flagged_is() {
    let mut desk = Desk::plain();
    assert_eq!(desk.see(&read("a", &sentence(1)).failed()), idle(1));
    assert_eq!(desk.why(&read("a", &sentence(2)).unflagged()), LEARNED);
}

#[test]
fn all_outputs_of_a_step_are_remembered_also_when_the_first_counted() {
    let mut desk = Desk::plain();
    let both = read("a", &sentence(1)).and(read("b", &sentence(2)));
    assert_eq!(desk.why(&both), LEARNED);
    assert_eq!(desk.see(&read("b", &sentence(2))), idle(1));
    // Also when the outside changed, and when nobody could tell.
    desk.see(&read("c", &sentence(3)).changed());
    desk.see(&read("d", &sentence(4)).outside(Outside::Late));
    assert_eq!(desk.see(&read("c", &sentence(3))), idle(1));
    assert_eq!(desk.see(&read("d", &sentence(4))), idle(2));
}

#[test]
fn one_call_of_a_batch_is_enough_and_a_batch_is_one_step() {
    let mut desk = Desk::plain();
    let batch = shell("true", "")
        .and(shell("ls", "a"))
        .and(read("a", &sentence(1)));
    assert_eq!(desk.why(&batch), Some(Progress::Learned { call: 2 }));
    assert_eq!(desk.see(&batch), idle(1));
}

#[test]
fn without_a_signal_from_outside_a_step_is_judged_by_what_was_learned() {
    let mut desk = Desk::plain();
    let unknown = |step: Step| step.outside(Outside::Unknown);
    assert_eq!(desk.why(&unknown(read("a", &sentence(1)))), LEARNED);
    assert_eq!(desk.see(&unknown(read("a", &sentence(1)))), idle(1));
}

#[test]
fn a_late_fingerprint_neither_counts_nor_resets() {
    let mut desk = Desk::plain();
    desk.see(&shell("true", ""));
    for late in [shell("true", ""), read("a", &sentence(1))] {
        let verdict = desk.see(&late.outside(Outside::Late));
        assert_eq!(verdict, Verdict::Unjudged { steps: 1 });
    }
    assert_eq!(desk.see(&shell("true", "")), idle(2));
}

#[test]
fn a_first_fingerprint_is_a_baseline_and_none_is_no_signal() {
    assert_eq!(Outside::between(None, Some(&1)), Outside::Same);
    assert_eq!(Outside::between(Some(&1), Some(&1)), Outside::Same);
    assert_eq!(Outside::between(Some(&1), Some(&2)), Outside::Changed);
    assert_eq!(Outside::between(Some(&1), None), Outside::Unknown);
    assert_eq!(Outside::between::<u8>(None, None), Outside::Unknown);
}

#[test]
fn the_eighth_idle_step_in_a_row_is_a_stall_and_so_is_each_after_it() {
    let mut desk = Desk::plain();
    for step in 1..8 {
        assert_eq!(desk.see(&shell("true", "")), idle(step));
    }
    for step in 8..11 {
        let Verdict::Stalled { steps, .. } = desk.see(&shell("true", "")) else {
            panic!("step {step} is no stall");
        };
        assert_eq!(steps, step);
    }
}

#[test]
fn progress_sets_the_count_back_to_nothing() {
    let mut desk = Desk::plain();
    for _ in 0..7 {
        desk.see(&shell("true", ""));
    }
    assert_eq!(desk.why(&read("a", &sentence(1))), LEARNED);
    assert_eq!(desk.see(&shell("true", "")), idle(1));
}

#[test]
fn a_step_without_calls_ends_the_turn_and_is_never_idle() {
    let mut desk = Desk::plain();
    for _ in 0..12 {
        desk.see(&shell("true", ""));
    }
    for outside in [
        Outside::Unknown,
        Outside::Same,
        Outside::Changed,
        Outside::Late,
    ] {
        assert_eq!(desk.see(&answer().outside(outside)), Verdict::Ended);
    }
    assert_eq!(desk.see(&shell("true", "")), idle(1));
}

#[test]
fn a_new_turn_forgets_the_count_and_what_was_seen() {
    let mut desk = Desk::plain();
    desk.see(&read("a", &sentence(1)));
    desk.see(&read("a", &sentence(1)));
    desk.detector.begin_turn();
    assert_eq!(desk.detector.idle_steps(), 0);
    assert_eq!(desk.why(&read("a", &sentence(1))), LEARNED);
}

#[test]
fn both_thresholds_can_be_set() {
    let mut desk = Desk::with(TurnPolicy {
        stall_threshold: 2,
        min_info_gain_length: 5,
        ..TurnPolicy::plain()
    });
    assert_eq!(desk.why(&shell("ls", "abcde")), LEARNED);
    let stalls = desk.stalls_after((0..9).map(|_| shell("ls", "abcd")));
    assert_eq!(stalls, Some(2));
}

#[test]
fn the_defaults_are_eight_steps_and_sixty_characters() {
    let policy = TurnPolicy::default();
    assert_eq!(
        (policy.stall_threshold, policy.min_info_gain_length),
        (8, 60)
    );
}
