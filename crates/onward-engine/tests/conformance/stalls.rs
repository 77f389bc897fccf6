//! Silence, as a status shows it, and what agents and people do about it. What the sweep does stands
//! in `sweep.rs`.

use std::time::Duration;

use onward_core::command::Modification;
use onward_core::event::Sign;
use onward_core::id::{ClaimToken, SessionId};
use onward_core::policy::OnStall;
use onward_engine::next::{Handed, Next};
use onward_engine::step::Progress;

use crate::desk::Desk;
use crate::on_both_databases;
use crate::verbs::{Made, code, result};

const SECOND: Duration = Duration::from_secs(1);
const MOMENT: Duration = Duration::from_millis(1);

async fn impatient(desk: &Desk, steps: u32) -> Made {
    let mut draft = desk.draft(steps);
    draft.stall_threshold = Some(SECOND);
    desk.create(draft).await
}

fn progress(step: &Handed) -> Progress {
    Progress {
        step: step.step,
        note: Some("half way".to_owned()),
        percent: Some(50.0),
        token: Some(step.token.clone()),
        session: None,
    }
}

async fn exactly_at_the_threshold_a_step_is_alive_and_a_moment_later_stalled(desk: &Desk) {
    let plan = impatient(desk, 1).await;
    let step = desk.take(plan.id).await;
    assert_eq!(step.stall_threshold, SECOND);
    let began = desk.now();
    desk.advance(SECOND);
    let status = desk.status(plan.id).await;
    assert_eq!(status.stalled, []);
    assert_eq!(status.next_stall_at, began.checked_add(SECOND));
    desk.advance(MOMENT);
    let status = desk.status(plan.id).await;
    let stalled = &status.stalled[0];
    assert_eq!(
        (stalled.step, stalled.since, stalled.threshold),
        (step.step, began, SECOND)
    );
    assert_eq!(stalled.elapsed, SECOND + MOMENT);
    assert_eq!(status.next_stall_at, None);
    assert_eq!(
        desk.plan_status(plan.id).await.as_str(),
        "executing",
        "looking changes nothing"
    );
}

async fn the_nearest_threshold_wins(desk: &Desk) {
    let mut draft = desk.draft(2);
    draft.stall_threshold = Some(10 * SECOND);
    draft.steps[1].stall_threshold = Some(SECOND);
    let plan = desk.create(draft).await;
    assert_eq!(desk.take(plan.id).await.stall_threshold, 10 * SECOND);
    assert_eq!(desk.take(plan.id).await.stall_threshold, SECOND);
    desk.advance(SECOND + MOMENT);
    let orders = async |threshold| {
        let status = desk
            .engine
            .status(&desk.me, plan.id, threshold)
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
        let refused = desk.engine.status(&desk.me, plan.id, Some(threshold)).await;
        assert_eq!(code(refused), "invalid_input");
    }
}

async fn without_a_threshold_half_an_hour_counts(desk: &Desk) {
    let plan = desk.plan(1).await;
    desk.take(plan.id).await;
    desk.advance(Duration::from_secs(30 * 60));
    assert_eq!(desk.status(plan.id).await.stalled, []);
    desk.advance(MOMENT);
    assert_eq!(desk.status(plan.id).await.stalled.len(), 1);
}

async fn progress_is_a_sign_of_life(desk: &Desk) {
    let plan = impatient(desk, 1).await;
    let step = desk.take(plan.id).await;
    desk.advance(SECOND);
    let progressed = desk
        .engine
        .report_progress(&desk.me, progress(&step))
        .await
        .unwrap();
    assert_eq!(progressed.last_progress_at, desk.now());
    assert_eq!(progressed.stalls_at, desk.now().checked_add(SECOND));
    desk.advance(SECOND);
    assert_eq!(desk.status(plan.id).await.stalled, []);
    desk.advance(MOMENT);
    assert_eq!(desk.status(plan.id).await.stalled.len(), 1);
}

async fn progress_that_does_not_fit_is_refused(desk: &Desk) {
    let plan = desk.plan(2).await;
    let step = desk.take(plan.id).await;
    for percent in [-0.1, 100.1, f64::NAN] {
        let report = Progress {
            percent: Some(percent),
            ..progress(&step)
        };
        let refused = desk.engine.report_progress(&desk.me, report).await;
        assert_eq!(code(refused), "invalid_input", "{percent}");
    }
    let pending = Progress {
        step: plan.steps[1],
        token: None,
        ..progress(&step)
    };
    let refused = desk.engine.report_progress(&desk.me, pending).await;
    assert_eq!(code(refused), "illegal_transition");
    let foreign = Progress {
        token: Some(ClaimToken::new("foreign")),
        ..progress(&step)
    };
    let refused = desk.engine.report_progress(&desk.me, foreign).await;
    assert_eq!(code(refused), "claim_superseded");
}

