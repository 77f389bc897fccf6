//! Input that does not fit is refused with everything that is wrong about it, and where; never by a
//! dropped connection.

use serde_json::{Map, Value, json};

use crate::agent::{Agent, ERAS, Era, done, refusal};
use crate::place::Place;
use crate::works;

/// Something that a field of this schema cannot be.
fn misfit(schema: &Value) -> Value {
    match schema["type"].as_str() {
        Some("string") => json!(7),
        Some("array" | "object") => json!("text"),
        _ => json!(["list"]),
    }
}

/// Something that fits a schema, without a thought about what it means.
fn filler(schema: &Value) -> Value {
    if let Some(words) = schema["enum"].as_array() {
        return words[0].clone();
    }
    match schema["type"].as_str() {
        Some("integer" | "number") => json!(1),
        Some("boolean") => json!(true),
        Some("array") => json!([filler(&schema["items"])]),
        Some("object") => Value::Object(filled(schema)),
        _ => json!("text"),
    }
}

fn filled(schema: &Value) -> Map<String, Value> {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    required
        .iter()
        .filter_map(Value::as_str)
        .map(|name| (name.to_owned(), filler(&schema["properties"][name])))
        .collect()
}

#[test]
fn every_tool_names_the_field_that_it_does_not_know() {
    for era in ERAS {
        let place = Place::file();
        let mut agent = Agent::start(&place, era);
        for tool in agent.tools() {
            let name = tool["name"].as_str().unwrap();
            let mut input = filled(&tool["inputSchema"]);
            input.insert("planidd".to_owned(), json!(1));
            let refused = agent.refused(name, input.into());
            assert_eq!(refused.code, "invalid_input", "{name}");
            assert_eq!(refused.paths(), ["planidd"], "{name}");
            let message = refused.error["message"].as_str().unwrap();
            assert!(message.contains("`planidd`"), "{name}: {message}");
        }
    }
}

#[test]
fn every_field_of_every_tool_is_refused_where_its_type_is_wrong() {
    let place = Place::file();
    let mut agent = Agent::start(&place, Era::Handshake);
    for tool in agent.tools() {
        let (name, schema) = (tool["name"].as_str().unwrap(), &tool["inputSchema"]);
        for (field, of) in schema["properties"].as_object().unwrap() {
            let mut input = filled(schema);
            input.insert(field.clone(), misfit(of));
            let refused = agent.refused(name, input.into());
            assert_eq!(refused.code, "invalid_input", "{name}: {field}");
            assert_eq!(refused.paths(), [field.as_str()], "{name}");
        }
    }
}

#[test]
fn every_field_that_a_tool_needs_is_missed_and_all_of_them_at_once() {
    let place = Place::file();
    let mut agent = Agent::start(&place, Era::Stateless);
    for tool in agent.tools() {
        let (name, schema) = (tool["name"].as_str().unwrap(), &tool["inputSchema"]);
        let required = filled(schema);
        if required.is_empty() {
            continue;
        }
        for field in required.keys() {
            let mut input = required.clone();
            input.remove(field);
            let refused = agent.refused(name, input.into());
            assert_eq!(refused.code, "invalid_input", "{name}: {field}");
            assert_eq!(refused.paths(), [field.as_str()], "{name}");
        }
        let refused = agent.refused(name, json!({}));
        let names: Vec<&str> = required.keys().map(String::as_str).collect();
        assert_eq!(refused.paths(), names, "{name}");
    }
}

#[test]
fn null_for_an_optional_field_is_the_same_as_leaving_it_out() {
    let place = Place::file();
    let mut agent = Agent::start(&place, Era::Handshake);
    let mut plan = works::plan(1);
    for field in [
        "sessionId",
        "onStall",
        "branchingConditions",
        "idempotencyKey",
    ] {
        plan[field] = Value::Null;
    }
    plan["steps"][0]["dependsOn"] = Value::Null;
    let made = agent.call("create_research_plan", plan);
    let next = agent.call(
        "get_next_step",
        json!({ "planId": made["planId"], "sessionId": null, "includeStalled": null }),
    );
    assert_eq!(next["status"], "step_started");
    // But data of the agent's own keeps its nulls, and a field that is needed is missed.
    let submitted = agent.call(
        "submit_step_result",
        json!({ "stepId": next["stepId"], "resultSummary": "x", "result": { "a": null } }),
    );
    assert_eq!(submitted["planStatus"], "completed");
    let refused = agent.refused("get_next_step", json!({ "planId": null }));
    assert_eq!(refused.paths(), ["planId"]);
}

