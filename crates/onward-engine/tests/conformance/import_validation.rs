//! Import validation: an invalid document is rejected with the path of the invalid field, and
//! nothing is written.

use onward_core::PlanId;
use onward_engine::Caller;
use serde_json::{Value, json};

use crate::harness::Harness;
use crate::on_both_databases;
use crate::operations::{code, document, error, invalid_path, submission_without_token};

/// A valid document with all sections, and an empty tenant to import it into.
async fn valid_document(harness: &Harness) -> (Value, Caller) {
    let plan = harness.plan(2).await;
    harness.complete_steps(plan.id, 2).await;
    error(
        harness
            .submit(submission_without_token(plan.steps[0], "late"))
            .await,
    );
    let document = document(&harness.engine, &harness.me, plan.id).await;
    (document, harness.create_tenant("empty").await)
}

/// Asserts that the import is rejected and that the path of the issue contains `key`.
async fn assert_rejected(harness: &Harness, caller: &Caller, invalid: &Value, key: &str) {
    let path = invalid_path(harness.engine.import(caller, invalid).await);
    assert!(path.contains(key), "expected {key}: {path}");
}

fn assert_nothing_written(harness: &Harness, caller: &Caller) {
    let tables = [
        "plans",
        "steps",
        "events",
        "artifacts",
        "branches",
        "due",
        "tenant_log",
    ];
    let counts: Vec<String> = tables
        .iter()
        .map(|table| {
            format!(
                "SELECT count(*) FROM {table} WHERE tenant_id = '{}'",
                caller.tenant
            )
        })
        .collect();
    let sum = format!("SELECT ({})", counts.join(") + ("));
    assert_eq!(harness.sql(&sum).as_deref(), Ok("0"), "rows were written");
}

async fn rejects_missing_fields_and_fields_of_the_wrong_type(harness: &Harness) {
    let (valid, caller) = valid_document(harness).await;
    let mut fields: Vec<(String, &str)> = ["format", "version", "events", "artifacts"]
        .iter()
        .map(|key| (String::new(), *key))
        .collect();
    fields.push(("/plan".to_owned(), "planId"));
    let event = "seq commitSeq at actor sessionId eventType stepId details";
    for index in 0..valid["events"].as_array().unwrap().len() {
        let at = format!("/events/{index}");
        fields.extend(event.split(' ').map(|key| (at.clone(), key)));
    }
    let artifact = "artifactId stepId artifactType title content sourceUrl metadata createdAt";
    fields.extend(
        artifact
            .split(' ')
            .map(|key| ("/artifacts/0".to_owned(), key)),
    );
    for (at, key) in fields {
        let mut missing = valid.clone();
        missing
            .pointer_mut(&at)
            .unwrap()
            .as_object_mut()
            .unwrap()
            .remove(key)
            .expect(key);
        assert_rejected(harness, &caller, &missing, key).await;
        for wrong in [
            json!(-1.5),
            json!({ "not": "this" }),
            json!([[]]),
            json!(true),
        ] {
            if wrong.is_object() && ["details", "metadata"].contains(&key) {
                continue;
            }
            let mut invalid = valid.clone();
            invalid.pointer_mut(&at).unwrap()[key] = wrong;
            assert_rejected(harness, &caller, &invalid, key).await;
        }
    }
    assert_nothing_written(harness, &caller);
    harness
        .engine
        .import(&caller, &valid)
        .await
        .expect("valid document was imported");
}

async fn rejects_values_that_are_not_a_plan_document(harness: &Harness) {
    let (mut newer, caller) = valid_document(harness).await;
    for other in [
        json!(null),
        json!([]),
        json!("onward.plan"),
        json!({}),
        json!(7),
    ] {
        assert_rejected(harness, &caller, &other, "format").await;
    }
    newer["version"] = json!(2);
    assert_rejected(harness, &caller, &newer, "version").await;
    assert_nothing_written(harness, &caller);
}

