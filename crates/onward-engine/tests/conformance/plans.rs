//! What is done to a plan as a whole: another session takes it up, it is given up, it is deleted.

use onward_core::id::SessionId;
use onward_core::plan::PlanFailure;
use onward_core::{PlanId, Role};
use onward_engine::next::Next;
use serde_json::json;

use crate::desk::Desk;
use crate::on_both_databases;
use crate::verbs::{code, document, error, result};

async fn take_up(desk: &Desk, plan: PlanId, session: &str) {
    let session = SessionId::new(session);
    desk.engine
        .take_up(&desk.me, plan, session)
        .await
        .expect("it can be taken up");
}

async fn another_session_is_noted_once(desk: &Desk) {
    let plan = desk.plan(2).await;
    let own = Some(SessionId::new("own"));
    desk.engine
        .next_step(&desk.me, plan.id, own, false)
        .await
        .unwrap();
    take_up(desk, plan.id, "own").await;
    assert_eq!(
        desk.trail(plan.id).await.len(),
        2,
        "who works on it does not resume it"
    );
    for session in ["a", "b", "a", "b"] {
        take_up(desk, plan.id, session).await;
    }
    let resumed = desk.trail_behind(plan.id, 2).await;
    assert_eq!(resumed, ["session_resumed", "session_resumed"]);
    let whole = desk
        .engine
        .whole_plan(&desk.me, plan.id)
        .await
        .unwrap()
        .plan;
    assert_eq!(whole.resumed, ["a", "b"]);
}

async fn sessions_that_take_a_plan_up_at_once_are_noted_once(desk: &Desk) {
    let plan = desk.plan(1).await;
    let calls: Vec<_> = (0..6)
        .map(|_| {
            let (engine, me, plan) = (desk.engine.clone(), desk.me.clone(), plan.id);
            tokio::spawn(async move { engine.take_up(&me, plan, SessionId::new("s")).await })
        })
        .collect();
    for call in calls {
        call.await.unwrap().unwrap();
    }
    assert_eq!(desk.trail_behind(plan.id, 1).await, ["session_resumed"]);
}

async fn an_abandoned_plan_hands_nothing_out_and_says_why(desk: &Desk) {
    let plan = desk.plan(2).await;
    desk.take(plan.id).await;
    let reason = Some("the question is moot".to_owned());
    let status = desk
        .engine
        .abandon_plan(&desk.me, plan.id, reason.clone())
        .await
        .unwrap();
    assert_eq!(status.as_str(), "failed");
    let Next::Failed { reason: told } = desk.ask(plan.id).await else {
        panic!("it was given up")
    };
    assert_eq!(told, PlanFailure::Abandoned(reason));
    let again = desk.engine.abandon_plan(&desk.me, plan.id, None).await;
    assert_eq!(code(again), "plan_is_terminal");
}

async fn only_a_stalled_plan_is_resumed(desk: &Desk) {
    let plan = desk.plan(1).await;
    let refused = desk.engine.resume_plan(&desk.me, plan.id).await;
    assert_eq!(code(refused), "illegal_transition");
    desk.work_off(plan.id, 1).await;
    let refused = desk.engine.resume_plan(&desk.me, plan.id).await;
    assert_eq!(code(refused), "plan_is_terminal");
}

async fn a_deleted_plan_is_gone_with_its_trail_and_leaves_a_line_in_the_log(desk: &Desk) {
    let key = Some("key".to_owned());
    let made = desk
        .engine
        .create_plan(&desk.me, desk.draft(2), key.clone())
        .await
        .unwrap();
    let plan = made.created.plan;
    take_up(desk, plan, "other").await;
    let step = desk.take(plan).await;
    let sheet = desk.engine.delete_plan(&desk.me, plan).await.unwrap();
    assert_eq!(sheet.head.id, plan);
    let gone = |code| assert_eq!(code, "plan_not_found");
    gone(code(desk.engine.sheet(&desk.me, plan).await));
    gone(code(desk.engine.trail(&desk.me, plan, 0, 1).await));
    gone(code(desk.engine.delete_plan(&desk.me, plan).await));
    gone(code(
        desk.engine.next_step(&desk.me, plan, None, false).await,
    ));
    let late = error(desk.submit(result(&step, "late")).await);
    assert_eq!(late.code().as_str(), "step_not_found");
    assert!(late.kept().is_some());
    for table in [
        "plans",
        "steps",
        "events",
        "resumed_sessions",
        "idempotency_keys",
        "plan_words",
        "due",
    ] {
        let tenant = &desk.me.tenant;
        let count = format!("SELECT count(*) FROM {table} WHERE tenant_id = '{tenant}'");
        assert_eq!(desk.sql(&count).as_deref(), Ok("0"), "{table}");
    }
    let log = desk.engine.tenant_log(&desk.me, 10).await.unwrap();
    assert_eq!((log.len(), log[0].action.as_str()), (1, "plan_deleted"));
    assert_eq!(
        log[0].details,
        json!({ "planId": plan.to_string(), "name": "Tides", "status": "executing", "events": 3 })
    );
    assert_eq!(log[0].actor, "me");
    let anew = desk
        .engine
        .create_plan(&desk.me, desk.draft(1), key)
        .await
        .unwrap();
    assert_ne!(anew.created.plan, plan, "its key is free again");
}

async fn what_was_found_for_a_deleted_plan_stays_without_it(desk: &Desk) {
    let plan = desk.plan(1).await;
    let step = desk.take(plan.id).await;
    desk.hand_in(&step, "first").await;
    let kept = error(desk.submit(result(&step, "second")).await)
        .kept()
        .unwrap();
    desk.engine.delete_plan(&desk.me, plan.id).await.unwrap();
    let row = desk.sql(&format!(
        "SELECT plan_id, step_id, artifact_type FROM artifacts \
         WHERE tenant_id = '{}' AND artifact_id = {}",
        desk.me.tenant,
        desk.literal(kept)
    ));
    assert_eq!(row.as_deref(), Ok("||late_result"));
}

async fn only_an_owner_deletes(desk: &Desk) {
    let plan = desk.plan(1).await;
    for role in [Role::Admin, Role::Member, Role::Agent, Role::Viewer] {
        let refused = desk.engine.delete_plan(&desk.role(role), plan.id).await;
        assert_eq!(code(refused), "forbidden", "{role}");
    }
    assert_eq!(desk.statuses(plan.id).await, ["pending"]);
}

async fn deleting_one_plan_touches_no_other(desk: &Desk) {
    let (one, other) = (desk.plan(3).await, desk.plan(3).await);
    desk.work_off(other.id, 1).await;
    let before = document(&desk.engine, &desk.me, other.id).await;
    desk.engine.delete_plan(&desk.me, one.id).await.unwrap();
    assert_eq!(document(&desk.engine, &desk.me, other.id).await, before);
}

on_both_databases![
    another_session_is_noted_once,
    sessions_that_take_a_plan_up_at_once_are_noted_once,
    an_abandoned_plan_hands_nothing_out_and_says_why,
    only_a_stalled_plan_is_resumed,
    a_deleted_plan_is_gone_with_its_trail_and_leaves_a_line_in_the_log,
    what_was_found_for_a_deleted_plan_stays_without_it,
    only_an_owner_deletes,
    deleting_one_plan_touches_no_other,
];
