//! Escalation levels, rejected calls and messages. `escalation.txt` contains the expected texts;
//! `ONWARD_BLESS=1` rewrites it.

use std::fmt::Write as _;

use onward_core::turn::escalation::{
    EscalationLevel, EscalationState, REJECTION_PREFIX, TextOnlyReason, ToolGate,
};
use onward_core::turn::escalation::{
    final_message, for_user, is_rejection, nudge, rejection, reminder,
};
use onward_core::turn::{
    Evidence, ExternalChange, IdleReason, LoopControl, OnStall, Progress, TurnPolicy, Verdict,
};
use onward_testbed::golden;

fn control(on_stall: OnStall) -> LoopControl {
    LoopControl {
        on_stall,
        ..LoopControl::default()
    }
}

fn idle(steps: u32) -> Verdict {
    if steps < 8 {
        Verdict::Idle {
            steps,
            threshold: 8,
        }
    } else {
        Verdict::Stalled {
            steps,
            evidence: Vec::new(),
        }
    }
}

fn progress() -> Verdict {
    Verdict::Progress {
        reason: Progress::Changed,
    }
}

/// The level after each of `steps` consecutive idle steps.
fn idle_levels(
    control: &LoopControl,
    state: &mut EscalationState,
    steps: u32,
) -> Vec<EscalationLevel> {
    (1..=steps)
        .map(|steps| control.after_step(state, &idle(steps)))
        .collect()
}

#[test]
fn nudges_once_at_half_the_threshold_and_reminds_once_at_the_threshold() {
    use EscalationLevel::{None, Nudge, Reminder};
    let control = control(OnStall::TextOnly);
    let mut state = EscalationState::default();
    let levels = idle_levels(&control, &mut state, 10);
    let expected = [
        None, None, None, Nudge, None, None, None, Reminder, None, None,
    ];
    assert_eq!(levels, expected);
    assert_eq!(state.text_only, Some(TextOnlyReason::Stalled));
    assert_eq!((state.steps, state.idle_steps), (10, 10));
}

#[test]
fn progress_resets_the_escalation() {
    let control = control(OnStall::TextOnly);
    let mut state = EscalationState::default();
    idle_levels(&control, &mut state, 8);
    assert!(control.is_text_only(&state));
    assert_eq!(
        control.after_step(&mut state, &progress()),
        EscalationLevel::None
    );
    assert!(!control.is_text_only(&state));
    let levels = idle_levels(&control, &mut state, 4);
    assert_eq!(levels.last(), Some(&EscalationLevel::Nudge));
}

#[test]
fn rejects_calls_of_a_stalled_turn_and_stops_it_at_the_third_rejection() {
    let control = control(OnStall::TextOnly);
    let mut state = EscalationState::default();
    idle_levels(&control, &mut state, 7);
    assert_eq!(control.before_call(&mut state), ToolGate::Allow);
    control.after_step(&mut state, &idle(8));
    let gates: Vec<ToolGate> = (0..5).map(|_| control.before_call(&mut state)).collect();
    use ToolGate::{Reject, Stop};
    assert_eq!(gates, [Reject, Reject, Stop, Stop, Stop]);
    assert_eq!(state.rejections, 5);
    assert_eq!(state.steps, 8, "a rejected call is not a step");
}

#[test]
fn on_stall_limits_the_escalation() {
    for (on_stall, at_half, at_threshold, gate) in [
        (
            OnStall::Nudge,
            EscalationLevel::Nudge,
            EscalationLevel::Reminder,
            ToolGate::Allow,
        ),
        (
            OnStall::Warn,
            EscalationLevel::None,
            EscalationLevel::Warning,
            ToolGate::Allow,
        ),
        (
            OnStall::Off,
            EscalationLevel::None,
            EscalationLevel::None,
            ToolGate::Allow,
        ),
    ] {
        let control = control(on_stall);
        let mut state = EscalationState::default();
        let levels = idle_levels(&control, &mut state, 8);
        assert_eq!(
            (levels[3], levels[7]),
            (at_half, at_threshold),
            "{on_stall}"
        );
        assert_eq!(control.before_call(&mut state), gate, "{on_stall}");
        assert_eq!(state.rejections, 0, "{on_stall}");
    }
}

