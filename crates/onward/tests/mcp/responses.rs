//! Tool responses match their output schemas, and the tools' annotations are true.

use std::collections::BTreeMap;

use onward_engine::session::HookSource;
use onward_testbed::mcp_client::{Client, Era};
use onward_testbed::{Program, model_api};
use serde_json::{Value, json};

use crate::engine::with_engine;
use crate::fixtures;
use crate::program;

/// Every kind of response, with the name of its tool.
fn responses(client: &mut Client) -> Vec<(&'static str, Value)> {
    let mut all = Vec::new();
    let mut record = |client: &mut Client, tool: &'static str, arguments: Value| {
        let response = client.call(tool, arguments);
        all.push((tool, response.clone()));
        response
    };
    record(client, "ping", json!({}));
    let mut plan = fixtures::plan(4);
    plan["steps"][0]["title"] = json!("First");
    plan["branchingConditions"] = json!([
        { "afterStepOrder": 1, "conditionExpression": "nothing > 1", "ifTrueAction": "continue" },
        { "afterStepOrder": 1, "conditionExpression": "confidence > 0.5", "ifTrueAction": "continue" },
    ]);
    let created = record(client, "create_research_plan", plan);
    let plan = &created["planId"];
    let planned = json!({ "planId": plan });
    let skill = json!({ "skillName": "s", "status": "started", "planId": plan });
    let skill = record(client, "log_skill_execution", skill);
    let ended =
        json!({ "skillName": "s", "status": "completed", "executionId": skill["executionId"] });
    record(client, "log_skill_execution", ended);
    record(client, "list_active_plans", json!({ "limit": 1 }));
    record(client, "get_plan_status", planned.clone());
    let step = record(client, "get_next_step", planned.clone());
    let about = json!({ "stepId": step["stepId"] });
    record(client, "report_step_progress", about.clone());
    record(
        client,
        "get_plan_status",
        json!({ "planId": plan, "thresholdMs": 1 }),
    );
    record(
        client,
        "submit_step_result",
        json!({
            "stepId": step["stepId"],
            "resultSummary": "Done",
            "result": { "deep": [1, { "er": null }] },
            "confidence": 0.9,
            "outputFormattingNotes": "Bold",
            "claimNext": true,
        }),
    );
    let second = &created["steps"][1]["stepId"];
    record(client, "get_step_context", json!({ "stepId": second }));
    record(
        client,
        "request_user_review",
        json!({ "stepId": second, "summary": "Ok?" }),
    );
    record(client, "get_next_step", planned.clone());
    record(
        client,
        "get_research_context",
        json!({ "planId": plan, "sessionId": "s" }),
    );
    record(client, "get_plan_status", planned.clone());
    record(
        client,
        "submit_user_decision",
        json!({ "stepId": second, "decision": "modify", "feedback": "No" }),
    );
    let third = &created["steps"][2]["stepId"];
    let failed = json!({ "planId": plan, "action": "fail_step", "stepId": third, "reason": "No" });
    record(client, "modify_plan", failed);
    let fourth = json!({ "stepId": created["steps"][3]["stepId"], "resultSummary": "Done" });
    record(client, "submit_step_result", fourth);
    record(client, "get_next_step", planned.clone());
    // For another session, no step is available.
    let other = json!({ "planId": plan, "sessionId": "other" });
    let waiting = record(client, "get_next_step", other);
    assert_eq!(waiting["status"], "no_pending_steps");
    record(
        client,
        "submit_step_result",
        json!({ "stepId": second, "resultSummary": "Done" }),
    );
    let complete = record(client, "get_next_step", planned.clone());
    assert_eq!(complete["status"], "plan_complete");
    record(
        client,
        "list_plan_steps",
        json!({ "planId": plan, "limit": 2 }),
    );
    record(
        client,
        "get_research_context",
        json!({ "planId": plan, "maxChars": 100 }),
    );
    record(client, "get_plan_status", planned);
    record(
        client,
        "list_active_plans",
        json!({ "includeFinished": true }),
    );
    record(
        client,
        "submit_feedback",
        json!({ "planId": plan, "comment": "Good" }),
    );
    failed_plan(client, &mut all);
    session(client, &mut all);
    research(client, plan, second, &mut all);
    all
}

