//! What holds for every call there can be.

use std::time::Duration;

use onward_core::Timestamp;
use onward_core::call::{
    Call, CallMove, CallPolicy, CallStatus, CallTimestamp, Cause, Limit, is_stale, next_stale_at,
    stale_at,
};
use proptest::prelude::*;

fn instants() -> impl Strategy<Value = Timestamp> {
    prop_oneof![
        8 => (0i64..2_000_000).prop_map(Timestamp::from_millis),
        1 => any::<i64>().prop_map(Timestamp::from_millis),
    ]
}

fn limits() -> impl Strategy<Value = Limit> {
    prop_oneof![
        Just(Limit::Unsaid),
        Just(Limit::Never),
        (0u64..700_000).prop_map(|millis| Limit::After(Duration::from_millis(millis))),
        any::<u64>().prop_map(|seconds| Limit::After(Duration::from_secs(seconds))),
    ]
}

fn calls() -> impl Strategy<Value = CallTimestamp> {
    (
        prop_oneof![
            4 => Just(CallStatus::Running),
            1 => proptest::sample::select(CallStatus::ALL.to_vec()),
        ],
        proptest::option::weighted(0.9, instants()),
        proptest::option::of(instants()),
        limits(),
    )
        .prop_map(
            |(status, started_at, last_progress_at, limit)| CallTimestamp {
                status,
                started_at,
                last_progress_at,
                limit,
            },
        )
}

fn moves() -> impl Strategy<Value = CallMove> {
    proptest::sample::select(vec![
        CallMove::AskApproval,
        CallMove::Start,
        CallMove::Progress,
        CallMove::Complete,
        CallMove::Fail,
        CallMove::Deny,
        CallMove::Cancel,
        CallMove::Interrupt(Cause::TimedOut),
        CallMove::Interrupt(Cause::OutcomeUnknown),
    ])
}

const POLICY: CallPolicy = CallPolicy {
    default_timeout: Duration::from_secs(120),
    grace: Duration::from_secs(30),
};

proptest! {
    #[test]
    fn once_stale_a_call_stays_stale(call in calls(), a in instants(), b in instants()) {
        let (earlier, later) = (a.min(b), a.max(b));
        prop_assert!(!is_stale(&call, earlier, POLICY) || is_stale(&call, later, POLICY));
    }

    #[test]
    fn a_call_changes_its_verdict_exactly_after_the_instant_that_is_named(call in calls()) {
        match stale_at(&call, POLICY) {
            Some(limit) => {
                prop_assert!(!is_stale(&call, limit, POLICY));
                prop_assert!(limit == Timestamp::MAX || is_stale(&call, limit.next(), POLICY));
            }
            None => prop_assert!(!is_stale(&call, Timestamp::MAX, POLICY)),
        }
    }

    #[test]
    fn a_sign_of_life_never_makes_a_call_older(call in calls(), sign in instants()) {
        let with = CallTimestamp {
            last_progress_at: call.last_progress_at.max(Some(sign)),
            ..call
        };
        if let (Some(before), Some(after)) = (stale_at(&call, POLICY), stale_at(&with, POLICY)) {
            prop_assert!(before <= after);
        }
    }

    #[test]
    fn nothing_changes_before_the_next_instant_that_is_named(
        calls in proptest::collection::vec(calls(), 0..6),
        now in instants(),
    ) {
        let verdicts = |at| calls.iter().map(|call| is_stale(call, at, POLICY)).collect::<Vec<_>>();
        match next_stale_at(&calls, now, POLICY) {
            Some(next) => {
                prop_assert!(now <= next);
                prop_assert_eq!(verdicts(now), verdicts(next));
                prop_assert!(next == Timestamp::MAX || verdicts(next) != verdicts(next.next()));
            }
            None => prop_assert_eq!(verdicts(now), verdicts(Timestamp::MAX)),
        }
    }

    #[test]
    fn what_the_model_was_told_is_told_once_and_never_forgotten(
        moves in proptest::collection::vec((moves(), instants()), 0..12),
    ) {
        let mut call = Call::requested(Limit::Unsaid, None);
        let mut told = None;
        for (asked, at) in moves {
            let is_open = call.state.status().is_open();
            let done = call.apply(asked, at).is_ok();
            if done && matches!(asked, CallMove::Interrupt(_)) {
                prop_assert!(is_open && told.is_none());
                told = call.state.interruption();
                prop_assert!(told.is_some());
            }
            prop_assert_eq!(call.state.interruption(), told);
            prop_assert_eq!(call.timestamp().started_at.is_some(), call.state.run().is_some());
        }
    }
}
