//! Notifications: one per finding, sent by exactly one server, and retried only after a failed
//! delivery.

use std::time::Duration;

use onward_core::PlanId;
use onward_core::event::Decision;
use onward_core::finding::Kind;
use onward_core::policy::OnStall;
use onward_engine::next_step::AssignedStep;
use onward_engine::notification::{
    CLAIM_TIMEOUT, DeliveryAttempt, MAX_ATTEMPTS, PlanNotification, retry_delay,
};
use onward_engine::step::{ProgressReport, ReviewDecision};
use onward_engine::{Delivery, Engine};

use crate::harness::Harness;
use crate::on_both_databases;
use crate::operations::CreatedPlan;

const SECOND: Duration = Duration::from_secs(1);
const MILLISECOND: Duration = Duration::from_millis(1);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A plan with a stall threshold of one second.
async fn plan_with_policy(harness: &Harness, steps: u32, policy: OnStall) -> CreatedPlan {
    let mut draft = harness.draft(steps);
    draft.stall_threshold = Some(SECOND);
    draft.on_stall = policy;
    harness.create(draft).await
}

/// Takes the due notifications with this engine.
async fn take_with(engine: &Engine, harness: &Harness) -> Vec<PlanNotification> {
    let taken = engine
        .claim_notifications(&harness.me.tenant, &Kind::ALL, 100)
        .await;
    taken.expect("notifications were taken").notifications
}

async fn take(harness: &Harness) -> Vec<PlanNotification> {
    take_with(&harness.engine, harness).await
}

/// Records the outcome of a delivery attempt.
async fn record(harness: &Harness, due: &PlanNotification, outcome: DeliveryAttempt) -> Delivery {
    let recorded = harness
        .engine
        .record_delivery_attempt(&harness.me.tenant, &due.notification, outcome)
        .await;
    recorded.expect("outcome was recorded")
}

/// The plan and finding of each notification.
fn keys(due: &[PlanNotification]) -> Vec<(PlanId, Kind)> {
    due.iter()
        .map(|due| (due.notification.plan, due.notification.finding.kind))
        .collect()
}

async fn report_progress(harness: &Harness, step: &AssignedStep) {
    let progress = ProgressReport {
        step: step.step,
        note: None,
        percent: None,
        token: None,
        session: None,
    };
    let reported = harness.engine.report_progress(&harness.me, progress).await;
    reported.expect("progress was reported");
}

async fn notifies_of_a_stall_with_every_policy_except_ignore(harness: &Harness) {
    let mut watcher = harness.engine.watcher();
    for policy in [OnStall::Mark, OnStall::Requeue, OnStall::Fail] {
        let plan = plan_with_policy(harness, 2, policy).await;
        let step = harness.claim(plan.id).await;
        let since = harness.now();
        harness.advance(SECOND);
        harness.engine.sweep(&mut watcher).await.unwrap();
        assert_eq!(
            take(harness).await,
            [],
            "{policy}: not stalled exactly at the threshold"
        );
        harness.advance(MILLISECOND);
        for _ in 0..3 {
            harness.engine.sweep(&mut watcher).await.unwrap();
        }
        let due = take(harness).await;
        assert_eq!(keys(&due), [(plan.id, Kind::Stall)], "{policy}");
        let finding = &due[0].notification.finding;
        assert_eq!(finding.step, Some(step.step));
        assert_eq!((finding.attempt, finding.since), (Some(1), since));
        assert_eq!(due[0].notification.found_at, harness.now());
        assert_eq!(due[0].on_stall, policy);
        assert_eq!(
            record(harness, &due[0], DeliveryAttempt::Sent).await,
            Delivery::Sent
        );
        harness
            .engine
            .abandon_plan(&harness.me, plan.id, None)
            .await
            .unwrap();
        let failed = take(harness).await;
        assert_eq!(keys(&failed), [(plan.id, Kind::Failure)], "{policy}");
        record(harness, &failed[0], DeliveryAttempt::Sent).await;
    }
}

