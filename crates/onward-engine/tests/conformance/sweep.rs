//! The sweep acts on stalls by the plans' policies: once for each, not too early, and not for what
//! it overslept itself.

use std::time::Duration;

use onward_core::PlanId;
use onward_core::event::Decision;
use onward_core::policy::OnStall;
use onward_core::watcher::Watcher;
use onward_engine::next::Handed;
use onward_engine::step::Progress;
use onward_engine::sweep::Round;

use crate::desk::Desk;
use crate::on_both_databases;
use crate::verbs::{Made, result};

const SECOND: Duration = Duration::from_secs(1);
const MOMENT: Duration = Duration::from_millis(1);

/// A plan whose steps may be silent for a second.
async fn impatient(desk: &Desk, steps: u32, policy: OnStall) -> Made {
    let mut draft = desk.draft(steps);
    draft.stall_threshold = Some(SECOND);
    draft.on_stall = policy;
    desk.create(draft).await
}

async fn sweep(desk: &Desk, watcher: &mut Watcher) -> Round {
    desk.engine.sweep(watcher).await.expect("it sweeps")
}

/// The plans that a round did something about.
async fn acted_on(desk: &Desk, watcher: &mut Watcher) -> Vec<PlanId> {
    let round = sweep(desk, watcher).await;
    round.acted_on.into_iter().map(|(_, plan)| plan).collect()
}

fn progress(step: &Handed) -> Progress {
    Progress {
        step: step.step,
        note: None,
        percent: None,
        token: Some(step.token.clone()),
        session: None,
    }
}

async fn a_silent_step_marks_its_plan_once(desk: &Desk) {
    let plan = impatient(desk, 2, OnStall::Mark).await;
    let mut watcher = desk.engine.watcher();
    desk.take(plan.id).await;
    assert_eq!(acted_on(desk, &mut watcher).await, []);
    desk.advance(SECOND);
    assert_eq!(
        acted_on(desk, &mut watcher).await,
        [],
        "at its threshold it is alive"
    );
    desk.advance(MOMENT);
    assert_eq!(acted_on(desk, &mut watcher).await, [plan.id]);
    let status = desk.status(plan.id).await;
    assert_eq!(status.sheet.head.status().as_str(), "stalled");
    assert_eq!(status.derived.as_str(), "executing");
    let round = sweep(desk, &mut watcher).await;
    assert_eq!((round.acted_on, round.next_at), (Vec::new(), None));
    assert_eq!(desk.trail_behind(plan.id, 2).await, ["plan_stalled"]);
    let trail = desk.engine.trail(&desk.me, plan.id, 2, 1).await.unwrap();
    assert_eq!(trail[0].entry.author.name, "sweep");
}

async fn a_resumed_plan_is_not_marked_again_for_the_same_stall(desk: &Desk) {
    let plan = impatient(desk, 2, OnStall::Mark).await;
    let mut watcher = desk.engine.watcher();
    let step = desk.take(plan.id).await;
    desk.advance(SECOND + MOMENT);
    assert_eq!(acted_on(desk, &mut watcher).await, [plan.id]);
    desk.engine.resume_plan(&desk.me, plan.id).await.unwrap();
    for _ in 0..3 {
        assert_eq!(acted_on(desk, &mut watcher).await, []);
        desk.advance(SECOND);
    }
    // A sign of life ends the stall; silence after it is another one.
    desk.engine
        .report_progress(&desk.me, progress(&step))
        .await
        .unwrap();
    assert_eq!(acted_on(desk, &mut watcher).await, []);
    desk.advance(SECOND + MOMENT);
    assert_eq!(acted_on(desk, &mut watcher).await, [plan.id]);
}

async fn an_agent_that_works_on_beside_a_dead_one_is_not_thrown_back(desk: &Desk) {
    let plan = impatient(desk, 4, OnStall::Mark).await;
    let mut watcher = desk.engine.watcher();
    desk.take(plan.id).await;
    desk.advance(SECOND + MOMENT);
    assert_eq!(acted_on(desk, &mut watcher).await, [plan.id]);
    for _ in 0..3 {
        let step = desk.take(plan.id).await;
        assert_eq!(acted_on(desk, &mut watcher).await, []);
        desk.advance(SECOND);
        assert_eq!(acted_on(desk, &mut watcher).await, []);
        desk.hand_in(&step, "done").await;
    }
    assert_eq!(desk.plan_status(plan.id).await.as_str(), "executing");
}

