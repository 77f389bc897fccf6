//! What a detector remembers comes back as it was, stays small, and is never half read.

use onward_core::Timestamp;
use onward_core::turn::{Evidence, Nothing, ProgressDetector, State, TurnPolicy};
use onward_store::codec::{decode_turn, encode_turn};
use proptest::prelude::*;

use crate::cases;

fn evidence() -> impl Strategy<Value = Evidence> {
    let why = proptest::sample::select(Nothing::ALL.as_slice());
    // Words without the looks of a secret, which would not come back.
    (
        any::<u32>(),
        "[a-zé \n]{0,80}",
        "[a-z\u{202e}\"]{0,80}",
        why,
    )
        .prop_map(|(step, input, output, why)| Evidence {
            step,
            tool: "Bash".to_owned(),
            input,
            output,
            why,
        })
}

prop_compose! {
    fn states()(
        step in any::<u32>(),
        idle_halves in any::<u32>(),
        at in proptest::option::of(0..4_000_000_000_000i64),
        lines in proptest::collection::vec(any::<u32>(), 0..50),
        outputs in proptest::collection::vec(any::<u64>(), 0..50),
        calls in proptest::collection::vec(any::<(u64, u64, (u32, u32))>(), 0..50),
        tasks in proptest::collection::vec(
            (any::<u64>(), any::<u32>(), proptest::option::of(0..4_000_000_000_000i64)), 0..16,
        ),
        evidence in proptest::collection::vec(evidence(), 0..16),
    ) -> State {
        State {
            step,
            idle_halves,
            counted_at: at.map(Timestamp::from_millis),
            lines,
            outputs,
            calls,
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
    fn every_state_comes_back_as_it_was(state in states()) {
        prop_assert_eq!(decode_turn(&encode_turn(&state)), Ok(state));
    }

    #[test]
    fn what_nobody_wrote_is_refused_and_never_a_panic(
        state in states(), place in any::<prop::sample::Index>(), with in any::<char>(),
    ) {
        let mut text: Vec<char> = encode_turn(&state).chars().collect();
        let place = place.index(text.len());
        text[place] = with;
        // It may still be a state: a digit may stand for another one.
        drop(decode_turn(&text.iter().collect::<String>()));
        text.truncate(place);
        prop_assert!(decode_turn(&text.iter().collect::<String>()).is_err());
    }
}

#[test]
fn the_fullest_state_there_can_be_is_read_back() {
    let wide = "\u{1}".repeat(81);
    let state = State {
        step: u32::MAX,
        idle_halves: u32::MAX,
        counted_at: Some(Timestamp::MAX),
        lines: (0..8_192).collect(),
        outputs: (0..1_024).collect(),
        calls: (0..1_024).map(|call| (call, u64::MAX, (1, 2))).collect(),
        tasks: (0..16)
            .map(|task| (task, u32::MAX, Some(Timestamp::MAX)))
            .collect(),
        evidence: vec![
            Evidence {
                step: 1,
                tool: wide.clone(),
                input: wide.clone(),
                output: wide,
                why: Nothing::Seen,
            };
            16
        ],
    };
    // What a detector keeps of it is all of it.
    let kept = ProgressDetector::resume(TurnPolicy::default(), state.clone()).state();
    assert_eq!(kept, state);
    let text = encode_turn(&state);
    assert!(text.len() < 180_000, "{} bytes", text.len());
    assert_eq!(decode_turn(&text), Ok(state));
}

#[test]
fn other_versions_and_endless_texts_are_refused_in_words() {
    let text = encode_turn(&State::default());
    for (text, why) in [
        (
            text.replace("\"version\":1", "\"version\":2"),
            "it has version 2, expected 1",
        ),
        (" ".repeat(300_000), "it has 300000 bytes, too many"),
        (
            text.replace("\"lines\":\"\"", "\"lines\":\"0\""),
            "`lines` does not fit: it is cut short",
        ),
        (
            "[]".to_owned(),
            "the state's fields are a list, expected an object",
        ),
    ] {
        let refused = decode_turn(&text).expect_err(why);
        assert_eq!(refused.to_string(), why);
    }
}

#[test]
fn a_state_from_before_tasks_were_known_is_read() {
    let old = r#"{"calls":"","evidence":[],"idleHalves":3,"lines":"0000002a","outputs":"","step":5,"version":1}"#;
    let state = State {
        step: 5,
        idle_halves: 3,
        lines: vec![42],
        ..State::default()
    };
    assert_eq!(decode_turn(old), Ok(state.clone()));
    // And what has no tasks is written as it was, for a program of that time to read.
    assert_eq!(encode_turn(&state), old);
}

#[test]
fn a_task_that_is_not_one_number_is_refused() {
    let state = State {
        tasks: vec![(7, 2, None)],
        ..State::default()
    };
    let text = encode_turn(&state);
    for (with, why) in [
        ("", "`tasks[0].task` does not fit: it is not one number"),
        ("07", "`tasks[0].task` does not fit: it is cut short"),
    ] {
        let refused = decode_turn(&text.replace("0000000000000007", with)).expect_err(why);
        assert_eq!(refused.to_string(), why);
    }
}

#[test]
fn secrets_are_not_written_down() {
    let state = State {
        evidence: vec![Evidence {
            step: 1,
            tool: "Bash".to_owned(),
            input: "curl -H 'Authorization: Bearer abc' https://me:pw@x.org".to_owned(),
            output: "TOKEN=hunter2".to_owned(),
            why: Nothing::Seen,
        }],
        ..State::default()
    };
    let text = encode_turn(&state);
    for secret in ["abc", ":pw@", "hunter2"] {
        assert!(!text.contains(secret), "{text}");
    }
}
