//! The sweep: applies a plan's stall policy once per stall, and not before the threshold.

use onward_core::command::ModifyPlan;
use std::time::Duration;

use onward_core::PlanId;
use onward_core::event::Decision;
use onward_core::id::SessionId;
use onward_core::policy::OnStall;
use onward_core::watcher::Watcher;
use onward_engine::next_step::AssignedStep;
use onward_engine::step::{ProgressReport, ReviewDecision};
use onward_engine::sweep::SweepRound;

use crate::harness::Harness;
use crate::on_both_databases;
use crate::operations::{CreatedPlan, submission_for};
use crate::sessions::source;

const SECOND: Duration = Duration::from_secs(1);
const MILLISECOND: Duration = Duration::from_millis(1);

/// A plan with a stall threshold of one second.
async fn plan_with_policy(harness: &Harness, steps: u32, policy: OnStall) -> CreatedPlan {
    let mut draft = harness.draft(steps);
    draft.stall_threshold = Some(SECOND);
    draft.on_stall = policy;
    harness.create(draft).await
}

async fn sweep(harness: &Harness, watcher: &mut Watcher) -> SweepRound {
    harness.engine.sweep(watcher).await.expect("sweep ran")
}

/// The plans that one sweep acted on.
async fn acted_on(harness: &Harness, watcher: &mut Watcher) -> Vec<PlanId> {
    let round = sweep(harness, watcher).await;
    round.changed.into_iter().map(|(_, plan)| plan).collect()
}

fn progress(step: &AssignedStep) -> ProgressReport {
    ProgressReport {
        step: step.step,
        note: None,
        percent: None,
        token: Some(step.token.clone()),
        session: None,
    }
}

async fn a_stalled_step_marks_its_plan_once(harness: &Harness) {
    let plan = plan_with_policy(harness, 2, OnStall::Mark).await;
    let mut watcher = harness.engine.watcher();
    harness.claim(plan.id).await;
    assert_eq!(acted_on(harness, &mut watcher).await, []);
    harness.advance(SECOND);
    assert_eq!(
        acted_on(harness, &mut watcher).await,
        [],
        "not stalled exactly at the threshold"
    );
    harness.advance(MILLISECOND);
    assert_eq!(acted_on(harness, &mut watcher).await, [plan.id]);
    let status = harness.status(plan.id).await;
    assert_eq!(status.sheet.head.status().as_str(), "stalled");
    assert_eq!(status.derived.as_str(), "executing");
    let round = sweep(harness, &mut watcher).await;
    assert_eq!((round.changed, round.next_at), (Vec::new(), None));
    assert_eq!(
        harness.audit_trail_after(plan.id, 3).await,
        ["plan_stalled"]
    );
    let events = harness
        .engine
        .audit_trail(&harness.me, plan.id, 3, 1)
        .await
        .unwrap();
    assert_eq!(events[0].entry.author.name, "sweep");
}

async fn marks_a_resumed_plan_again_after_a_threshold_without_changes(harness: &Harness) {
    let plan = plan_with_policy(harness, 2, OnStall::Mark).await;
    let mut watcher = harness.engine.watcher();
    let step = harness.claim(plan.id).await;
    harness.advance(SECOND + MILLISECOND);
    assert_eq!(acted_on(harness, &mut watcher).await, [plan.id]);
    harness
        .engine
        .resume_plan(&harness.me, plan.id)
        .await
        .unwrap();
    for _ in 0..2 {
        assert_eq!(acted_on(harness, &mut watcher).await, []);
        harness.advance(SECOND / 2);
    }
    assert_eq!(acted_on(harness, &mut watcher).await, []);
    harness.advance(MILLISECOND);
    assert_eq!(acted_on(harness, &mut watcher).await, [plan.id]);
    // Progress ends the stall; inactivity after it is another stall.
    harness
        .engine
        .report_progress(&harness.me, progress(&step))
        .await
        .unwrap();
    assert_eq!(acted_on(harness, &mut watcher).await, []);
    harness.advance(SECOND + MILLISECOND);
    assert_eq!(acted_on(harness, &mut watcher).await, [plan.id]);
}