async fn an_ignored_stall_appears_in_the_status_without_a_notification(harness: &Harness) {
    let plan = plan_with_policy(harness, 2, OnStall::Ignore).await;
    let mut watcher = harness.engine.watcher();
    let step = harness.claim(plan.id).await;
    harness.advance(SECOND + MILLISECOND);
    for _ in 0..3 {
        let round = harness.engine.sweep(&mut watcher).await.unwrap();
        assert_eq!((round.changed, round.failed), (Vec::new(), Vec::new()));
    }
    assert_eq!(take(harness).await, [], "no webhook");
    let listed = harness
        .engine
        .notifications_after(&harness.me, onward_core::Timestamp::from_millis(0), 100)
        .await;
    assert_eq!(listed.unwrap(), [], "no desktop notification");
    let stalled = harness.status(plan.id).await.stalled;
    assert_eq!(stalled.len(), 1, "{stalled:?}");
    // Other findings of the plan are still reported.
    harness
        .request_review(&step)
        .await
        .expect("review was requested");
    assert_eq!(keys(&take(harness).await), [(plan.id, Kind::Review)]);
}

async fn a_second_stall_of_the_same_step_is_another_finding(harness: &Harness) {
    let plan = plan_with_policy(harness, 1, OnStall::Mark).await;
    let mut watcher = harness.engine.watcher();
    let step = harness.claim(plan.id).await;
    for _ in 0..3 {
        harness.advance(SECOND + MILLISECOND);
        harness.engine.sweep(&mut watcher).await.unwrap();
        let due = take(harness).await;
        assert_eq!(keys(&due), [(plan.id, Kind::Stall)]);
        record(harness, &due[0], DeliveryAttempt::Sent).await;
        // Without progress, resuming the plan does not end the stall.
        harness
            .engine
            .resume_plan(&harness.me, plan.id)
            .await
            .unwrap();
        harness.advance(SECOND + MILLISECOND);
        harness.engine.sweep(&mut watcher).await.unwrap();
        assert_eq!(take(harness).await, []);
        report_progress(harness, &step).await;
    }
}

async fn notifies_of_a_stall_while_the_plan_is_marked_or_under_review(harness: &Harness) {
    let mut watcher = harness.engine.watcher();
    let [marked, under_review] = [
        plan_with_policy(harness, 3, OnStall::Mark).await,
        plan_with_policy(harness, 3, OnStall::Mark).await,
    ];
    // The first plan is marked because of one step; then its other step stalls.
    harness.claim(marked.id).await;
    let second = harness.claim(marked.id).await;
    // One step of the second plan is under review; then its other step stalls.
    harness.claim(under_review.id).await;
    let reviewed = harness.claim(under_review.id).await;
    harness
        .request_review(&reviewed)
        .await
        .expect("review was requested");
    let review = take(harness).await;
    assert_eq!(keys(&review), [(under_review.id, Kind::Review)]);
    record(harness, &review[0], DeliveryAttempt::Sent).await;
    harness.advance(SECOND / 2);
    report_progress(harness, &second).await;
    harness.advance(SECOND / 2 + MILLISECOND);
    harness.engine.sweep(&mut watcher).await.unwrap();
    let mut first = take(harness).await;
    first.sort_by_key(|due| due.notification.plan);
    let mut expected = [(marked.id, Kind::Stall), (under_review.id, Kind::Stall)];
    expected.sort_by_key(|(plan, _)| *plan);
    assert_eq!(keys(&first), expected);
    for due in &first {
        record(harness, due, DeliveryAttempt::Sent).await;
    }
    let next = harness.engine.sweep(&mut watcher).await.unwrap().next_at;
    harness
        .environment
        .set(next.expect("the second step is due"));
    harness.engine.sweep(&mut watcher).await.unwrap();
    let due = take(harness).await;
    assert_eq!(keys(&due), [(marked.id, Kind::Stall)]);
    assert_eq!(due[0].notification.finding.step, Some(second.step));
    assert_eq!(
        harness.engine.sweep(&mut watcher).await.unwrap().next_at,
        None
    );
}

async fn review_and_failure_notifications_include_their_text(harness: &Harness) {
    let plan = harness.plan(2).await;
    let step = harness.claim(plan.id).await;
    harness
        .request_review(&step)
        .await
        .expect("review was requested");
    let due = take(harness).await;
    assert_eq!(keys(&due), [(plan.id, Kind::Review)]);
    assert_eq!(due[0].notification.finding.note.as_deref(), Some("so?"));
    assert_eq!(due[0].plan_name, "Tides");
    assert_eq!(due[0].step, Some((step.step, 1, None)));
    record(harness, &due[0], DeliveryAttempt::Sent).await;
    let (reject, reason) = (Decision::Reject, Some("too wet".to_owned()));
    let decided = harness
        .engine
        .decide_review(&harness.me, ReviewDecision::new(step.step, reject, reason));
    decided.await.unwrap();
    let due = take(harness).await;
    assert_eq!(keys(&due), [(plan.id, Kind::Failure)]);
    assert_eq!(due[0].notification.finding.note.as_deref(), Some("too wet"));
    assert_eq!(due[0].plan_status.as_str(), "failed");
}

