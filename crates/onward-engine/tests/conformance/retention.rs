//! Retention: deletes terminal plans, request log entries and extractions after their retention
//! period.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use onward_engine::list::PlanQuery;
use onward_engine::request_log::CompletedRequest;
use onward_engine::retention::{Retention, RetentionReport};
use serde_json::json;

use crate::extractions::extracted;
use crate::harness::Harness;
use crate::on_both_databases;
use crate::research::finding;

const DAY: Duration = Duration::from_secs(24 * 3600);

fn finished_plans_for(period: Duration) -> Retention {
    Retention {
        finished_plans: Some(period),
        ..Retention::default()
    }
}

async fn remaining(harness: &Harness) -> Vec<onward_core::PlanId> {
    let query = PlanQuery {
        limit: 100,
        finished: true,
        ..PlanQuery::default()
    };
    let page = harness.engine.list_plans(&harness.me, query).await.unwrap();
    page.plans.iter().map(|plan| plan.sheet.head.id).collect()
}

/// Applies retention to a tenant. The servers' list of tenants names it if there is something to
/// delete.
async fn apply(harness: &Harness, tenant: &Arc<str>, retention: Retention) -> RetentionReport {
    let listed = harness.engine.tenants_with_expired_data(retention).await;
    let deleted = harness.engine.apply_retention(tenant, retention).await;
    let deleted = deleted.unwrap();
    let is_listed = listed.unwrap().contains(tenant);
    assert_eq!(
        is_listed,
        deleted != RetentionReport::default(),
        "{deleted:?}"
    );
    deleted
}

async fn deletes_terminal_plans_after_the_retention_period(harness: &Harness) {
    let (open, done, abandoned) = (
        harness.plan(1).await,
        harness.plan(1).await,
        harness.plan(1).await,
    );
    harness.complete_steps(done.id, 1).await;
    harness.advance(Duration::from_millis(1));
    harness
        .engine
        .abandon_plan(&harness.me, abandoned.id, None)
        .await
        .unwrap();
    let tenant = &harness.me.tenant;
    harness.advance(DAY - Duration::from_millis(1));
    // Kept exactly at the limit, deleted one millisecond later.
    let deleted = apply(harness, tenant, finished_plans_for(DAY)).await;
    assert_eq!(deleted.plans, []);
    harness.advance(Duration::from_millis(1));
    let deleted = apply(harness, tenant, finished_plans_for(DAY)).await;
    assert_eq!(deleted.plans, [done.id]);
    harness.advance(Duration::from_millis(1));
    let deleted = apply(harness, tenant, finished_plans_for(DAY)).await;
    assert_eq!(deleted.plans, [abandoned.id]);
    assert_eq!(remaining(harness).await, [open.id]);
    let log = harness.engine.tenant_log(&harness.me, 9).await.unwrap();
    let actions: Vec<&str> = log.iter().map(|line| line.action.as_str()).collect();
    assert_eq!(actions, ["plan_forgotten", "plan_forgotten"]);
    assert_eq!(log[0].actor, "retention");
}

async fn a_server_applies_retention_periodically_and_reports_deletions(harness: &Harness) {
    let (open, done) = (harness.plan(1).await, harness.plan(1).await);
    harness.complete_steps(done.id, 1).await;
    let other = harness.create_tenant("other").await;
    harness.advance(2 * DAY);
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let mut reported = Vec::new();
    let running =
        harness
            .engine
            .run_retention(finished_plans_for(DAY), stopped, |tenant, deleted| {
                reported.push((tenant.to_owned(), deleted.unwrap()));
                // Stop after the first round.
                stop.send_replace(true);
            });
    running.await;
    let of_tenant = |name: &str| reported.iter().find(|(tenant, _)| tenant == name);
    assert_eq!(of_tenant(&harness.me.tenant).unwrap().1.plans, [done.id]);
    assert_eq!(of_tenant(&other.tenant), None, "nothing to delete");
    assert_eq!(remaining(harness).await, [open.id]);
}

async fn deletes_nothing_by_default(harness: &Harness) {
    let plan = harness.plan(1).await;
    harness.complete_steps(plan.id, 1).await;
    harness.advance(1_000 * DAY);
    let deleted = apply(harness, &harness.me.tenant, Retention::default()).await;
    assert_eq!(deleted.plans, []);
    assert_eq!(remaining(harness).await, [plan.id]);
}

