//! Timeouts: when a call is stale, exact at the boundary.

use std::time::Duration;

use onward_core::Timestamp;
use onward_core::call::{
    Call, CallPolicy, CallStatus, CallTimestamp, CallTransition, Limit, is_stale, next_stale_at,
    stale_at,
};
use onward_core::watcher::{Watcher, WatcherPolicy};

use crate::transitions::{after, at};

const POLICY: CallPolicy = CallPolicy {
    default_timeout: Duration::from_secs(120),
    grace: Duration::from_secs(30),
};

fn running() -> CallTimestamp {
    CallTimestamp {
        status: CallStatus::Running,
        started_at: Some(at(0)),
        last_progress_at: None,
        limit: Limit::Unspecified,
        grace: None,
    }
}

fn seconds(seconds: u64) -> Limit {
    Limit::After(Duration::from_secs(seconds))
}

#[test]
fn a_call_has_its_own_grace_period() {
    let call = CallTimestamp {
        grace: Some(Duration::from_secs(5)),
        ..running()
    };
    assert_eq!(stale_at(&call, POLICY), Some(at(125)));
}

#[test]
fn a_call_yields_when_its_agent_answers_the_model() {
    let mut call = Call::requested(Limit::Yields(Duration::from_secs(10)), None);
    assert!(!call.has_yielded(at(100)));
    call.apply(CallTransition::Start, at(0)).unwrap();
    assert!(!call.has_yielded(at(9)));
    assert!(call.has_yielded(at(10)));
    assert_eq!(stale_at(&call.timestamp(), POLICY), Some(at(40)));
}

#[test]
fn the_default_timeout_is_two_minutes_with_thirty_seconds_grace() {
    assert_eq!(CallPolicy::default(), POLICY);
}

#[test]
fn a_call_is_stale_after_timeout_and_grace_period() {
    assert_eq!(stale_at(&running(), POLICY), Some(at(150)));
    assert!(is_stale(
        &running(),
        Timestamp::from_millis(150_001),
        POLICY
    ));
}

#[test]
fn a_call_is_not_stale_exactly_at_its_limit() {
    assert!(!is_stale(&running(), at(150), POLICY));
}

#[test]
fn a_longer_timeout_overrides_the_default() {
    let call = CallTimestamp {
        limit: seconds(600),
        ..running()
    };
    assert!(!is_stale(&call, at(151), POLICY));
    assert_eq!(stale_at(&call, POLICY), Some(at(630)));
}

#[test]
fn a_shorter_timeout_overrides_the_default() {
    let call = CallTimestamp {
        limit: seconds(5),
        ..running()
    };
    assert_eq!(stale_at(&call, POLICY), Some(at(35)));
}

#[test]
fn a_zero_timeout_counts_as_unspecified() {
    let call = CallTimestamp {
        limit: seconds(0),
        ..running()
    };
    assert_eq!(stale_at(&call, POLICY), Some(at(150)));
}

#[test]
fn progress_restarts_the_timeout() {
    let call = CallTimestamp {
        last_progress_at: Some(at(7199)),
        ..running()
    };
    assert!(!is_stale(&call, at(7200), POLICY));
    assert_eq!(stale_at(&call, POLICY), Some(at(7349)));
}

#[test]
fn progress_before_the_start_is_ignored() {
    let call = CallTimestamp {
        last_progress_at: Some(at(-500)),
        ..running()
    };
    assert_eq!(stale_at(&call, POLICY), Some(at(150)));
}

#[test]
fn a_call_awaiting_approval_has_no_timeout() {
    let call = after(&[CallTransition::Start, CallTransition::RequestApproval]);
    assert!(!is_stale(&call.timestamp(), at(86_400), POLICY));
}

#[test]
fn approval_restarts_the_timeout() {
    let mut call = after(&[CallTransition::Start, CallTransition::RequestApproval]);
    call.apply(CallTransition::Start, at(3600)).unwrap();
    assert!(!is_stale(&call.timestamp(), at(3750), POLICY));
    assert!(is_stale(&call.timestamp(), at(3751), POLICY));
}

#[test]
fn a_call_without_a_start_time_is_never_stale() {
    let call = CallTimestamp {
        started_at: None,
        last_progress_at: Some(at(0)),
        ..running()
    };
    assert!(!is_stale(&call, Timestamp::MAX, POLICY));
}

#[test]
fn a_tool_without_a_timeout_is_never_stale() {
    let call = CallTimestamp {
        limit: Limit::Never,
        ..running()
    };
    assert!(!is_stale(&call, Timestamp::MAX, POLICY));
}

#[test]
fn only_a_running_call_can_be_stale() {
    for status in CallStatus::ALL {
        let call = CallTimestamp {
            status,
            ..running()
        };
        let stale = is_stale(&call, Timestamp::MAX, POLICY);
        assert_eq!(stale, status == CallStatus::Running, "{status}");
    }
}

#[test]
fn each_call_has_its_own_timeout() {
    let slow = CallTimestamp {
        limit: seconds(600),
        ..running()
    };
    let calls = [running(), slow];
    let stale: Vec<bool> = calls.map(|call| is_stale(&call, at(200), POLICY)).into();
    assert_eq!(stale, [true, false]);
    assert_eq!(next_stale_at(&calls, at(200), POLICY), Some(at(630)));
    assert_eq!(next_stale_at(&calls, at(0), POLICY), Some(at(150)));
    assert_eq!(next_stale_at(&calls, at(631), POLICY), None);
}

#[test]
fn a_timeout_out_of_range_never_expires() {
    for limit in [Limit::After(Duration::MAX), seconds(u64::MAX / 2)] {
        let call = CallTimestamp { limit, ..running() };
        assert_eq!(stale_at(&call, POLICY), None);
    }
}

#[test]
fn a_sleep_of_the_monitor_adds_one_grace_period() {
    let policy = WatcherPolicy {
        tolerance: Duration::from_secs(5),
        grace: Duration::from_secs(60),
    };
    let mut watcher = Watcher::begin(policy, at(-1000));
    watcher.sleep_until(at(100));
    watcher.wake(at(9000));
    assert_eq!(running().deadline(POLICY, &watcher), Some(at(9060)));
    // A call that started after the wake-up gets no grace period.
    let call = CallTimestamp {
        started_at: Some(at(9001)),
        ..running()
    };
    assert_eq!(call.deadline(POLICY, &watcher), Some(at(9151)));
}
