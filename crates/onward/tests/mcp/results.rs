//! The results of steps in `search_sources` and `onward search`, and ended plans that are similar to
//! a new one.

use std::fs;

use onward_testbed::mcp_client::{Client, ERAS, Era};
use serde_json::{Value, json};

use crate::fixtures;
use crate::program;

/// Creates a plan about this question.
fn ask(client: &mut Client, name: &str, question: &str) -> Value {
    let mut plan = fixtures::plan(1);
    plan["name"] = name.into();
    plan["researchQuestion"] = question.into();
    client.call("create_research_plan", plan)
}

/// Claims and completes the next step. Returns the step's id.
fn complete(client: &mut Client, plan: &Value, summary: &str) -> Value {
    let next = client.call("get_next_step", json!({ "planId": plan }));
    let result = json!({ "stepId": next["stepId"], "resultSummary": summary });
    client.call("submit_step_result", result);
    next["stepId"].clone()
}

#[test]
fn a_submitted_result_is_found_with_its_plan_and_step() {
    for era in ERAS {
        let dir = program();
        let mut client = Client::start(&dir, era);
        let plan = ask(&mut client, "Airships", "Did it fly?")["planId"].clone();
        let step = complete(&mut client, &plan, "The zeppelin hypothesis was refuted.");
        for arguments in [
            json!({ "query": "zeppelin" }),
            json!({ "query": "zeppelin", "artifactType": "result", "planId": plan }),
        ] {
            let found = client.call("search_sources", arguments);
            let hit = &found["results"][0];
            assert_eq!(
                found["results"].as_array().map(Vec::len),
                Some(1),
                "{found}"
            );
            assert_eq!(hit["artifactType"], "result");
            assert_eq!((&hit["planId"], &hit["stepId"]), (&plan, &step));
            assert_eq!(hit["planName"], "Airships");
        }
        let note = json!({ "query": "zeppelin", "artifactType": "note" });
        let found = client.call("search_sources", note);
        assert_eq!(found["results"], json!([]));
        let hit = dir.run_json(&["search", "zeppelin", "--type", "result", "--json"]);
        assert_eq!(hit["results"][0]["stepId"], step);
        let whole = json!({ "planId": plan, "stepId": step, "part": "resultSummary" });
        let whole = client.call("get_research_context", whole);
        assert_eq!(whole["content"], "The zeppelin hypothesis was refuted.");
    }
}

#[test]
fn a_new_plan_names_similar_ended_plans() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Stateless);
    let question = "Which heat pump fits a flat of 1965?";
    let first = ask(&mut client, "Heat pumps", question);
    assert_eq!(
        (&first["similarPlans"], &first["hint"]),
        (&Value::Null, &Value::Null)
    );
    complete(&mut client, &first["planId"], "The small one.");
    let again = ask(
        &mut client,
        "Heating",
        "Find the best heat pump for an old flat",
    );
    let similar = json!([{
        "planId": first["planId"], "name": "Heat pumps", "status": "completed", "results": 1,
    }]);
    assert_eq!(again["similarPlans"], similar);
    let hint = again["hint"].as_str().unwrap();
    assert!(hint.contains("`search_sources`"), "{hint}");
    let other = ask(&mut client, "Law", "Which laptop fits a student of law?");
    assert_eq!(other["similarPlans"], Value::Null);

    let file = dir.dir.join("plan.md");
    fs::write(
        &file,
        "# Pumps\n\nWhich heat pump is cheap?\n\n## Look\n\nLook.\n",
    )
    .unwrap();
    let file = file.to_str().unwrap();
    let created = dir.run_json(&["plan", "create", file, "--json"]);
    assert_eq!(created["similarPlans"], similar);
}