async fn one_of_several_servers_delivers_a_notification(harness: &Harness) {
    let other = harness.another_engine().await;
    let plan = harness.plan(1).await;
    let step = harness.claim(plan.id).await;
    harness
        .request_review(&step)
        .await
        .expect("review was requested");
    let both = tokio::join!(take(harness), take_with(&other, harness));
    assert_eq!(both.0.len() + both.1.len(), 1, "exactly one takes it");
    let due = [both.0, both.1].concat();
    // The lease protects it from other servers.
    harness.advance(CLAIM_TIMEOUT - MILLISECOND);
    assert_eq!(take_with(&other, harness).await, []);
    harness.advance(MILLISECOND);
    // The lease has expired: another server delivers it under the same key.
    let again = take_with(&other, harness).await;
    assert_eq!(again.len(), 1);
    assert_eq!(again[0].notification.tries, 2);
    assert_eq!(again[0].notification.finding, due[0].notification.finding);
    // The outcome reported by the first server is ignored.
    record(harness, &due[0], DeliveryAttempt::Failed("slow".to_owned())).await;
    assert_eq!(
        record(harness, &again[0], DeliveryAttempt::Sent).await,
        Delivery::Sent
    );
    harness.advance(DAY);
    assert_eq!(take(harness).await, []);
    let listed = harness.engine.notifications(&harness.me, 10).await.unwrap();
    assert_eq!(listed[0].delivery, Delivery::Sent);
    assert_eq!(listed[0].last_error, None);
    other.close().await;
}

async fn retries_a_failed_delivery_until_the_last_attempt(harness: &Harness) {
    let plan = harness.plan(1).await;
    let step = harness.claim(plan.id).await;
    harness
        .request_review(&step)
        .await
        .expect("review was requested");
    for tries in 1..=MAX_ATTEMPTS {
        let due = take(harness).await;
        assert_eq!(due.len(), 1, "attempt {tries}");
        assert_eq!(due[0].notification.tries, tries);
        let delivery = record(
            harness,
            &due[0],
            DeliveryAttempt::Failed(format!("no {tries}")),
        )
        .await;
        if tries < MAX_ATTEMPTS {
            assert_eq!(delivery, Delivery::Waiting);
        } else {
            assert_eq!(delivery, Delivery::GivenUp);
        }
        harness.advance(retry_delay(tries) - MILLISECOND);
        assert_eq!(take(harness).await, [], "not before the retry delay");
        harness.advance(MILLISECOND);
    }
    harness.advance(DAY);
    assert_eq!(take(harness).await, []);
    let listed = harness.engine.notifications(&harness.me, 10).await.unwrap();
    let error = listed[0].last_error.as_deref();
    assert_eq!(error, Some(format!("no {MAX_ATTEMPTS}").as_str()));
}

async fn discards_unwanted_and_expired_notifications(harness: &Harness) {
    let [unwanted, old] = [harness.plan(1).await, harness.plan(1).await];
    let step = harness.claim(unwanted.id).await;
    harness
        .request_review(&step)
        .await
        .expect("review was requested");
    let some = [Kind::Stall, Kind::Failure];
    let taking = harness
        .engine
        .claim_notifications(&harness.me.tenant, &some, 100)
        .await;
    assert_eq!(taking.unwrap().notifications, []);
    let step = harness.claim(old.id).await;
    harness
        .request_review(&step)
        .await
        .expect("review was requested");
    harness.advance(DAY + MILLISECOND);
    assert_eq!(take(harness).await, []);
    let listed = harness.engine.notifications(&harness.me, 10).await.unwrap();
    let listed: Vec<_> = listed
        .iter()
        .map(|listed| (listed.plan, listed.delivery))
        .collect();
    assert!(
        listed.contains(&(unwanted.id, Delivery::Unwanted)),
        "{listed:?}"
    );
    assert!(listed.contains(&(old.id, Delivery::GivenUp)), "{listed:?}");
}

