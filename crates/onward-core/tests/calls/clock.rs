//! When a call is past its time: each sentence of the detector, exact at the boundary.

use std::time::Duration;

use onward_core::Timestamp;
use onward_core::call::{
    CallMove, CallPolicy, CallStatus, CallTimestamp, Cause, Limit, is_stale, next_stale_at,
    stale_at,
};
use onward_core::watcher::{Watcher, WatcherPolicy};

use crate::law::{after, at};

const POLICY: CallPolicy = CallPolicy {
    default_timeout: Duration::from_secs(120),
    grace: Duration::from_secs(30),
};

fn running() -> CallTimestamp {
    CallTimestamp {
        status: CallStatus::Running,
        started_at: Some(at(0)),
        last_progress_at: None,
        limit: Limit::Unsaid,
    }
}

fn seconds(seconds: u64) -> Limit {
    Limit::After(Duration::from_secs(seconds))
}

#[test]
fn the_default_is_two_minutes_and_half_a_minute_of_grace() {
    assert_eq!(CallPolicy::default(), POLICY);
}

#[test]
fn a_call_is_stale_past_the_default_and_the_grace() {
    assert_eq!(stale_at(&running(), POLICY), Some(at(150)));
    assert!(is_stale(
        &running(),
        Timestamp::from_millis(150_001),
        POLICY
    ));
}

#[test]
fn exactly_at_its_limit_a_call_is_alive() {
    assert!(!is_stale(&running(), at(150), POLICY));
}

#[test]
fn a_call_with_ten_minutes_of_its_own_is_alive_after_two() {
    let call = CallTimestamp {
        limit: seconds(600),
        ..running()
    };
    assert!(!is_stale(&call, at(151), POLICY));
    assert_eq!(stale_at(&call, POLICY), Some(at(630)));
}

#[test]
fn a_timeout_that_is_shorter_than_the_default_counts_too() {
    let call = CallTimestamp {
        limit: seconds(5),
        ..running()
    };
    assert_eq!(stale_at(&call, POLICY), Some(at(35)));
}

#[test]
fn a_timeout_of_nothing_counts_as_not_given() {
    let call = CallTimestamp {
        limit: seconds(0),
        ..running()
    };
    assert_eq!(stale_at(&call, POLICY), Some(at(150)));
}

#[test]
fn a_call_that_reported_a_second_ago_is_alive_after_two_hours() {
    let call = CallTimestamp {
        last_progress_at: Some(at(7199)),
        ..running()
    };
    assert!(!is_stale(&call, at(7200), POLICY));
    assert_eq!(stale_at(&call, POLICY), Some(at(7349)));
}

#[test]
fn a_sign_of_life_from_before_the_start_counts_for_nothing() {
    let call = CallTimestamp {
        last_progress_at: Some(at(-500)),
        ..running()
    };
    assert_eq!(stale_at(&call, POLICY), Some(at(150)));
}

#[test]
fn a_call_that_waits_for_a_person_is_alive_after_a_day() {
    let call = after(&[CallMove::Start, CallMove::AskApproval]);
    assert_eq!(call.verdict(at(86_400), POLICY, None), None);
}

#[test]
fn a_call_that_is_allowed_after_an_hour_has_all_its_time() {
    let mut call = after(&[CallMove::Start, CallMove::AskApproval]);
    call.apply(CallMove::Start, at(3600)).unwrap();
    assert_eq!(call.verdict(at(3750), POLICY, None), None);
    assert_eq!(call.verdict(at(3751), POLICY, None), Some(Cause::TimedOut));
}

#[test]
fn without_a_start_there_is_no_verdict() {
    let call = CallTimestamp {
        started_at: None,
        last_progress_at: Some(at(0)),
        ..running()
    };
    assert!(!is_stale(&call, Timestamp::MAX, POLICY));
}

#[test]
fn a_tool_without_a_timeout_has_no_clock() {
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
fn a_fast_sibling_of_a_slow_call_is_judged_by_its_own_time() {
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
fn a_limit_past_the_end_of_time_never_comes() {
    for limit in [Limit::After(Duration::MAX), seconds(u64::MAX / 2)] {
        let call = CallTimestamp { limit, ..running() };
        assert_eq!(stale_at(&call, POLICY), None);
    }
}

#[test]
fn a_watcher_that_slept_convicts_nobody_for_one_grace() {
    let policy = WatcherPolicy {
        tolerance: Duration::from_secs(5),
        grace: Duration::from_secs(60),
    };
    let mut watcher = Watcher::begin(policy, at(-1000));
    watcher.sleep_until(at(100));
    watcher.wake(at(9000));
    assert_eq!(running().convicted_after(POLICY, &watcher), Some(at(9060)));
    // What began after it woke up is judged as always.
    let call = CallTimestamp {
        started_at: Some(at(9001)),
        ..running()
    };
    assert_eq!(call.convicted_after(POLICY, &watcher), Some(at(9151)));
}