#[test]
fn a_field_in_another_spelling_is_told_its_own() {
    let place = Place::file();
    let mut agent = Agent::start(&place, Era::Handshake);
    for spelling in ["plan_id", "PlanID", "plan"] {
        let refused = agent.refused("get_plan_status", json!({ "planId": "x", spelling: "x" }));
        assert_eq!(
            refused.error["message"],
            format!("`{spelling}` is unknown; did you mean `planId`?")
        );
    }
}

#[test]
fn everything_that_is_wrong_with_a_plan_is_told_at_once_with_its_place() {
    let place = Place::file();
    let mut agent = Agent::start(&place, Era::Handshake);
    let refused = agent.refused(
        "create_research_plan",
        json!({
            "name": "",
            "researchQuestion": "x".repeat(10_001),
            "steps": [
                { "stepType": "search", "instructions": "Do" },
                { "stepType": "serch", "instructions": 3, "tittle": "T", "dependsOn": ["1"] },
            ],
            "stallThresholdMs": 0,
            "branchingConditions": [{ "afterStepOrder": -1, "ifTrueAction": "continue" }],
        }),
    );
    assert_eq!(refused.code, "invalid_input");
    assert_eq!(
        refused.paths(),
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
    let issues = &refused.error["details"]["issues"];
    let message = |place: usize| issues[place]["message"].as_str().unwrap().to_owned();
    assert_eq!(
        message(3),
        "has 10001 characters, at most 10000 are allowed"
    );
    assert!(message(5).starts_with("is unknown; there are `dependsOn`, "));
    assert!(message(8).starts_with("must be one of `search`, "));
}

#[test]
fn bounds_that_the_schema_does_not_show_are_kept_all_the_same() {
    let place = Place::file();
    let mut agent = Agent::start(&place, Era::Handshake);
    let with = |field: &str, value: Value| {
        let mut plan = works::plan(1);
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
        let refused = agent.refused("create_research_plan", with(field, value));
        assert_eq!(refused.code, "invalid_input", "{field}");
        assert_eq!(refused.paths(), [format!("steps[0].{field}")]);
    }
    let mut plan = works::plan(1);
    plan["idempotencyKey"] = json!("");
    let refused = agent.refused("create_research_plan", plan);
    assert_eq!(refused.paths(), ["idempotencyKey"]);
}

#[test]
fn a_whole_number_may_be_written_as_a_fraction() {
    let place = Place::file();
    let mut agent = Agent::start(&place, Era::Handshake);
    works::created(&mut agent, 1);
    let listed = agent.call("list_active_plans", json!({ "limit": 5.0 }));
    assert_eq!(listed["plans"].as_array().unwrap().len(), 1);
    let refused = agent.refused("list_active_plans", json!({ "limit": 5.5 }));
    assert_eq!(refused.paths(), ["limit"]);
}

#[test]
fn arguments_that_are_no_object_are_refused_like_any_other() {
    for era in ERAS {
        let place = Place::file();
        let mut agent = Agent::start(&place, era);
        for arguments in [json!("text"), json!([1]), json!(3)] {
            let id = agent.send(
                "tools/call",
                json!({ "name": "get_next_step", "arguments": arguments }),
            );
            let answer = agent.answer_to(id);
            let refused = refusal("get_next_step", &answer);
            assert_eq!(refused.code, "invalid_input", "{answer}");
            assert_eq!(refused.paths(), ["arguments"]);
        }
        // None at all are an empty object.
        let answer = agent.ask("tools/call", json!({ "name": "ping" }));
        assert_eq!(done("ping", &answer)["message"], "pong");
    }
}

#[test]
fn a_tool_that_there_is_not_is_an_error_of_the_protocol() {
    for era in ERAS {
        let place = Place::file();
        let mut agent = Agent::start(&place, era);
        for name in ["store_researches", "get_next_steps", ""] {
            let answer = agent.ask("tools/call", json!({ "name": name, "arguments": {} }));
            assert_eq!(answer["error"]["code"], -32602, "{answer}");
        }
    }
}

#[test]
fn an_id_that_is_none_names_nothing_as_one_that_never_was() {
    let place = Place::file();
    let mut agent = Agent::start(&place, Era::Handshake);
    let never = "00000000-0000-4000-8000-000000000000";
    for id in ["nonsense", never] {
        for tool in ["get_plan_status", "list_plan_steps", "get_next_step"] {
            let refused = agent.refused(tool, json!({ "planId": id }));
            assert_eq!(refused.code, "plan_not_found", "{tool}");
            assert_eq!(refused.error["message"], format!("no plan `{id}`"));
        }
        let decision = json!({ "stepId": id, "decision": "approve" });
        let refused = agent.refused("submit_user_decision", decision);
        assert_eq!(refused.code, "step_not_found");
        assert_eq!(refused.error["message"], format!("no step `{id}`"));
    }
}

#[test]
fn work_that_comes_with_input_that_does_not_fit_is_kept_and_named() {
    let place = Place::file();
    let mut agent = Agent::start(&place, Era::Handshake);
    let plan = works::created(&mut agent, 1);
    let (step, token) = works::next(&mut agent, &plan);
    let work = json!({
        "stepId": step,
        "claimToken": token,
        "resultSummary": "Forty-two",
        "confidence": "high",
    });
    let refused = agent.refused("submit_step_result", work.clone());
    assert_eq!(refused.paths(), ["confidence"]);
    let kept = refused.error["details"]["keptArtifactId"].clone();
    assert!(kept.is_string(), "{}", refused.error);
    // Kept once, however often it is sent, and without what would let a reader finish the step.
    let again = agent.refused("submit_step_result", work);
    assert_eq!(again.error, refused.error);
    let exported = place.json(&["export", &plan]);
    let artifacts = exported["artifacts"].as_array().unwrap();
    assert_eq!(artifacts.len(), 1, "{exported}");
    assert_eq!(artifacts[0]["artifactId"], kept, "{exported}");
    let content = artifacts[0]["content"].as_str().unwrap();
    assert!(content.contains("Forty-two") && !content.contains(&token));
    // Also where no step is named that there is.
    for (tool, field) in [
        ("submit_step_result", "resultSummary"),
        ("request_user_review", "summary"),
        ("report_step_progress", "note"),
    ] {
        let refused = agent.refused(tool, json!({ "stepId": "nonsense", field: "Work" }));
        assert_eq!(refused.code, "step_not_found", "{tool}");
        let kept = &refused.error["details"]["keptArtifactId"];
        assert!(kept.is_string(), "{tool}: {}", refused.error);
    }
    // The plan replays, with what was kept in its trail.
    place.run(&["doctor"]);
}

#[test]
fn a_field_that_belongs_to_another_action_is_refused() {
    let place = Place::file();
    let mut agent = Agent::start(&place, Era::Handshake);
    let plan = works::created(&mut agent, 2);
    let modify = |fields: Value| {
        let mut input = json!({ "planId": plan });
        let all = input.as_object_mut().unwrap();
        all.extend(fields.as_object().unwrap().clone());
        input
    };
    let refused = agent.refused(
        "modify_plan",
        modify(json!({ "action": "add_steps", "stepId": "x" })),
    );
    assert_eq!(refused.paths(), ["steps", "stepId"]);
    let steps = json!([{ "stepType": "search", "instruction": "Do" }]);
    let refused = agent.refused(
        "modify_plan",
        modify(json!({ "action": "add_steps", "steps": steps })),
    );
    assert_eq!(
        refused.paths(),
        ["steps[0].instruction", "steps[0].instructions"]
    );
    let branch = json!({
        "afterStepOrder": 1,
        "conditionExpression": "true",
        "ifTrueAction": "continue",
        "actionParams": { "reason": "no" },
    });
    let refused = agent.refused(
        "modify_plan",
        modify(json!({ "action": "add_branch", "branch": branch })),
    );
    assert_eq!(refused.paths(), ["branch.actionParams.reason"]);
}
