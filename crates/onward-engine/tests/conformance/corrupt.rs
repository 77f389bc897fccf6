//! Corrupt rows: every read that encounters one returns an error with table, column and row id,
//! `verify` reports it, and other plans are not affected.

use std::sync::Arc;

use onward_core::command::{ActionSpec, Modification, StepRef};
use onward_core::condition::InvalidCondition;
use onward_engine::list::PlanQuery;
use onward_engine::step::ReviewRequest;
use onward_engine::{Engine, Error};
use onward_store::Corrupt;
use onward_store::codec::Undecodable;
use onward_testbed::Backend;

use crate::harness::Harness;
use crate::on_both_databases;
use crate::operations::{CreatedPlan, error, submission_without_token};

/// A plan with a step in each status and a branch after the pending one.
async fn plan_with_all_statuses(harness: &Harness) -> CreatedPlan {
    let mut draft = harness.draft(6);
    draft.branches = vec![harness.branch(5, "true", ActionSpec::SkipTo(StepRef::Order(6)))];
    let plan = harness.create(draft).await;
    harness.complete_steps(plan.id, 1).await;
    let fail = Modification::FailStep {
        step: plan.steps[1],
        reason: None,
    };
    harness.modify(plan.id, fail).await.unwrap();
    harness.claim(plan.id).await;
    let under_review = harness.claim(plan.id).await;
    let question = ReviewRequest {
        step: under_review.step,
        summary: "so?".to_owned(),
        questions: Vec::new(),
        scope: onward_core::step::ReviewScope::Plan,
        options: Default::default(),
        token: None,
        session: None,
    };
    harness
        .engine
        .request_review(&harness.me, question)
        .await
        .unwrap();
    plan
}

/// The corrupt cell that a failed call reports, and why it could not be decoded.
fn corrupt_cell_and_cause<T: std::fmt::Debug>(
    result: Result<T, Error>,
) -> (Corrupt, Option<Arc<dyn std::error::Error + Send + Sync>>) {
    let err = error(result);
    let Error::Store(onward_store::Error::Corrupt { cell, source }) = err else {
        panic!("not a corrupt cell: {err}")
    };
    (cell, source)
}

/// The corrupt cell that a failed call reports.
pub(crate) fn corrupt_cell<T: std::fmt::Debug>(result: Result<T, Error>) -> Corrupt {
    corrupt_cell_and_cause(result).0
}

/// An invalid value for one cell.
struct Corruption {
    table: &'static str,
    column: &'static str,
    /// Index of the step; `None` for the row of the plan or of its branch.
    step: Option<usize>,
    value: &'static str,
}

fn corruption(
    table: &'static str,
    column: &'static str,
    step: Option<usize>,
    value: &'static str,
) -> Corruption {
    Corruption {
        table,
        column,
        step,
        value,
    }
}

/// Corrupts each cell in turn, checks all reads and repairs the cell.
async fn check_all(harness: &Harness, corruptions: &[Corruption]) {
    let plan = plan_with_all_statuses(harness).await;
    // An engine without a cached copy of the plan.
    let reader = harness.another_engine().await;
    let healthy = harness
        .plan(u32::try_from(corruptions.len()).unwrap())
        .await;
    for corruption in corruptions {
        check(harness, &reader, &plan, corruption).await;
        harness.complete_steps(healthy.id, 1).await;
    }
    let status = harness.plan_status(healthy.id).await;
    assert_eq!(status.as_str(), "completed", "another plan is not affected");
    reader.close().await;
}