fn research(client: &mut Client, plan: &Value, step: &Value, all: &mut Vec<(&'static str, Value)>) {
    let mut record = |tool: &'static str, arguments: Value| {
        let response = client.call(tool, arguments);
        all.push((tool, response.clone()));
        response
    };
    let words = "Two tides a day.";
    let plain = record(
        "store_research",
        json!({ "title": "Plain", "content": words }),
    );
    assert_eq!(
        (&plain["chunks"], &plain["indexed"]),
        (&json!(1), &json!(true))
    );
    record(
        "store_research",
        json!({
            "title": "Tides", "content": words, "artifactType": "quote", "planId": plan,
            "stepId": step, "sourceUrl": "https://example.org", "metadata": { "page": null },
            "claimToken": "t", "sessionId": "s",
        }),
    );
    for version in [1, 2] {
        let output = json!({ "planId": plan, "title": "Answer", "content": words });
        let stored = record("store_research_output", output);
        assert_eq!(stored["version"], version);
        let feedback = json!({ "planId": plan, "rating": 5, "outputId": stored["outputId"] });
        record("submit_feedback", feedback);
    }
    let found = record("search_sources", json!({ "query": "tides" }));
    assert_eq!(found["mode"], "keyword");
    assert_eq!(found["results"].as_array().unwrap().len(), 3);
    let narrow = json!({
        "query": "tides", "limit": 1, "planId": plan, "artifactType": "quote",
        "createdAfter": "2020-01-01T00:00:00Z", "createdBefore": "2100-01-01T00:00:00Z",
    });
    let found = record("search_sources", narrow);
    assert_eq!(found["results"][0]["title"], "Tides");
    assert_eq!(found["results"][0]["snippet"], words);
    for required in ["moons", "planets"] {
        let schema = json!({ "type": "object", "required": [required] });
        record(
            "extract_data",
            json!({ "schema": schema, "sourceText": "Io" }),
        );
    }
    let page = json!({ "artifactId": found["results"][0]["artifactId"], "maxChars": 3 });
    let page = record("get_artifact", page);
    assert_eq!(
        (&page["truncated"], &page["nextOffset"]),
        (&json!(true), &json!(3))
    );
    record("get_step_context", json!({ "stepId": step }));
    let context = record("get_research_context", json!({ "planId": plan }));
    assert_eq!(context["outputs"][0]["version"], 2);
}

/// A `sessionId` in `get_next_step` is enough for `get_session_health`.
fn session(client: &mut Client, all: &mut Vec<(&'static str, Value)>) {
    let made = client.call("create_research_plan", fixtures::plan(1));
    let next = json!({ "planId": made["planId"], "sessionId": "health" });
    client.call("get_next_step", next);
    let health = client.call("get_session_health", json!({ "sessionId": "health" }));
    assert_eq!(health["plans"][0]["planId"], made["planId"]);
    assert_eq!(
        health["calls"]["list"],
        Value::Null,
        "an empty list is omitted"
    );
    all.push(("get_session_health", health));
}

fn failed_plan(client: &mut Client, all: &mut Vec<(&'static str, Value)>) {
    let mut plan = fixtures::plan(2);
    plan["branchingConditions"] = json!([
        {
            "afterStepOrder": 1,
            "conditionExpression": "true",
            "ifTrueAction": "fail",
            "actionParams": { "reason": "Enough" },
        },
    ]);
    let made = client.call("create_research_plan", plan);
    let step = &made["steps"][0]["stepId"];
    let done = json!({ "stepId": step, "resultSummary": "Done", "claimNext": true });
    let done = client.call("submit_step_result", done);
    assert_eq!(done["branchTaken"]["reason"], "Enough");
    all.push(("submit_step_result", done));
    let next = client.call("get_next_step", json!({ "planId": made["planId"] }));
    assert_eq!(next["status"], "plan_failed");
    all.push(("get_next_step", next));
}

#[test]
fn responses_match_the_output_schemas() {
    let dir = program();
    let mut command = dir.command(&[]);
    command.arg("mcp").env("ONWARD_EXTRACTION__MODEL", "m");
    command.env("ONWARD_EXTRACTION__URL", model_api::start());
    let mut client = Client::from_command(&mut command, Era::Handshake, json!({}));
    let tools = client.tools();
    let mut called: BTreeMap<&str, usize> = BTreeMap::new();
    for (name, response) in responses(&mut client) {
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        let schema = jsonschema::validator_for(&tool["outputSchema"]).expect("schema compiles");
        let errors: Vec<String> = schema
            .iter_errors(&response)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{name}: {errors:?} in {response}");
        *called.entry(name).or_default() += 1;
    }
    for tool in &tools {
        let name = tool["name"].as_str().unwrap();
        assert!(called.contains_key(name), "{name} was not called");
    }
}

/// A schema that accepts everything would make the other tests meaningless.
#[test]
fn schemas_reject_wrong_values() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Handshake);
    for tool in client.tools() {
        let schema = jsonschema::validator_for(&tool["outputSchema"]).expect("schema compiles");
        assert!(!schema.is_valid(&json!({})), "{}", tool["name"]);
        let input = jsonschema::validator_for(&tool["inputSchema"]).expect("schema compiles");
        assert!(
            !input.is_valid(&json!({ "nonsense": 1 })),
            "{}",
            tool["name"]
        );
    }
}

