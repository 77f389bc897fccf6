//! Deadlines of reviews: the sweep reminds users or decides by policy.

use std::time::Duration;

use onward_core::event::{DecidedBy, Decision, Event, ReviewAction};
use onward_core::step::{Deadline, OnDeadline, ReviewOptions, ReviewScope};
use onward_engine::next_step::AssignedStep;
use onward_engine::step::{ReviewDecision, ReviewRequest};

use crate::harness::Harness;
use crate::on_both_databases;
use crate::operations::document;

const MINUTE: Duration = Duration::from_secs(60);

async fn request(harness: &Harness, step: &AssignedStep, action: OnDeadline) {
    request_with_scope(harness, step, action, ReviewScope::Plan).await;
}

async fn request_with_scope(
    harness: &Harness,
    step: &AssignedStep,
    action: OnDeadline,
    scope: ReviewScope,
) {
    let at = harness.now().checked_add(MINUTE).expect("time in range");
    let request = ReviewRequest {
        step: step.step,
        summary: "It is the Moon.".to_owned(),
        questions: Vec::new(),
        scope,
        options: ReviewOptions {
            deadline: Some(Deadline { at, action }),
            assignee: Some("ann".to_owned()),
            ..ReviewOptions::default()
        },
        token: None,
        session: None,
    };
    let opened = harness.engine.request_review(&harness.me, request).await;
    opened.expect("review was requested");
}

async fn reminders(harness: &Harness) -> usize {
    let notices = harness.engine.notifications(&harness.me, 10).await;
    let notices = notices.expect("notifications").into_iter();
    notices
        .filter(|notice| notice.finding.is_reminder())
        .count()
}

fn is_by_policy(event: &Event) -> bool {
    matches!(
        event,
        Event::UserReviewed {
            action: ReviewAction::Decided {
                by: DecidedBy::Policy,
                ..
            },
            ..
        }
    )
}

async fn the_policy_decides_at_the_deadline(harness: &Harness) {
    for (action, status) in [
        (OnDeadline::Approve, "completed"),
        (OnDeadline::Skip, "skipped"),
        (OnDeadline::Reject, "failed"),
    ] {
        let plan = harness.plan(2).await;
        let step = harness.claim(plan.id).await;
        request(harness, &step, action).await;
        let mut watcher = harness.engine.watcher();
        harness.advance(MINUTE / 2);
        harness.engine.sweep(&mut watcher).await.unwrap();
        assert_eq!(harness.step_statuses(plan.id).await[0], "awaiting_input");
        harness.advance(MINUTE / 2);
        harness.engine.sweep(&mut watcher).await.unwrap();
        assert_eq!(harness.step_statuses(plan.id).await[0], status);
        let full = harness
            .engine
            .full_plan(&harness.me, plan.id)
            .await
            .unwrap();
        let events = full.events.iter();
        let by_policy = events.filter(|entry| is_by_policy(&entry.event));
        assert_eq!(by_policy.count(), 1);
    }
}

/// One check, and one commit, decides all of them.
async fn all_reviews_of_a_plan_are_decided_at_their_deadlines(harness: &Harness) {
    let plan = harness.plan(3).await;
    for action in [OnDeadline::Skip, OnDeadline::Approve] {
        let step = harness.claim(plan.id).await;
        request_with_scope(harness, &step, action, ReviewScope::Step).await;
    }
    let mut watcher = harness.engine.watcher();
    harness.advance(MINUTE);
    harness.engine.sweep(&mut watcher).await.unwrap();
    let statuses = harness.step_statuses(plan.id).await;
    assert_eq!(statuses, ["skipped", "completed", "pending"]);
    let full = harness.engine.full_plan(&harness.me, plan.id);
    let events = full.await.unwrap().events;
    let decided = events.iter().filter(|entry| is_by_policy(&entry.event));
    let commits: Vec<u64> = decided.map(|entry| entry.commit_seq).collect();
    assert_eq!(commits.len(), 2);
    assert_eq!(commits[0], commits[1]);
}

async fn a_person_can_decide_before_the_deadline(harness: &Harness) {
    let plan = harness.plan(2).await;
    let step = harness.claim(plan.id).await;
    request(harness, &step, OnDeadline::Reject).await;
    let decision = ReviewDecision::new(step.step, Decision::Approve, None);
    let decided = harness.engine.decide_review(&harness.me, decision).await;
    decided.expect("review was decided");
    let mut watcher = harness.engine.watcher();
    harness.advance(2 * MINUTE);
    harness.engine.sweep(&mut watcher).await.unwrap();
    let statuses = harness.step_statuses(plan.id).await;
    assert_eq!(statuses, ["completed", "pending"]);
}

async fn users_are_reminded_once(harness: &Harness) {
    let plan = harness.plan(1).await;
    let step = harness.claim(plan.id).await;
    request(harness, &step, OnDeadline::Remind).await;
    let mut watcher = harness.engine.watcher();
    for expected in [0, 1, 1] {
        harness.engine.sweep(&mut watcher).await.unwrap();
        assert_eq!(reminders(harness).await, expected);
        harness.advance(MINUTE);
    }
    assert_eq!(harness.step_statuses(plan.id).await, ["awaiting_input"]);
}

async fn an_imported_review_keeps_its_deadline(harness: &Harness) {
    let plan = harness.plan(2).await;
    let step = harness.claim(plan.id).await;
    request(harness, &step, OnDeadline::Skip).await;
    let exported = document(&harness.engine, &harness.me, plan.id).await;
    let engine = &harness.engine;
    engine.delete_plan(&harness.me, plan.id).await.unwrap();
    engine.import(&harness.me, &exported).await.unwrap();
    let imported = document(engine, &harness.me, plan.id).await;
    assert_eq!(imported, exported);
    let open = engine.open_reviews(&harness.me, 10).await.unwrap();
    assert_eq!(open[0].review.options.assignee.as_deref(), Some("ann"));
    let mut watcher = engine.watcher();
    // The first check after an import is early. It must schedule the check at the deadline.
    engine.sweep(&mut watcher).await.unwrap();
    harness.advance(MINUTE);
    engine.sweep(&mut watcher).await.unwrap();
    assert_eq!(harness.step_statuses(plan.id).await[0], "skipped");
}

on_both_databases![exclusive:
    the_policy_decides_at_the_deadline,
    all_reviews_of_a_plan_are_decided_at_their_deadlines,
    a_person_can_decide_before_the_deadline,
    users_are_reminded_once,
    an_imported_review_keeps_its_deadline,
];
