//! Database constraints: the schema itself rejects invalid states, changes to the audit trail and,
//! on PostgreSQL, access to rows of other tenants.

use onward_core::turn::LoopControl;
use onward_engine::session::{Fingerprint, HookSource};
use onward_engine::tool_calls::{InitialState, NewCall};
use onward_testbed::{Backend, psql_each};

use crate::database::TestDatabase;
use crate::harness::Harness;
use crate::on_both_databases;
use crate::operations::{error, submission_without_token};

/// Conditions of the `CHECK`, `NOT NULL`, `UNIQUE` and primary key constraints on PostgreSQL.
const CONSTRAINT: &str = "check_violation OR not_null_violation OR unique_violation";
/// Makes a distributed database forward settings to its nodes; has no effect on a single server.
const FORWARD: &str = "SET citus.propagate_set_commands = local";
/// Conditions of row security and missing privileges on PostgreSQL. A distributed database does not
/// support changing the tenant of a row.
const PRIVILEGE: &str = "insufficient_privilege OR feature_not_supported";

/// Runs each statement as a superuser and asserts that a constraint or trigger rejects it. On
/// PostgreSQL the error must match `conditions`.
fn assert_rejected(harness: &Harness, conditions: &str, statements: &[String]) {
    match harness.database.backend() {
        Backend::Sqlite => {
            for statement in statements {
                let error = harness.sql(statement).expect_err(statement);
                let by_constraint = error.starts_with("ConstraintViolation");
                assert!(by_constraint, "{statement}: {error}");
            }
        }
        Backend::Postgres => {
            let checked = harness.sql(&rejection_check(conditions, statements));
            checked.expect("each statement is rejected");
        }
    }
}

/// A `DO` block that fails unless each statement raises one of the conditions. One block for all
/// statements, because each `psql` call starts a process.
fn rejection_check(conditions: &str, statements: &[String]) -> String {
    let quoted: Vec<String> = statements
        .iter()
        .map(|statement| format!("$statement${statement}$statement$"))
        .collect();
    format!(
        "DO $$ DECLARE tried text; BEGIN
         FOREACH tried IN ARRAY ARRAY[{}] LOOP BEGIN
             EXECUTE tried;
             RAISE EXCEPTION 'statement was accepted: %', tried;
         EXCEPTION WHEN {conditions} THEN
             NULL;
         END; END LOOP; END $$",
        quoted.join(", ")
    )
}

async fn rejects_plan_rows_in_invalid_states(harness: &Harness) {
    let plan = harness.plan(2).await;
    harness.claim(plan.id).await;
    let (tenant, id) = (&harness.me.tenant, harness.id_literal(plan.id));
    let statements = [
        "status = 'paused'".to_owned(),
        "status = NULL".to_owned(),
        "status = 'awaiting_review'".to_owned(),
        "open_reviews = '[]'".to_owned(),
        "status = 'stalled'".to_owned(),
        "marked_at = 1".to_owned(),
        "status = 'completed'".to_owned(),
        "ended_at = 1".to_owned(),
        "status = 'completed', ended_at = 1".to_owned(),
        "status = 'failed', ended_at = 1".to_owned(),
        "failure_kind = 'branch'".to_owned(),
        "on_stall = 'explode'".to_owned(),
        "stall_threshold_ms = 0".to_owned(),
        "pending = -1".to_owned(),
        "in_progress = -1".to_owned(),
        "awaiting_input = -1".to_owned(),
        "completed = -1".to_owned(),
        "skipped = -1".to_owned(),
        "failed = -1".to_owned(),
        "seq = 0".to_owned(),
        "name = NULL".to_owned(),
    ]
    .map(|set| format!("UPDATE plans SET {set} WHERE tenant_id = '{tenant}' AND plan_id = {id}"));
    assert_rejected(harness, CONSTRAINT, &statements);
}

