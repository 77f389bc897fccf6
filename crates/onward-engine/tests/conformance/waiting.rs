//! Callers that wait for a step: which changes wake them, and how many of them.

use std::time::Duration;

use onward_core::event::Decision;
use onward_core::{Code, PlanId, Role};
use onward_engine::engine::PlanWatch;
use onward_engine::step::{ProgressReport, ReviewDecision};
use tokio::time::timeout;

use crate::harness::Harness;
use crate::on_both_databases;
use crate::operations::{code, submission_for};

/// Longer than any notification here takes on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(20);

fn watch(harness: &Harness, plan: PlanId) -> PlanWatch {
    harness.engine.watch_plan(&harness.me, plan).unwrap()
}

async fn woken(watch: &mut PlanWatch) {
    timeout(TIMEOUT, watch.changed()).await.expect("woken");
}

/// A plan whose second step depends on the first.
async fn chain(harness: &Harness) -> PlanId {
    let mut draft = harness.draft(2);
    draft.steps[1].depends_on = vec![1];
    harness.create(draft).await.id
}

async fn a_ready_step_wakes_one_caller_and_then_the_next(harness: &Harness) {
    let plan = chain(harness).await;
    let first = harness.claim(plan).await;
    let (mut one, mut other) = (watch(harness, plan), watch(harness, plan));
    // The status is unknown before the first change, which therefore wakes all callers.
    let progress = ProgressReport {
        step: first.step,
        token: None,
        session: None,
        note: None,
        percent: Some(1.0),
    };
    let reported = harness.engine.report_progress(&harness.me, progress).await;
    reported.unwrap();
    woken(&mut one).await;
    woken(&mut other).await;
    harness.complete(&first, "done").await;
    let first_woken = async {
        tokio::select! {
            () = one.changed() => true,
            () = other.changed() => false,
        }
    };
    let is_one = timeout(TIMEOUT, first_woken).await.expect("one is woken");
    // It leaves without a claim, so the step is offered to the next caller.
    let mut next = if is_one {
        drop(one);
        other
    } else {
        drop(other);
        one
    };
    woken(&mut next).await;
}

async fn a_decided_review_and_the_end_of_a_plan_wake_all_callers(harness: &Harness) {
    let plan = chain(harness).await;
    let first = harness.claim(plan).await;
    harness.request_review(&first).await.unwrap();
    let mut callers = [watch(harness, plan), watch(harness, plan)];
    let review = ReviewDecision::new(first.step, Decision::Approve, None);
    let decided = harness.engine.decide_review(&harness.me, review).await;
    decided.unwrap();
    for caller in &mut callers {
        woken(caller).await;
    }
    let second = harness.claim(plan).await;
    harness.complete(&second, "done").await;
    for caller in &mut callers {
        woken(caller).await;
    }
}

async fn another_process_wakes_a_caller(harness: &Harness) {
    let plan = chain(harness).await;
    let first = harness.claim(plan).await;
    let mut caller = watch(harness, plan);
    let other = harness.another_engine().await;
    let submission = submission_for(&first, "done");
    other.submit(&harness.me, submission).await.unwrap();
    woken(&mut caller).await;
    other.close().await;
}

async fn a_change_before_the_first_read_is_not_lost(harness: &Harness) {
    let plan = chain(harness).await;
    let mut caller = watch(harness, plan);
    harness.claim(plan).await;
    woken(&mut caller).await;
    // No further change: the caller keeps waiting.
    let again = timeout(Duration::ZERO, caller.changed()).await;
    again.expect_err("no change, no wake-up");
}

async fn a_deleted_plan_wakes_its_callers(harness: &Harness) {
    let plan = chain(harness).await;
    let mut caller = watch(harness, plan);
    harness.engine.delete_plan(&harness.me, plan).await.unwrap();
    woken(&mut caller).await;
}

async fn a_caller_without_permission_to_work_does_not_wait(harness: &Harness) {
    let plan = chain(harness).await;
    let viewer = harness.caller_with_role(Role::Viewer);
    let watched = harness.engine.watch_plan(&viewer, plan).map(drop);
    assert_eq!(code(watched), Code::Forbidden.as_str());
}

on_both_databases![
    a_ready_step_wakes_one_caller_and_then_the_next,
    a_decided_review_and_the_end_of_a_plan_wake_all_callers,
    another_process_wakes_a_caller,
    a_change_before_the_first_read_is_not_lost,
    a_deleted_plan_wakes_its_callers,
    a_caller_without_permission_to_work_does_not_wait,
];