async fn whoever_comes_back_resumes_a_stalled_plan(desk: &Desk) {
    let mut watcher = desk.engine.watcher();
    let [by_result, by_progress, by_next] = [
        impatient(desk, 2, OnStall::Mark).await,
        impatient(desk, 2, OnStall::Mark).await,
        impatient(desk, 2, OnStall::Mark).await,
    ];
    let late = desk.take(by_result.id).await;
    let slow = desk.take(by_progress.id).await;
    desk.take(by_next.id).await;
    desk.advance(SECOND + MOMENT);
    assert_eq!(acted_on(desk, &mut watcher).await.len(), 3);
    desk.submit(result(&late, "late")).await.unwrap();
    let progressed = desk
        .engine
        .report_progress(&desk.me, progress(&slow))
        .await
        .unwrap();
    assert_eq!(progressed.plan_status.as_str(), "executing");
    assert_eq!(desk.take(by_next.id).await.order, 2);
    for (plan, by) in [
        (by_result, "plan_resumed late_result"),
        (by_progress, "plan_resumed progress"),
        (by_next, "plan_resumed next_step"),
    ] {
        assert_eq!(desk.plan_status(plan.id).await.as_str(), "executing");
        assert_eq!(desk.trail(plan.id).await[3], by);
    }
}

async fn a_late_result_ends_a_stalled_plan(desk: &Desk) {
    let plan = impatient(desk, 1, OnStall::Mark).await;
    let mut watcher = desk.engine.watcher();
    let step = desk.take(plan.id).await;
    desk.advance(SECOND + MOMENT);
    acted_on(desk, &mut watcher).await;
    let submitted = desk.hand_in(&step, "late").await;
    assert_eq!(submitted.plan_status.as_str(), "completed");
    let expected = [
        "plan_resumed late_result",
        "step_completed",
        "plan_completed",
    ];
    assert_eq!(desk.trail_behind(plan.id, 3).await, expected);
}

async fn what_a_person_does_to_a_stalled_plan_resumes_it(desk: &Desk) {
    use onward_core::command::Modification;
    let plan = impatient(desk, 2, OnStall::Mark).await;
    let mut watcher = desk.engine.watcher();
    let step = desk.take(plan.id).await;
    desk.advance(SECOND + MOMENT);
    acted_on(desk, &mut watcher).await;
    let again = Modification::RequeueStep { step: step.step };
    let without = desk.modify(plan.id, again.clone()).await;
    assert_eq!(crate::verbs::code(without), "plan_not_modifiable");
    let resumed = desk
        .engine
        .modify_plan(&desk.me, plan.id, again, None, true)
        .await
        .unwrap();
    assert_eq!(resumed.head.status().as_str(), "executing");
    let expected = [
        "plan_resumed person",
        "plan_modified requeue_step",
        "step_requeued by_hand",
    ];
    assert_eq!(desk.trail_behind(plan.id, 3).await, expected);
}

async fn a_silent_step_is_handed_out_again_until_its_attempts_are_used_up(desk: &Desk) {
    let mut draft = desk.draft(1);
    draft.stall_threshold = Some(SECOND);
    draft.on_stall = OnStall::Requeue;
    draft.steps[0].max_attempts = Some(2);
    let plan = desk.create(draft).await;
    let mut watcher = desk.engine.watcher();
    for attempt in 1..=2 {
        assert_eq!(desk.take(plan.id).await.attempt, attempt);
        assert_eq!(acted_on(desk, &mut watcher).await, []);
        desk.advance(SECOND + MOMENT);
        assert_eq!(acted_on(desk, &mut watcher).await, [plan.id]);
    }
    assert_eq!(desk.statuses(plan.id).await, ["failed"]);
    assert_eq!(desk.plan_status(plan.id).await.as_str(), "completed");
    assert_eq!(sweep(desk, &mut watcher).await.next_at, None);
}

async fn a_silent_step_fails_where_the_policy_says_so(desk: &Desk) {
    let plan = impatient(desk, 2, OnStall::Fail).await;
    let mut watcher = desk.engine.watcher();
    desk.take(plan.id).await;
    desk.advance(SECOND + MOMENT);
    assert_eq!(acted_on(desk, &mut watcher).await, [plan.id]);
    assert_eq!(desk.statuses(plan.id).await, ["failed", "pending"]);
    let failed = desk.status(plan.id).await.failed;
    assert_eq!(
        failed[0].failure,
        Some(onward_core::step::FailReason::Stalled)
    );
}

