//! Invalid input is rejected with all issues and their paths, and never closes the connection.

use onward_testbed::mcp_client::{Client, ERAS, Era, Rejection, rejection, success};
use serde_json::{Map, Value, json};

use crate::engine::with_engine;
use crate::fixtures;
use crate::program;

/// A value of the wrong type.
fn wrong_type(schema: &Value) -> Value {
    match schema["type"].as_str() {
        Some("string") => json!(7),
        Some("array" | "object") => json!("text"),
        _ => json!(["list"]),
    }
}

/// A value that matches the schema.
fn sample(schema: &Value) -> Value {
    if let Some(values) = schema["enum"].as_array() {
        return values[0].clone();
    }
    match schema["type"].as_str() {
        Some("integer" | "number") => json!(1),
        Some("boolean") => json!(true),
        Some("array") => json!([sample(&schema["items"])]),
        Some("object") => Value::Object(required_fields(schema)),
        _ => json!("text"),
    }
}

/// The required fields with sample values.
fn required_fields(schema: &Value) -> Map<String, Value> {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    required
        .iter()
        .filter_map(Value::as_str)
        .map(|name| (name.to_owned(), sample(&schema["properties"][name])))
        .collect()
}

#[test]
fn every_tool_rejects_an_unknown_field() {
    for era in ERAS {
        let dir = program();
        let mut client = Client::start(&dir, era);
        for tool in client.tools() {
            let name = tool["name"].as_str().unwrap();
            let mut input = required_fields(&tool["inputSchema"]);
            input.insert("planidd".to_owned(), json!(1));
            let rejected = client.call_rejected(name, input.into());
            assert_eq!(rejected.code, "invalid_input", "{name}");
            assert_eq!(rejected.paths(), ["planidd"], "{name}");
        }
    }
}

#[test]
fn every_field_rejects_a_wrong_type() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Handshake);
    for tool in client.tools() {
        let (name, schema) = (tool["name"].as_str().unwrap(), &tool["inputSchema"]);
        for (field, field_schema) in schema["properties"].as_object().unwrap() {
            let mut input = required_fields(schema);
            input.insert(field.clone(), wrong_type(field_schema));
            let rejected = client.call_rejected(name, input.into());
            assert_eq!(rejected.code, "invalid_input", "{name}: {field}");
            assert_eq!(rejected.paths(), [field.as_str()], "{name}");
        }
    }
}

#[test]
fn every_required_field_is_reported_if_missing() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Stateless);
    for tool in client.tools() {
        let (name, schema) = (tool["name"].as_str().unwrap(), &tool["inputSchema"]);
        let required = required_fields(schema);
        if required.is_empty() {
            continue;
        }
        for field in required.keys() {
            let mut input = required.clone();
            input.remove(field);
            let rejected = client.call_rejected(name, input.into());
            assert_eq!(rejected.code, "invalid_input", "{name}: {field}");
            assert_eq!(rejected.paths(), [field.as_str()], "{name}");
        }
        let rejected = client.call_rejected(name, json!({}));
        let names: Vec<&str> = required.keys().map(String::as_str).collect();
        assert_eq!(rejected.paths(), names, "{name}");
    }
}

#[test]
fn null_in_an_optional_field_counts_as_omitted() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Handshake);
    let mut plan = fixtures::plan(1);
    for field in [
        "sessionId",
        "onStall",
        "branchingConditions",
        "idempotencyKey",
    ] {
        plan[field] = Value::Null;
    }
    plan["steps"][0]["dependsOn"] = Value::Null;
    let made = client.call("create_research_plan", plan);
    let next = client.call(
        "get_next_step",
        json!({ "planId": made["planId"], "sessionId": null, "includeStalled": null }),
    );
    assert_eq!(next["status"], "step_started");
    // Free-form data keeps its nulls, and a required field must not be null.
    let submitted = client.call(
        "submit_step_result",
        json!({ "stepId": next["stepId"], "resultSummary": "x", "result": { "a": null } }),
    );
    assert_eq!(submitted["planStatus"], "completed");
    let rejected = client.call_rejected("get_next_step", json!({ "planId": null }));
    assert_eq!(rejected.paths(), ["planId"]);
}