async fn a_stalled_plan_without_a_step_to_assign_stays_stalled(harness: &Harness) {
    let plan = plan_with_policy(harness, 1, OnStall::Mark).await;
    let mut watcher = harness.engine.watcher();
    harness.claim(plan.id).await;
    harness.advance(SECOND + MILLISECOND);
    assert_eq!(acted_on(harness, &mut watcher).await, [plan.id]);
    let next = harness.engine.next_step(&harness.me, plan.id, None, false);
    let next = next.await.unwrap();
    assert!(
        matches!(
            next,
            onward_engine::next_step::NextStep::NoPendingSteps { .. }
        ),
        "{next:?}"
    );
    let status = harness.status(plan.id).await;
    assert_eq!(status.sheet.head.status().as_str(), "stalled");
}

async fn a_marked_plan_stays_executing_while_another_agent_makes_progress(harness: &Harness) {
    let plan = plan_with_policy(harness, 4, OnStall::Mark).await;
    let mut watcher = harness.engine.watcher();
    harness.claim(plan.id).await;
    harness.advance(SECOND + MILLISECOND);
    assert_eq!(acted_on(harness, &mut watcher).await, [plan.id]);
    for _ in 0..3 {
        let step = harness.claim(plan.id).await;
        assert_eq!(acted_on(harness, &mut watcher).await, []);
        harness.advance(SECOND);
        assert_eq!(acted_on(harness, &mut watcher).await, []);
        harness.complete(&step, "done").await;
    }
    assert_eq!(harness.plan_status(plan.id).await.as_str(), "executing");
}

async fn a_result_progress_or_claim_resumes_a_stalled_plan(harness: &Harness) {
    let mut watcher = harness.engine.watcher();
    let [by_result, by_progress, by_next] = [
        plan_with_policy(harness, 2, OnStall::Mark).await,
        plan_with_policy(harness, 2, OnStall::Mark).await,
        plan_with_policy(harness, 2, OnStall::Mark).await,
    ];
    let late = harness.claim(by_result.id).await;
    let slow = harness.claim(by_progress.id).await;
    harness.claim(by_next.id).await;
    harness.advance(SECOND + MILLISECOND);
    assert_eq!(acted_on(harness, &mut watcher).await.len(), 3);
    harness.submit(submission_for(&late, "late")).await.unwrap();
    let progressed = harness
        .engine
        .report_progress(&harness.me, progress(&slow))
        .await
        .unwrap();
    assert_eq!(progressed.plan_status.as_str(), "executing");
    assert_eq!(harness.claim(by_next.id).await.order, 2);
    for (plan, by) in [
        (by_result, "plan_resumed late_result"),
        (by_progress, "plan_resumed progress"),
        (by_next, "plan_resumed next_step"),
    ] {
        assert_eq!(harness.plan_status(plan.id).await.as_str(), "executing");
        assert_eq!(harness.audit_trail(plan.id).await[4], by);
    }
}

async fn a_late_result_completes_a_stalled_plan(harness: &Harness) {
    let plan = plan_with_policy(harness, 1, OnStall::Mark).await;
    let mut watcher = harness.engine.watcher();
    let step = harness.claim(plan.id).await;
    harness.advance(SECOND + MILLISECOND);
    acted_on(harness, &mut watcher).await;
    let submitted = harness.complete(&step, "late").await;
    assert_eq!(submitted.plan_status.as_str(), "completed");
    let expected = [
        "plan_resumed late_result",
        "step_completed",
        "plan_completed",
    ];
    assert_eq!(harness.audit_trail_after(plan.id, 4).await, expected);
}

async fn a_modification_with_resume_resumes_a_stalled_plan(harness: &Harness) {
    use onward_core::command::Modification;
    let plan = plan_with_policy(harness, 2, OnStall::Mark).await;
    let mut watcher = harness.engine.watcher();
    let step = harness.claim(plan.id).await;
    harness.advance(SECOND + MILLISECOND);
    acted_on(harness, &mut watcher).await;
    let requeue = Modification::RequeueStep { step: step.step };
    let rejected = harness.modify(plan.id, requeue.clone()).await;
    assert_eq!(crate::operations::code(rejected), "plan_not_modifiable");
    let resumed = harness
        .engine
        .modify_plan(
            &harness.me,
            plan.id,
            ModifyPlan {
                resume: true,
                ..ModifyPlan::new(requeue)
            },
        )
        .await
        .unwrap();
    assert_eq!(resumed.head.status().as_str(), "executing");
    let expected = [
        "plan_resumed person",
        "plan_modified requeue_step",
        "step_requeued by_hand",
    ];
    assert_eq!(harness.audit_trail_after(plan.id, 4).await, expected);
}

