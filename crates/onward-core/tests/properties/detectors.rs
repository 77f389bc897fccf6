//! The stall detector on arbitrary timestamps: monotone in time, exact at the threshold, and
//! consistent with `next_stall_at`.

use std::time::Duration;

use onward_core::{
    StepStatus, StepTimestamp, Timestamp, detect_stalled_steps, is_plan_stalled, next_stall_at,
};
use proptest::prelude::*;

use crate::walk::cases;

fn instants() -> impl Strategy<Value = Timestamp> {
    prop_oneof![
        // Close together, so that they are often near a threshold.
        12 => 0_i64..60,
        2 => -100_i64..100_000,
        1 => any::<i64>(),
        1 => Just(i64::MAX),
        1 => Just(i64::MIN),
    ]
    .prop_map(Timestamp::from_millis)
}

fn thresholds() -> impl Strategy<Value = Duration> {
    prop_oneof![
        12 => (0_u64..40).prop_map(Duration::from_millis),
        2 => (0_u64..40_000_000).prop_map(Duration::from_nanos),
        1 => any::<u64>().prop_map(Duration::from_millis),
        1 => Just(Duration::ZERO),
        1 => Just(Duration::MAX),
    ]
}

fn steps() -> impl Strategy<Value = Vec<StepTimestamp<usize>>> {
    let step = (
        prop_oneof![
            4 => Just(StepStatus::InProgress),
            1 => prop::sample::select(StepStatus::ALL.to_vec()),
        ],
        prop::option::of(instants()),
        instants(),
        prop::option::of(instants()),
    );
    prop::collection::vec(step, 0..6).prop_map(|steps| {
        let numbered = steps.into_iter().enumerate();
        numbered
            .map(
                |(id, (status, started_at, updated_at, last_progress_at))| StepTimestamp {
                    id,
                    status,
                    started_at,
                    updated_at,
                    last_progress_at,
                },
            )
            .collect()
    })
}

/// A naive stall check, in arithmetic that cannot overflow.
fn is_stalled(step: &StepTimestamp<usize>, now: Timestamp, threshold: Duration) -> bool {
    let started = step.started_at.unwrap_or(step.updated_at);
    let reference = match step.last_progress_at {
        Some(later) if later > started => later,
        Some(_) | None => started,
    };
    let inactive = i128::from(now.as_millis()) - i128::from(reference.as_millis());
    let threshold = i128::try_from(threshold.as_nanos()).unwrap_or(i128::MAX);
    step.status == StepStatus::InProgress && inactive * 1_000_000 > threshold
}

proptest! {
    #![proptest_config(cases(2_000))]

    #[test]
    fn detection_matches_the_naive_check(
        steps in steps(), now in instants(), threshold in thresholds(),
    ) {
        let expected: Vec<usize> =
            steps.iter().filter(|step| is_stalled(step, now, threshold)).map(|step| step.id).collect();
        prop_assert_eq!(is_plan_stalled(&steps, now, threshold), !expected.is_empty());
        prop_assert_eq!(detect_stalled_steps(&steps, now, threshold), expected);
    }

    #[test]
    fn a_stalled_step_stays_stalled(
        steps in steps(), a in instants(), b in instants(), threshold in thresholds(),
    ) {
        let (now, later) = (a.min(b), a.max(b));
        let stalled_later = detect_stalled_steps(&steps, later, threshold);
        for step in detect_stalled_steps(&steps, now, threshold) {
            prop_assert!(stalled_later.contains(&step), "step {} is no longer stalled", step);
        }
    }

    #[test]
    fn a_step_stalls_one_millisecond_after_the_threshold(
        steps in steps(), threshold in 0_u64..100_000,
    ) {
        let threshold = Duration::from_millis(threshold);
        for step in steps.iter().filter(|step| step.status == StepStatus::InProgress) {
            let reference = step.reference();
            let alone = std::slice::from_ref(step);
            prop_assert!(!is_plan_stalled(alone, reference, threshold), "not stalled at its start");
            prop_assert!(!is_plan_stalled(alone, Timestamp::MIN, threshold), "not stalled before its start");
            let Some(at) = reference.checked_add(threshold) else { continue };
            prop_assert_eq!(detect_stalled_steps(alone, at, threshold), Vec::<usize>::new());
            if at < Timestamp::MAX {
                prop_assert_eq!(detect_stalled_steps(alone, at.next(), threshold), vec![step.id]);
            }
        }
    }

    #[test]
    fn next_stall_at_is_exact_to_the_millisecond(
        steps in steps(), now in instants(), threshold in thresholds(), within in 0.0_f64..1.0,
    ) {
        let detect = |at| detect_stalled_steps(&steps, at, threshold);
        let stalled = detect(now);
        let Some(next) = next_stall_at(&steps, now, threshold) else {
            prop_assert_eq!(detect(Timestamp::MAX), stalled);
            return Ok(());
        };
        prop_assert!(now <= next);
        prop_assert_eq!(&detect(next), &stalled);
        #[allow(clippy::cast_possible_truncation, reason = "any time in between will do")]
        let between = now.as_millis() + ((next.as_millis() - now.as_millis()) as f64 * within) as i64;
        prop_assert_eq!(&detect(Timestamp::from_millis(between)), &stalled);
        if next < Timestamp::MAX {
            prop_assert_ne!(&detect(next.next()), &stalled);
        }
    }
}
