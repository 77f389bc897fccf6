//! Documents that are broken are refused with the place that is, and nothing of them is written.

use onward_engine::Caller;
use serde_json::{Value, json};

use crate::desk::Desk;
use crate::on_both_databases;
use crate::verbs::{document, error, result_without_token};

/// A document with every part, and the tenant that must stay empty.
async fn sound(desk: &Desk) -> (Value, Caller) {
    let plan = desk.plan(2).await;
    desk.work_off(plan.id, 2).await;
    error(
        desk.submit(result_without_token(plan.steps[0], "late"))
            .await,
    );
    let document = document(&desk.engine, &desk.me, plan.id).await;
    (document, desk.tenant("empty").await)
}

/// It is refused for what is wrong at this place.
async fn is_refused(desk: &Desk, caller: &Caller, broken: &Value, place: &str) {
    let imported = desk.engine.import(caller, broken).await;
    let why = imported.expect_err(place);
    assert_eq!(why.code().as_str(), "invalid_input", "{place}: {why}");
    assert!(why.to_string().contains(place), "{place}: {why}");
}

fn is_empty(desk: &Desk, caller: &Caller) {
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
    assert_eq!(desk.sql(&sum).as_deref(), Ok("0"), "something was written");
}

async fn a_field_that_is_missing_or_of_a_wrong_type_is_named(desk: &Desk) {
    let (sound, caller) = sound(desk).await;
    let mut places: Vec<(String, &str)> = ["format", "version", "events", "artifacts"]
        .iter()
        .map(|key| (String::new(), *key))
        .collect();
    places.push(("/plan".to_owned(), "planId"));
    let event = "seq commitSeq at actor sessionId eventType stepId details";
    for place in 0..sound["events"].as_array().unwrap().len() {
        let at = format!("/events/{place}");
        places.extend(event.split(' ').map(|key| (at.clone(), key)));
    }
    let artifact = "artifactId stepId artifactType title content sourceUrl metadata createdAt";
    places.extend(
        artifact
            .split(' ')
            .map(|key| ("/artifacts/0".to_owned(), key)),
    );
    for (at, key) in places {
        let mut missing = sound.clone();
        missing
            .pointer_mut(&at)
            .unwrap()
            .as_object_mut()
            .unwrap()
            .remove(key)
            .expect(key);
        is_refused(desk, &caller, &missing, key).await;
        for wrong in [
            json!(-1.5),
            json!({ "not": "this" }),
            json!([[]]),
            json!(true),
        ] {
            if wrong.is_object() && ["details", "metadata"].contains(&key) {
                continue;
            }
            let mut broken = sound.clone();
            broken.pointer_mut(&at).unwrap()[key] = wrong;
            is_refused(desk, &caller, &broken, key).await;
        }
    }
    is_empty(desk, &caller);
    desk.engine
        .import(&caller, &sound)
        .await
        .expect("the whole document is taken in");
}

async fn what_is_no_document_at_all_is_refused(desk: &Desk) {
    let (mut newer, caller) = sound(desk).await;
    for nonsense in [
        json!(null),
        json!([]),
        json!("onward.plan"),
        json!({}),
        json!(7),
    ] {
        is_refused(desk, &caller, &nonsense, "format").await;
    }
    newer["version"] = json!(2);
    is_refused(desk, &caller, &newer, "version").await;
    is_empty(desk, &caller);
}

async fn a_trail_that_is_out_of_order_or_has_a_gap_is_refused(desk: &Desk) {
    let (sound, caller) = sound(desk).await;
    let spoil = |change: &dyn Fn(&mut Vec<Value>)| {
        let mut broken = sound.clone();
        change(broken["events"].as_array_mut().unwrap());
        broken
    };
    let broken = [
        spoil(&|events| events.swap(1, 2)),
        spoil(&|events| events.reverse()),
        spoil(&|events| drop(events.remove(2))),
        spoil(&|events| drop(events.remove(0))),
        spoil(&|events| events.push(events[1].clone())),
        spoil(&|events| events.clear()),
        spoil(&|events| {
            events.swap(1, 2);
            events[1]["seq"] = json!(2);
            events[2]["seq"] = json!(3);
        }),
        spoil(&|events| events[1]["commitSeq"] = json!(3)),
        spoil(&|events| events[1]["commitSeq"] = json!(0)),
    ];
    for broken in broken {
        is_refused(desk, &caller, &broken, "events").await;
    }
    is_empty(desk, &caller);
}

async fn a_trail_that_was_cut_off_is_refused(desk: &Desk) {
    let (sound, caller) = sound(desk).await;
    for left in 1..sound["events"].as_array().unwrap().len() {
        let mut cut = sound.clone();
        cut["events"].as_array_mut().unwrap().truncate(left);
        let why = error(desk.engine.import(&caller, &cut).await);
        assert_eq!(why.code().as_str(), "invalid_input", "{left} left: {why}");
    }
    is_empty(desk, &caller);
}

async fn a_plan_with_another_id_than_its_trail_is_refused(desk: &Desk) {
    let (mut broken, caller) = sound(desk).await;
    broken["plan"]["planId"] = json!(desk.engine.fresh_plan().to_string());
    is_refused(desk, &caller, &broken, "plan.planId").await;
    is_empty(desk, &caller);
}

async fn an_artifact_of_no_known_kind_is_refused(desk: &Desk) {
    let (mut broken, caller) = sound(desk).await;
    broken["artifacts"][0]["artifactType"] = json!("poem");
    is_refused(desk, &caller, &broken, "artifactType").await;
    is_empty(desk, &caller);
}

/// Every value inside of the events, replaced: it is refused at a place, or taken in as a whole.
async fn an_event_with_any_other_value_is_refused_or_fits(desk: &Desk) {
    let (sound, caller) = sound(desk).await;
    let mut taken_in = 0;
    for place in 0..sound["events"].as_array().unwrap().len() {
        let details = sound["events"][place]["details"]
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
                let mut broken = sound.clone();
                broken["events"][place]["details"][key] = other.clone();
                match desk.engine.import(&caller, &broken).await {
                    Err(why) => {
                        let code = why.code().as_str();
                        assert_eq!(code, "invalid_input", "{key} = {other}: {why}");
                        assert!(why.to_string().contains("events"), "{key} = {other}: {why}");
                    }
                    Ok(plan) => {
                        taken_in += 1;
                        let (_, faults) = desk.engine.verify_plan(&caller, plan).await.unwrap();
                        assert_eq!(faults, [""; 0], "{key} = {other}");
                        desk.engine.delete_plan(&caller, plan).await.unwrap();
                    }
                }
            }
        }
    }
    assert!(taken_in > 0, "a text in the place of a text fits");
}

on_both_databases![
    a_field_that_is_missing_or_of_a_wrong_type_is_named,
    what_is_no_document_at_all_is_refused,
    a_trail_that_is_out_of_order_or_has_a_gap_is_refused,
    a_trail_that_was_cut_off_is_refused,
    a_plan_with_another_id_than_its_trail_is_refused,
    an_artifact_of_no_known_kind_is_refused,
    an_event_with_any_other_value_is_refused_or_fits,
];
