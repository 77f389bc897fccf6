//! Properties of timeouts and transitions, for arbitrary calls.

use std::time::Duration;

use onward_core::Timestamp;
use onward_core::call::{
    Call, CallPolicy, CallStatus, CallTimestamp, CallTransition, Cause, Limit, is_stale,
    next_stale_at, stale_at,
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
        Just(Limit::Unspecified),
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
                grace: None,
            },
        )
}

fn transitions() -> impl Strategy<Value = CallTransition> {
    proptest::sample::select(vec![
        CallTransition::RequestApproval,
        CallTransition::Start,
        CallTransition::Progress,
        CallTransition::Complete,
        CallTransition::Fail,
        CallTransition::Deny,
        CallTransition::Cancel,
        CallTransition::Interrupt(Cause::TimedOut),
        CallTransition::Interrupt(Cause::OutcomeUnknown),
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
    fn a_call_becomes_stale_exactly_after_stale_at(call in calls()) {
        match stale_at(&call, POLICY) {
            Some(limit) => {
                prop_assert!(!is_stale(&call, limit, POLICY));
                prop_assert!(limit == Timestamp::MAX || is_stale(&call, limit.next(), POLICY));
            }
            None => prop_assert!(!is_stale(&call, Timestamp::MAX, POLICY)),
        }
    }

    #[test]
    fn progress_never_makes_a_call_stale_earlier(call in calls(), progress in instants()) {
        let with = CallTimestamp {
            last_progress_at: call.last_progress_at.max(Some(progress)),
            ..call
        };
        if let (Some(before), Some(after)) = (stale_at(&call, POLICY), stale_at(&with, POLICY)) {
            prop_assert!(before <= after);
        }
    }

    #[test]
    fn nothing_changes_before_next_stale_at(
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
    fn a_call_is_interrupted_once_and_keeps_its_interruption(
        transitions in proptest::collection::vec((transitions(), instants()), 0..12),
    ) {
        let mut call = Call::requested(Limit::Unspecified, None);
        let mut interruption = None;
        for (transition, at) in transitions {
            let is_open = call.state.status().is_open();
            let is_applied = call.apply(transition, at).is_ok();
            if is_applied && matches!(transition, CallTransition::Interrupt(_)) {
                prop_assert!(is_open && interruption.is_none());
                interruption = call.state.interruption();
                prop_assert!(interruption.is_some());
            }
            prop_assert_eq!(call.state.interruption(), interruption);
            prop_assert_eq!(call.timestamp().started_at.is_some(), call.state.run().is_some());
        }
    }
}
