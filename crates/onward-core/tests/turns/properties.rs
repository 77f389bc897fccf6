//! What holds for every turn there can be: nothing panics, the same steps get the same verdicts, the
//! count never falls without progress, and the state survives being put away.

use onward_core::turn::{Outside, Parts, ProgressDetector, Rule, TurnPolicy, Verdict};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::desk::{Desk, Step, answer, shell, tool};

/// Texts that shells and terminals stumble over, texts that repeat, and any text at all.
fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => prop::sample::select(vec![
            "", "true", "echo ok", "ls -la src", "echo $(date) > a &", "cat <<'E'\nrm x\nE\n",
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
    let outside = prop::sample::select(vec![
        Outside::Unknown,
        Outside::Same,
        Outside::Same,
        Outside::Changed,
        Outside::Late,
    ]);
    let step = (
        call.clone(),
        prop::option::of(call),
        outside,
        prop::option::of(-9_i64..900),
    );
    prop_oneof![
        20 => step.prop_map(|(first, second, outside, at)| {
            let step = match second {
                Some(second) => first.and(second),
                None => first,
            };
            match at {
                Some(at) => step.outside(outside).waiting_at(at),
                None => step.outside(outside),
            }
        }),
        1 => Just(answer()),
        4 => Just(shell("true", "")),
    ]
}

fn policies() -> impl Strategy<Value = TurnPolicy> {
    let parts = any::<[bool; 9]>().prop_map(
        |[
            lines,
            masks,
            echoes,
            errors,
            no_ops,
            polling,
            edits,
            repeats,
            short_answers,
        ]| Parts {
            lines,
            masks,
            echoes,
            errors,
            no_ops,
            polling,
            edits,
            repeats,
            short_answers,
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
    (rule, thresholds).prop_map(
        |(rule, (stall_threshold, min_info_gain_length))| TurnPolicy {
            stall_threshold,
            min_info_gain_length,
            rule,
        },
    )
}

fn turns() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(steps(), 0..24)
}

proptest! {
    #[test]
    fn the_count_never_falls_without_progress_and_a_stall_is_said_at_the_threshold(
        policy in policies(), turn in turns()
    ) {
        let mut desk = Desk::with(policy);
        for step in &turn {
            let before = desk.detector.idle_steps();
            let verdict = desk.see(step);
            let now = desk.detector.idle_steps();
            let threshold = policy.stall_threshold.max(1);
            match verdict {
                Verdict::Progress { .. } | Verdict::Ended => prop_assert_eq!(now, 0),
                Verdict::Idle { steps, .. } => {
                    prop_assert!(steps == now && now < threshold);
                    prop_assert!((before..=before + 1).contains(&now));
                }
                Verdict::Stalled { steps, evidence } => {
                    prop_assert!(steps == now && now >= threshold);
                    prop_assert!((before..=before + 1).contains(&now));
                    prop_assert!(!evidence.is_empty() && evidence.len() <= 16);
                }
                Verdict::Unjudged { steps } => prop_assert!(steps == before && now == before),
            }
        }
    }

    #[test]
    fn the_same_steps_get_the_same_verdicts_also_when_the_detector_is_put_away_in_between(
        policy in policies(), turn in turns()
    ) {
        let mut kept = Desk::with(policy);
        let mut stored = Desk::with(policy);
        for step in &turn {
            let state = stored.detector.state();
            prop_assert!(state.lines.len() <= 8192 && state.evidence.len() <= 16);
            stored.detector = ProgressDetector::resume(policy, state);
            prop_assert_eq!(stored.see(step), kept.see(step));
        }
        prop_assert_eq!(stored.detector.state(), kept.detector.state());
    }

    #[test]
    fn with_every_part_off_the_default_rule_is_the_plain_one(turn in turns()) {
        let mut plain = Desk::plain();
        let mut none = Desk::parts(|parts| *parts = Parts::NONE);
        for step in &turn {
            prop_assert_eq!(plain.see(step), none.see(step));
        }
    }

    #[test]
    fn a_turn_that_only_repeats_itself_is_a_stall(turn in prop::collection::vec(steps(), 1..6)) {
        // Once around at the most teaches something; what shows the same after that does not, be it
        // that a fingerprint says otherwise.
        let same = |step: &Step| step.clone().outside(Outside::Same).without_a_clock();
        let around: Vec<Step> = turn.iter().map(same).collect();
        let mut desk = Desk::default();
        let ends = around.iter().any(|step| matches!(Desk::default().see(step), Verdict::Ended));
        prop_assume!(!ends);
        let steps = around.iter().cycle().take(around.len() * 2 + 40).cloned();
        prop_assert!(desk.stalls_after(steps).is_some());
    }
}
