//! Changing the definition of a pending step through the tools.

use onward_testbed::mcp_client::{Client, Era};
use serde_json::{Value, json};

use crate::fixtures;
use crate::program;

fn step_ids(client: &mut Client, plan: &str) -> Vec<Value> {
    let steps = client.call("list_plan_steps", json!({ "planId": plan }));
    let steps = steps["steps"].as_array().expect("steps").iter();
    steps.map(|step| step["stepId"].clone()).collect()
}

#[test]
fn sets_the_dependencies_of_a_pending_step() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Stateless);
    let plan = fixtures::create_plan(&mut client, 3);
    let steps = step_ids(&mut client, &plan);
    let set = |step: &Value, needed: Value| json!({ "planId": plan, "action": "set_dependencies", "stepId": step, "dependsOn": needed });
    let changed = client.call("modify_plan", set(&steps[0], json!([3, steps[1]])));
    assert_eq!(changed["action"], "set_dependencies");
    assert_eq!(changed["steps"][0]["dependsOn"], json!([2, 3]));
    let error = client.call_rejected("modify_plan", set(&steps[2], json!([1])));
    assert_eq!(error.code, "invalid_dependency");
    assert_eq!(error.error["details"]["cycle"], json!([1, 3, 1]));
    let error = client.call_rejected("modify_plan", set(&steps[2], json!(["x"])));
    assert_eq!(error.code, "INVALID_STEP_REFERENCE");
    let (step, _) = fixtures::claim_step(&mut client, &plan);
    assert_eq!(step.as_str(), steps[1].as_str().unwrap());
    let error = client.call_rejected("modify_plan", set(&steps[1], json!([])));
    assert_eq!(error.code, "illegal_transition");
}

#[test]
fn changes_and_removes_the_other_fields_of_a_pending_step() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Stateless);
    let plan = fixtures::create_plan(&mut client, 1);
    let step = step_ids(&mut client, &plan)[0].clone();
    let update = |fields: Value| {
        let mut call =
            json!({ "planId": plan, "action": "update_step_instructions", "stepId": step });
        for (name, value) in fields.as_object().expect("fields") {
            call[name] = value.clone();
        }
        call
    };
    client.call(
        "modify_plan",
        update(json!({
            "title": "Sources", "stepType": "critique", "stallThresholdMs": 60_000,
            "resultSchema": { "type": "object" }, "acceptanceCriteria": ["It works."],
            "reviewRequired": true,
        })),
    );
    let id = step.as_str().expect("step id").to_owned();
    let shown = dir.run_json(&["--json", "step", "show", &id]);
    assert_eq!(shown["title"], "Sources");
    assert_eq!(shown["stepType"], "critique");
    assert_eq!(shown["stallThresholdMs"], 60_000);
    assert_eq!(shown["acceptanceCriteria"], json!(["It works."]));
    assert_eq!(shown["reviewBy"], "person");
    client.call(
        "modify_plan",
        update(json!({
            "title": "", "stallThresholdMs": 0, "resultSchema": {}, "acceptanceCriteria": [],
            "reviewRequired": false,
        })),
    );
    let shown = dir.run_json(&["--json", "step", "show", &id]);
    for field in ["title", "acceptanceCriteria", "reviewBy", "resultSchema"] {
        assert_eq!(shown[field], Value::Null, "{field}");
    }
    let invalid = [
        (json!({}), "instructions"),
        (json!({ "dependsOn": [1] }), "dependsOn"),
        (
            json!({ "reviewRequired": false, "reviewBy": "person" }),
            "reviewBy",
        ),
        (
            json!({ "resultSchema": { "type": "moon" } }),
            "resultSchema",
        ),
    ];
    for (fields, path) in invalid {
        let error = client.call_rejected("modify_plan", update(fields));
        assert_eq!(error.code, "invalid_input");
        assert!(error.paths().contains(&path), "{path}");
    }
}

#[test]
fn the_command_line_changes_a_step() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Stateless);
    let plan = fixtures::create_plan(&mut client, 2);
    let step = format!("{plan}/2");
    let set = ["--set", "title=Write", "--set", "dependsOn=[1]"];
    let changed = dir.run_json(&[&["--json", "step", "edit", &step], &set[..]].concat());
    assert_eq!(changed["changes"][0]["steps"][0]["dependsOn"], json!([1]));
    let shown = dir.run_json(&["--json", "step", "show", &step]);
    assert_eq!(shown["title"], "Write");
}
