//! The database refuses by itself what the law forbids, whoever asks it: rows that fit no state,
//! changes of the audit trail, other tenants' rows.

use onward_core::turn::LoopControl;
use onward_engine::ledger::{Begins, NewCall};
use onward_engine::session::{Fingerprint, Heard};

use crate::desk::Desk;
use crate::on_both_databases;
use crate::place::Kind;

/// Tries each statement as one who may do everything. All of them must be refused, by a constraint.
fn all_are_refused(desk: &Desk, statements: &[String]) {
    match desk.place.kind() {
        Kind::Sqlite => {
            for statement in statements {
                let why = desk.sql(statement).expect_err(statement);
                let by_law = why.contains("constraint failed") || why.contains("the audit trail");
                assert!(by_law, "{statement}: {why}");
            }
        }
        Kind::Postgres => {
            let quoted: Vec<String> = statements
                .iter()
                .map(|statement| format!("$statement${statement}$statement$"))
                .collect();
            // All in one go: every call of `psql` is a process of its own.
            let tried = desk.sql(&format!(
                "DO $$ DECLARE tried text; BEGIN
                 FOREACH tried IN ARRAY ARRAY[{}] LOOP BEGIN
                     EXECUTE tried;
                     RAISE EXCEPTION 'it was accepted: %', tried;
                 EXCEPTION WHEN check_violation OR not_null_violation OR unique_violation THEN
                     NULL;
                 END; END LOOP; END $$",
                quoted.join(", ")
            ));
            tried.expect("each of them is refused");
        }
    }
}