async fn check(harness: &Harness, reader: &Engine, plan: &CreatedPlan, corruption: &Corruption) {
    let row = corruption
        .step
        .map_or(plan.id.to_string(), |index| plan.steps[index].to_string());
    let (key, row) = match corruption.table {
        "plans" => ("plan_id", row),
        "steps" => ("step_id", row),
        "branches" => ("branch_id", plan.branches[0].to_string()),
        other => panic!("no key column for `{other}`"),
    };
    let Corruption {
        table,
        column,
        value,
        ..
    } = corruption;
    let where_row = format!(
        "WHERE tenant_id = '{}' AND {key} = {}",
        harness.me.tenant,
        harness.id_literal(&row)
    );
    let before = match harness.database.backend() {
        Backend::Sqlite => format!("quote({column})"),
        Backend::Postgres => format!("quote_nullable({column}::text)"),
    };
    let before = harness.corrupt(&format!(
        "SELECT {before} FROM {table} {where_row}; UPDATE {table} SET {column} = {value} {where_row}"
    ));
    let assert_cell = |cell: Corrupt| {
        let found = (cell.table, cell.column, cell.row.as_str());
        assert_eq!(
            found,
            (*table, *column, row.as_str()),
            "{value}: {}",
            cell.why
        );
    };
    assert_cell(corrupt_cell(
        harness.engine.full_plan(&harness.me, plan.id).await,
    ));
    assert_cell(corrupt_cell(
        harness.engine.export(&harness.me, plan.id).await,
    ));
    match *table {
        "plans" => {
            assert_cell(corrupt_cell(
                harness.engine.sheet(&harness.me, plan.id).await,
            ));
            assert_cell(corrupt_cell(
                harness.engine.status(&harness.me, plan.id, None).await,
            ));
            if !["created_at", "name"].contains(column) {
                // Commands do not read these two columns.
                assert_cell(corrupt_cell(
                    reader.next_step(&harness.me, plan.id, None, false).await,
                ));
                assert_cell(corrupt_cell(
                    harness
                        .engine
                        .abandon_plan(&harness.me, plan.id, None)
                        .await,
                ));
            }
            let query = PlanQuery {
                limit: 10,
                finished: true,
                ..PlanQuery::default()
            };
            assert_cell(corrupt_cell(
                harness.engine.list_plans(&harness.me, query).await,
            ));
        }
        // On PostgreSQL a transition reads the audit trail instead of the rows.
        "steps" | "branches" if harness.database.backend() == Backend::Sqlite => {
            let step = plan.steps[corruption.step.unwrap_or(4)];
            let submission = submission_without_token(step, "done");
            assert_cell(corrupt_cell(reader.submit(&harness.me, submission).await));
        }
        _ => {}
    }
    let checked = harness.engine.verify(&harness.me).await.unwrap();
    let fault = checked
        .inconsistencies
        .iter()
        .find(|fault| fault.plan == Some(plan.id));
    let what = &fault.expect("fault was reported").message;
    for name in [table, column, &row.as_str()] {
        assert!(what.contains(name), "{what}");
    }
    let others = checked
        .inconsistencies
        .iter()
        .filter(|fault| fault.plan != Some(plan.id));
    assert_eq!(others.count(), 0, "{:?}", checked.inconsistencies);
    harness.corrupt(&format!(
        "UPDATE {table} SET {column} = {before} {where_row}"
    ));
}

async fn reports_a_corrupt_plan_row(harness: &Harness) {
    let failed = harness.plan(1).await;
    harness
        .engine
        .abandon_plan(&harness.me, failed.id, None)
        .await
        .unwrap();
    harness.corrupt(&format!(
        "UPDATE plans SET failure_kind = 'no_such_kind' WHERE plan_id = {}",
        harness.id_literal(failed.id)
    ));
    let found = corrupt_cell(harness.engine.sheet(&harness.me, failed.id).await);
    assert_eq!((found.table, found.column), ("plans", "failure_kind"));
    assert_eq!(found.row, failed.id.to_string());
    assert!(found.why.contains("no_such_kind"), "{}", found.why);
    let checked = harness.engine.verify(&harness.me).await.unwrap();
    assert!(checked.inconsistencies[0].message.contains("failure_kind"));
}

async fn a_corrupt_cell_keeps_the_error_of_its_decoder(harness: &Harness) {
    let mut draft = harness.draft(2);
    draft.branches = vec![harness.branch(1, "true", ActionSpec::SkipTo(StepRef::Order(2)))];
    let plan = harness.create(draft).await;
    let full_plan = async || {
        let read = harness.engine.full_plan(&harness.me, plan.id).await;
        let (cell, cause) = corrupt_cell_and_cause(read);
        (cell, cause.expect("the cause was kept"))
    };
    let corrupt = |table: &str, set: &str| {
        harness.corrupt(&format!(
            "UPDATE {table} SET {set} WHERE plan_id = {}",
            harness.id_literal(plan.id)
        ));
    };
    corrupt("branches", "condition = 'confidence >'");
    let (cell, cause) = full_plan().await;
    assert_eq!(cell.column, "condition");
    assert!(cause.is::<InvalidCondition>(), "{cause:?}");
    corrupt("branches", "condition = 'true', params = 'not json'");
    let (cell, cause) = full_plan().await;
    assert_eq!(cell.column, "params");
    assert!(cause.is::<Undecodable>(), "{cause:?}");
    corrupt("steps", "depends_on = '[\"x\"]'");
    let (cell, cause) = full_plan().await;
    assert_eq!(cell.column, "depends_on");
    let cause = cause.downcast_ref::<Undecodable>().expect("not decoded");
    assert_eq!(cause.path, "[0]");
    assert_eq!(cell.why, cause.to_string());
}

