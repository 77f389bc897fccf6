//! Stalled steps in the plan status, and how agents and users handle them. `sweep.rs` tests the
//! sweep's actions.

use std::time::Duration;

use onward_core::DEFAULT_STALL_THRESHOLD;
use onward_core::command::Modification;
use onward_core::event::ProgressSource;
use onward_core::id::{ClaimToken, SessionId};
use onward_core::policy::OnStall;
use onward_engine::next_step::{AssignedStep, NextStep};
use onward_engine::step::ProgressReport;

use crate::harness::Harness;
use crate::on_both_databases;
use crate::operations::{CreatedPlan, code, submission_for};

const SECOND: Duration = Duration::from_secs(1);
const MILLISECOND: Duration = Duration::from_millis(1);

/// A plan with a stall threshold of one second.
async fn plan_with_threshold(harness: &Harness, steps: u32) -> CreatedPlan {
    let mut draft = harness.draft(steps);
    draft.stall_threshold = Some(SECOND);
    harness.create(draft).await
}

fn progress(step: &AssignedStep) -> ProgressReport {
    ProgressReport {
        step: step.step,
        note: Some("half way".to_owned()),
        percent: Some(50.0),
        token: Some(step.token.clone()),
        session: None,
    }
}

async fn a_step_stalls_one_millisecond_after_its_threshold(harness: &Harness) {
    let plan = plan_with_threshold(harness, 1).await;
    let step = harness.claim(plan.id).await;
    assert_eq!(step.stall_threshold, SECOND);
    let began = harness.now();
    harness.advance(SECOND);
    let status = harness.status(plan.id).await;
    assert_eq!(status.stalled, []);
    assert_eq!(status.next_stall_at, began.checked_add(SECOND));
    harness.advance(MILLISECOND);
    let status = harness.status(plan.id).await;
    let stalled = &status.stalled[0];
    assert_eq!(
        (stalled.step, stalled.since, stalled.threshold),
        (step.step, began, SECOND)
    );
    assert_eq!(stalled.elapsed, SECOND + MILLISECOND);
    assert_eq!(status.next_stall_at, None);
    assert_eq!(
        harness.plan_status(plan.id).await.as_str(),
        "executing",
        "reading the status changes nothing"
    );
}

async fn the_most_specific_threshold_applies(harness: &Harness) {
    let mut draft = harness.draft(2);
    draft.stall_threshold = Some(10 * SECOND);
    draft.steps[1].stall_threshold = Some(SECOND);
    let plan = harness.create(draft).await;
    assert_eq!(harness.claim(plan.id).await.stall_threshold, 10 * SECOND);
    assert_eq!(harness.claim(plan.id).await.stall_threshold, SECOND);
    harness.advance(SECOND + MILLISECOND);
    let orders = async |threshold| {
        let status = harness
            .engine
            .status(&harness.me, plan.id, threshold)
            .await
            .unwrap();
        status
            .stalled
            .iter()
            .map(|step| step.order)
            .collect::<Vec<_>>()
    };
    assert_eq!(orders(None).await, [2]);
    assert_eq!(orders(Some(SECOND)).await, [1, 2]);
    assert_eq!(orders(Some(60 * SECOND)).await, [0u32; 0]);
    for threshold in [Duration::ZERO, Duration::from_secs(366 * 24 * 3600)] {
        let rejected = harness
            .engine
            .status(&harness.me, plan.id, Some(threshold))
            .await;
        assert_eq!(code(rejected), "invalid_input");
    }
}

async fn the_default_threshold_is_30_minutes(harness: &Harness) {
    let plan = harness.plan(1).await;
    harness.claim(plan.id).await;
    harness.advance(Duration::from_secs(30 * 60));
    assert_eq!(harness.status(plan.id).await.stalled, []);
    harness.advance(MILLISECOND);
    assert_eq!(harness.status(plan.id).await.stalled.len(), 1);
}

async fn progress_restarts_the_threshold(harness: &Harness) {
    let plan = plan_with_threshold(harness, 1).await;
    let step = harness.claim(plan.id).await;
    harness.advance(SECOND);
    let progressed = harness
        .engine
        .report_progress(&harness.me, progress(&step))
        .await
        .unwrap();
    assert_eq!(progressed.last_progress_at, harness.now());
    assert_eq!(progressed.stalls_at, harness.now().checked_add(SECOND));
    harness.advance(SECOND);
    assert_eq!(harness.status(plan.id).await.stalled, []);
    harness.advance(MILLISECOND);
    assert_eq!(harness.status(plan.id).await.stalled.len(), 1);
}

async fn rejects_invalid_progress(harness: &Harness) {
    let plan = harness.plan(2).await;
    let step = harness.claim(plan.id).await;
    for percent in [-0.1, 100.1, f64::NAN] {
        let report = ProgressReport {
            percent: Some(percent),
            ..progress(&step)
        };
        let rejected = harness.engine.report_progress(&harness.me, report).await;
        assert_eq!(code(rejected), "invalid_input", "{percent}");
    }
    let pending = ProgressReport {
        step: plan.steps[1],
        token: None,
        ..progress(&step)
    };
    let rejected = harness.engine.report_progress(&harness.me, pending).await;
    assert_eq!(code(rejected), "illegal_transition");
    let foreign = ProgressReport {
        token: Some(ClaimToken::new("foreign")),
        ..progress(&step)
    };
    let rejected = harness.engine.report_progress(&harness.me, foreign).await;
    assert_eq!(code(rejected), "claim_superseded");
}