async fn a_plan_that_fits_no_state_cannot_be_written(desk: &Desk) {
    let plan = desk.plan(2).await;
    desk.take(plan.id).await;
    let (tenant, id) = (&desk.me.tenant, desk.literal(plan.id));
    let step = desk.literal(plan.steps[0]);
    let statements = [
        "status = 'paused'".to_owned(),
        "status = NULL".to_owned(),
        "status = 'awaiting_review'".to_owned(),
        format!("review_step = {step}"),
        format!("review_id = {step}"),
        format!("status = 'awaiting_review', review_step = {step}"),
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
    all_are_refused(desk, &statements);
}

async fn a_step_that_fits_no_state_cannot_be_written(desk: &Desk) {
    let plan = desk.plan(3).await;
    desk.work_off(plan.id, 1).await;
    desk.take(plan.id).await;
    let (tenant, other) = (&desk.me.tenant, desk.literal(plan.steps[0]));
    let [completed, in_progress, pending] = [0, 1, 2].map(|place| desk.literal(plan.steps[place]));
    let of = |step: &str, sets: &[&str]| -> Vec<String> {
        let sets = sets.iter().map(|set| set.replace("{other}", &other));
        sets.map(|set| {
            format!("UPDATE steps SET {set} WHERE tenant_id = '{tenant}' AND step_id = {step}")
        })
        .collect()
    };
    let pending = of(
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
            "undelivered = 2",
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
    let in_progress = of(
        &in_progress,
        &[
            "started_at = NULL",
            "claim_token = NULL",
            "status = 'awaiting_input'",
            "status = 'completed', ended_at = 1",
            "status = 'completed', result_summary = 'x'",
        ],
    );
    let completed = of(
        &completed,
        &["ended_at = NULL", "result_summary = NULL", "stalls_at = 1"],
    );
    all_are_refused(desk, &[pending, in_progress, completed].concat());
}

async fn other_rows_that_cannot_be_cannot_be_written(desk: &Desk) {
    let plan = desk.branching(
        2,
        vec![desk.branch(1, "true", onward_core::command::ActionSpec::Continue)],
    );
    let plan = plan.await;
    desk.work_off(plan.id, 1).await;
    let late = crate::verbs::result_without_token(plan.steps[0], "late");
    crate::verbs::error(desk.submit(late).await);
    let token = desk
        .engine
        .create_token(&desk.me, "t", onward_core::Role::Agent, None)
        .await;
    token.unwrap();
    desk.start_skill(&desk.me, "survey", "s", None).await;
    let (tenant, id) = (&desk.me.tenant, desk.literal(plan.id));
    let skill =
        |set: &str| format!("UPDATE skill_executions SET {set} WHERE tenant_id = '{tenant}'");
    let heard = Heard {
        session: "one".to_owned(),
        agent: "codex".to_owned(),
        ..Heard::default()
    };
    let (engine, control) = (&desk.engine, LoopControl::default());
    let begun = engine.begin_turn(&desk.me, heard, Fingerprint::None, control);
    begun.await.unwrap();
    let heard = Heard {
        session: "law".to_owned(),
        agent: "codex".to_owned(),
        ..Heard::default()
    };
    let some = NewCall::seen(None, "Bash".to_owned(), serde_json::Value::Null, None);
    let recorded = engine.record_call(&desk.me, heard, None, some, Begins::Running);
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
    all_are_refused(
        desk,
        &[
            event(1, 1),
            event(0, 0),
            event(9, 10),
            event(9, 0),
            format!("UPDATE branches SET action = 'dance' WHERE tenant_id = '{tenant}'"),
            format!("UPDATE artifacts SET artifact_type = 'x' WHERE tenant_id = '{tenant}'"),
            format!("UPDATE tokens SET role = 'king' WHERE tenant_id = '{tenant}'"),
            format!("UPDATE tenants SET agents_decide_reviews = 2 WHERE tenant_id = '{tenant}'"),
            format!("INSERT INTO tenants VALUES ('{tenant}', 0, 1)"),
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

async fn the_audit_trail_takes_no_update_and_no_delete(desk: &Desk) {
    let plan = desk.plan(2).await;
    desk.work_off(plan.id, 1).await;
    let before = desk.trail(plan.id).await;
    let only = format!("WHERE plan_id = {}", desk.literal(plan.id));
    let mut statements = vec![
        format!("UPDATE events SET actor = 'another' {only}"),
        format!("UPDATE events SET details = details {only}"),
        format!("DELETE FROM events {only}"),
        format!("DELETE FROM events {only} AND seq = 3"),
        "DELETE FROM events".to_owned(),
    ];
    if desk.place.kind() == Kind::Postgres {
        statements.push("TRUNCATE events".to_owned());
        statements.push("TRUNCATE plans, events CASCADE".to_owned());
    }
    for statement in statements {
        let why = desk.sql(&statement).expect_err(&statement);
        assert!(why.contains("the audit trail"), "{statement}: {why}");
    }
    assert_eq!(desk.trail(plan.id).await, before);
}

async fn a_trail_is_not_overwritten_by_an_insert(desk: &Desk) {
    let plan = desk.plan(1).await;
    let (tenant, id) = (&desk.me.tenant, desk.literal(plan.id));
    let columns = "tenant_id, plan_id, seq, commit_seq, at, actor, name, details";
    let values = format!("'{tenant}', {id}, 1, 1, 1, 'another', 'plan_completed', '{{}}'");
    let statement = match desk.place.kind() {
        Kind::Sqlite => format!("INSERT OR REPLACE INTO events ({columns}) VALUES ({values})"),
        Kind::Postgres => format!(
            "INSERT INTO events ({columns}) VALUES ({values}) \
             ON CONFLICT (tenant_id, plan_id, seq) DO UPDATE SET actor = 'another'"
        ),
    };
    let tried = desk.sql(&statement);
    assert_eq!(
        desk.trail(plan.id).await,
        ["plan_modified created"],
        "{tried:?}"
    );
    assert!(tried.is_err());
}

/// Row security is PostgreSQL's; on SQLite a statement's own text binds it.
async fn a_query_that_forgets_its_tenant_sees_nothing(desk: &Desk) {
    desk.plan(1).await;
    let tenant = &desk.me.tenant;
    let tables = "tenants plans steps dependencies branches branch_needs events resumed_sessions \
                  idempotency_keys artifacts tenant_log tool_calls tokens skill_executions feedback \
                  sessions session_agents turns turn_steps directory_plans \
                  session_calls";
    let counts: Vec<String> = tables
        .split_whitespace()
        .map(|table| format!("SELECT count(*) FROM {table}"))
        .collect();
    let sum = format!("SELECT ({})", counts.join(") + ("));
    let as_tenant = |setting: &str, query: &str| {
        desk.sql(&format!(
            "BEGIN; SET LOCAL ROLE onward_tenant; {setting} {query}; ROLLBACK"
        ))
    };
    assert_eq!(as_tenant("", &sum).as_deref(), Ok("0"));
    assert_eq!(
        as_tenant("SET LOCAL onward.tenant = '';", &sum).as_deref(),
        Ok("0")
    );
    let own = format!("SET LOCAL onward.tenant = '{tenant}';");
    assert_eq!(
        as_tenant(&own, "SELECT count(*) FROM plans").as_deref(),
        Ok("1")
    );
    for statement in [
        "INSERT INTO tenants VALUES ('another', 0, 1)",
        "UPDATE plans SET tenant_id = 'another'",
    ] {
        let why = as_tenant(&own, statement).expect_err(statement);
        assert!(why.contains("row-level security"), "{why}");
    }
    let why = as_tenant(&own, "TRUNCATE plans").expect_err("nobody empties a table");
    assert!(why.contains("permission denied"), "{why}");
}

on_both_databases![
    a_plan_that_fits_no_state_cannot_be_written,
    a_step_that_fits_no_state_cannot_be_written,
    other_rows_that_cannot_be_cannot_be_written,
    the_audit_trail_takes_no_update_and_no_delete,
    a_trail_is_not_overwritten_by_an_insert,
];

mod row_security {
    use super::a_query_that_forgets_its_tenant_sees_nothing;
    crate::on_postgres![a_query_that_forgets_its_tenant_sees_nothing];
}
