//! A row that fits no state is an error that names table, column and row, from every read that comes
//! across it; the doctor names it; and other plans go on.

use onward_core::command::{ActionSpec, Modification, StepRef};
use onward_engine::list::PlanQuery;
use onward_engine::step::Question;
use onward_engine::{Engine, Error};
use onward_store::Corrupt;

use crate::desk::Desk;
use crate::on_both_databases;
use crate::place::Kind;
use crate::verbs::{Made, error, result_without_token};

/// A plan with a step in each status, and a branch behind the one that can still be taken on.
async fn patient(desk: &Desk) -> Made {
    let mut draft = desk.draft(6);
    draft.branches = vec![desk.branch(5, "true", ActionSpec::SkipTo(StepRef::Order(6)))];
    let plan = desk.create(draft).await;
    desk.work_off(plan.id, 1).await;
    let fail = Modification::FailStep {
        step: plan.steps[1],
        reason: None,
    };
    desk.modify(plan.id, fail).await.unwrap();
    desk.take(plan.id).await;
    let asks = desk.take(plan.id).await;
    let question = Question {
        step: asks.step,
        summary: "so?".to_owned(),
        questions: Vec::new(),
        token: None,
        session: None,
    };
    desk.engine
        .request_review(&desk.me, question)
        .await
        .unwrap();
    plan
}

pub(crate) fn cell<T: std::fmt::Debug>(answer: Result<T, Error>) -> Corrupt {
    let why = error(answer);
    let Error::Store(onward_store::Error::Corrupt(cell)) = why else {
        panic!("it says nothing of a cell: {why}")
    };
    cell
}

/// Which cell, in whose row, and what is written into it.
struct Damage {
    table: &'static str,
    column: &'static str,
    /// The place of the step whose row it is; the plan's own where there is none.
    step: Option<usize>,
    to: &'static str,
}

fn damage(
    table: &'static str,
    column: &'static str,
    step: Option<usize>,
    to: &'static str,
) -> Damage {
    Damage {
        table,
        column,
        step,
        to,
    }
}

/// Damages each cell in turn, tries every read, and repairs it again.
async fn examine_all(desk: &Desk, cells: &[Damage]) {
    let plan = patient(desk).await;
    // A process that has not worked on the plan, and remembers nothing of it.
    let reader = desk.another_engine().await;
    let healthy = desk.plan(u32::try_from(cells.len()).unwrap()).await;
    for cell in cells {
        examine(desk, &reader, &plan, cell).await;
        desk.work_off(healthy.id, 1).await;
    }
    let status = desk.plan_status(healthy.id).await;
    assert_eq!(status.as_str(), "completed", "another plan goes on");
    reader.close().await;
}

async fn examine(desk: &Desk, reader: &Engine, plan: &Made, damage: &Damage) {
    let row = damage
        .step
        .map_or(plan.id.to_string(), |place| plan.steps[place].to_string());
    let (key, named) = match damage.table {
        "plans" => ("plan_id", row.clone()),
        "steps" => ("step_id", row.clone()),
        "branches" => ("branch_id", plan.branches[0].to_string()),
        other => panic!("no key of `{other}` is known here"),
    };
    let Damage {
        table, column, to, ..
    } = damage;
    let only = format!(
        "WHERE tenant_id = '{}' AND {key} = {}",
        desk.me.tenant,
        desk.literal(&named)
    );
    let before = match desk.place.kind() {
        Kind::Sqlite => format!("quote({column})"),
        Kind::Postgres => format!("quote_nullable({column}::text)"),
    };
    let before = desk.damage(&format!(
        "SELECT {before} FROM {table} {only}; UPDATE {table} SET {column} = {to} {only}"
    ));
    let expected = |cell: Corrupt| {
        let found = (cell.table, cell.column, cell.row.as_str());
        assert_eq!(
            found,
            (*table, *column, named.as_str()),
            "{to}: {}",
            cell.why
        );
    };
    expected(cell(desk.engine.whole_plan(&desk.me, plan.id).await));
    expected(cell(desk.engine.export(&desk.me, plan.id).await));
    match *table {
        "plans" => {
            expected(cell(desk.engine.sheet(&desk.me, plan.id).await));
            expected(cell(desk.engine.status(&desk.me, plan.id, None).await));
            if !["created_at", "name"].contains(column) {
                // What the verbs look at is not the whole row.
                expected(cell(reader.next_step(&desk.me, plan.id, None, false).await));
                expected(cell(
                    desk.engine.abandon_plan(&desk.me, plan.id, None).await,
                ));
            }
            let query = PlanQuery {
                limit: 10,
                finished: true,
                ..PlanQuery::default()
            };
            expected(cell(desk.engine.list_plans(&desk.me, query).await));
        }
        // On a server a transition looks at the trail, and reads no row.
        "steps" | "branches" if desk.place.kind() == Kind::Sqlite => {
            let step = plan.steps[damage.step.unwrap_or(4)];
            let submission = result_without_token(step, "words");
            expected(cell(reader.submit(&desk.me, submission).await));
        }
        _ => {}
    }
    let checked = desk.engine.verify(&desk.me).await.unwrap();
    let fault = checked
        .faults
        .iter()
        .find(|fault| fault.plan == Some(plan.id));
    let what = &fault.expect("the doctor finds it").what;
    for word in [table, column, &named.as_str()] {
        assert!(what.contains(word), "{what}");
    }
    let others = checked
        .faults
        .iter()
        .filter(|fault| fault.plan != Some(plan.id));
    assert_eq!(others.count(), 0, "{:?}", checked.faults);
    desk.damage(&format!("UPDATE {table} SET {column} = {before} {only}"));
}