async fn rejects_step_rows_in_invalid_states(harness: &Harness) {
    let plan = harness.plan(3).await;
    harness.complete_steps(plan.id, 1).await;
    harness.claim(plan.id).await;
    let (tenant, other) = (&harness.me.tenant, harness.id_literal(plan.steps[0]));
    let [completed, in_progress, pending] =
        [0, 1, 2].map(|index| harness.id_literal(plan.steps[index]));
    let updates = |step: &str, sets: &[&str]| -> Vec<String> {
        let sets = sets.iter().map(|set| set.replace("{other}", &other));
        sets.map(|set| {
            format!("UPDATE steps SET {set} WHERE tenant_id = '{tenant}' AND step_id = {step}")
        })
        .collect()
    };
    let pending = updates(
        &pending,
        &[
            "status = 'paused'",
            "status = 'in_progress'",
            "status = 'skipped', ended_at = 1",
            "status = 'failed', ended_at = 1",
            "claim_token = 'x'",
            "attempt = 0",
            "attempt = -1",
            "ended_at = 1",
            "review = '{}'",
            "result_summary = 'x'",
            "skipped_by_branch = {other}",
            "skipped_by_review = {other}",
            "failure_kind = 'stalled'",
            "undelivered = 1",
            "undelivered = 3",
            "stalls_at = 1",
            "step_order = 0",
            "step_order = 1",
            "step_type = 'dance'",
            "stall_threshold_ms = 0",
            "max_attempts = 0",
            "open_dependencies = -1",
            "superseded = NULL",
            "depends_on = NULL",
        ],
    );
    let in_progress = updates(
        &in_progress,
        &[
            "started_at = NULL",
            "claim_token = NULL",
            "status = 'awaiting_input'",
            "status = 'completed', ended_at = 1",
            "status = 'completed', result_summary = 'x'",
        ],
    );
    let completed = updates(
        &completed,
        &["ended_at = NULL", "result_summary = NULL", "stalls_at = 1"],
    );
    assert_rejected(
        harness,
        CONSTRAINT,
        &[pending, in_progress, completed].concat(),
    );
}

