//! `verify` finds rows that differ from their audit trail; a damaged plan does not affect others.

use std::sync::Arc;
use std::time::Duration;

use onward_core::command::ActionSpec;
use onward_core::policy::OnStall;
use onward_engine::embed::Embedder;
use onward_testbed::Backend;
use serde_json::json;

use crate::corrupt::corrupt_cell;
use crate::embedder::TestEmbedder;
use crate::extractions::extracted;
use crate::harness::Harness;
use crate::on_both_databases;
use crate::operations::{error, submission_without_token};
use crate::research::finding;

async fn finds_a_missing_audit_event(harness: &Harness) {
    let plan = harness.plan(2).await;
    harness.complete_steps(plan.id, 1).await;
    let healthy = harness.plan(1).await;
    let delete = format!(
        "DELETE FROM events WHERE plan_id = {} AND seq = 2",
        harness.id_literal(plan.id)
    );
    harness.corrupt(&match harness.database.backend() {
        Backend::Sqlite => format!("DROP TRIGGER events_reject_delete; {delete}"),
        Backend::Postgres => delete,
    });
    let checked = harness.engine.verify(&harness.me).await.unwrap();
    assert_eq!(
        checked.inconsistencies.len(),
        1,
        "{:?}",
        checked.inconsistencies
    );
    assert_eq!(checked.inconsistencies[0].plan, Some(plan.id));
    assert_eq!(checked.plans, 2);
    harness.complete_steps(healthy.id, 1).await;
}

async fn finds_rows_that_differ_from_the_audit_trail(harness: &Harness) {
    // Per step: the first is completed, the second in progress, the third pending.
    for (table, step, set) in [
        ("plans", None, "name = 'another'"),
        ("plans", None, "pending = pending + 1"),
        ("plans", None, "updated_at = updated_at + 1"),
        ("steps", Some(2), "instructions = 'others'"),
        ("steps", Some(2), "open_dependencies = 1"),
        ("steps", Some(1), "stalls_at = stalls_at + 1"),
        ("steps", Some(0), "ended_commit = ended_commit + 1"),
        ("branches", Some(1), "condition = 'false'"),
    ] {
        let branch = harness.branch(2, "true", ActionSpec::Continue);
        let plan = harness.plan_with_branches(3, vec![branch]).await;
        harness.complete_steps(plan.id, 1).await;
        harness.claim(plan.id).await;
        let step = step.map(|index: usize| plan.steps[index]);
        let where_step = match (table, step) {
            ("steps", Some(step)) => format!("AND step_id = {}", harness.id_literal(step)),
            _ => String::new(),
        };
        harness.corrupt(&format!(
            "UPDATE {table} SET {set} WHERE plan_id = {} {where_step}",
            harness.id_literal(plan.id)
        ));
        let (_, faults) = harness
            .engine
            .verify_plan(&harness.me, plan.id)
            .await
            .unwrap();
        assert_eq!(faults.len(), 1, "{set}: {faults:?}");
        let step = step.map(|step| step.to_string()).unwrap_or_default();
        assert!(faults[0].contains(&step), "{set}: {faults:?}");
    }
}

async fn finds_skill_executions_that_differ_from_the_audit_trail(harness: &Harness) {
    for set in [
        "skill_name = 'another'",
        "status = 'completed', ended_at = 1",
    ] {
        let plan = harness.plan(1).await;
        let skill = harness.start_skill(&harness.me, "survey", "s", Some(plan.id));
        let skill = skill.await;
        let id = harness.id_literal(skill);
        harness.corrupt(&format!(
            "UPDATE skill_executions SET {set} WHERE execution_id = {id}"
        ));
        let (_, faults) = harness
            .engine
            .verify_plan(&harness.me, plan.id)
            .await
            .unwrap();
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(faults[0].contains(&skill.to_string()), "{faults:?}");
    }
    let (plan, other) = (harness.plan(1).await, harness.plan(1).await);
    let skill = harness
        .start_skill(&harness.me, "survey", "s", Some(plan.id))
        .await;
    let (from, to) = (harness.id_literal(plan.id), harness.id_literal(other.id));
    harness.corrupt(&format!(
        "UPDATE skill_executions SET plan_id = {to} WHERE plan_id = {from}"
    ));
    let (_, faults) = harness
        .engine
        .verify_plan(&harness.me, other.id)
        .await
        .unwrap();
    assert!(faults[0].contains(&skill.to_string()), "{faults:?}");
}

async fn checks_artifacts(harness: &Harness) {
    let plan = harness.plan(1).await;
    harness.complete_steps(plan.id, 1).await;
    error(
        harness
            .submit(submission_without_token(plan.steps[0], "late"))
            .await,
    );
    let tenant = &harness.me.tenant;
    harness.corrupt(&format!(
        "UPDATE artifacts SET metadata = 'x' WHERE tenant_id = '{tenant}'"
    ));
    let found = corrupt_cell(harness.engine.export(&harness.me, plan.id).await);
    assert_eq!((found.table, found.column), ("artifacts", "metadata"));
    let checked = harness.engine.verify(&harness.me).await.unwrap();
    let named = |fault: &onward_engine::verify::Inconsistency| fault.message.contains("metadata");
    assert!(
        checked.inconsistencies.iter().any(named),
        "{:?}",
        checked.inconsistencies
    );
}

