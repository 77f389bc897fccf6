//! Rows that say something else than their trail are found by a check; and one damaged plan keeps
//! nobody from the others.

use std::sync::Arc;
use std::time::Duration;

use onward_core::command::ActionSpec;
use onward_core::policy::OnStall;
use onward_engine::embed::Embedder;
use serde_json::json;

use crate::corrupt::cell;
use crate::desk::Desk;
use crate::extractions::extracted;
use crate::meaning::Model;
use crate::on_both_databases;
use crate::place::Kind;
use crate::research::finding;
use crate::verbs::{error, result_without_token};

async fn a_trail_that_lacks_an_entry_or_says_something_else_is_found(desk: &Desk) {
    let plan = desk.plan(2).await;
    desk.work_off(plan.id, 1).await;
    let healthy = desk.plan(1).await;
    let gone = format!(
        "DELETE FROM events WHERE plan_id = {} AND seq = 2",
        desk.literal(plan.id)
    );
    desk.damage(&match desk.place.kind() {
        Kind::Sqlite => format!("DROP TRIGGER events_go_with_their_plan; {gone}"),
        Kind::Postgres => format!("SET session_replication_role = replica; {gone}"),
    });
    let checked = desk.engine.verify(&desk.me).await.unwrap();
    assert_eq!(checked.faults.len(), 1, "{:?}", checked.faults);
    assert_eq!(checked.faults[0].plan, Some(plan.id));
    assert_eq!(checked.plans, 2);
    desk.work_off(healthy.id, 1).await;
}

async fn rows_that_say_something_else_than_the_trail_are_found(desk: &Desk) {
    for (table, key, set, word) in [
        ("plans", 9, "name = 'another'", "brief"),
        ("plans", 9, "pending = pending + 1", "head"),
        ("plans", 9, "updated_at = updated_at + 1", "updated_at"),
        ("steps", 1, "instructions = 'others'", "step"),
        ("steps", 1, "open_dependencies = 1", "waits for"),
        ("steps", 2, "stalls_at = stalls_at + 1", "stalls"),
        ("steps", 3, "ended_commit = ended_commit + 1", "ended"),
        ("branches", 9, "condition = 'false'", "branches"),
    ] {
        let branch = desk.branch(2, "true", ActionSpec::Continue);
        let plan = desk.branching(3, vec![branch]).await;
        desk.work_off(plan.id, 1).await;
        let [completed, in_progress, pending] = [plan.steps[0], plan.steps[1], plan.steps[2]];
        desk.take(plan.id).await;
        let only = match key {
            1 => format!("AND step_id = {}", desk.literal(pending)),
            2 => format!("AND step_id = {}", desk.literal(in_progress)),
            3 => format!("AND step_id = {}", desk.literal(completed)),
            _ => String::new(),
        };
        desk.damage(&format!(
            "UPDATE {table} SET {set} WHERE plan_id = {} {only}",
            desk.literal(plan.id)
        ));
        let (_, faults) = desk.engine.verify_plan(&desk.me, plan.id).await.unwrap();
        assert!(
            faults.iter().any(|fault| fault.contains(word)),
            "{set}: {faults:?}"
        );
    }
}

async fn a_skill_that_says_something_else_than_the_trail_is_found(desk: &Desk) {
    for (set, why) in [
        ("skill_name = 'another'", "is of another skill"),
        ("status = 'completed', ended_at = 1", "ended otherwise"),
    ] {
        let plan = desk.plan(1).await;
        let skill = desk.start_skill(&desk.me, "survey", "s", Some(plan.id));
        let id = desk.literal(skill.await);
        desk.damage(&format!(
            "UPDATE skill_executions SET {set} WHERE execution_id = {id}"
        ));
        let (_, faults) = desk.engine.verify_plan(&desk.me, plan.id).await.unwrap();
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(faults[0].contains(why), "{faults:?}");
    }
    let (plan, other) = (desk.plan(1).await, desk.plan(1).await);
    desk.start_skill(&desk.me, "survey", "s", Some(plan.id))
        .await;
    let (from, to) = (desk.literal(plan.id), desk.literal(other.id));
    desk.damage(&format!(
        "UPDATE skill_executions SET plan_id = {to} WHERE plan_id = {from}"
    ));
    let (_, faults) = desk.engine.verify_plan(&desk.me, other.id).await.unwrap();
    assert!(faults[0].contains("has no start"), "{faults:?}");
}

async fn what_is_not_part_of_a_plan_is_checked_too(desk: &Desk) {
    let plan = desk.plan(1).await;
    desk.work_off(plan.id, 1).await;
    error(
        desk.submit(result_without_token(plan.steps[0], "late"))
            .await,
    );
    let tenant = &desk.me.tenant;
    desk.damage(&format!(
        "UPDATE artifacts SET metadata = 'x' WHERE tenant_id = '{tenant}'"
    ));
    let found = cell(desk.engine.export(&desk.me, plan.id).await);
    assert_eq!((found.table, found.column), ("artifacts", "metadata"));
    let checked = desk.engine.verify(&desk.me).await.unwrap();
    let named = |fault: &onward_engine::verify::Fault| fault.what.contains("metadata");
    assert!(checked.faults.iter().any(named), "{:?}", checked.faults);
}