/// `true` is a valid schema, but the official SDKs then reject the whole tool list.
#[test]
fn every_field_schema_is_an_object() {
    fn fields(schema: &Value, inside: &str) {
        for (keyword, part) in schema.as_object().into_iter().flatten() {
            if keyword == "properties" {
                for (name, field) in part.as_object().expect("fields") {
                    let name = format!("{inside}.{name}");
                    assert!(field.is_object(), "{name} is {field}");
                    fields(field, &name);
                }
            } else if part.is_object() {
                fields(part, inside);
            }
            for one in part.as_array().into_iter().flatten() {
                fields(one, inside);
            }
        }
    }
    let dir = program();
    let mut client = Client::start(&dir, Era::Handshake);
    for tool in client.tools() {
        let name = tool["name"].as_str().unwrap();
        fields(&tool["inputSchema"], name);
        fields(&tool["outputSchema"], name);
    }
}

/// All stored rows of a plan.
fn rows(dir: &Program, plan: &str) -> Value {
    let mut rows = dir.run_json(&["--json", "export", plan]);
    let exported = rows
        .as_object_mut()
        .and_then(|rows| rows.remove("exportedAt"));
    assert!(exported.is_some(), "export contains its time");
    rows
}

#[test]
fn read_only_tools_change_no_rows() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Handshake);
    let plan = fixtures::create_plan(&mut client, 3);
    let (step, _) = fixtures::claim_step(&mut client, &plan);
    let artifact = json!({ "title": "Tides", "content": "words" });
    let artifact = client.call("store_research", artifact)["artifactId"].clone();
    with_engine(&dir, async |engine, caller| {
        let source = HookSource {
            session: "another".to_owned(),
            agent: "codex".to_owned(),
            ..HookSource::default()
        };
        let recorded = engine.end_turn(caller, source).await;
        recorded.expect("session is recorded");
    });
    let before = rows(&dir, &plan);
    let tools = client.tools();
    let read_only = tools
        .iter()
        .filter(|tool| tool["annotations"]["readOnlyHint"] == true);
    for tool in read_only {
        let name = tool["name"].as_str().unwrap();
        let known = tool["inputSchema"]["properties"].as_object().unwrap();
        let mut input = json!({});
        for (field, value) in [
            ("planId", json!(plan)),
            ("stepId", json!(step)),
            ("sessionId", json!("another")),
            ("thresholdMs", json!(1)),
            ("query", json!("words")),
            ("artifactId", artifact.clone()),
        ] {
            if known.contains_key(field) {
                input[field] = value;
            }
        }
        client.call(name, input);
        assert_eq!(rows(&dir, &plan), before, "{name}");
        assert_eq!(tool["annotations"]["idempotentHint"], true, "{name}");
        assert_eq!(tool["annotations"]["destructiveHint"], false, "{name}");
    }
}

#[test]
fn idempotent_tools_change_no_rows_when_repeated() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Handshake);
    let plan = fixtures::create_plan(&mut client, 3);
    let (step, token) = fixtures::claim_step(&mut client, &plan);
    let tools = client.tools();
    let names: Vec<&str> = tools
        .iter()
        .filter(|tool| tool["annotations"]["readOnlyHint"] == false)
        .filter(|tool| tool["annotations"]["idempotentHint"] == true)
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    assert_eq!(names, ["submit_step_result", "get_research_context"]);
    for (tool, input) in [
        (
            "get_research_context",
            json!({ "planId": plan, "sessionId": "another" }),
        ),
        (
            "submit_step_result",
            json!({
                "stepId": step,
                "claimToken": token,
                "resultSummary": "Done",
                "claimNext": true,
                "sessionId": "another",
            }),
        ),
    ] {
        let once = client.call(tool, input.clone());
        let before = rows(&dir, &plan);
        let twice = client.call(tool, input);
        assert_eq!(rows(&dir, &plan), before, "{tool}");
        if tool == "submit_step_result" {
            assert_eq!(once, twice);
        }
    }
}