#[test]
fn the_step_limit_requires_text_even_with_progress() {
    let control = LoopControl {
        max_steps: 3,
        ..LoopControl::default()
    };
    let mut state = EscalationState::default();
    let levels: Vec<EscalationLevel> = (0..4)
        .map(|_| control.after_step(&mut state, &progress()))
        .collect();
    use EscalationLevel::{None, Reminder};
    assert_eq!(levels, [None, None, Reminder, None]);
    assert_eq!(state.text_only, Some(TextOnlyReason::MaxSteps));
    assert_eq!(control.before_call(&mut state), ToolGate::Reject);
}

#[test]
fn a_fingerprint_timeout_changes_nothing_and_the_end_of_the_turn_resets_everything() {
    let control = control(OnStall::TextOnly);
    let mut state = EscalationState::default();
    idle_levels(&control, &mut state, 8);
    let text_only = state.text_only;
    control.after_step(&mut state, &Verdict::Unjudged { steps: 8 });
    assert_eq!(state.text_only, text_only);
    control.after_step(&mut state, &Verdict::Ended);
    assert_eq!(state, EscalationState::default());
}

#[test]
fn a_threshold_of_one_skips_the_nudge() {
    let control = LoopControl {
        turn: TurnPolicy {
            stall_threshold: 1,
            ..TurnPolicy::default()
        },
        ..LoopControl::default()
    };
    let mut state = EscalationState::default();
    let stalled = Verdict::Stalled {
        steps: 1,
        evidence: Vec::new(),
    };
    assert_eq!(
        control.after_step(&mut state, &stalled),
        EscalationLevel::Reminder
    );
}

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/turns/escalation.txt");

#[test]
fn messages_match_the_golden_file() {
    let stalled = EscalationState {
        idle_steps: 8,
        text_only: Some(TextOnlyReason::Stalled),
        ..EscalationState::default()
    };
    let limited = EscalationState {
        steps: 30,
        text_only: Some(TextOnlyReason::MaxSteps),
        ..stalled
    };
    let call = |step| Evidence {
        step,
        tool: "Bash".to_owned(),
        input: "true".to_owned(),
        output: String::new(),
        reason: IdleReason::NoOp,
    };
    let evidence: Vec<Evidence> = (1..=5).map(call).collect();
    let mut text = String::new();
    for external in [ExternalChange::Unchanged, ExternalChange::Unknown] {
        writeln!(text, "nudge, {external:?}: {}", nudge(&stalled, external)).unwrap();
    }
    for state in [&stalled, &limited] {
        let reason = state.text_only.unwrap();
        let reminder = reminder(state, ExternalChange::Unknown, &evidence);
        let rejection = rejection(state, &evidence);
        assert!(rejection.starts_with(REJECTION_PREFIX));
        assert!(is_rejection(&format!("Error: {rejection}")));
        assert!(!is_rejection(&reminder));
        writeln!(text, "reminder, {reason}: {reminder}").unwrap();
        writeln!(text, "rejection, {reason}: {rejection}").unwrap();
        writeln!(text, "user, {reason}: {}", for_user(state)).unwrap();
        writeln!(text, "final message, {reason}: {}", final_message(state)).unwrap();
    }
    golden::assert_matches(GOLDEN, &text);
}

#[test]
fn settings_parse_from_their_names() {
    for on_stall in OnStall::ALL {
        assert_eq!(on_stall.as_str().parse(), Ok(on_stall));
    }
    for reason in TextOnlyReason::ALL {
        assert_eq!(reason.as_str().parse(), Ok(reason));
    }
    let unknown = "unknown".parse::<OnStall>().unwrap_err();
    assert!(unknown.expected.contains("`text_only`"), "{unknown}");
}
