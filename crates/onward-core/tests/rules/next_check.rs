//! The sweep's next check of a plan that it has just checked. The checks after a commit are in
//! `transitions.rs`.

use onward_core::budget::Budget;
use onward_core::command::CreatePlan;
use onward_core::decide::handle_stalls::Facts;
use onward_core::next_check;
use onward_core::watcher::{Watcher, WatcherPolicy};
use onward_core::{Command, DEFAULT_STALL_THRESHOLD, PlanStatus, Timestamp};

use crate::harness::{Harness, MINUTE, abandon, captured_plan, create_plan, sweep};

fn after_check(harness: &Harness, watcher: Option<Watcher>) -> Option<Timestamp> {
    let mut facts = Facts::from_plan(&harness.plan);
    facts.watcher = watcher;
    let threshold = facts.head.stall_threshold;
    let is_stalled = |step: &onward_core::Step| step.is_stalled(threshold, harness.now);
    facts.in_progress.retain(is_stalled);
    let next_stall_at = harness.plan.next_stall_at(harness.now, None);
    next_check::after_check(&facts, next_stall_at, harness.now)
}

fn later(at: Timestamp, span: std::time::Duration) -> Timestamp {
    at.checked_add(span).unwrap()
}

#[test]
fn a_plan_is_checked_again_right_after_its_next_step_stalls() {
    let harness = Harness::with_steps(1).started();
    let stalls_at = later(harness.now, DEFAULT_STALL_THRESHOLD);
    assert_eq!(after_check(&harness, None), Some(stalls_at.next()));
}

#[test]
fn an_idle_plan_and_an_ended_plan_are_not_checked_again() {
    assert_eq!(after_check(&Harness::with_steps(1), None), None);
    let mut harness = Harness::with_steps(1).started();
    harness.run(&abandon());
    assert_eq!(after_check(&harness, None), None);
}

#[test]
fn a_plan_is_checked_again_at_the_end_of_its_budget() {
    let budget = Budget {
        max_duration_ms: u64::try_from(MINUTE.as_millis()).ok(),
        ..Budget::default()
    };
    let plan = CreatePlan {
        budget: Some(budget),
        ..create_plan(1)
    };
    let harness = Harness::new(plan).started();
    let ends_at = later(harness.now, MINUTE);
    assert_eq!(after_check(&harness, None), Some(ends_at));
}

#[test]
fn a_step_that_stalled_during_a_sleep_is_checked_again_after_the_grace_period() {
    for grace in [2 * MINUTE, 2 * DEFAULT_STALL_THRESHOLD] {
        let mut harness = Harness::with_steps(1).started();
        let policy = WatcherPolicy {
            tolerance: MINUTE,
            grace,
        };
        let mut watcher = Watcher::begin(policy, harness.now);
        harness.advance(2 * DEFAULT_STALL_THRESHOLD);
        watcher.wake(harness.now);
        let ends_at = later(harness.now, grace);
        let next = after_check(&harness, Some(watcher));
        assert_eq!(next, Some(ends_at.next()));
    }
}

#[test]
fn a_resumed_plan_with_a_stalled_step_is_checked_again_once_per_threshold() {
    let mut harness = Harness::with_steps(1).started();
    harness.advance(2 * DEFAULT_STALL_THRESHOLD);
    harness.run(&sweep());
    assert_eq!(harness.status(), PlanStatus::Stalled);
    assert_eq!(after_check(&harness, None), None);
    harness.run(&Command::ResumePlan);
    let idle_at = later(harness.now, DEFAULT_STALL_THRESHOLD);
    harness.advance(MINUTE);
    assert_eq!(after_check(&harness, None), Some(idle_at.next()));
    harness.advance(2 * DEFAULT_STALL_THRESHOLD);
    let next = later(harness.now, DEFAULT_STALL_THRESHOLD);
    assert_eq!(after_check(&harness, None), Some(next.next()));
}

#[test]
fn a_captured_plan_is_not_checked_for_stalls() {
    let harness = Harness::new(captured_plan(2)).started();
    assert_eq!(after_check(&harness, None), None);
}
