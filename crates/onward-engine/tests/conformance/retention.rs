//! Forgetting: plans that ended long enough ago go, all others stay.

use std::time::Duration;

use onward_engine::calls::Answered;
use onward_engine::list::PlanQuery;
use onward_engine::retention::Retention;
use serde_json::json;

use crate::desk::Desk;
use crate::extractions::extracted;
use crate::on_both_databases;
use crate::research::finding;

const DAY: Duration = Duration::from_secs(24 * 3600);

fn after(finished_plans: Duration) -> Retention {
    Retention {
        finished_plans: Some(finished_plans),
        ..Retention::default()
    }
}

async fn left(desk: &Desk) -> Vec<onward_core::PlanId> {
    let query = PlanQuery {
        limit: 100,
        finished: true,
        ..PlanQuery::default()
    };
    let page = desk.engine.list_plans(&desk.me, query).await.unwrap();
    page.plans.iter().map(|plan| plan.sheet.head.id).collect()
}

async fn plans_that_ended_long_enough_ago_go_and_others_stay(desk: &Desk) {
    let (open, done, given_up) = (desk.plan(1).await, desk.plan(1).await, desk.plan(1).await);
    desk.work_off(done.id, 1).await;
    desk.advance(Duration::from_millis(1));
    desk.engine
        .abandon_plan(&desk.me, given_up.id, None)
        .await
        .unwrap();
    let tenant = &desk.me.tenant;
    desk.advance(DAY - Duration::from_millis(1));
    // At the limit it is kept, a moment later it goes.
    let forgotten = desk.engine.forget(tenant, after(DAY)).await.unwrap();
    assert_eq!(forgotten.plans, []);
    desk.advance(Duration::from_millis(1));
    let forgotten = desk.engine.forget(tenant, after(DAY)).await.unwrap();
    assert_eq!(forgotten.plans, [done.id]);
    desk.advance(Duration::from_millis(1));
    let forgotten = desk.engine.forget(tenant, after(DAY)).await.unwrap();
    assert_eq!(forgotten.plans, [given_up.id]);
    assert_eq!(left(desk).await, [open.id]);
    let log = desk.engine.tenant_log(&desk.me, 9).await.unwrap();
    let actions: Vec<&str> = log.iter().map(|line| line.action.as_str()).collect();
    assert_eq!(actions, ["plan_forgotten", "plan_forgotten"]);
    assert_eq!(log[0].actor, "retention");
}

async fn a_server_forgets_by_itself_and_says_what(desk: &Desk) {
    let (open, done) = (desk.plan(1).await, desk.plan(1).await);
    desk.work_off(done.id, 1).await;
    desk.advance(2 * DAY);
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let mut told = Vec::new();
    let forgetting = desk
        .engine
        .keep_forgetting(after(DAY), stopped, |tenant, forgotten| {
            told.push((tenant.to_owned(), forgotten.unwrap()));
            // Once is enough for this test.
            stop.send_replace(true);
        });
    forgetting.await;
    let own = told.iter().find(|(tenant, _)| **tenant == *desk.me.tenant);
    assert_eq!(own.unwrap().1.plans, [done.id]);
    assert_eq!(left(desk).await, [open.id]);
}

async fn nothing_is_forgotten_unless_somebody_asks(desk: &Desk) {
    let plan = desk.plan(1).await;
    desk.work_off(plan.id, 1).await;
    desk.advance(1_000 * DAY);
    let forgotten = desk
        .engine
        .forget(&desk.me.tenant, Retention::default())
        .await
        .unwrap();
    assert_eq!(forgotten.plans, []);
    assert_eq!(left(desk).await, [plan.id]);
}

async fn other_tenants_keep_theirs(desk: &Desk) {
    let plan = desk.plan(1).await;
    desk.work_off(plan.id, 1).await;
    let other = desk.tenant("other").await;
    desk.advance(10 * DAY);
    let forgotten = desk.engine.forget(&other.tenant, after(DAY)).await.unwrap();
    assert_eq!(forgotten.plans, []);
    assert_eq!(left(desk).await, [plan.id]);
}

