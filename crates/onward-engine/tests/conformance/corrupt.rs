//! A row that fits no state is an error that names table, column and row, from every read that comes
//! across it; the doctor names it; and other plans go on.

use std::time::Duration;

use onward_core::command::{ActionSpec, Modification, StepRef};
use onward_core::policy::OnStall;
use onward_engine::Error;
use onward_engine::list::PlanQuery;
use onward_engine::step::Question;
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

fn cell<T: std::fmt::Debug>(answer: Result<T, Error>) -> Corrupt {
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

/// Damages the cell, tries every read, and gives back what the first error says about it.
async fn examine(desk: &Desk, damage: &Damage) {
    let (plan, healthy) = (patient(desk).await, desk.plan(2).await);
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
    desk.damage(&format!(
        "UPDATE {table} SET {column} = {to} WHERE tenant_id = '{}' AND {key} = {}",
        desk.me.tenant,
        desk.literal(&named)
    ));
    let expected = |cell: Corrupt| {
        let found = (cell.table, cell.column, cell.row.as_str());
        assert_eq!(found, (*table, *column, named.as_str()), "{}", cell.why);
    };
    expected(cell(desk.engine.whole_plan(&desk.me, plan.id).await));
    expected(cell(desk.engine.export(&desk.me, plan.id).await));
    match *table {
        "plans" => {
            expected(cell(desk.engine.sheet(&desk.me, plan.id).await));
            expected(cell(desk.engine.status(&desk.me, plan.id, None).await));
            if !["created_at", "name"].contains(column) {
                // What the verbs look at is not the whole row.
                expected(cell(
                    desk.engine.next_step(&desk.me, plan.id, None, false).await,
                ));
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
        "steps" => {
            let step = plan.steps[damage.step.unwrap()];
            expected(cell(desk.submit(result_without_token(step, "words")).await));
        }
        "branches" => {
            let step = plan.steps[4];
            expected(cell(desk.submit(result_without_token(step, "words")).await));
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
    assert!(
        checked
            .faults
            .iter()
            .all(|fault| fault.plan != Some(healthy.id))
    );
    desk.work_off(healthy.id, 2).await;
    assert_eq!(desk.plan_status(healthy.id).await.as_str(), "completed");
    let gone = |table| {
        format!(
            "DELETE FROM {table} WHERE plan_id = {};",
            desk.literal(plan.id)
        )
    };
    desk.damage(&["plans", "events", "steps", "branches"].map(gone).concat());
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
    for cell in [
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
    ] {
        examine(desk, &cell).await;
    }
}

async fn a_damaged_branch_is_named(desk: &Desk) {
    for cell in [
        damage("branches", "condition", None, "'confidence >'"),
        damage("branches", "params", None, "'{}'"),
        damage("branches", "params", None, "'no json'"),
    ] {
        examine(desk, &cell).await;
    }
}

/// SQLite takes any value in any column, whatever its type.
async fn a_value_of_a_wrong_type_is_named(desk: &Desk) {
    if desk.place.kind() == Kind::Postgres {
        return;
    }
    for cell in [
        damage("plans", "created_at", None, "'yesterday'"),
        damage("plans", "seq", None, "1.5"),
        damage("plans", "review_id", None, "X'0102'"),
        damage("steps", "updated_at", Some(4), "'now'"),
        damage("steps", "started_at", Some(2), "0.5"),
    ] {
        examine(desk, &cell).await;
    }
}

async fn bytes_that_are_no_text_are_named_and_not_guessed_at(desk: &Desk) {
    if desk.place.kind() == Kind::Postgres {
        return;
    }
    for cell in [
        damage("plans", "name", None, "X'01'"),
        damage("plans", "name", None, "CAST(X'61FF62' AS TEXT)"),
        damage("steps", "instructions", Some(4), "CAST(X'FF' AS TEXT)"),
    ] {
        examine(desk, &cell).await;
    }
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
        ("branches", 9, "condition = 'false'", "branches"),
    ] {
        let branch = desk.branch(2, "true", ActionSpec::Continue);
        let plan = desk.branching(3, vec![branch]).await;
        desk.work_off(plan.id, 1).await;
        let [in_progress, pending] = [plan.steps[1], plan.steps[2]];
        desk.take(plan.id).await;
        let only = match key {
            1 => format!("AND step_id = {}", desk.literal(pending)),
            2 => format!("AND step_id = {}", desk.literal(in_progress)),
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
    a_damaged_plan_is_named,
    a_damaged_step_is_named,
    a_damaged_branch_is_named,
    a_value_of_a_wrong_type_is_named,
    bytes_that_are_no_text_are_named_and_not_guessed_at,
    a_damaged_event_is_named,
    a_trail_that_lacks_an_entry_or_says_something_else_is_found,
    rows_that_say_something_else_than_the_trail_are_found,
    what_is_not_part_of_a_plan_is_checked_too,
];

mod alone {
    use super::a_sweep_goes_on_past_a_damaged_plan;
    crate::on_both_databases![alone: a_sweep_goes_on_past_a_damaged_plan];
}
