//! State of the turn detector: round trips, bounded size, and rejection of invalid texts.

use std::time::Duration;

use onward_core::Timestamp;
use onward_core::turn::{Evidence, IdleReason, LastOutput, ProgressDetector, State, TurnPolicy};
use onward_store::codec::{decode_turn, encode_turn};
use proptest::prelude::*;

use crate::cases;

fn evidence() -> impl Strategy<Value = Evidence> {
    let reason = proptest::sample::select(IdleReason::ALL.as_slice());
    // Text that does not look like a secret, because secrets are masked.
    (
        any::<u32>(),
        "[a-zé \n]{0,80}",
        "[a-z\u{202e}\"]{0,80}",
        reason,
    )
        .prop_map(|(step, input, output, reason)| Evidence {
            step,
            tool: "Bash".to_owned(),
            input,
            output,
            reason,
        })
}

prop_compose! {
    fn states()(
        step in any::<u32>(),
        idle_halves in any::<u32>(),
        at in proptest::option::of(0..4_000_000_000_000i64),
        lines in proptest::collection::vec(any::<u32>(), 0..50),
        outputs in proptest::collection::vec(any::<u64>(), 0..50),
        calls in proptest::collection::vec(
            any::<(u64, u32, (u32, u32), [u32; 3], u8, u8)>(), 0..50,
        ),
        waited in any::<u64>(),
        trees in proptest::collection::vec(any::<u64>(), 0..64),
        tasks in proptest::collection::vec(
            (any::<u64>(), any::<u32>(), proptest::option::of(0..4_000_000_000_000i64)), 0..16,
        ),
        evidence in proptest::collection::vec(evidence(), 0..16),
    ) -> State {
        State {
            step,
            idle_halves,
            waited: Duration::from_millis(waited),
            counted_at: at.map(Timestamp::from_millis),
            observed_at: at.map(Timestamp::from_millis),
            lines,
            outputs,
            calls: (calls.into_iter())
                .map(|(call, done, ends, numbers, moves, drifts)| {
                    (call, LastOutput { done, ends, numbers, moves, drifts })
                })
                .collect(),
            trees,
            tasks: (tasks.into_iter())
                .map(|(task, step, at)| (task, step, at.map(Timestamp::from_millis)))
                .collect(),
            evidence,
        }
    }
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn round_trips_every_state(state in states()) {
        prop_assert_eq!(decode_turn(&encode_turn(&state)), Ok(state));
    }

    #[test]
    fn rejects_a_truncated_state_and_never_panics(
        state in states(), place in any::<prop::sample::Index>(), with in any::<char>(),
    ) {
        let mut text: Vec<char> = encode_turn(&state).chars().collect();
        let place = place.index(text.len());
        text[place] = with;
        // The state may still be valid, with another digit.
        drop(decode_turn(&text.iter().collect::<String>()));
        text.truncate(place);
        prop_assert!(decode_turn(&text.iter().collect::<String>()).is_err());
    }
}

#[test]
fn round_trips_the_largest_state() {
    let wide = "\u{1}".repeat(81);
    let state = State {
        step: u32::MAX,
        idle_halves: u32::MAX,
        waited: Duration::from_millis(u64::MAX),
        counted_at: Some(Timestamp::MAX),
        observed_at: Some(Timestamp::MAX),
        trees: (0..64).collect(),
        lines: (0..8_192).collect(),
        outputs: (0..1_024).collect(),
        calls: (0..1_024)
            .map(|call| {
                let last = LastOutput {
                    done: u32::MAX,
                    ends: (1, 2),
                    numbers: [u32::MAX; 3],
                    moves: u8::MAX,
                    drifts: u8::MAX,
                };
                (call, last)
            })
            .collect(),
        tasks: (0..16)
            .map(|task| (task, u32::MAX, Some(Timestamp::MAX)))
            .collect(),
        evidence: vec![
            Evidence {
                step: 1,
                tool: wide.clone(),
                input: wide.clone(),
                output: wide,
                reason: IdleReason::Seen,
            };
            16
        ],
    };
    // The detector keeps all of it.
    let kept = ProgressDetector::resume(TurnPolicy::default(), state.clone()).state();
    assert_eq!(kept, state);
    let text = encode_turn(&state);
    assert!(text.len() < 180_000, "{} bytes", text.len());
    assert_eq!(decode_turn(&text), Ok(state));
}

#[test]
fn rejects_other_versions_and_invalid_texts() {
    let text = encode_turn(&State::default());
    for (text, why) in [
        (
            text.replace("\"version\":2", "\"version\":3"),
            "unsupported version 3, expected 2",
        ),
        (
            " ".repeat(300_000),
            "300000 bytes exceed the maximum of 262144",
        ),
        (
            text.replace("\"lines\":\"\"", "\"lines\":\"0\""),
            "`lines`: truncated",
        ),
        ("[]".to_owned(), "expected an object, found a list"),
    ] {
        let rejected = decode_turn(&text).expect_err(why);
        assert_eq!(rejected.to_string(), why);
    }
}

#[test]
fn rejects_a_task_that_is_not_a_single_number() {
    let state = State {
        tasks: vec![(7, 2, None)],
        ..State::default()
    };
    let text = encode_turn(&state);
    for (with, why) in [
        ("", "`tasks[0].task`: not a single number"),
        ("07", "`tasks[0].task`: truncated"),
    ] {
        let rejected = decode_turn(&text.replace("0000000000000007", with)).expect_err(why);
        assert_eq!(rejected.to_string(), why);
    }
}

#[test]
fn does_not_store_secrets() {
    let state = State {
        evidence: vec![Evidence {
            step: 1,
            tool: "Bash".to_owned(),
            input: "curl -H 'Authorization: Bearer abc' https://me:pw@x.org".to_owned(),
            output: "TOKEN=hunter2".to_owned(),
            reason: IdleReason::Seen,
        }],
        ..State::default()
    };
    let text = encode_turn(&state);
    for secret in ["abc", ":pw@", "hunter2"] {
        assert!(!text.contains(secret), "{text}");
    }
}