async fn requeues_a_stalled_step_until_no_attempts_are_left(harness: &Harness) {
    let mut draft = harness.draft(1);
    draft.stall_threshold = Some(SECOND);
    draft.on_stall = OnStall::Requeue;
    draft.steps[0].max_attempts = Some(2);
    let plan = harness.create(draft).await;
    let mut watcher = harness.engine.watcher();
    for attempt in 1..=2 {
        assert_eq!(harness.claim(plan.id).await.attempt, attempt);
        assert_eq!(acted_on(harness, &mut watcher).await, []);
        harness.advance(SECOND + MILLISECOND);
        assert_eq!(acted_on(harness, &mut watcher).await, [plan.id]);
    }
    assert_eq!(harness.step_statuses(plan.id).await, ["failed"]);
    assert_eq!(harness.plan_status(plan.id).await.as_str(), "completed");
    assert_eq!(sweep(harness, &mut watcher).await.next_at, None);
}

async fn fails_a_stalled_step_with_the_fail_policy(harness: &Harness) {
    let plan = plan_with_policy(harness, 2, OnStall::Fail).await;
    let mut watcher = harness.engine.watcher();
    harness.claim(plan.id).await;
    harness.advance(SECOND + MILLISECOND);
    assert_eq!(acted_on(harness, &mut watcher).await, [plan.id]);
    assert_eq!(harness.step_statuses(plan.id).await, ["failed", "pending"]);
    let failed = harness.status(plan.id).await.failed;
    assert_eq!(
        failed[0].failure,
        Some(onward_core::step::FailReason::Stalled)
    );
}

async fn the_ignore_policy_leaves_a_stalled_plan_unchanged(harness: &Harness) {
    let plan = plan_with_policy(harness, 1, OnStall::Ignore).await;
    let mut watcher = harness.engine.watcher();
    harness.claim(plan.id).await;
    assert!(sweep(harness, &mut watcher).await.next_at.is_some());
    harness.advance(SECOND + MILLISECOND);
    let round = sweep(harness, &mut watcher).await;
    assert_eq!((round.checked, round.changed), (1, Vec::new()));
    assert_eq!(round.next_at, None, "not checked again");
    assert_eq!(harness.audit_trail_after(plan.id, 3).await, [""; 0]);
    assert_eq!(harness.plan_status(plan.id).await.as_str(), "executing");
    assert_eq!(harness.status(plan.id).await.stalled.len(), 1);
}

async fn each_step_stalls_at_its_own_threshold(harness: &Harness) {
    let mut draft = harness.draft(3);
    draft.stall_threshold = Some(2 * SECOND);
    draft.on_stall = OnStall::Fail;
    draft.steps[1].stall_threshold = Some(SECOND);
    draft.steps[2].stall_threshold = Some(3 * SECOND);
    let plan = harness.create(draft).await;
    let mut watcher = harness.engine.watcher();
    for _ in 0..3 {
        harness.claim(plan.id).await;
    }
    for expected in [
        ["in_progress", "failed", "in_progress"],
        ["failed", "failed", "in_progress"],
        ["failed", "failed", "failed"],
    ] {
        let next = sweep(harness, &mut watcher)
            .await
            .next_at
            .expect("a next check is scheduled");
        harness.environment.set(next);
        assert_eq!(acted_on(harness, &mut watcher).await, [plan.id]);
        assert_eq!(harness.step_statuses(plan.id).await, expected);
    }
}

async fn marks_a_stall_after_a_pending_review_is_decided(harness: &Harness) {
    let plan = plan_with_policy(harness, 3, OnStall::Mark).await;
    let mut watcher = harness.engine.watcher();
    harness.claim(plan.id).await;
    let reviewed = harness.claim(plan.id).await;
    harness
        .request_review(&reviewed)
        .await
        .expect("review was requested");
    harness.advance(SECOND + MILLISECOND);
    assert_eq!(acted_on(harness, &mut watcher).await, []);
    harness.advance(SECOND);
    assert_eq!(acted_on(harness, &mut watcher).await, []);
    let decided = harness
        .engine
        .decide_review(
            &harness.me,
            ReviewDecision::new(reviewed.step, Decision::Approve, None),
        )
        .await;
    decided.unwrap();
    assert_eq!(acted_on(harness, &mut watcher).await, [plan.id]);
    assert_eq!(harness.plan_status(plan.id).await.as_str(), "stalled");
}