async fn does_not_delete_plans_of_other_tenants(harness: &Harness) {
    let plan = harness.plan(1).await;
    harness.complete_steps(plan.id, 1).await;
    let other = harness.create_tenant("other").await;
    harness.advance(10 * DAY);
    let deleted = apply(harness, &other.tenant, finished_plans_for(DAY)).await;
    assert_eq!(deleted.plans, []);
    assert_eq!(remaining(harness).await, [plan.id]);
}

async fn deletes_more_plans_than_fit_into_one_batch(harness: &Harness) {
    let creating: Vec<_> = (0..101)
        .map(|_| {
            let (engine, me, draft) =
                (harness.engine.clone(), harness.me.clone(), harness.draft(1));
            tokio::spawn(async move {
                let created = engine.create_plan(&me, draft, None).await.unwrap();
                let plan = created.created.plan;
                engine.abandon_plan(&me, plan, None).await.unwrap();
            })
        })
        .collect();
    for created in creating {
        created.await.unwrap();
    }
    harness.advance(2 * DAY);
    let deleted = apply(harness, &harness.me.tenant, finished_plans_for(DAY)).await;
    assert_eq!(
        (deleted.plans.len(), remaining(harness).await.len()),
        (101, 0)
    );
}

async fn deletes_old_request_log_entries(harness: &Harness) {
    let engine = harness.another_engine().await;
    for tool in ["old", "new"] {
        let call = CompletedRequest {
            tool: tool.to_owned(),
            session: None,
            request: Cow::Owned(json!({})),
            response: Cow::Owned(json!({})),
            duration: Duration::ZERO,
            is_error: false,
        };
        engine.log_request(&harness.me, call);
        harness.advance(DAY);
    }
    engine.close().await;
    let size = harness.engine.request_log_bytes(&harness.me).await;
    assert!(size.unwrap() > 0);
    let retention = Retention {
        tool_calls: Some(DAY),
        ..Retention::default()
    };
    apply(harness, &harness.me.tenant, retention).await;
    let calls = harness
        .engine
        .logged_requests(&harness.me, None, 9)
        .await
        .unwrap();
    let tools: Vec<&str> = calls.iter().map(|call| call.tool.as_str()).collect();
    assert_eq!(tools, ["new"]);
}

async fn deletes_extractions_from_inline_text_with_the_request_log(harness: &Harness) {
    let artifact = harness.store(finding("Moons", "Io and Europa")).await;
    let e = &harness.engine;
    let extraction = |artifact| extracted(artifact, json!({ "moons": 2 }));
    e.store_extraction(&harness.me, extraction(None))
        .await
        .unwrap();
    e.store_extraction(&harness.me, extraction(Some(artifact)))
        .await
        .unwrap();
    let other = harness.create_tenant("other").await;
    e.store_extraction(&other, extraction(None)).await.unwrap();
    harness.advance(DAY);
    e.store_extraction(&harness.me, extraction(None))
        .await
        .unwrap();
    let requests_for = |period| Retention {
        tool_calls: Some(period),
        ..Retention::default()
    };
    let delete = async |retention| {
        let deleted = apply(harness, &harness.me.tenant, retention).await;
        deleted.extractions
    };
    assert_eq!(delete(Retention::default()).await, 0);
    let plans = finished_plans_for(Duration::ZERO);
    assert_eq!(delete(plans).await, 0, "the period of plans does not apply");
    assert_eq!(
        delete(requests_for(DAY)).await,
        0,
        "kept exactly at the limit"
    );
    harness.advance(Duration::from_millis(1));
    assert_eq!(delete(requests_for(DAY)).await, 1);
    harness.advance(DAY);
    assert_eq!(delete(requests_for(DAY)).await, 1);
    let remaining = |tenant: &str| {
        let count = format!("SELECT count(*) FROM extractions WHERE tenant_id = '{tenant}'");
        harness.sql(&count).unwrap()
    };
    assert_eq!(
        remaining(&harness.me.tenant),
        "1",
        "the extraction from the artifact"
    );
    assert_eq!(remaining(&other.tenant), "1");
}

on_both_databases![
    deletes_terminal_plans_after_the_retention_period,
    deletes_nothing_by_default,
    does_not_delete_plans_of_other_tenants,
    deletes_more_plans_than_fit_into_one_batch,
    deletes_old_request_log_entries,
    deletes_extractions_from_inline_text_with_the_request_log,
];

/// Retention covers all tenants of a database.
mod exclusive {
    use super::a_server_applies_retention_periodically_and_reports_deletions;
    crate::on_both_databases![exclusive: a_server_applies_retention_periodically_and_reports_deletions];
}