#[test]
fn cursors_lead_through_all_pages() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Handshake);
    let plans: Vec<String> = (0..5)
        .map(|_| fixtures::create_plan(&mut client, 5))
        .collect();
    let mut seen = Vec::new();
    let mut cursor = Value::Null;
    loop {
        let page = client.call("list_active_plans", json!({ "limit": 2, "cursor": cursor }));
        for plan in page["plans"].as_array().unwrap() {
            seen.push(plan["planId"].as_str().unwrap().to_owned());
        }
        cursor = page["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    let mut sorted = seen.clone();
    sorted.sort();
    let mut all = plans.clone();
    all.sort();
    assert_eq!(sorted, all);
    let mut orders = Vec::new();
    let mut cursor = Value::Null;
    loop {
        let input =
            json!({ "planId": plans[0], "limit": 2, "cursor": cursor, "status": "pending" });
        let page = client.call("list_plan_steps", input);
        orders.extend(
            page["steps"]
                .as_array()
                .unwrap()
                .iter()
                .map(|step| step["stepOrder"].clone()),
        );
        cursor = page["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(orders, [1, 2, 3, 4, 5]);
    for (tool, input) in [
        ("list_active_plans", json!({ "cursor": "x" })),
        (
            "list_plan_steps",
            json!({ "planId": plans[0], "cursor": "x" }),
        ),
    ] {
        assert_eq!(
            client.call_rejected(tool, input).paths(),
            ["cursor"],
            "{tool}"
        );
    }
}

#[test]
fn reordering_reports_missing_and_unknown_steps() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Handshake);
    let created = client.call("create_research_plan", fixtures::plan(2));
    let (first, second) = (
        &created["steps"][0]["stepId"],
        &created["steps"][1]["stepId"],
    );
    let unknown = "00000000-0000-4000-8000-000000000000";
    let input = json!({
        "planId": created["planId"],
        "action": "reorder_steps",
        "stepIds": [first, unknown],
    });
    let rejected = client.call_rejected("modify_plan", input);
    assert_eq!(rejected.code, "incomplete_step_list");
    let details = &rejected.error["details"];
    assert_eq!(details["missing"], json!([second]));
    assert_eq!(details["unknown"], json!([unknown]));
    let input = json!({
        "planId": created["planId"],
        "action": "reorder_steps",
        "stepIds": [second, first],
    });
    let modified = client.call("modify_plan", input);
    assert_eq!(modified["steps"][0]["stepId"], *second);
    assert_eq!(modified["steps"][0]["stepOrder"], 1);
}

#[test]
fn invalid_references_conditions_and_dependencies_have_separate_codes() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Handshake);
    let branch = |after: u32, condition: &str| {
        json!([{
            "afterStepOrder": after,
            "conditionExpression": condition,
            "ifTrueAction": "continue",
        }])
    };
    for (branches, code) in [
        (branch(9, "true"), "INVALID_STEP_REFERENCE"),
        (branch(0, "true"), "INVALID_STEP_REFERENCE"),
        (branch(1, "confidence >"), "invalid_condition"),
        (branch(1, ""), "invalid_condition"),
        (branch(1, &"1 == 1 || ".repeat(300)), "invalid_condition"),
    ] {
        let mut plan = fixtures::plan(2);
        plan["branchingConditions"] = branches;
        let rejected = client.call_rejected("create_research_plan", plan);
        assert_eq!(rejected.code, code);
        // The plan does not exist yet, so no tool can read its steps.
        let hint = rejected.error["hint"].as_str().unwrap();
        assert!(!hint.contains("list_plan_steps"), "{hint}");
    }
    for (first, second) in [(2, 1), (0, 1), (10_001, 1)] {
        let mut plan = fixtures::plan(2);
        plan["steps"][0]["dependsOn"] = json!([first]);
        plan["steps"][1]["dependsOn"] = json!([second]);
        let rejected = client.call_rejected("create_research_plan", plan);
        assert_eq!(rejected.code, "invalid_dependency");
    }
    let mut plan = fixtures::plan(1);
    plan["idempotencyKey"] = json!("k");
    let once = client.call("create_research_plan", plan.clone());
    assert_eq!(client.call("create_research_plan", plan.clone()), once);
    plan["name"] = json!("Another");
    assert_eq!(
        client.call_rejected("create_research_plan", plan).code,
        "conflict"
    );
}
