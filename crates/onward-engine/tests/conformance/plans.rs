//! Plan lifecycle: resuming in another session, abandoning and deleting.

use onward_core::id::SessionId;
use onward_core::plan::PlanFailure;
use onward_core::{PlanId, Role};
use onward_engine::next_step::NextStep;
use serde_json::json;

use crate::harness::Harness;
use crate::on_both_databases;
use crate::operations::{code, document, error, submission_for};

async fn resume_session(harness: &Harness, plan: PlanId, session: &str) {
    let session = SessionId::new(session);
    harness
        .engine
        .record_session_resume(&harness.me, plan, session)
        .await
        .expect("session was recorded");
}

async fn records_each_resuming_session_once(harness: &Harness) {
    let plan = harness.plan(2).await;
    let own = Some(SessionId::new("own"));
    harness
        .engine
        .next_step(&harness.me, plan.id, own, false)
        .await
        .unwrap();
    resume_session(harness, plan.id, "own").await;
    assert_eq!(
        harness.audit_trail(plan.id).await.len(),
        3,
        "the working session does not resume"
    );
    for session in ["a", "b", "a", "b"] {
        resume_session(harness, plan.id, session).await;
    }
    let resumed = harness.audit_trail_after(plan.id, 3).await;
    assert_eq!(resumed, ["session_resumed", "session_resumed"]);
    let whole = harness
        .engine
        .full_plan(&harness.me, plan.id)
        .await
        .unwrap()
        .plan;
    assert_eq!(whole.resumed, ["a", "b"]);
}

async fn concurrent_resumes_of_a_session_are_recorded_once(harness: &Harness) {
    let plan = harness.plan(1).await;
    let calls: Vec<_> = (0..6)
        .map(|_| {
            let (engine, me, plan) = (harness.engine.clone(), harness.me.clone(), plan.id);
            tokio::spawn(async move {
                engine
                    .record_session_resume(&me, plan, SessionId::new("s"))
                    .await
            })
        })
        .collect();
    for call in calls {
        call.await.unwrap().unwrap();
    }
    assert_eq!(
        harness.audit_trail_after(plan.id, 1).await,
        ["session_resumed"]
    );
}

async fn an_abandoned_plan_assigns_no_steps_and_returns_its_reason(harness: &Harness) {
    let plan = harness.plan(2).await;
    harness.claim(plan.id).await;
    let reason = Some("the question is moot".to_owned());
    let status = harness
        .engine
        .abandon_plan(&harness.me, plan.id, reason.clone())
        .await
        .unwrap();
    assert_eq!(status.as_str(), "failed");
    let NextStep::Failed { reason: reported } = harness.next_step(plan.id).await else {
        panic!("plan has not failed")
    };
    assert_eq!(reported, PlanFailure::Abandoned(reason));
    let again = harness
        .engine
        .abandon_plan(&harness.me, plan.id, None)
        .await;
    assert_eq!(code(again), "plan_is_terminal");
}

async fn rejects_resuming_a_plan_that_is_not_stalled(harness: &Harness) {
    let plan = harness.plan(1).await;
    let rejected = harness.engine.resume_plan(&harness.me, plan.id).await;
    assert_eq!(code(rejected), "illegal_transition");
    harness.complete_steps(plan.id, 1).await;
    let rejected = harness.engine.resume_plan(&harness.me, plan.id).await;
    assert_eq!(code(rejected), "plan_is_terminal");
}

async fn deleting_a_plan_deletes_its_rows_and_logs_the_deletion(harness: &Harness) {
    let key = Some("key".to_owned());
    let created = harness
        .engine
        .create_plan(&harness.me, harness.draft(2), key.clone())
        .await
        .unwrap();
    let plan = created.created.plan;
    resume_session(harness, plan, "other").await;
    let step = harness.claim(plan).await;
    let sheet = harness.engine.delete_plan(&harness.me, plan).await.unwrap();
    assert_eq!(sheet.head.id, plan);
    let assert_not_found = |code| assert_eq!(code, "plan_not_found");
    assert_not_found(code(harness.engine.sheet(&harness.me, plan).await));
    assert_not_found(code(
        harness.engine.audit_trail(&harness.me, plan, 0, 1).await,
    ));
    assert_not_found(code(harness.engine.delete_plan(&harness.me, plan).await));
    assert_not_found(code(
        harness
            .engine
            .next_step(&harness.me, plan, None, false)
            .await,
    ));
    let late = error(harness.submit(submission_for(&step, "late")).await);
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
        let tenant = &harness.me.tenant;
        let count = format!("SELECT count(*) FROM {table} WHERE tenant_id = '{tenant}'");
        assert_eq!(harness.sql(&count).as_deref(), Ok("0"), "{table}");
    }
    let log = harness.engine.tenant_log(&harness.me, 10).await.unwrap();
    assert_eq!((log.len(), log[0].action.as_str()), (1, "plan_deleted"));
    assert_eq!(
        log[0].details,
        json!({ "planId": plan.to_string(), "name": "Tides", "status": "executing", "events": 4 })
    );
    assert_eq!(log[0].actor, "me");
    let recreated = harness
        .engine
        .create_plan(&harness.me, harness.draft(1), key)
        .await
        .unwrap();
    assert_ne!(recreated.created.plan, plan, "the key can be reused");
}

async fn artifacts_of_a_deleted_plan_are_kept(harness: &Harness) {
    let plan = harness.plan(1).await;
    let step = harness.claim(plan.id).await;
    harness.complete(&step, "first").await;
    let artifact = error(harness.submit(submission_for(&step, "second")).await)
        .kept()
        .unwrap();
    harness
        .engine
        .delete_plan(&harness.me, plan.id)
        .await
        .unwrap();
    let row = harness.sql(&format!(
        "SELECT plan_id, step_id, artifact_type FROM artifacts \
         WHERE tenant_id = '{}' AND artifact_id = {}",
        harness.me.tenant,
        harness.id_literal(artifact)
    ));
    assert_eq!(row.as_deref(), Ok("||late_result"));
}

async fn only_owners_delete_plans(harness: &Harness) {
    let plan = harness.plan(1).await;
    for role in [Role::Admin, Role::Member, Role::Agent, Role::Viewer] {
        let rejected = harness
            .engine
            .delete_plan(&harness.caller_with_role(role), plan.id)
            .await;
        assert_eq!(code(rejected), "forbidden", "{role}");
    }
    assert_eq!(harness.step_statuses(plan.id).await, ["pending"]);
}

async fn deleting_a_plan_does_not_change_other_plans(harness: &Harness) {
    let (one, other) = (harness.plan(3).await, harness.plan(3).await);
    harness.complete_steps(other.id, 1).await;
    let before = document(&harness.engine, &harness.me, other.id).await;
    harness
        .engine
        .delete_plan(&harness.me, one.id)
        .await
        .unwrap();
    assert_eq!(
        document(&harness.engine, &harness.me, other.id).await,
        before
    );
}

on_both_databases![
    records_each_resuming_session_once,
    concurrent_resumes_of_a_session_are_recorded_once,
    an_abandoned_plan_assigns_no_steps_and_returns_its_reason,
    rejects_resuming_a_plan_that_is_not_stalled,
    deleting_a_plan_deletes_its_rows_and_logs_the_deletion,
    artifacts_of_a_deleted_plan_are_kept,
    only_owners_delete_plans,
    deleting_a_plan_does_not_change_other_plans,
];