async fn checks_extractions(harness: &Harness) {
    let artifact = harness.store(finding("Moons", "Io and Europa")).await;
    let e = &harness.engine;
    let mut stored = Vec::new();
    for source in [None, Some(artifact)] {
        let extracted = extracted(source, json!({ "moons": 2 }));
        stored.push(e.store_extraction(&harness.me, extracted).await.unwrap().id);
    }
    assert_eq!(e.verify(&harness.me).await.unwrap().inconsistencies, []);
    let fault_after = async |set: &str| {
        let tenant = &harness.me.tenant;
        harness.corrupt(&format!(
            "UPDATE extractions SET {set} WHERE tenant_id = '{tenant}' AND artifact_id IS NOT NULL"
        ));
        let faults = e.verify(&harness.me).await.unwrap().inconsistencies;
        assert_eq!(faults.len(), 1, "{set}: {faults:?}");
        faults[0].message.clone()
    };
    let missing = harness.id_literal(uuid::Uuid::from_u128(7));
    let orphaned = fault_after(&format!("artifact_id = {missing}")).await;
    assert!(orphaned.contains(&stored[1].to_string()), "{orphaned}");
    let corrupt = fault_after("issues = '{}', valid = 0").await;
    assert!(corrupt.contains("`extractions`"), "{corrupt}");
}

/// The index is rebuilt from the stored texts.
async fn finds_search_index_faults_and_reindexing_repairs_them(harness: &Harness) {
    let model: Arc<dyn Embedder> = Arc::new(TestEmbedder::new("test"));
    let engine = harness.engine.clone().with_embedder(model);
    let tenant = Arc::clone(&harness.me.tenant);
    let missing = harness.id_literal(uuid::Uuid::from_u128(7));
    // The number of affected chunks, and the statement that damages the index.
    for (count, damage) in [
        (
            2,
            format!("DELETE FROM chunk_signs WHERE tenant_id = '{tenant}' AND ordinal = 1"),
        ),
        (
            2,
            format!("DELETE FROM vectors WHERE tenant_id = '{tenant}' AND ordinal = 1"),
        ),
        (
            1,
            format!(
                "UPDATE chunks SET source_id = {missing} WHERE tenant_id = '{tenant}' AND ordinal = 2"
            ),
        ),
        (
            2,
            format!(
                "UPDATE chunk_signs SET ordinal = 9 WHERE tenant_id = '{tenant}' AND ordinal = 1"
            ),
        ),
        (
            2,
            format!("UPDATE vectors SET ordinal = 9 WHERE tenant_id = '{tenant}' AND ordinal = 1"),
        ),
    ] {
        if engine.verify(&harness.me).await.unwrap().chunks == 0 {
            harness
                .store(finding("Long", &"the whale sings. ".repeat(300)))
                .await;
            harness
                .store(finding("Shorter", &"the orca hunts. ".repeat(150)))
                .await;
        }
        engine.embed_pending().await.unwrap();
        let before = engine.verify(&harness.me).await.unwrap();
        assert_eq!(
            (before.index_errors.as_slice(), before.chunks),
            (&[][..], 5)
        );
        harness.corrupt(&damage);
        let checked = engine.verify(&harness.me).await.unwrap();
        let prefix = format!("{count} ");
        assert!(
            checked
                .index_errors
                .iter()
                .any(|fault| fault.starts_with(&prefix)),
            "{damage}: {checked:?}"
        );
        assert_eq!(checked.inconsistencies, [], "plans are not affected");
        engine.reindex(&harness.me).await.unwrap();
        engine.embed_pending().await.unwrap();
        assert_eq!(
            engine.verify(&harness.me).await.unwrap(),
            before,
            "{damage}"
        );
    }
}

async fn a_sweep_skips_a_damaged_plan_and_retries_it_later(harness: &Harness) {
    let mut watcher = harness.engine.watcher();
    let mut plans = Vec::new();
    for _ in 0..3 {
        let mut draft = harness.draft(1);
        draft.stall_threshold = Some(Duration::from_secs(1));
        draft.on_stall = OnStall::Fail;
        let plan = harness.create(draft).await;
        harness.claim(plan.id).await;
        plans.push(plan);
        harness.advance(Duration::from_millis(1));
    }
    // The plan that is due first.
    let damaged = harness.id_literal(plans[0].steps[0]);
    harness.corrupt(&format!(
        "UPDATE steps SET superseded = 'x' WHERE step_id = {damaged}"
    ));
    harness.advance(Duration::from_secs(2));
    let round = harness.engine.sweep(&mut watcher).await.unwrap();
    assert_eq!(round.failed.len(), 1);
    assert!(
        round.failed[0].2.contains("superseded"),
        "{:?}",
        round.failed
    );
    for plan in &plans[1..] {
        assert_eq!(harness.plan_status(plan.id).await.as_str(), "completed");
    }
    harness.corrupt(&format!(
        "UPDATE steps SET superseded = '[]' WHERE step_id = {damaged}"
    ));
    harness
        .environment
        .set(round.next_at.expect("damaged plan is retried"));
    harness.engine.sweep(&mut watcher).await.unwrap();
    assert_eq!(
        harness.plan_status(plans[0].id).await.as_str(),
        "completed",
        "retried after the repair"
    );
}

on_both_databases![
    finds_a_missing_audit_event,
    finds_rows_that_differ_from_the_audit_trail,
    finds_skill_executions_that_differ_from_the_audit_trail,
    checks_artifacts,
    checks_extractions,
];

mod exclusive {
    use super::{
        a_sweep_skips_a_damaged_plan_and_retries_it_later,
        finds_search_index_faults_and_reindexing_repairs_them,
    };
    crate::on_both_databases![exclusive:
        a_sweep_skips_a_damaged_plan_and_retries_it_later,
        finds_search_index_faults_and_reindexing_repairs_them,
    ];
}