async fn extractions_are_checked_too(desk: &Desk) {
    let artifact = desk.store(finding("Moons", "Io and Europa")).await;
    let e = &desk.engine;
    for of in [None, Some(artifact)] {
        let extracted = extracted(of, json!({ "moons": 2 }));
        e.store_extraction(&desk.me, extracted).await.unwrap();
    }
    assert_eq!(e.verify(&desk.me).await.unwrap().faults, []);
    let found = async |set: &str| {
        let tenant = &desk.me.tenant;
        desk.damage(&format!(
            "UPDATE extractions SET {set} WHERE tenant_id = '{tenant}' AND artifact_id IS NOT NULL"
        ));
        let faults = e.verify(&desk.me).await.unwrap().faults;
        assert_eq!(faults.len(), 1, "{set}: {faults:?}");
        faults[0].what.clone()
    };
    let nobodys = desk.literal(uuid::Uuid::from_u128(7));
    let lost = found(&format!("artifact_id = {nobodys}")).await;
    assert!(lost.contains("an artifact that is not there"), "{lost}");
    let cell = found("issues = '{}', valid = 0").await;
    assert!(cell.contains("`extractions`"), "{cell}");
}

/// What does not fit in the index of the search is found, and made anew from the texts.
async fn an_index_that_does_not_fit_is_found_and_made_anew(desk: &Desk) {
    let model: Arc<dyn Embedder> = Arc::new(Model::named("meaning"));
    let engine = desk.engine.clone().with_embedder(model);
    let tenant = Arc::clone(&desk.me.tenant);
    let nobodys = desk.literal(uuid::Uuid::from_u128(7));
    for (fault, damage) in [
        (
            "2 chunks that no model will see",
            format!("DELETE FROM chunk_signs WHERE tenant_id = '{tenant}' AND ordinal = 1"),
        ),
        (
            "2 signs without a vector",
            format!("DELETE FROM vectors WHERE tenant_id = '{tenant}' AND ordinal = 1"),
        ),
        (
            "1 chunks of nothing",
            format!(
                "UPDATE chunks SET source_id = {nobodys} WHERE tenant_id = '{tenant}' AND ordinal = 2"
            ),
        ),
        (
            "2 signs of no chunk",
            format!(
                "UPDATE chunk_signs SET ordinal = 9 WHERE tenant_id = '{tenant}' AND ordinal = 1"
            ),
        ),
        (
            "2 vectors without a sign",
            format!("UPDATE vectors SET ordinal = 9 WHERE tenant_id = '{tenant}' AND ordinal = 1"),
        ),
    ] {
        if engine.verify(&desk.me).await.unwrap().chunks == 0 {
            desk.store(finding("Long", &"the whale sings. ".repeat(300)))
                .await;
            desk.store(finding("Shorter", &"the orca hunts. ".repeat(150)))
                .await;
        }
        engine.embed_waiting().await.unwrap();
        let before = engine.verify(&desk.me).await.unwrap();
        assert_eq!((before.index.as_slice(), before.chunks), (&[][..], 5));
        desk.damage(&damage);
        let checked = engine.verify(&desk.me).await.unwrap();
        assert!(checked.index.iter().any(|it| it == fault), "{checked:?}");
        assert_eq!(checked.faults, [], "the plans are as they should be");
        engine.reindex(&desk.me).await.unwrap();
        engine.embed_waiting().await.unwrap();
        assert_eq!(engine.verify(&desk.me).await.unwrap(), before, "{fault}");
    }
}

async fn a_sweep_goes_on_past_a_damaged_plan(desk: &Desk) {
    let mut watcher = desk.engine.watcher();
    let mut plans = Vec::new();
    for _ in 0..3 {
        let mut draft = desk.draft(1);
        draft.stall_threshold = Some(Duration::from_secs(1));
        draft.on_stall = OnStall::Fail;
        let plan = desk.create(draft).await;
        desk.take(plan.id).await;
        plans.push(plan);
        desk.advance(Duration::from_millis(1));
    }
    // The one that is looked at first.
    let damaged = desk.literal(plans[0].steps[0]);
    desk.damage(&format!(
        "UPDATE steps SET superseded = 'x' WHERE step_id = {damaged}"
    ));
    desk.advance(Duration::from_secs(2));
    let round = desk.engine.sweep(&mut watcher).await.unwrap();
    assert_eq!(round.failed.len(), 1);
    assert!(
        round.failed[0].2.contains("superseded"),
        "{:?}",
        round.failed
    );
    for plan in &plans[1..] {
        assert_eq!(desk.plan_status(plan.id).await.as_str(), "completed");
    }
    desk.damage(&format!(
        "UPDATE steps SET superseded = '[]' WHERE step_id = {damaged}"
    ));
    desk.world
        .set(round.next_at.expect("it is looked at again"));
    desk.engine.sweep(&mut watcher).await.unwrap();
    assert_eq!(
        desk.plan_status(plans[0].id).await.as_str(),
        "completed",
        "once it is repaired"
    );
}

on_both_databases![
    a_trail_that_lacks_an_entry_or_says_something_else_is_found,
    rows_that_say_something_else_than_the_trail_are_found,
    a_skill_that_says_something_else_than_the_trail_is_found,
    what_is_not_part_of_a_plan_is_checked_too,
    extractions_are_checked_too,
];

mod alone {
    use super::{
        a_sweep_goes_on_past_a_damaged_plan, an_index_that_does_not_fit_is_found_and_made_anew,
    };
    crate::on_both_databases![alone:
        a_sweep_goes_on_past_a_damaged_plan,
        an_index_that_does_not_fit_is_found_and_made_anew,
    ];
}
