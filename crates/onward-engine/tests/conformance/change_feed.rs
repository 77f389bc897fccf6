//! The change feed reports every changed plan and session; a backup of a database in use is
//! consistent.

use std::time::Duration;

use onward_core::PlanId;
use onward_engine::Address;
use onward_engine::Engine;
use onward_engine::engine::Settings;
use onward_engine::session::HookSource;
use onward_store::{Changed, Subject};
use onward_testbed::{Backend, TestDir};
use tokio::sync::broadcast::Receiver;
use tokio::time::timeout;

use crate::harness::Harness;
use crate::on_both_databases;
use crate::operations::{code, document};

/// Longer than any event here takes on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Waits for a change of this plan and ignores others.
async fn wait_for_change(changes: &mut Receiver<Changed>, plan: PlanId) -> Changed {
    let received = async {
        loop {
            let changed = changes.recv().await.expect("feed is open");
            if changed.what == Subject::Plan(plan) {
                return changed;
            }
        }
    };
    timeout(TIMEOUT, received)
        .await
        .expect("change was reported")
}

async fn reports_every_change_and_no_read(harness: &Harness) {
    let mut changes = harness.engine.subscribe();
    let plan = harness.plan(2).await;
    let changed = wait_for_change(&mut changes, plan.id).await;
    assert_eq!(changed.tenant, harness.me.tenant);
    let mut changes = harness.engine.subscribe();
    harness.status(plan.id).await;
    harness.audit_trail(plan.id).await;
    let step = harness.claim(plan.id).await;
    wait_for_change(&mut changes, plan.id).await;
    harness.complete(&step, "done").await;
    wait_for_change(&mut changes, plan.id).await;
    harness
        .engine
        .delete_plan(&harness.me, plan.id)
        .await
        .unwrap();
    wait_for_change(&mut changes, plan.id).await;
}

async fn reports_a_changed_session(harness: &Harness) {
    let mut changes = harness.engine.subscribe();
    let source = HookSource {
        session: "changed".to_owned(),
        agent: "codex".to_owned(),
        ..HookSource::default()
    };
    harness.engine.end_turn(&harness.me, source).await.unwrap();
    let own = async {
        loop {
            let changed = changes.recv().await.expect("feed is open");
            if changed.tenant == harness.me.tenant {
                return changed.what;
            }
        }
    };
    let first = timeout(TIMEOUT, own).await.expect("change was reported");
    assert_eq!(first, Subject::Session("changed".into()));
    let since = harness.now();
    let changed = harness.engine.sessions_changed(&harness.me, since, 9).await;
    assert_eq!(changed.unwrap(), [("changed".to_owned(), 1)]);
}

async fn does_not_report_a_rejected_call(harness: &Harness) {
    let (plan, other) = (harness.plan(1).await, harness.plan(1).await);
    let mut changes = harness.engine.subscribe();
    harness
        .engine
        .resume_plan(&harness.me, plan.id)
        .await
        .unwrap_err();
    harness.claim(other.id).await;
    let own = async {
        loop {
            let changed = changes.recv().await.expect("feed is open");
            if changed.tenant == harness.me.tenant {
                return changed.what;
            }
        }
    };
    let first = timeout(TIMEOUT, own).await.expect("change was reported");
    assert_eq!(first, Subject::Plan(other.id));
}

/// PostgreSQL servers notify each other; on SQLite a process only sees its own changes.
async fn reports_changes_of_other_servers(harness: &Harness) {
    let other = harness.another_engine().await;
    let mut changes = other.subscribe();
    let plan = harness.plan(1).await;
    assert_eq!(
        wait_for_change(&mut changes, plan.id).await.tenant,
        harness.me.tenant
    );
    other.close().await;
}

async fn a_backup_of_a_file_in_use_is_consistent(harness: &Harness) {
    let dir = TestDir::new("conformance");
    let copy = dir.join("onward.db");
    let plan = harness.plan(3).await;
    harness.complete_steps(plan.id, 1).await;
    let copied = harness.engine.back_up(copy.clone()).await;
    if harness.database.backend() == Backend::Postgres {
        assert_eq!(code(copied), "unavailable");
        assert!(!copy.exists());
        return;
    }
    copied.expect("backup was written");
    let before = document(&harness.engine, &harness.me, plan.id).await;
    harness.complete_steps(plan.id, 1).await;
    let opened = Engine::open(&Address::File(copy.clone()), Settings::default()).await;
    let engine = opened.expect("backup was opened");
    assert_eq!(document(&engine, &harness.me, plan.id).await, before);
    assert_eq!(
        engine.verify(&harness.me).await.unwrap().inconsistencies,
        []
    );
    engine.close().await;
    harness
        .engine
        .back_up(copy)
        .await
        .expect_err("existing file must not be overwritten");
}

on_both_databases![
    reports_every_change_and_no_read,
    reports_a_changed_session,
    does_not_report_a_rejected_call,
    a_backup_of_a_file_in_use_is_consistent,
];

mod servers {
    use super::reports_changes_of_other_servers;
    crate::on_postgres![reports_changes_of_other_servers];
}