async fn a_plan_that_ignores_stalls_is_looked_at_and_left_alone(desk: &Desk) {
    let plan = impatient(desk, 1, OnStall::Ignore).await;
    let mut watcher = desk.engine.watcher();
    desk.take(plan.id).await;
    assert!(sweep(desk, &mut watcher).await.next_at.is_some());
    desk.advance(SECOND + MOMENT);
    let round = sweep(desk, &mut watcher).await;
    assert_eq!((round.looked_at, round.acted_on), (1, Vec::new()));
    assert_eq!(round.next_at, None, "once is enough");
    assert_eq!(desk.trail_behind(plan.id, 2).await, [""; 0]);
    assert_eq!(desk.plan_status(plan.id).await.as_str(), "executing");
    assert_eq!(desk.status(plan.id).await.stalled.len(), 1);
}

async fn each_step_has_its_own_threshold(desk: &Desk) {
    let mut draft = desk.draft(3);
    draft.stall_threshold = Some(2 * SECOND);
    draft.on_stall = OnStall::Fail;
    draft.steps[1].stall_threshold = Some(SECOND);
    draft.steps[2].stall_threshold = Some(3 * SECOND);
    let plan = desk.create(draft).await;
    let mut watcher = desk.engine.watcher();
    for _ in 0..3 {
        desk.take(plan.id).await;
    }
    for expected in [
        ["in_progress", "failed", "in_progress"],
        ["failed", "failed", "in_progress"],
        ["failed", "failed", "failed"],
    ] {
        let next = sweep(desk, &mut watcher)
            .await
            .next_at
            .expect("more is to come");
        desk.world.set(next);
        assert_eq!(acted_on(desk, &mut watcher).await, [plan.id]);
        assert_eq!(desk.statuses(plan.id).await, expected);
    }
}

async fn a_stall_beside_an_open_review_is_marked_once_that_is_decided(desk: &Desk) {
    let plan = impatient(desk, 3, OnStall::Mark).await;
    let mut watcher = desk.engine.watcher();
    desk.take(plan.id).await;
    let asks = desk.take(plan.id).await;
    desk.ask_a_person(&asks).await.expect("it may ask");
    desk.advance(SECOND + MOMENT);
    assert_eq!(acted_on(desk, &mut watcher).await, []);
    desk.advance(SECOND);
    assert_eq!(acted_on(desk, &mut watcher).await, []);
    let decided = desk
        .engine
        .decide_review(&desk.me, asks.step, Decision::Approve, None)
        .await;
    decided.unwrap();
    assert_eq!(acted_on(desk, &mut watcher).await, [plan.id]);
    assert_eq!(desk.plan_status(plan.id).await.as_str(), "stalled");
}

async fn no_clock_runs_while_a_person_thinks(desk: &Desk) {
    let plan = impatient(desk, 1, OnStall::Fail).await;
    let mut watcher = desk.engine.watcher();
    let step = desk.take(plan.id).await;
    desk.ask_a_person(&step).await.expect("it may ask");
    for _ in 0..5 {
        desk.advance(20 * SECOND);
        assert_eq!(acted_on(desk, &mut watcher).await, []);
    }
    let more = Some("more".to_owned());
    let decided = desk
        .engine
        .decide_review(&desk.me, step.step, Decision::Modify, more)
        .await;
    decided.unwrap();
    desk.advance(SECOND);
    assert_eq!(
        acted_on(desk, &mut watcher).await,
        [],
        "a decision is a sign of life"
    );
    desk.advance(MOMENT);
    assert_eq!(acted_on(desk, &mut watcher).await, [plan.id]);
}

on_both_databases![alone:
    a_silent_step_marks_its_plan_once,
    a_resumed_plan_is_not_marked_again_for_the_same_stall,
    an_agent_that_works_on_beside_a_dead_one_is_not_thrown_back,
    whoever_comes_back_resumes_a_stalled_plan,
    a_late_result_ends_a_stalled_plan,
    what_a_person_does_to_a_stalled_plan_resumes_it,
    a_silent_step_is_handed_out_again_until_its_attempts_are_used_up,
    a_silent_step_fails_where_the_policy_says_so,
    a_plan_that_ignores_stalls_is_looked_at_and_left_alone,
    each_step_has_its_own_threshold,
    a_stall_beside_an_open_review_is_marked_once_that_is_decided,
    no_clock_runs_while_a_person_thinks,
];