#[test]
fn suggests_the_correct_spelling_of_a_field() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Handshake);
    for spelling in ["plan_id", "PlanID", "plan"] {
        let rejected =
            client.call_rejected("get_plan_status", json!({ "planId": "x", spelling: "x" }));
        assert_eq!(rejected.paths(), [spelling]);
        let message = rejected.error["message"].as_str().unwrap();
        assert!(message.contains("`planId`"), "{message}");
    }
}

#[test]
fn reports_all_issues_of_a_plan_with_their_paths() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Handshake);
    let rejected = client.call_rejected(
        "create_research_plan",
        json!({
            "name": "",
            "researchQuestion": "x".repeat(10_001),
            "steps": [
                { "stepType": "search", "instructions": "Do" },
                { "stepType": "serch", "instructions": 3, "tittle": "T", "dependsOn": [true] },
            ],
            "stallThresholdMs": 0,
            "branchingConditions": [{ "afterStepOrder": -1, "ifTrueAction": "continue" }],
        }),
    );
    assert_eq!(rejected.code, "invalid_input");
    assert_eq!(
        rejected.paths(),
        [
            "branchingConditions[0].afterStepOrder",
            "branchingConditions[0].conditionExpression",
            "name",
            "researchQuestion",
            "stallThresholdMs",
            "steps[1].tittle",
            "steps[1].dependsOn[0]",
            "steps[1].instructions",
            "steps[1].stepType",
        ]
    );
    // The messages contain what a correction needs.
    let issues = &rejected.error["details"]["issues"];
    for (issue, values) in [
        (3, ["10001", "10000"]),
        (5, ["`title`", "field"]),
        (8, ["`search`", "`checkpoint`"]),
    ] {
        let message = issues[issue]["message"].as_str().unwrap();
        for value in values {
            assert!(message.contains(value), "{message}");
        }
    }
}

#[test]
fn rejects_values_outside_the_limits() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Handshake);
    let with = |field: &str, value: Value| {
        let mut plan = fixtures::plan(1);
        plan["steps"][0][field] = value;
        plan
    };
    for (field, value) in [
        ("title", json!("x".repeat(201))),
        ("instructions", json!("x".repeat(100_001))),
        ("instructions", json!(" ")),
        ("maxAttempts", json!(0)),
        ("maxAttempts", json!(101)),
        ("stallThresholdMs", json!(0)),
        ("stallThresholdMs", json!(31_536_000_001_u64)),
    ] {
        let rejected = client.call_rejected("create_research_plan", with(field, value));
        assert_eq!(rejected.code, "invalid_input", "{field}");
        assert_eq!(rejected.paths(), [format!("steps[0].{field}")]);
    }
    let dependencies = with("dependsOn", json!(vec![1; 10_001]));
    let rejected = client.call_rejected("create_research_plan", dependencies);
    assert_eq!(rejected.paths(), ["steps[0].dependsOn"]);
    let mut plan = fixtures::plan(1);
    plan["idempotencyKey"] = json!("");
    let rejected = client.call_rejected("create_research_plan", plan);
    assert_eq!(rejected.paths(), ["idempotencyKey"]);
    let (query, cursor) = ("x".repeat(1_001), "1".repeat(201));
    for (tool, field, input) in [
        ("list_active_plans", "query", json!({ "query": query })),
        ("list_active_plans", "cursor", json!({ "cursor": cursor })),
        (
            "list_plan_steps",
            "cursor",
            json!({ "planId": "x", "cursor": cursor }),
        ),
        ("search_sources", "query", json!({ "query": query })),
        (
            "search_sources",
            "createdAfter",
            json!({ "query": "x", "createdAfter": "2".repeat(65) }),
        ),
        (
            "modify_plan",
            "stepIds",
            json!({ "planId": "x", "action": "reorder_steps", "stepIds": vec!["x"; 10_001] }),
        ),
        (
            "modify_plan",
            "steps",
            json!({ "planId": "x", "action": "add_steps", "steps": [] }),
        ),
    ] {
        let rejected = client.call_rejected(tool, input);
        assert_eq!(rejected.code, "invalid_input", "{tool}: {field}");
        assert_eq!(rejected.paths(), [field], "{tool}");
    }
}

