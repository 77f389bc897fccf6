//! Captured plans: they do not alarm, are archived, and make up the journal of their project.

use std::time::Duration;

use onward_core::attention::{DEFAULT_ARCHIVE_AFTER, DEFAULT_NO_AGENT_AFTER, Word};
use onward_core::capture::{CapturePolicy, Task, TaskReport, TaskStatus};
use onward_core::{PlanId, PlanStatus};
use onward_engine::list::{Archived, PlanQuery};
use onward_engine::session::HookSource;

use crate::harness::Harness;
use crate::on_both_databases;
use crate::sessions::source;

const MILLISECOND: Duration = Duration::from_millis(1);
const STALL: Duration = Duration::from_secs(30 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const PROJECT: &str = "/src/shop";

fn in_project() -> HookSource {
    HookSource {
        directory: Some(PROJECT.to_owned()),
        project: Some(PROJECT.to_owned()),
        ..source()
    }
}

fn list(statuses: &[TaskStatus]) -> TaskReport {
    let titles = ["Read the orders", "Export to CSV", "Stream large files"];
    let tasks = titles.iter().zip(statuses);
    TaskReport::List(
        tasks
            .filter_map(|(title, status)| Task::new(title, *status))
            .collect(),
    )
}

async fn capture(harness: &Harness, statuses: &[TaskStatus]) -> PlanId {
    let (engine, me) = (&harness.engine, &harness.me);
    harness.begin_turn(in_project()).await;
    let policy = CapturePolicy::default();
    let captured = engine.capture_tasks(me, in_project(), list(statuses), policy);
    captured.await.unwrap().expect("the list is captured")
}

async fn unfinished(harness: &Harness) -> PlanId {
    let statuses = [
        TaskStatus::Completed,
        TaskStatus::InProgress,
        TaskStatus::Pending,
    ];
    capture(harness, &statuses).await
}

async fn listed(harness: &Harness, query: PlanQuery) -> Vec<PlanId> {
    let query = PlanQuery { limit: 50, ..query };
    let page = harness.engine.list_plans(&harness.me, query).await.unwrap();
    page.plans.iter().map(|one| one.sheet.head.id).collect()
}

async fn the_sweep_neither_marks_nor_reports_a_captured_plan(harness: &Harness) {
    let mut watcher = harness.engine.watcher();
    let plan = unfinished(harness).await;
    assert_eq!(harness.status(plan).await.attention.word, Word::Working);
    harness.advance(STALL + STALL / 4);
    harness.engine.sweep(&mut watcher).await.unwrap();
    harness.advance(DEFAULT_NO_AGENT_AFTER + DAY);
    harness.engine.sweep(&mut watcher).await.unwrap();
    let status = harness.status(plan).await;
    assert_eq!(status.attention.word, Word::UnfinishedList);
    assert_eq!(status.sheet.head.status(), PlanStatus::Executing);
    assert_eq!((status.stalled, status.next_stall_at), (vec![], None));
    assert_eq!(harness.engine.count_stuck(&harness.me).await.unwrap(), 0);
    let sent = harness.engine.notifications(&harness.me, 10).await.unwrap();
    assert_eq!(sent, []);
    // Dropping it is not a failure that users are notified of.
    let dropped = harness.engine.abandon_plan(&harness.me, plan, None);
    dropped.await.unwrap();
    let sent = harness.engine.notifications(&harness.me, 10).await.unwrap();
    assert_eq!(sent, []);
}

async fn a_list_is_unfinished_as_soon_as_its_session_has_ended(harness: &Harness) {
    let plan = unfinished(harness).await;
    harness
        .engine
        .end_session(&harness.me, in_project())
        .await
        .unwrap();
    let word = harness.status(plan).await.attention.word;
    assert_eq!(word, Word::UnfinishedList);
    let lists = PlanQuery {
        unfinished_lists: Some(true),
        ..PlanQuery::default()
    };
    let others = PlanQuery {
        unfinished_lists: Some(false),
        ..PlanQuery::default()
    };
    assert_eq!(listed(harness, lists).await, [plan]);
    assert_eq!(listed(harness, others).await, []);
}

async fn an_archived_list_is_only_in_searches_and_in_complete_lists(harness: &Harness) {
    let plan = unfinished(harness).await;
    let other = harness.plan(2).await.id;
    let acted_at = harness.status(plan).await.sheet.acted_at;
    harness.advance(
        acted_at
            .checked_add(DEFAULT_ARCHIVE_AFTER)
            .unwrap()
            .since(harness.now()),
    );
    let is_offered = async || {
        let state = harness.engine.project_state(&harness.me, PROJECT);
        state.await.unwrap().plan.is_some()
    };
    assert_eq!(listed(harness, PlanQuery::default()).await, [other, plan]);
    assert!(is_offered().await);
    harness.advance(MILLISECOND);
    assert_eq!(listed(harness, PlanQuery::default()).await, [other]);
    let open = harness.engine.open_plans(&harness.me).await.unwrap();
    let open: Vec<PlanId> = open.iter().map(|(plan, _)| plan.head.id).collect();
    assert_eq!(open, [other]);
    assert!(!is_offered().await);
    assert_eq!(harness.engine.count_archived(&harness.me).await.unwrap(), 1);
    let archived = |archived| PlanQuery {
        archived,
        ..PlanQuery::default()
    };
    let search = PlanQuery {
        text: Some(harness.status(plan).await.sheet.brief.name),
        ..PlanQuery::default()
    };
    assert_eq!(listed(harness, archived(Archived::Only)).await, [plan]);
    assert_eq!(
        listed(harness, archived(Archived::With)).await,
        [other, plan]
    );
    assert!(listed(harness, search).await.contains(&plan));
    assert_eq!(
        harness.status(plan).await.sheet.head.status(),
        PlanStatus::Executing
    );
    // Another report brings it back.
    let done = [
        TaskStatus::Completed,
        TaskStatus::Completed,
        TaskStatus::InProgress,
    ];
    assert_eq!(capture(harness, &done).await, plan);
    assert_eq!(listed(harness, PlanQuery::default()).await, [plan, other]);
}

async fn the_journal_of_a_project_has_its_completed_steps(harness: &Harness) {
    let plan = unfinished(harness).await;
    harness.advance(DAY);
    let done = [
        TaskStatus::Completed,
        TaskStatus::Completed,
        TaskStatus::InProgress,
    ];
    capture(harness, &done).await;
    let engine = &harness.engine;
    let orders = async |after, limit| {
        let page = engine.journal(&harness.me, PROJECT, after, limit);
        let page = page.await.unwrap();
        let orders: Vec<u32> = page.entries.iter().map(|entry| entry.order).collect();
        assert!(page.entries.iter().all(|entry| entry.plan == plan));
        (orders, page.next)
    };
    assert_eq!(orders(None, 10).await, (vec![2, 1], None));
    let (first, next) = orders(None, 1).await;
    assert_eq!(first, [2]);
    assert_eq!(orders(next, 1).await, (vec![1], None));
    let projects = engine.projects(&harness.me, 10).await.unwrap();
    assert_eq!(projects, [(PROJECT.to_owned(), harness.now())]);
    let other = harness.create_tenant("journal").await;
    let page = engine.journal(&other, PROJECT, None, 10).await.unwrap();
    assert_eq!(page.entries, []);
    assert_eq!(engine.projects(&other, 10).await.unwrap(), []);
}

on_both_databases![
    a_list_is_unfinished_as_soon_as_its_session_has_ended,
    an_archived_list_is_only_in_searches_and_in_complete_lists,
    the_journal_of_a_project_has_its_completed_steps,
];

/// The sweep covers all tenants of a database.
mod exclusive {
    use super::the_sweep_neither_marks_nor_reports_a_captured_plan;
    crate::on_both_databases![exclusive:
        the_sweep_neither_marks_nor_reports_a_captured_plan,
    ];
}