async fn records_observed_activity_of_the_claiming_session_at_intervals(harness: &Harness) {
    let plan = harness.plan(1).await;
    let session = SessionId::new("seen");
    let next = harness
        .engine
        .next_step(&harness.me, plan.id, Some(session.clone()), false)
        .await;
    let step = crate::operations::claimed_step(next.unwrap());
    let notice = async |session: &str| {
        let session = Some(SessionId::new(session));
        let noticed = harness
            .engine
            .record_activity(&harness.me, step.step, ProgressSource::Seen, session)
            .await;
        noticed.expect("activity is never rejected");
        harness.audit_trail(plan.id).await.len()
    };
    assert_eq!(notice("seen").await, 3);
    harness.advance(DEFAULT_STALL_THRESHOLD / 4);
    assert_eq!(notice("another").await, 3);
    assert_eq!(notice("seen").await, 4);
    assert_eq!(notice("seen").await, 4);
    harness.complete(&step, "done").await;
    harness.advance(DEFAULT_STALL_THRESHOLD / 4);
    assert_eq!(notice("seen").await, 6, "a completed step has no activity");
}

async fn takes_over_a_stalled_step_only_on_request(harness: &Harness) {
    let plan = plan_with_threshold(harness, 2).await;
    let first = harness.claim(plan.id).await;
    harness.advance(SECOND);
    assert_eq!(
        harness.take_over(plan.id).await.order,
        2,
        "not stalled exactly at the threshold"
    );
    harness.advance(MILLISECOND);
    assert!(matches!(
        harness.next_step(plan.id).await,
        NextStep::NoPendingSteps { .. }
    ));
    let taken_over = harness.take_over(plan.id).await;
    assert_eq!((taken_over.step, taken_over.attempt), (first.step, 2));
    assert_eq!(
        code(harness.submit(submission_for(&first, "late")).await),
        "claim_superseded"
    );
    let events = harness.audit_trail(plan.id).await;
    assert!(
        events.contains(&"step_requeued taken_over".to_owned()),
        "{events:?}"
    );
    harness.complete(&taken_over, "done").await;
}

async fn takeover_fails_a_step_without_attempts_left_and_claims_the_next(harness: &Harness) {
    let mut draft = harness.draft(2);
    draft.stall_threshold = Some(SECOND);
    draft.steps[0].max_attempts = Some(1);
    draft.steps[1].depends_on = vec![1];
    draft.on_dependency_failure = onward_core::policy::OnDependencyFailure::Continue;
    let plan = harness.create(draft).await;
    harness.claim(plan.id).await;
    harness.advance(SECOND + MILLISECOND);
    let next = harness.take_over(plan.id).await;
    assert_eq!(next.order, 2);
    assert_eq!(
        harness.step_statuses(plan.id).await,
        ["failed", "in_progress"]
    );
}

async fn takeover_completes_a_plan_whose_only_step_has_no_attempts_left(harness: &Harness) {
    let mut draft = harness.draft(1);
    draft.stall_threshold = Some(SECOND);
    draft.steps[0].max_attempts = Some(1);
    let plan = harness.create(draft).await;
    harness.claim(plan.id).await;
    harness.advance(SECOND + MILLISECOND);
    let next = harness
        .engine
        .next_step(&harness.me, plan.id, None, true)
        .await
        .unwrap();
    assert!(matches!(next, NextStep::Complete(_)), "{next:?}");
}

async fn plan_lists_flag_plans_with_a_stalled_step(harness: &Harness) {
    let mut draft = harness.draft(1);
    draft.stall_threshold = Some(SECOND);
    draft.on_stall = OnStall::Ignore;
    let plan = harness.create(draft).await;
    let step = harness.claim(plan.id).await;
    let stalled = async || {
        let query = onward_engine::list::PlanQuery {
            limit: 10,
            finished: true,
            ..Default::default()
        };
        harness
            .engine
            .list_plans(&harness.me, query)
            .await
            .unwrap()
            .plans[0]
            .stalled
    };
    harness.advance(SECOND);
    assert!(!stalled().await);
    harness.advance(MILLISECOND);
    assert!(stalled().await);
    harness
        .engine
        .abandon_plan(&harness.me, plan.id, None)
        .await
        .unwrap();
    assert!(!stalled().await, "a terminal plan has no stalled steps");
    assert_eq!(harness.status(plan.id).await.stalled, []);
    assert_eq!(
        code(harness.submit(submission_for(&step, "late")).await),
        "plan_is_terminal"
    );
}

async fn requeuing_ends_the_stall_timer(harness: &Harness) {
    let plan = plan_with_threshold(harness, 1).await;
    let step = harness.claim(plan.id).await;
    harness
        .modify(plan.id, Modification::RequeueStep { step: step.step })
        .await
        .unwrap();
    harness.advance(10 * SECOND);
    let status = harness.status(plan.id).await;
    assert_eq!((status.stalled, status.next_stall_at), (Vec::new(), None));
}

on_both_databases![
    a_step_stalls_one_millisecond_after_its_threshold,
    the_most_specific_threshold_applies,
    the_default_threshold_is_30_minutes,
    progress_restarts_the_threshold,
    rejects_invalid_progress,
    records_observed_activity_of_the_claiming_session_at_intervals,
    takes_over_a_stalled_step_only_on_request,
    takeover_fails_a_step_without_attempts_left_and_claims_the_next,
    takeover_completes_a_plan_whose_only_step_has_no_attempts_left,
    plan_lists_flag_plans_with_a_stalled_step,
    requeuing_ends_the_stall_timer,
];