/// Even in tools that do not list the field.
#[test]
fn rejects_empty_and_long_session_ids_and_claim_tokens() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Handshake);
    let unlisted = [
        "modify_plan",
        "submit_user_decision",
        "get_step_context",
        "submit_step_result",
        "report_step_progress",
        "request_user_review",
    ];
    let mut calls = 0;
    for tool in client.tools() {
        let (name, schema) = (tool["name"].as_str().unwrap(), &tool["inputSchema"]);
        for field in ["sessionId", "claimToken"] {
            let is_listed = schema["properties"].get(field).is_some();
            if !is_listed && !unlisted.contains(&name) {
                continue;
            }
            for value in [String::new(), "x".repeat(201)] {
                let mut input = required_fields(schema);
                input.insert(field.to_owned(), json!(value));
                let rejected = client.call_rejected(name, input.into());
                assert_eq!(rejected.code, "invalid_input", "{name}: {field}");
                assert_eq!(rejected.paths(), [field], "{name}");
                calls += 1;
            }
        }
    }
    assert_eq!(calls, 38);
}

#[test]
fn accepts_an_integer_written_as_a_float() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Handshake);
    fixtures::create_plan(&mut client, 1);
    let listed = client.call("list_active_plans", json!({ "limit": 5.0 }));
    assert_eq!(listed["plans"].as_array().unwrap().len(), 1);
    let rejected = client.call_rejected("list_active_plans", json!({ "limit": 5.5 }));
    assert_eq!(rejected.paths(), ["limit"]);
}

#[test]
fn rejects_arguments_that_are_not_an_object() {
    for era in ERAS {
        let dir = program();
        let mut client = Client::start(&dir, era);
        for arguments in [json!("text"), json!([1]), json!(3)] {
            let id = client.send(
                "tools/call",
                json!({ "name": "get_next_step", "arguments": arguments }),
            );
            let response = client.response_to(id);
            let rejected = rejection("get_next_step", &response);
            assert_eq!(rejected.code, "invalid_input", "{response}");
            assert_eq!(rejected.paths(), ["arguments"]);
        }
        // Missing arguments count as an empty object.
        let response = client.request("tools/call", json!({ "name": "ping" }));
        assert_eq!(success("ping", &response)["message"], "pong");
    }
}

#[test]
fn an_unknown_tool_is_a_protocol_error() {
    for era in ERAS {
        let dir = program();
        let mut client = Client::start(&dir, era);
        for name in ["store_researches", "get_next_steps", ""] {
            let response = client.request("tools/call", json!({ "name": name, "arguments": {} }));
            assert_eq!(response["error"]["code"], -32602, "{response}");
        }
    }
}

#[test]
fn a_malformed_id_is_reported_like_an_unknown_one() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Handshake);
    let mut errors = Vec::new();
    for id in ["malformed", "00000000-0000-4000-8000-000000000000"] {
        let mut error = |rejected: &Rejection| {
            errors.push(rejected.error.to_string().replace(id, "ID"));
        };
        for tool in ["get_plan_status", "list_plan_steps", "get_next_step"] {
            let rejected = client.call_rejected(tool, json!({ "planId": id }));
            assert_eq!(rejected.code, "plan_not_found", "{tool}");
            error(&rejected);
        }
        let decision = json!({ "stepId": id, "decision": "approve" });
        let rejected = client.call_rejected("submit_user_decision", decision);
        assert_eq!(rejected.code, "step_not_found");
        error(&rejected);
    }
    let (malformed, unknown) = errors.split_at(errors.len() / 2);
    assert_eq!(malformed, unknown);
}

#[test]
fn stores_the_work_of_a_rejected_call() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Handshake);
    let plan = fixtures::create_plan(&mut client, 1);
    let (step, token) = fixtures::claim_step(&mut client, &plan);
    let work = json!({
        "stepId": step,
        "claimToken": token,
        "resultSummary": "Forty-two",
        "confidence": "high",
    });
    let rejected = client.call_rejected("submit_step_result", work.clone());
    assert_eq!(rejected.paths(), ["confidence"]);
    let kept = rejected.error["details"]["keptArtifactId"].clone();
    assert!(kept.is_string(), "{}", rejected.error);
    // Stored once per content, without the claim token.
    let again = client.call_rejected("submit_step_result", work);
    assert_eq!(again.error, rejected.error);
    let id = kept.as_str().unwrap().parse().expect("an id");
    let content = with_engine(&dir, async |engine, caller| {
        let found = engine.artifact(caller, id).await;
        found.expect("artifact exists").content
    });
    assert!(content.contains("Forty-two") && !content.contains(&token));
    // Even if the step does not exist.
    for (tool, field) in [
        ("submit_step_result", "resultSummary"),
        ("request_user_review", "summary"),
        ("report_step_progress", "note"),
    ] {
        let rejected = client.call_rejected(tool, json!({ "stepId": "nonsense", field: "Work" }));
        assert_eq!(rejected.code, "step_not_found", "{tool}");
        let kept = &rejected.error["details"]["keptArtifactId"];
        assert!(kept.is_string(), "{tool}: {}", rejected.error);
    }
    // The audit trail is still consistent.
    dir.run_ok(&["doctor"]);
}