async fn reports_corrupt_step_rows(harness: &Harness) {
    let corruptions = [
        corruption("steps", "superseded", Some(4), "'not json'"),
        corruption("steps", "superseded", Some(4), "'{}'"),
        corruption("steps", "superseded", Some(4), "'[1]'"),
        corruption("steps", "depends_on", Some(4), "'[\"x\"]'"),
        corruption("steps", "depends_on", Some(4), "'['"),
        corruption("steps", "review", Some(3), "'{\"summary\": 1}'"),
        corruption("steps", "review", Some(3), "'[]'"),
        corruption("steps", "result", Some(0), "'{\"half\":'"),
        corruption("steps", "result_report", Some(0), "'nothing'"),
        corruption("steps", "failure_kind", Some(1), "'no_such_kind'"),
        corruption("steps", "step_order", Some(4), "-5"),
        corruption("steps", "max_attempts", Some(4), "5000000000"),
    ];
    check_all(harness, &corruptions).await;
}

async fn reports_corrupt_branch_rows(harness: &Harness) {
    let corruptions = [
        corruption("branches", "condition", None, "'confidence >'"),
        corruption("branches", "params", None, "'{}'"),
        corruption("branches", "params", None, "'not json'"),
    ];
    check_all(harness, &corruptions).await;
}

/// SQLite accepts a value of any type in any column.
async fn reports_values_of_the_wrong_type(harness: &Harness) {
    let corruptions = [
        corruption("plans", "created_at", None, "'yesterday'"),
        corruption("plans", "seq", None, "1.5"),
        corruption("plans", "open_reviews", None, "'[{}]'"),
        corruption("steps", "updated_at", Some(4), "'now'"),
        corruption("steps", "started_at", Some(2), "0.5"),
    ];
    check_all(harness, &corruptions).await;
}

async fn reports_invalid_utf8_instead_of_replacing_it(harness: &Harness) {
    let corruptions = [
        corruption("plans", "name", None, "X'01'"),
        corruption("plans", "name", None, "CAST(X'61FF62' AS TEXT)"),
        corruption("steps", "instructions", Some(4), "CAST(X'FF' AS TEXT)"),
    ];
    check_all(harness, &corruptions).await;
}

/// A row that matches no state is reported, not skipped: a later step is not assigned instead.
async fn the_next_step_names_a_row_that_matches_no_state(harness: &Harness) {
    for (column, value) in [
        ("status", "'bogus'"),
        ("status", "X'00'"),
        ("ended_at", "1"),
        ("open_dependencies", "'none'"),
        ("stalls_at", "1"),
    ] {
        let plan = harness.plan(3).await;
        harness.corrupt(&format!(
            "PRAGMA ignore_check_constraints = 1; UPDATE steps SET {column} = {value} \
             WHERE step_id = {}",
            harness.id_literal(plan.steps[0])
        ));
        for include_stalled in [false, true] {
            let next = harness
                .engine
                .next_step(&harness.me, plan.id, None, include_stalled)
                .await;
            let found = corrupt_cell(next);
            let step = plan.steps[0].to_string();
            assert_eq!((found.table, &found.row), ("steps", &step), "{column}");
        }
        let healthy = harness.plan(1).await;
        harness.complete_steps(healthy.id, 1).await;
    }
}

/// Updates an audit event, as a superuser and without the protecting triggers of SQLite.
fn corrupt_event(harness: &Harness, plan: &CreatedPlan, seq: u32, set: &str) {
    let update = format!(
        "UPDATE events SET {set} WHERE plan_id = {} AND seq = {seq}",
        harness.id_literal(plan.id)
    );
    harness.corrupt(&match harness.database.backend() {
        Backend::Sqlite => format!("DROP TRIGGER IF EXISTS events_reject_update; {update}"),
        Backend::Postgres => update,
    });
}

async fn reports_corrupt_audit_events(harness: &Harness) {
    for set in [
        "details = 'not json'",
        "details = '[]'",
        "details = '{}'",
        "name = 'step_unknown'",
        "step_id = NULL",
    ] {
        let plan = harness.plan(2).await;
        harness.complete_steps(plan.id, 1).await;
        corrupt_event(harness, &plan, 2, set);
        let found = corrupt_cell(
            harness
                .engine
                .audit_trail(&harness.me, plan.id, 0, 10)
                .await,
        );
        assert_eq!((found.table, found.column), ("events", "details"), "{set}");
        assert!(found.row.contains('2'), "{}", found.row);
        corrupt_cell(harness.engine.export(&harness.me, plan.id).await);
        let (_, faults) = harness
            .engine
            .verify_plan(&harness.me, plan.id)
            .await
            .unwrap();
        assert!(faults[0].contains("`events`"), "{faults:?}");
        harness.complete_steps(plan.id, 1).await;
    }
}

on_both_databases![
    a_corrupt_cell_keeps_the_error_of_its_decoder,
    reports_a_corrupt_plan_row,
    reports_corrupt_step_rows,
    reports_corrupt_branch_rows,
    reports_corrupt_audit_events,
];

/// PostgreSQL rejects these values on write.
mod sqlite_types {
    use super::*;
    crate::on_sqlite![
        the_next_step_names_a_row_that_matches_no_state,
        reports_values_of_the_wrong_type,
        reports_invalid_utf8_instead_of_replacing_it,
    ];
}