async fn notifications_belong_to_one_tenant_and_are_deleted_with_their_plan(harness: &Harness) {
    let plan = harness.plan(1).await;
    let before = harness.now();
    harness.advance(MILLISECOND);
    let step = harness.claim(plan.id).await;
    harness
        .request_review(&step)
        .await
        .expect("review was requested");
    let other = harness.create_tenant("others").await;
    let engine = &harness.engine;
    let taken = engine
        .claim_notifications(&other.tenant, &Kind::ALL, 100)
        .await;
    assert_eq!(taken.unwrap().notifications, []);
    assert_eq!(engine.notifications(&other, 10).await.unwrap(), []);
    assert_eq!(
        engine
            .notifications_after(&other, before, 10)
            .await
            .unwrap(),
        []
    );
    let listed = engine
        .notifications_after(&harness.me, before, 10)
        .await
        .unwrap();
    assert_eq!(keys(&listed), [(plan.id, Kind::Review)]);
    let later = engine
        .notifications_after(&harness.me, harness.now(), 10)
        .await;
    assert_eq!(later.unwrap(), []);
    let step = listed[0].notification.finding.step.unwrap();
    engine
        .decide_review(
            &harness.me,
            ReviewDecision::new(step, Decision::Reject, None),
        )
        .await
        .unwrap();
    engine.delete_plan(&harness.me, plan.id).await.unwrap();
    assert_eq!(engine.notifications(&harness.me, 10).await.unwrap(), []);
}

async fn a_rolled_back_change_creates_no_notification(harness: &Harness) {
    let plan = harness.plan(1).await;
    let step = harness.claim(plan.id).await;
    let mut failed = 0;
    for fault in 0..20 {
        harness.faults.fail_after(fault);
        let requested = harness.request_review(&step).await;
        failed += u32::from(requested.is_err());
        harness.faults.fail_after(u32::MAX);
        let listed = harness.engine.notifications(&harness.me, 10).await.unwrap();
        let open = harness.engine.open_reviews(&harness.me, 10).await.unwrap();
        assert_eq!(listed.len(), open.len(), "both or neither");
        if !open.is_empty() {
            break;
        }
    }
    assert!(failed >= 2, "a read and the commit failed");
    assert_eq!(take(harness).await.len(), 1);
}

async fn a_notification_contains_its_review_while_it_is_pending(harness: &Harness) {
    let plan = harness.plan(1).await;
    let step = harness.claim(plan.id).await;
    let review = harness.request_review(&step).await.unwrap().review;
    let due = take(harness).await;
    let id = |due: &PlanNotification| due.review.as_ref().map(|review| review.id);
    assert_eq!(due.iter().map(id).collect::<Vec<_>>(), [Some(review)]);
    assert_eq!(due[0].notification.finding.review(), Some(review));
    // Changes are requested, and a later review of the same step is pending.
    let feedback = Some("shorter".to_owned());
    let decision = ReviewDecision::new(step.step, Decision::Modify, feedback);
    let decided = harness.engine.decide_review(&harness.me, decision);
    decided.await.unwrap();
    let later = harness.request_review(&step).await.unwrap().review;
    harness.advance(CLAIM_TIMEOUT);
    let due = take(harness).await;
    let mut ids: Vec<_> = due.iter().map(id).collect();
    ids.sort();
    assert_eq!(ids, [None, Some(later)]);
    let abandoned = harness.engine.abandon_plan(&harness.me, plan.id, None);
    abandoned.await.unwrap();
    harness.advance(CLAIM_TIMEOUT);
    let due = take(harness).await;
    assert!(due.len() >= 2);
    assert!(due.iter().all(|due| due.review.is_none()));
}

on_both_databases![
    a_notification_contains_its_review_while_it_is_pending,
    review_and_failure_notifications_include_their_text,
    one_of_several_servers_delivers_a_notification,
    retries_a_failed_delivery_until_the_last_attempt,
    discards_unwanted_and_expired_notifications,
    notifications_belong_to_one_tenant_and_are_deleted_with_their_plan,
    a_rolled_back_change_creates_no_notification,
];

/// The sweep covers all tenants of a database.
mod exclusive {
    use super::{
        a_second_stall_of_the_same_step_is_another_finding,
        an_ignored_stall_appears_in_the_status_without_a_notification,
        notifies_of_a_stall_while_the_plan_is_marked_or_under_review,
        notifies_of_a_stall_with_every_policy_except_ignore,
    };
    crate::on_both_databases![exclusive:
        notifies_of_a_stall_with_every_policy_except_ignore,
    an_ignored_stall_appears_in_the_status_without_a_notification,
        a_second_stall_of_the_same_step_is_another_finding,
        notifies_of_a_stall_while_the_plan_is_marked_or_under_review,
    ];
}
