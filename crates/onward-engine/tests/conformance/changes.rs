//! Whoever watches hears of every plan that changes; and a copy of a database in use is whole.

use std::time::Duration;

use onward_core::PlanId;
use onward_engine::Address;
use onward_engine::Engine;
use onward_engine::engine::Settings;
use onward_engine::session::Heard;
use onward_store::{Changed, Subject};
use tokio::sync::broadcast::Receiver;
use tokio::time::timeout;

use crate::desk::Desk;
use crate::on_both_databases;
use crate::place::{Folder, Kind};
use crate::verbs::{code, document};

/// Nothing here takes longer, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(20);

/// Waits for a change of this plan, past those of others.
async fn hears_of(changes: &mut Receiver<Changed>, plan: PlanId) -> Changed {
    let heard = async {
        loop {
            let changed = changes.recv().await.expect("somebody tells");
            if changed.what == Subject::Plan(plan) {
                return changed;
            }
        }
    };
    timeout(PATIENCE, heard).await.expect("it is told in time")
}

async fn every_change_is_told_and_no_reading(desk: &Desk) {
    let mut changes = desk.engine.watch();
    let plan = desk.plan(2).await;
    let told = hears_of(&mut changes, plan.id).await;
    assert_eq!(told.tenant, desk.me.tenant);
    let mut changes = desk.engine.watch();
    desk.status(plan.id).await;
    desk.trail(plan.id).await;
    let step = desk.take(plan.id).await;
    hears_of(&mut changes, plan.id).await;
    desk.hand_in(&step, "done").await;
    hears_of(&mut changes, plan.id).await;
    desk.engine.delete_plan(&desk.me, plan.id).await.unwrap();
    hears_of(&mut changes, plan.id).await;
}

async fn a_session_that_changes_is_told(desk: &Desk) {
    let mut changes = desk.engine.watch();
    let heard = Heard {
        session: "told".to_owned(),
        agent: "codex".to_owned(),
        ..Heard::default()
    };
    desk.engine.end_turn(&desk.me, heard).await.unwrap();
    let own = async {
        loop {
            let changed = changes.recv().await.expect("somebody tells");
            if changed.tenant == desk.me.tenant {
                return changed.what;
            }
        }
    };
    let first = timeout(PATIENCE, own).await.expect("it is told in time");
    assert_eq!(first, Subject::Session("told".into()));
    let since = desk.now();
    let changed = desk.engine.sessions_changed(&desk.me, since, 9).await;
    assert_eq!(changed.unwrap(), [("told".to_owned(), 1)]);
}

async fn a_refused_call_is_not_told(desk: &Desk) {
    let (plan, other) = (desk.plan(1).await, desk.plan(1).await);
    let mut changes = desk.engine.watch();
    desk.engine
        .resume_plan(&desk.me, plan.id)
        .await
        .unwrap_err();
    desk.take(other.id).await;
    let own = async {
        loop {
            let changed = changes.recv().await.expect("somebody tells");
            if changed.tenant == desk.me.tenant {
                return changed.what;
            }
        }
    };
    let first = timeout(PATIENCE, own).await.expect("it is told in time");
    assert_eq!(first, Subject::Plan(other.id));
}

/// On PostgreSQL servers tell each other; on SQLite a process hears of its own changes.
async fn servers_hear_of_each_others_changes(desk: &Desk) {
    let other = desk.another_engine().await;
    let mut changes = other.watch();
    let plan = desk.plan(1).await;
    assert_eq!(hears_of(&mut changes, plan.id).await.tenant, desk.me.tenant);
    other.close().await;
}

async fn a_copy_of_a_file_in_use_is_whole(desk: &Desk) {
    let folder = Folder::make();
    let copy = folder.database();
    let plan = desk.plan(3).await;
    desk.work_off(plan.id, 1).await;
    let copied = desk.engine.back_up(copy.clone()).await;
    if desk.place.kind() == Kind::Postgres {
        assert_eq!(code(copied), "unavailable");
        assert!(!copy.exists());
        return;
    }
    copied.expect("it can be copied");
    let before = document(&desk.engine, &desk.me, plan.id).await;
    desk.work_off(plan.id, 1).await;
    let opened = Engine::open(&Address::File(copy.clone()), Settings::default()).await;
    let engine = opened.expect("the copy opens");
    assert_eq!(document(&engine, &desk.me, plan.id).await, before);
    assert_eq!(engine.verify(&desk.me).await.unwrap().faults, []);
    engine.close().await;
    desk.engine
        .back_up(copy)
        .await
        .expect_err("what is there is not overwritten");
}

on_both_databases![
    every_change_is_told_and_no_reading,
    a_session_that_changes_is_told,
    a_refused_call_is_not_told,
    a_copy_of_a_file_in_use_is_whole,
];

mod servers {
    use super::servers_hear_of_each_others_changes;
    crate::on_postgres![servers_hear_of_each_others_changes];
}