#[test]
fn rejects_fields_of_another_action() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Handshake);
    let plan = fixtures::create_plan(&mut client, 2);
    let modify = |fields: Value| {
        let mut input = json!({ "planId": plan });
        let all = input.as_object_mut().unwrap();
        all.extend(fields.as_object().unwrap().clone());
        input
    };
    let rejected = client.call_rejected(
        "modify_plan",
        modify(json!({ "action": "add_steps", "stepId": "x" })),
    );
    assert_eq!(rejected.paths(), ["steps", "stepId"]);
    let steps = json!([{ "stepType": "search", "instruction": "Do" }]);
    let rejected = client.call_rejected(
        "modify_plan",
        modify(json!({ "action": "add_steps", "steps": steps })),
    );
    assert_eq!(
        rejected.paths(),
        ["steps[0].instruction", "steps[0].instructions"]
    );
    let branch = json!({
        "afterStepOrder": 1,
        "conditionExpression": "true",
        "ifTrueAction": "continue",
        "actionParams": { "reason": "no" },
    });
    let rejected = client.call_rejected(
        "modify_plan",
        modify(json!({ "action": "add_branch", "branch": branch })),
    );
    assert_eq!(rejected.paths(), ["branch.actionParams.reason"]);
}

/// The limits in the schema are not stricter or looser than those of the engine.
#[test]
fn accepts_values_at_the_limits() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Handshake);
    let text = |length: usize| "x".repeat(length);
    let mut plan = fixtures::plan(1);
    plan["name"] = json!(text(200));
    plan["researchQuestion"] = json!(text(10_000));
    plan["planDesignRationale"] = json!(text(10_000));
    plan["outputFormattingNotes"] = json!(text(10_000));
    plan["idempotencyKey"] = json!(text(200));
    plan["sessionId"] = json!(text(200));
    plan["stallThresholdMs"] = json!(31_536_000_000_u64);
    plan["steps"][0]["instructions"] = json!(text(100_000));
    plan["steps"][0]["title"] = json!(text(200));
    plan["steps"][0]["maxAttempts"] = json!(100);
    let plan = client.call("create_research_plan", plan)["planId"].clone();
    let artifact = json!({
        "title": text(500), "content": text(1024 * 1024), "sourceUrl": text(4_000),
    });
    client.call("store_research", artifact);
    let output = json!({
        "planId": plan, "title": text(500), "content": "x", "mediaType": text(200),
    });
    client.call("store_research_output", output);
    let feedback = json!({ "planId": plan, "rating": 5, "comment": text(10_000) });
    client.call("submit_feedback", feedback);
    let skill = json!({ "skillName": text(200), "status": "started" });
    client.call("log_skill_execution", skill);
    client.call(
        "search_sources",
        json!({ "query": text(1_000), "limit": 50 }),
    );
    client.call("list_active_plans", json!({ "query": text(1_000) }));
    client.call("get_session_health", json!({ "sessionId": text(200) }));
    let (step, _) = fixtures::claim_step(&mut client, plan.as_str().unwrap());
    let progress = json!({
        "stepId": step, "note": text(10_000), "percent": 100, "sessionId": text(200),
    });
    client.call("report_step_progress", progress);
    let review = json!({
        "stepId": step,
        "summary": text(20_000),
        "questions": vec![text(10_000); 50],
    });
    client.call("request_user_review", review);
    let decision = json!({ "stepId": step, "decision": "approve", "feedback": text(10_000) });
    client.call("submit_user_decision", decision);
}