async fn the_stall_timer_is_suspended_during_a_review(harness: &Harness) {
    let plan = plan_with_policy(harness, 1, OnStall::Fail).await;
    let mut watcher = harness.engine.watcher();
    let step = harness.claim(plan.id).await;
    harness
        .request_review(&step)
        .await
        .expect("review was requested");
    for _ in 0..5 {
        harness.advance(20 * SECOND);
        assert_eq!(acted_on(harness, &mut watcher).await, []);
    }
    let more = Some("more".to_owned());
    let decided = harness
        .engine
        .decide_review(
            &harness.me,
            ReviewDecision::new(step.step, Decision::Modify, more),
        )
        .await;
    decided.unwrap();
    harness.advance(SECOND);
    assert_eq!(
        acted_on(harness, &mut watcher).await,
        [],
        "a decision restarts the timer"
    );
    harness.advance(MILLISECOND);
    assert_eq!(acted_on(harness, &mut watcher).await, [plan.id]);
}

async fn never_marks_an_agent_whose_hooks_report_activity(harness: &Harness) {
    let plan = plan_with_policy(harness, 1, OnStall::Mark).await;
    let mut watcher = harness.engine.watcher();
    let session = SessionId::new("one");
    let claimed = harness
        .engine
        .next_step(&harness.me, plan.id, Some(session), false);
    claimed.await.unwrap();
    for _ in 0..20 {
        harness.advance(SECOND * 7 / 10);
        harness.begin_turn(source()).await;
        assert_eq!(acted_on(harness, &mut watcher).await, []);
    }
    harness.advance(SECOND * 5 / 4 + MILLISECOND);
    assert_eq!(acted_on(harness, &mut watcher).await, [plan.id]);
}

async fn audit_entries_of_status_changes_contain_from_and_to(harness: &Harness) {
    let plan = plan_with_policy(harness, 1, OnStall::Mark).await;
    let mut watcher = harness.engine.watcher();
    let step = harness.claim(plan.id).await;
    harness.advance(SECOND + MILLISECOND);
    assert_eq!(acted_on(harness, &mut watcher).await, [plan.id]);
    let reported = harness
        .engine
        .report_progress(&harness.me, progress(&step))
        .await;
    reported.unwrap();
    let document = crate::operations::document(&harness.engine, &harness.me, plan.id).await;
    let events = document["events"].as_array().unwrap().iter();
    let details = events.map(|event| &event["details"]);
    let moves = details.filter_map(|details| details["from"].as_str().zip(details["to"].as_str()));
    let of_the_plan = moves.filter(|(from, _)| !["pending", "in_progress"].contains(from));
    assert_eq!(
        of_the_plan.collect::<Vec<_>>(),
        [
            ("planning", "executing"),
            ("executing", "stalled"),
            ("stalled", "executing"),
        ]
    );
}

/// An event of a session within a quarter of the threshold after the last recorded one is not
/// recorded; the threshold counts from that event.
async fn an_event_that_is_not_recorded_counts(harness: &Harness) {
    let plan = plan_with_policy(harness, 1, OnStall::Mark).await;
    let mut watcher = harness.engine.watcher();
    let session = Some(SessionId::new("one"));
    let claimed = harness
        .engine
        .next_step(&harness.me, plan.id, session, false);
    claimed.await.unwrap();
    for wait in [SECOND / 4, SECOND / 5] {
        harness.advance(wait);
        harness.begin_turn(source()).await;
    }
    let current = harness.status(plan.id).await.current;
    assert!(current.unwrap().last_progress_at < Some(harness.now()));
    harness.advance(SECOND);
    assert_eq!(acted_on(harness, &mut watcher).await, []);
    harness.advance(SECOND / 4);
    assert_eq!(acted_on(harness, &mut watcher).await, [plan.id]);
}

on_both_databases![exclusive:
    an_event_that_is_not_recorded_counts,
    audit_entries_of_status_changes_contain_from_and_to,
    a_stalled_step_marks_its_plan_once,
    never_marks_an_agent_whose_hooks_report_activity,
    a_stalled_plan_without_a_step_to_assign_stays_stalled,
    marks_a_resumed_plan_again_after_a_threshold_without_changes,
    a_marked_plan_stays_executing_while_another_agent_makes_progress,
    a_result_progress_or_claim_resumes_a_stalled_plan,
    a_late_result_completes_a_stalled_plan,
    a_modification_with_resume_resumes_a_stalled_plan,
    requeues_a_stalled_step_until_no_attempts_are_left,
    fails_a_stalled_step_with_the_fail_policy,
    the_ignore_policy_leaves_a_stalled_plan_unchanged,
    each_step_stalls_at_its_own_threshold,
    marks_a_stall_after_a_pending_review_is_decided,
    the_stall_timer_is_suspended_during_a_review,
];