async fn rejects_audit_events_that_are_out_of_order_or_missing(harness: &Harness) {
    let (valid, caller) = valid_document(harness).await;
    let with_events = |change: &dyn Fn(&mut Vec<Value>)| {
        let mut invalid = valid.clone();
        change(invalid["events"].as_array_mut().unwrap());
        invalid
    };
    let invalid = [
        with_events(&|events| events.swap(1, 2)),
        with_events(&|events| events.reverse()),
        with_events(&|events| drop(events.remove(2))),
        with_events(&|events| drop(events.remove(0))),
        with_events(&|events| events.push(events[1].clone())),
        with_events(&|events| events.clear()),
        with_events(&|events| {
            events.swap(1, 2);
            events[1]["seq"] = json!(2);
            events[2]["seq"] = json!(3);
        }),
        with_events(&|events| events[1]["commitSeq"] = json!(3)),
        with_events(&|events| events[1]["commitSeq"] = json!(0)),
    ];
    for invalid in invalid {
        assert_rejected(harness, &caller, &invalid, "events").await;
    }
    assert_nothing_written(harness, &caller);
}

async fn rejects_a_truncated_audit_trail(harness: &Harness) {
    let (valid, caller) = valid_document(harness).await;
    for left in 1..valid["events"].as_array().unwrap().len() {
        let mut truncated = valid.clone();
        truncated["events"].as_array_mut().unwrap().truncate(left);
        let rejected = harness.engine.import(&caller, &truncated).await;
        assert_eq!(code(rejected), "invalid_input", "{left} events left");
    }
    assert_nothing_written(harness, &caller);
}

async fn rejects_a_plan_id_that_differs_from_the_audit_trail(harness: &Harness) {
    let (mut invalid, caller) = valid_document(harness).await;
    invalid["plan"]["planId"] = json!(harness.engine.new_plan_id().to_string());
    assert_rejected(harness, &caller, &invalid, "plan.planId").await;
    assert_nothing_written(harness, &caller);
}

async fn rejects_an_unknown_artifact_type(harness: &Harness) {
    let (mut invalid, caller) = valid_document(harness).await;
    invalid["artifacts"][0]["artifactType"] = json!("poem");
    assert_rejected(harness, &caller, &invalid, "artifactType").await;
    assert_nothing_written(harness, &caller);
}

/// Replaces every value in the event details: the import is rejected with a path, or the imported
/// plan is consistent.
async fn every_changed_event_value_is_rejected_or_imports_consistently(harness: &Harness) {
    let (valid, caller) = valid_document(harness).await;
    let mut imported = 0;
    for index in 0..valid["events"].as_array().unwrap().len() {
        let details = valid["events"][index]["details"]
            .as_object()
            .unwrap()
            .clone();
        for key in details.keys() {
            for other in [
                json!(null),
                json!(1e300),
                json!("other"),
                json!(["other"]),
                json!({}),
            ] {
                let mut changed = valid.clone();
                changed["events"][index]["details"][key] = other.clone();
                match harness.engine.import(&caller, &changed).await {
                    Err(err) => {
                        let path = invalid_path::<PlanId>(Err(err));
                        assert!(path.starts_with("events"), "{key} = {other}: {path}");
                    }
                    Ok(plan) => {
                        imported += 1;
                        let (_, faults) = harness.engine.verify_plan(&caller, plan).await.unwrap();
                        assert_eq!(faults, [""; 0], "{key} = {other}");
                        harness.engine.delete_plan(&caller, plan).await.unwrap();
                    }
                }
            }
        }
    }
    assert!(imported > 0, "a string replaced by a string is valid");
}

on_both_databases![
    rejects_missing_fields_and_fields_of_the_wrong_type,
    rejects_values_that_are_not_a_plan_document,
    rejects_audit_events_that_are_out_of_order_or_missing,
    rejects_a_truncated_audit_trail,
    rejects_a_plan_id_that_differs_from_the_audit_trail,
    rejects_an_unknown_artifact_type,
    every_changed_event_value_is_rejected_or_imports_consistently,
];
