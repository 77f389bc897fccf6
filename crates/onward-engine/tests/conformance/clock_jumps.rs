//! A wall clock that is wrong for a while. Stalls are detected by the right time, during the jump and
//! after it.

use std::time::Duration;

use onward_core::attention::DEFAULT_NO_AGENT_AFTER;
use onward_core::watcher::Watcher;
use onward_core::{PlanId, Timestamp};
use onward_engine::step::ProgressReport;

use crate::harness::Harness;
use crate::on_both_databases;
use crate::operations::CreatedPlan;

const MINUTE: Duration = Duration::from_secs(60);
const THRESHOLD: Duration = Duration::from_secs(30 * 60);
const MILLISECOND: Duration = Duration::from_millis(1);
const EIGHT_HOURS_MS: i64 = 8 * 3_600_000;
/// The clock is followed if it stays where it has jumped to for this long.
const SETTLED: Duration = Duration::from_secs(16);

/// A plan with a claimed step, and a sweep that has seen it.
async fn begin(harness: &Harness) -> (CreatedPlan, Watcher) {
    let plan = harness.plan(2).await;
    let mut watcher = harness.engine.watcher();
    assert_eq!(changed(harness, &mut watcher).await, []);
    // The sweep checks once that an agent starts the plan.
    harness.advance(DEFAULT_NO_AGENT_AFTER + MILLISECOND);
    assert_eq!(changed(harness, &mut watcher).await, []);
    harness.claim(plan.id).await;
    assert_eq!(changed(harness, &mut watcher).await, []);
    (plan, watcher)
}

/// The plans that a sweep has changed.
async fn changed(harness: &Harness, watcher: &mut Watcher) -> Vec<PlanId> {
    let round = harness.engine.sweep(watcher).await.expect("sweep ran");
    assert_eq!(round.failed, []);
    round.changed.into_iter().map(|(_, plan)| plan).collect()
}

/// Runs a sweep now and after the clock has settled.
async fn settle(harness: &Harness, watcher: &mut Watcher) {
    harness.engine.sweep(watcher).await.expect("sweep ran");
    harness.advance(SETTLED);
    harness.engine.sweep(watcher).await.expect("sweep ran");
}

/// The plan stalls at the end of the threshold, and not before.
async fn assert_stalls_at(harness: &Harness, watcher: &mut Watcher, plan: PlanId, at: Timestamp) {
    harness.environment.set(at);
    assert_eq!(changed(harness, watcher).await, []);
    harness.advance(MILLISECOND);
    assert_eq!(changed(harness, watcher).await, [plan]);
    assert_eq!(harness.plan_status(plan).await.as_str(), "stalled");
}

async fn a_clock_that_is_wrong_for_four_seconds_has_no_effect(harness: &Harness) {
    let (plan, mut watcher) = begin(harness).await;
    let claimed_at = harness.now();
    harness.advance(5 * MINUTE);
    for by in [EIGHT_HOURS_MS, -EIGHT_HOURS_MS] {
        harness.environment.misset_by(by);
        for _ in 0..4 {
            let now = harness.engine.now();
            assert!(
                now.since(claimed_at) < 6 * MINUTE && now > claimed_at,
                "{now}"
            );
            assert_eq!(changed(harness, &mut watcher).await, []);
            harness.advance(Duration::from_secs(1));
        }
        harness.environment.misset_by(0);
        assert_eq!(changed(harness, &mut watcher).await, []);
    }
    let stalls_at = claimed_at.checked_add(THRESHOLD).unwrap();
    assert_stalls_at(harness, &mut watcher, plan.id, stalls_at).await;
}

async fn checks_planned_by_a_wrong_clock_are_repaired_when_it_returns(harness: &Harness) {
    let (plan, mut watcher) = begin(harness).await;
    let claimed_at = harness.now();
    harness.advance(5 * MINUTE);
    harness.environment.misset_by(EIGHT_HOURS_MS);
    settle(harness, &mut watcher).await;
    let round = harness.engine.sweep(&mut watcher).await.unwrap();
    let planned = round.next_at.expect("the step has a grace period");
    assert!(
        planned.since(claimed_at) > Duration::from_secs(8 * 3600),
        "{planned}"
    );
    harness.environment.misset_by(0);
    settle(harness, &mut watcher).await;
    let stalls_at = claimed_at.checked_add(THRESHOLD).unwrap();
    assert_stalls_at(harness, &mut watcher, plan.id, stalls_at).await;
}

async fn checks_that_are_too_late_are_repaired_at_the_start(harness: &Harness) {
    let (plan, _) = begin(harness).await;
    let stalls_at = harness.now().checked_add(THRESHOLD).unwrap();
    let later = format!("UPDATE due SET at = at + {EIGHT_HOURS_MS}");
    harness.sql(&later).expect("due times were changed");
    let mut watcher = harness.engine.watcher();
    let round = harness.engine.sweep(&mut watcher).await.unwrap();
    assert_eq!(round.next_at, Some(stalls_at.next()));
    harness.environment.set(stalls_at);
    assert_eq!(changed(harness, &mut watcher).await, []);
    harness.advance(MILLISECOND);
    assert_eq!(changed(harness, &mut watcher).await, [plan.id]);
}

async fn a_step_claimed_by_a_wrong_clock_stalls_after_it_has_returned(harness: &Harness) {
    let plan = harness.plan(2).await;
    let mut watcher = harness.engine.watcher();
    harness.environment.misset_by(EIGHT_HOURS_MS);
    settle(harness, &mut watcher).await;
    harness.claim(plan.id).await;
    harness.environment.misset_by(0);
    harness.engine.sweep(&mut watcher).await.unwrap();
    harness.advance(SETTLED);
    assert_eq!(
        changed(harness, &mut watcher).await,
        [plan.id],
        "active now"
    );
    let stalls_at = harness.now().checked_add(THRESHOLD).unwrap();
    assert_stalls_at(harness, &mut watcher, plan.id, stalls_at).await;
}

async fn activity_after_the_clock_has_returned_counts(harness: &Harness) {
    let plan = harness.plan(2).await;
    harness.environment.misset_by(EIGHT_HOURS_MS);
    harness.engine.now();
    harness.advance(SETTLED);
    let step = harness.claim(plan.id).await;
    harness.environment.misset_by(0);
    harness.engine.now();
    harness.advance(SETTLED);
    let report = ProgressReport {
        step: step.step,
        note: None,
        percent: None,
        token: None,
        session: None,
    };
    let reported = harness.engine.report_progress(&harness.me, report).await;
    let reported = reported.expect("step is in progress");
    assert_eq!(reported.last_progress_at, harness.now());
    assert_eq!(reported.stalls_at, harness.now().checked_add(THRESHOLD));
}

on_both_databases!(
    exclusive: a_clock_that_is_wrong_for_four_seconds_has_no_effect,
    checks_planned_by_a_wrong_clock_are_repaired_when_it_returns,
    checks_that_are_too_late_are_repaired_at_the_start,
    a_step_claimed_by_a_wrong_clock_stalls_after_it_has_returned,
    activity_after_the_clock_has_returned_counts,
);