async fn rejects_invalid_rows_in_other_tables(harness: &Harness) {
    let plan = harness.plan_with_branches(
        2,
        vec![harness.branch(1, "true", onward_core::command::ActionSpec::Continue)],
    );
    let plan = plan.await;
    harness.complete_steps(plan.id, 1).await;
    let late = submission_without_token(plan.steps[0], "late");
    error(harness.submit(late).await);
    let token = harness
        .engine
        .create_token(&harness.me, "t", onward_core::Role::Agent, None)
        .await;
    token.unwrap();
    harness.start_skill(&harness.me, "survey", "s", None).await;
    let (tenant, id) = (&harness.me.tenant, harness.id_literal(plan.id));
    let skill =
        |set: &str| format!("UPDATE skill_executions SET {set} WHERE tenant_id = '{tenant}'");
    let source = |session: &str| HookSource {
        session: session.to_owned(),
        agent: "codex".to_owned(),
        ..HookSource::default()
    };
    let (engine, control) = (&harness.engine, LoopControl::default());
    let begun = engine.begin_turn(
        &harness.me,
        source("one"),
        Fingerprint::Unavailable,
        control,
    );
    begun.await.unwrap();
    let some = NewCall::from_hook(None, "Bash".to_owned(), serde_json::Value::Null, None);
    let recorded = engine.record_call(
        &harness.me,
        source("two"),
        None,
        some,
        InitialState::Running,
    );
    recorded.await.unwrap();
    let call = |set: &str| format!("UPDATE session_calls SET {set} WHERE tenant_id = '{tenant}'");
    let turn = |set: &str| format!("UPDATE turns SET {set} WHERE tenant_id = '{tenant}'");
    let feedback = |rating: &str, comment: &str| {
        format!(
            "INSERT INTO feedback (tenant_id, feedback_id, plan_id, rating, comment, actor, \
             created_at) VALUES ('{tenant}', {id}, {id}, {rating}, {comment}, 'me', 1)"
        )
    };
    let event = |seq: i64, commit: i64| {
        format!(
            "INSERT INTO events (tenant_id, plan_id, seq, commit_seq, at, actor, name, details) \
             VALUES ('{tenant}', {id}, {seq}, {commit}, 1, 'me', 'plan_completed', '{{}}')"
        )
    };
    assert_rejected(
        harness,
        CONSTRAINT,
        &[
            event(1, 1),
            event(0, 0),
            event(9, 10),
            event(9, 0),
            format!("UPDATE branches SET action = 'dance' WHERE tenant_id = '{tenant}'"),
            format!("UPDATE artifacts SET artifact_type = 'x' WHERE tenant_id = '{tenant}'"),
            format!("UPDATE tokens SET role = 'king' WHERE tenant_id = '{tenant}'"),
            format!("UPDATE tenants SET agents_decide_reviews = 2 WHERE tenant_id = '{tenant}'"),
            format!("INSERT INTO tenants VALUES ('{tenant}', 0, 1, NULL)"),
            skill("status = 'paused'"),
            skill("status = 'completed'"),
            skill("ended_at = 1"),
            skill("error_message = 'x'"),
            skill("metadata = NULL"),
            turn("why_ended = 'answered'"),
            turn("ended_at = 1"),
            turn("verdict = 'idle'"),
            turn("steps = 1"),
            turn("held = 'bored', steps = 1, verdict = 'idle'"),
            turn("threshold = 0"),
            format!("UPDATE sessions SET switched_off = 2 WHERE tenant_id = '{tenant}'"),
            format!("UPDATE sessions SET session_id = '' WHERE tenant_id = '{tenant}'"),
            format!("UPDATE sessions SET last_seen_at = 1 WHERE tenant_id = '{tenant}'"),
            call("status = 'lost'"),
            call("status = 'completed'"),
            call("status = 'interrupted'"),
            call("ended_at = 1"),
            call("started_at = NULL"),
            call("cause = 'timed_out'"),
            call("cause = 'timed_out', interrupted_at = 1, to_model = '', to_operator = ''"),
            call("owner_host = 'here'"),
            call("owner_boot = 'x'"),
            call("untimed = 1, timeout_ms = 1"),
            call("timeout_ms = 0"),
            call("yields = 1, timeout_ms = NULL"),
            call("grace_ms = -1"),
            call("result = 'early'"),
            call("status = 'requested'"),
            call("position = 0"),
            format!("UPDATE session_agents SET batches = 2 WHERE tenant_id = '{tenant}'"),
            feedback("0", "NULL"),
            feedback("6", "NULL"),
            feedback("NULL", "NULL"),
        ],
    );
}

/// Runs a statement as a transaction of the program does: with the role of all tenants, and with
/// this tenant. Each setting is a separate message, because a distributed database forwards the
/// whole message to its nodes.
fn as_tenant(harness: &Harness, tenant: Option<&str>, statement: &str) -> Result<String, String> {
    let TestDatabase::Server(url) = &harness.database else {
        panic!("not a server")
    };
    let role = "SET LOCAL ROLE onward_tenant";
    let tenant = match tenant {
        Some(tenant) => format!("SET LOCAL onward.tenant = '{tenant}'"),
        None => role.to_owned(),
    };
    psql_each(
        url,
        &[FORWARD, "BEGIN", role, &tenant, statement, "ROLLBACK"],
    )
}