async fn more_plans_than_are_looked_up_at_once_all_go(desk: &Desk) {
    let making: Vec<_> = (0..101)
        .map(|_| {
            let (engine, me, draft) = (desk.engine.clone(), desk.me.clone(), desk.draft(1));
            tokio::spawn(async move {
                let made = engine.create_plan(&me, draft, None).await.unwrap();
                let plan = made.created.plan;
                engine.abandon_plan(&me, plan, None).await.unwrap();
            })
        })
        .collect();
    for made in making {
        made.await.unwrap();
    }
    desk.advance(2 * DAY);
    let forgotten = desk
        .engine
        .forget(&desk.me.tenant, after(DAY))
        .await
        .unwrap();
    assert_eq!((forgotten.plans.len(), left(desk).await.len()), (101, 0));
}

async fn old_calls_go_and_newer_ones_stay(desk: &Desk) {
    let engine = desk.another_engine().await;
    for tool in ["old", "new"] {
        let call = Answered {
            tool: tool.to_owned(),
            session: None,
            request: json!({}),
            response: json!({}),
            took: Duration::ZERO,
            is_error: false,
        };
        engine.log_call(&desk.me, call);
        desk.advance(DAY);
    }
    engine.close().await;
    let retention = Retention {
        tool_calls: Some(DAY),
        ..Retention::default()
    };
    desk.engine
        .forget(&desk.me.tenant, retention)
        .await
        .unwrap();
    let calls = desk.engine.calls(&desk.me, 9).await.unwrap();
    let tools: Vec<&str> = calls.iter().map(|call| call.tool.as_str()).collect();
    assert_eq!(tools, ["new"]);
}

async fn extractions_out_of_a_calls_own_text_go_with_the_log_of_calls(desk: &Desk) {
    let kept = desk.store(finding("Moons", "Io and Europa")).await;
    let e = &desk.engine;
    let of = |artifact| extracted(artifact, json!({ "moons": 2 }));
    e.store_extraction(&desk.me, of(None)).await.unwrap();
    e.store_extraction(&desk.me, of(Some(kept))).await.unwrap();
    let other = desk.tenant("other").await;
    e.store_extraction(&other, of(None)).await.unwrap();
    desk.advance(DAY);
    e.store_extraction(&desk.me, of(None)).await.unwrap();
    let calls = |kept| Retention {
        tool_calls: Some(kept),
        ..Retention::default()
    };
    let forgot = async |retention| {
        let forgotten = e.forget(&desk.me.tenant, retention).await.unwrap();
        forgotten.extractions
    };
    assert_eq!(forgot(Retention::default()).await, 0);
    assert_eq!(forgot(after(Duration::ZERO)).await, 0, "those are plans");
    assert_eq!(forgot(calls(DAY)).await, 0, "at the limit they are kept");
    desk.advance(Duration::from_millis(1));
    assert_eq!(forgot(calls(DAY)).await, 1);
    desk.advance(DAY);
    assert_eq!(forgot(calls(DAY)).await, 1);
    let left = |tenant: &str| {
        let count = format!("SELECT count(*) FROM extractions WHERE tenant_id = '{tenant}'");
        desk.sql(&count).unwrap()
    };
    assert_eq!(left(&desk.me.tenant), "1", "that of the artifact");
    assert_eq!(left(&other.tenant), "1");
}

on_both_databases![
    plans_that_ended_long_enough_ago_go_and_others_stay,
    nothing_is_forgotten_unless_somebody_asks,
    other_tenants_keep_theirs,
    more_plans_than_are_looked_up_at_once_all_go,
    old_calls_go_and_newer_ones_stay,
    extractions_out_of_a_calls_own_text_go_with_the_log_of_calls,
];

/// A server forgets what all tenants have, so it has a database to itself here.
mod alone {
    use super::a_server_forgets_by_itself_and_says_what;
    crate::on_both_databases![alone: a_server_forgets_by_itself_and_says_what];
}