async fn a_damaged_plan_is_named(desk: &Desk) {
    let failed = desk.plan(1).await;
    desk.engine
        .abandon_plan(&desk.me, failed.id, None)
        .await
        .unwrap();
    desk.damage(&format!(
        "UPDATE plans SET failure_kind = 'tired' WHERE plan_id = {}",
        desk.literal(failed.id)
    ));
    let found = cell(desk.engine.sheet(&desk.me, failed.id).await);
    assert_eq!((found.table, found.column), ("plans", "failure_kind"));
    assert_eq!(found.row, failed.id.to_string());
    assert!(found.why.contains("tired"), "{}", found.why);
    let checked = desk.engine.verify(&desk.me).await.unwrap();
    assert!(checked.faults[0].what.contains("failure_kind"));
}

async fn a_damaged_step_is_named(desk: &Desk) {
    let cells = [
        damage("steps", "superseded", Some(4), "'no json'"),
        damage("steps", "superseded", Some(4), "'{}'"),
        damage("steps", "superseded", Some(4), "'[1]'"),
        damage("steps", "depends_on", Some(4), "'[\"x\"]'"),
        damage("steps", "depends_on", Some(4), "'['"),
        damage("steps", "review", Some(3), "'{\"summary\": 1}'"),
        damage("steps", "review", Some(3), "'[]'"),
        damage("steps", "result", Some(0), "'{\"half\":'"),
        damage("steps", "result_report", Some(0), "'nothing'"),
        damage("steps", "failure_kind", Some(1), "'tired'"),
        damage("steps", "step_order", Some(4), "-5"),
        damage("steps", "max_attempts", Some(4), "5000000000"),
    ];
    examine_all(desk, &cells).await;
}

async fn a_damaged_branch_is_named(desk: &Desk) {
    let cells = [
        damage("branches", "condition", None, "'confidence >'"),
        damage("branches", "params", None, "'{}'"),
        damage("branches", "params", None, "'no json'"),
    ];
    examine_all(desk, &cells).await;
}

/// SQLite takes any value in any column, whatever its type.
async fn a_value_of_a_wrong_type_is_named(desk: &Desk) {
    let cells = [
        damage("plans", "created_at", None, "'yesterday'"),
        damage("plans", "seq", None, "1.5"),
        damage("plans", "review_id", None, "X'0102'"),
        damage("steps", "updated_at", Some(4), "'now'"),
        damage("steps", "started_at", Some(2), "0.5"),
    ];
    examine_all(desk, &cells).await;
}

async fn bytes_that_are_no_text_are_named_and_not_guessed_at(desk: &Desk) {
    let cells = [
        damage("plans", "name", None, "X'01'"),
        damage("plans", "name", None, "CAST(X'61FF62' AS TEXT)"),
        damage("steps", "instructions", Some(4), "CAST(X'FF' AS TEXT)"),
    ];
    examine_all(desk, &cells).await;
}

/// What the triggers forbid, done all the same.
fn damage_event(desk: &Desk, plan: &Made, seq: u32, set: &str) {
    let update = format!(
        "UPDATE events SET {set} WHERE plan_id = {} AND seq = {seq}",
        desk.literal(plan.id)
    );
    desk.damage(&match desk.place.kind() {
        Kind::Sqlite => format!("DROP TRIGGER IF EXISTS events_are_not_changed; {update}"),
        Kind::Postgres => format!("SET session_replication_role = replica; {update}"),
    });
}

async fn a_damaged_event_is_named(desk: &Desk) {
    for set in [
        "details = 'no json'",
        "details = '[]'",
        "details = '{}'",
        "name = 'step_danced'",
        "step_id = NULL",
    ] {
        let plan = desk.plan(2).await;
        desk.work_off(plan.id, 1).await;
        damage_event(desk, &plan, 2, set);
        let found = cell(desk.engine.trail(&desk.me, plan.id, 0, 10).await);
        assert_eq!((found.table, found.column), ("events", "details"), "{set}");
        assert!(found.row.contains('2'), "{}", found.row);
        cell(desk.engine.export(&desk.me, plan.id).await);
        let (_, faults) = desk.engine.verify_plan(&desk.me, plan.id).await.unwrap();
        assert!(faults[0].contains("`events`"), "{faults:?}");
        desk.work_off(plan.id, 1).await;
    }
}

on_both_databases![
    a_damaged_plan_is_named,
    a_damaged_step_is_named,
    a_damaged_branch_is_named,
    a_damaged_event_is_named,
];

/// PostgreSQL takes no such value in the first place.
mod loose_types {
    use super::*;
    crate::on_sqlite![
        a_value_of_a_wrong_type_is_named,
        bytes_that_are_no_text_are_named_and_not_guessed_at,
    ];
}