async fn rejects_update_delete_and_truncate_of_the_audit_trail(harness: &Harness) {
    let plan = harness.plan(2).await;
    harness.complete_steps(plan.id, 1).await;
    let before = harness.audit_trail(plan.id).await;
    let only = format!("WHERE plan_id = {}", harness.id_literal(plan.id));
    let mut statements = vec![
        format!("UPDATE events SET actor = 'another' {only}"),
        format!("UPDATE events SET details = details {only}"),
        format!("DELETE FROM events {only}"),
        format!("DELETE FROM events {only} AND seq = 3"),
        "DELETE FROM events".to_owned(),
    ];
    match harness.database.backend() {
        Backend::Sqlite => assert_rejected(harness, "", &statements),
        Backend::Postgres => {
            statements.push("TRUNCATE events".to_owned());
            statements.push("TRUNCATE plans, events CASCADE".to_owned());
            let rejected = as_tenant(
                harness,
                Some(&harness.me.tenant),
                &rejection_check(PRIVILEGE, &statements),
            );
            rejected.expect("each statement is rejected");
        }
    }
    assert_eq!(harness.audit_trail(plan.id).await, before);
}

async fn an_upsert_cannot_overwrite_the_audit_trail(harness: &Harness) {
    let plan = harness.plan(1).await;
    let (tenant, id) = (&harness.me.tenant, harness.id_literal(plan.id));
    let columns = "tenant_id, plan_id, seq, commit_seq, at, actor, name, details";
    let values = format!("'{tenant}', {id}, 1, 1, 1, 'another', 'plan_completed', '{{}}'");
    let statement = match harness.database.backend() {
        Backend::Sqlite => format!("INSERT OR REPLACE INTO events ({columns}) VALUES ({values})"),
        Backend::Postgres => format!(
            "INSERT INTO events ({columns}) VALUES ({values}) \
             ON CONFLICT (tenant_id, plan_id, seq) DO UPDATE SET actor = 'another'"
        ),
    };
    let executed = match harness.database.backend() {
        Backend::Sqlite => harness.sql(&statement),
        Backend::Postgres => as_tenant(harness, Some(&harness.me.tenant), &statement),
    };
    assert_eq!(
        harness.audit_trail(plan.id).await,
        ["plan_modified created"],
        "{executed:?}"
    );
    assert!(executed.is_err());
}

/// PostgreSQL only: SQLite has no row security, so each statement filters by tenant itself.
async fn row_security_hides_all_rows_without_a_tenant_setting(harness: &Harness) {
    harness.plan(1).await;
    let tenant = &harness.me.tenant;
    let tables = "tenants plans steps dependencies branches branch_needs events resumed_sessions \
                  idempotency_keys artifacts tenant_log tool_calls tokens token_hashes sign_outs due \
                  skill_executions feedback sessions session_agents turns turn_steps \
                  directory_plans session_calls due_calls outputs chunks chunk_signs vectors \
                  extractions notices plan_words";
    let counts: Vec<String> = tables
        .split_whitespace()
        .map(|table| format!("SELECT count(*) FROM {table}"))
        .collect();
    let sum = format!("SELECT ({})", counts.join(") + ("));
    for none in [None, Some("")] {
        assert_eq!(as_tenant(harness, none, &sum).as_deref(), Ok("0"));
    }
    let own = Some(tenant.as_ref());
    assert_eq!(
        as_tenant(harness, own, "SELECT count(*) FROM plans").as_deref(),
        Ok("1")
    );
    let statements = [
        "INSERT INTO tenants VALUES ('another', 0, 1, NULL)",
        "UPDATE plans SET tenant_id = 'another'",
        "TRUNCATE plans",
    ]
    .map(str::to_owned);
    let rejected = as_tenant(harness, own, &rejection_check(PRIVILEGE, &statements));
    rejected.expect("each statement is rejected");
}

on_both_databases![
    rejects_plan_rows_in_invalid_states,
    rejects_step_rows_in_invalid_states,
    rejects_invalid_rows_in_other_tables,
    rejects_update_delete_and_truncate_of_the_audit_trail,
    an_upsert_cannot_overwrite_the_audit_trail,
];

mod row_security {
    use super::row_security_hides_all_rows_without_a_tenant_setting;
    crate::on_postgres![row_security_hides_all_rows_without_a_tenant_setting];
}