async fn signs_that_nobody_reported_are_recorded_now_and_then(desk: &Desk) {
    let plan = desk.plan(1).await;
    let session = SessionId::new("seen");
    let next = desk
        .engine
        .next_step(&desk.me, plan.id, Some(session.clone()), false)
        .await;
    let step = crate::verbs::handed(next.unwrap());
    let see = async |session: &str| {
        let session = Some(SessionId::new(session));
        let noticed = desk
            .engine
            .notice(&desk.me, step.step, Sign::Seen, session)
            .await;
        noticed.expect("a sign is never refused");
        desk.trail(plan.id).await.len()
    };
    assert_eq!(see("seen").await, 2);
    desk.advance(Duration::from_secs(10));
    assert_eq!(see("another").await, 2);
    assert_eq!(see("seen").await, 3);
    assert_eq!(see("seen").await, 3);
    desk.hand_in(&step, "done").await;
    desk.advance(Duration::from_secs(10));
    assert_eq!(see("seen").await, 5, "a step that is over shows nothing");
}

async fn a_step_left_in_progress_is_taken_over_only_on_request(desk: &Desk) {
    let plan = impatient(desk, 2).await;
    let first = desk.take(plan.id).await;
    desk.advance(SECOND);
    assert_eq!(
        desk.take_over(plan.id).await.order,
        2,
        "at its threshold it is alive"
    );
    desk.advance(MOMENT);
    assert!(matches!(
        desk.ask(plan.id).await,
        Next::NoPendingSteps { .. }
    ));
    let over = desk.take_over(plan.id).await;
    assert_eq!((over.step, over.attempt), (first.step, 2));
    assert_eq!(
        code(desk.submit(result(&first, "late")).await),
        "claim_superseded"
    );
    let taken = desk.trail(plan.id).await;
    assert!(
        taken.contains(&"step_requeued taken_over".to_owned()),
        "{taken:?}"
    );
    desk.hand_in(&over, "done").await;
}

async fn a_taken_over_step_whose_attempts_are_used_up_fails_and_frees_the_next(desk: &Desk) {
    let mut draft = desk.draft(2);
    draft.stall_threshold = Some(SECOND);
    draft.steps[0].max_attempts = Some(1);
    draft.steps[1].depends_on = vec![1];
    let plan = desk.create(draft).await;
    desk.take(plan.id).await;
    desk.advance(SECOND + MOMENT);
    let next = desk.take_over(plan.id).await;
    assert_eq!(next.order, 2);
    assert_eq!(desk.statuses(plan.id).await, ["failed", "in_progress"]);
}

async fn the_only_step_used_up_ends_the_plan(desk: &Desk) {
    let mut draft = desk.draft(1);
    draft.stall_threshold = Some(SECOND);
    draft.steps[0].max_attempts = Some(1);
    let plan = desk.create(draft).await;
    desk.take(plan.id).await;
    desk.advance(SECOND + MOMENT);
    let next = desk
        .engine
        .next_step(&desk.me, plan.id, None, true)
        .await
        .unwrap();
    assert!(matches!(next, Next::Complete(_)), "{next:?}");
}

async fn a_list_says_which_plans_have_a_stalled_step(desk: &Desk) {
    let mut draft = desk.draft(1);
    draft.stall_threshold = Some(SECOND);
    draft.on_stall = OnStall::Ignore;
    let plan = desk.create(draft).await;
    let step = desk.take(plan.id).await;
    let stalled = async || {
        let query = onward_engine::list::PlanQuery {
            limit: 10,
            finished: true,
            ..Default::default()
        };
        desk.engine.list_plans(&desk.me, query).await.unwrap().plans[0].stalled
    };
    desk.advance(SECOND);
    assert!(!stalled().await);
    desk.advance(MOMENT);
    assert!(stalled().await);
    desk.engine
        .abandon_plan(&desk.me, plan.id, None)
        .await
        .unwrap();
    assert!(!stalled().await, "a plan that is over has no stalls");
    assert_eq!(desk.status(plan.id).await.stalled, []);
    assert_eq!(
        code(desk.submit(result(&step, "late")).await),
        "plan_is_terminal"
    );
}

async fn handing_back_stops_the_clock(desk: &Desk) {
    let plan = impatient(desk, 1).await;
    let step = desk.take(plan.id).await;
    desk.modify(plan.id, Modification::RequeueStep { step: step.step })
        .await
        .unwrap();
    desk.advance(10 * SECOND);
    let status = desk.status(plan.id).await;
    assert_eq!((status.stalled, status.next_stall_at), (Vec::new(), None));
}

on_both_databases![
    exactly_at_the_threshold_a_step_is_alive_and_a_moment_later_stalled,
    the_nearest_threshold_wins,
    without_a_threshold_half_an_hour_counts,
    progress_is_a_sign_of_life,
    progress_that_does_not_fit_is_refused,
    signs_that_nobody_reported_are_recorded_now_and_then,
    a_step_left_in_progress_is_taken_over_only_on_request,
    a_taken_over_step_whose_attempts_are_used_up_fails_and_frees_the_next,
    the_only_step_used_up_ends_the_plan,
    a_list_says_which_plans_have_a_stalled_step,
    handing_back_stops_the_clock,
];
