//! Projects, labels and priorities through the tools, the command line and plan files.

use onward_testbed::mcp_client::{Client, Era};
use serde_json::{Value, json};

use crate::fixtures;
use crate::program;

fn create(client: &mut Client, fields: Value) -> String {
    let mut plan = fixtures::plan(2);
    for (name, value) in fields.as_object().expect("fields are an object") {
        plan[name] = value.clone();
    }
    let created = client.call("create_research_plan", plan);
    created["planId"].as_str().expect("plan id").to_owned()
}

fn ids(list: &Value) -> Vec<&str> {
    let plans = list["plans"].as_array().expect("plans");
    let mut ids: Vec<_> = plans
        .iter()
        .filter_map(|plan| plan["planId"].as_str())
        .collect();
    ids.sort_unstable();
    ids
}

#[test]
fn a_worker_pool_needs_no_plan_id() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Stateless);
    let low = create(&mut client, json!({ "projectKey": "site", "priority": 1 }));
    let high = create(&mut client, json!({ "projectKey": "site", "priority": 9 }));
    create(&mut client, json!({}));
    let next = json!({ "projectKey": "site", "labels": [] });
    for plan in [&high, &high, &low, &low] {
        let step = client.call("get_next_step", next.clone());
        assert_eq!(step["status"], "step_started");
        assert_eq!(step["planId"], plan.as_str());
    }
    let own = client.call("get_next_step", next);
    assert_eq!(
        (&own["resumed"], &own["planId"]),
        (&json!(true), &json!(high))
    );
    let other = json!({ "projectKey": "site", "labels": [], "sessionId": "other" });
    let none = client.call("get_next_step", other);
    assert_eq!(none["status"], "no_pending_steps");
    assert_eq!(none["planId"], Value::Null);
    for (arguments, path) in [
        (json!({}), "planId"),
        (json!({ "planId": low, "projectKey": "site" }), "projectKey"),
        (json!({ "projectKey": "site", "waitMs": 5 }), "waitMs"),
        (
            json!({ "projectKey": "site", "includeStalled": true }),
            "includeStalled",
        ),
    ] {
        let error = client.call_rejected("get_next_step", arguments);
        assert_eq!(error.paths(), [path]);
    }
}

#[test]
fn a_worker_gets_steps_with_its_labels() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Stateless);
    let steps = json!([
        { "stepType": "custom", "instructions": "Train", "labels": ["gpu"], "priority": 9 },
        { "stepType": "custom", "instructions": "Write" },
    ]);
    let plan = create(&mut client, json!({ "steps": steps }));
    let next = |labels: Value| json!({ "planId": plan, "labels": labels });
    let step = client.call("get_next_step", next(json!([])));
    assert_eq!(step["stepOrder"], 2);
    let other = json!({ "planId": plan, "labels": ["arm"], "sessionId": "other" });
    let none = client.call("get_next_step", other);
    assert_eq!(none["status"], "no_pending_steps");
    let step = client.call("get_next_step", next(json!(["gpu", "arm"])));
    assert_eq!(step["stepOrder"], 1);
}

#[test]
fn plans_are_changed_and_listed_by_project_label_and_status() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Stateless);
    let first = create(
        &mut client,
        json!({ "projectKey": "site", "labels": ["web", "urgent"] }),
    );
    let second = create(&mut client, json!({}));
    let update = json!({
        "planId": second, "action": "update_plan", "projectKey": "site", "priority": 7,
    });
    let changed = client.call("modify_plan", update);
    assert_eq!(changed["projectKey"], "site");
    assert_eq!(changed["priority"], 7);
    let list = client.call("list_active_plans", json!({ "projectKey": "site" }));
    let mut both = [first.as_str(), second.as_str()];
    both.sort_unstable();
    assert_eq!(ids(&list), both);
    let list = client.call("list_active_plans", json!({ "label": "web" }));
    assert_eq!(ids(&list), [first.as_str()]);
    assert_eq!(list["plans"][0]["labels"], json!(["urgent", "web"]));
    let list = client.call("list_active_plans", json!({ "status": "executing" }));
    assert_eq!(ids(&list), Vec::<&str>::new());
    let later = json!({ "since": "2999-01-01T00:00:00Z" });
    assert_eq!(
        ids(&client.call("list_active_plans", later)),
        Vec::<&str>::new()
    );
    for (arguments, path) in [
        (json!({ "status": "busy" }), "status"),
        (json!({ "since": "yesterday" }), "since"),
    ] {
        let error = client.call_rejected("list_active_plans", arguments);
        assert_eq!(error.paths(), [path]);
    }
    let nothing = json!({ "planId": second, "action": "update_plan" });
    let error = client.call_rejected("modify_plan", nothing);
    assert_eq!(error.paths(), ["projectKey"]);
    let set = ["--set", "projectKey=", "--set", "labels=[\"ops\"]"];
    let edited = dir.run_json(&[&["--json", "plan", "edit", &second], &set[..]].concat());
    assert_eq!(edited["labels"], json!(["ops"]));
    assert_eq!(edited["projectKey"], Value::Null);
    let listed = dir.run_json(&["--json", "plan", "list", "--label", "ops"]);
    assert_eq!(ids(&listed), [second.as_str()]);
}
