//! Properties for arbitrary turns: no panics, deterministic verdicts, an idle count that decreases
//! only with progress, and a state that can be stored and restored.

use std::time::Duration;

use onward_core::turn::{ExternalChange, Parts, ProgressDetector, Rule, TurnPolicy, Verdict};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::harness::{Harness, Step, answer, shell, tool};

/// Texts with shell and terminal syntax, repeated texts, and arbitrary texts.
fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => prop::sample::select(vec![
            "", "true", "echo ok", "sleep 60", "ls -la src", "echo $(date) > a &", "cat <<'E'\nrm x\nE\n",
            "error: no such file `a`", "No matches found for \"a\"", "45% of 12 files, 3/4, 7 of 9",
            "Tue Nov  4 11:00:00 UTC 2025 pid 4711 0x7f /tmp/tmpa1/b 1m20s #3",
            "\u{1b}[31mred\u{1b}", "\u{1b}]0;never ended", "'\"`\\", "a\r\nb\rc", "≥ 60 ünïcödé …",
        ]).prop_map(str::to_owned),
        2 => "\\PC{0,120}",
        2 => "[a-c \n]{0,200}",
        1 => any::<String>(),
    ]
}

fn inputs() -> impl Strategy<Value = Value> {
    prop_oneof![
        texts().prop_map(|text| json!({ "command": text })),
        texts().prop_map(|text| json!(text)),
        texts().prop_map(|text| json!({ "path": text, "lines": [1, null, [text], { "a": true }] })),
        Just(json!(null)),
        Just(json!(["bash", "-lc", 7])),
    ]
}

fn steps() -> impl Strategy<Value = Step> {
    let tools = prop::sample::select(vec![
        "Bash",
        "Edit",
        "Read",
        "think",
        "",
        "mcp__x__getAll",
        "öÄ",
    ]);
    let call = (tools, inputs(), texts(), 0..3)
        .prop_map(|(name, input, output, flag)| {
            let step = tool(name, input, &output);
            match flag {
                0 => step,
                1 => step.failed(),
                _ => step.unflagged(),
            }
        })
        .boxed();
    let external = prop::sample::select(vec![
        ExternalChange::Unknown,
        ExternalChange::Unchanged,
        ExternalChange::Unchanged,
        ExternalChange::Changed,
        ExternalChange::TimedOut,
    ]);
    let step = (
        call.clone(),
        prop::option::of(call),
        external,
        prop::option::of(-9_i64..900),
    );
    prop_oneof![
        20 => step.prop_map(|(first, second, external, at)| {
            let step = match second {
                Some(second) => first.and(second),
                None => first,
            };
            match at {
                Some(at) => step.external(external).with_task_at(at),
                None => step.external(external),
            }
        }),
        1 => Just(answer()),
        4 => Just(shell("true", "")),
    ]
}

fn policies() -> impl Strategy<Value = TurnPolicy> {
    let parts = any::<[bool; 12]>().prop_map(
        |[
            lines,
            masks,
            echoes,
            errors,
            refusals,
            no_ops,
            polling,
            waiting,
            edits,
            actions,
            repeats,
            answers,
        ]| Parts {
            lines,
            masks,
            echoes,
            errors,
            refusals,
            no_ops,
            polling,
            waiting,
            edits,
            actions,
            repeats,
            answers,
        },
    );
    let rule = prop_oneof![
        Just(Rule::Plain),
        Just(Rule::Default(Parts::ALL)),
        parts.prop_map(Rule::Default)
    ];
    let thresholds = (
        prop_oneof![0_u32..9, Just(u32::MAX)],
        prop_oneof![0_usize..90, Just(usize::MAX)],
    );
    let stall_wait = prop::sample::select(vec![0, 60, 1_800]).prop_map(Duration::from_secs);
    (rule, thresholds, stall_wait).prop_map(
        |(rule, (stall_threshold, min_info_gain_length), stall_wait)| TurnPolicy {
            stall_threshold,
            min_info_gain_length,
            stall_wait,
            rule,
        },
    )
}

fn turns() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(steps(), 0..24)
}

proptest! {
    #[test]
    fn the_idle_count_decreases_only_with_progress_and_stalls_at_the_threshold(
        policy in policies(), turn in turns()
    ) {
        let mut harness = Harness::with_policy(policy);
        for step in &turn {
            let before = harness.detector.idle_steps();
            let verdict = harness.observe(step);
            let now = harness.detector.idle_steps();
            let threshold = policy.stall_threshold.max(1);
            match verdict {
                Verdict::Progress { .. } | Verdict::Ended => prop_assert_eq!(now, 0),
                Verdict::Idle { steps, .. } => {
                    prop_assert!(steps == now && now < threshold);
                    prop_assert!(now >= before);
                }
                Verdict::Stalled { steps, evidence } => {
                    prop_assert!(steps == now && now >= threshold);
                    prop_assert!(now >= before);
                    prop_assert!(!evidence.is_empty() && evidence.len() <= 16);
                }
                Verdict::Unjudged { steps } => prop_assert!(steps == before && now == before),
            }
        }
    }

    #[test]
    fn verdicts_are_deterministic_and_survive_storing_the_state(
        policy in policies(), turn in turns()
    ) {
        let mut kept = Harness::with_policy(policy);
        let mut restored = Harness::with_policy(policy);
        for step in &turn {
            let state = restored.detector.state();
            prop_assert!(state.lines.len() <= 8192 && state.evidence.len() <= 16);
            restored.detector = ProgressDetector::resume(policy, state);
            prop_assert_eq!(restored.observe(step), kept.observe(step));
        }
        prop_assert_eq!(restored.detector.state(), kept.detector.state());
    }

    #[test]
    fn the_default_rule_without_parts_is_the_plain_rule(turn in turns()) {
        let mut plain = Harness::plain();
        let mut none = Harness::with_parts(|parts| *parts = Parts::NONE);
        for step in &turn {
            prop_assert_eq!(plain.observe(step), none.observe(step));
        }
    }

    #[test]
    fn a_turn_that_repeats_its_steps_stalls(turn in prop::collection::vec(steps(), 1..6)) {
        // At most the first pass makes progress; later passes show the same outputs.
        let unchanged =
            |step: &Step| step.clone().external(ExternalChange::Unchanged).without_time();
        let pass: Vec<Step> = turn.iter().map(unchanged).collect();
        let mut harness = Harness::default();
        let ends = pass.iter().any(|step| matches!(Harness::default().observe(step), Verdict::Ended));
        prop_assume!(!ends);
        let steps = pass.iter().cycle().take(pass.len() * 2 + 40).cloned();
        prop_assert!(harness.stalls_after(steps).is_some());
    }
}
