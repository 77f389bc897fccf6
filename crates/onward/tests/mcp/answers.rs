//! What tools answer: it fits their output schemas, and what they say about themselves is true.

use std::collections::BTreeMap;

use onward_engine::session::Heard;
use serde_json::{Value, json};

use crate::agent::{Agent, Era};
use crate::model;
use crate::place::Place;
use crate::works;

/// Every kind of answer that the tools have, by the tool.
fn answers(agent: &mut Agent) -> Vec<(&'static str, Value)> {
    let mut all = Vec::new();
    let mut keep = |agent: &mut Agent, tool: &'static str, arguments: Value| {
        let answer = agent.call(tool, arguments);
        all.push((tool, answer.clone()));
        answer
    };
    keep(agent, "ping", json!({}));
    let mut plan = works::plan(4);
    plan["steps"][0]["title"] = json!("First");
    plan["branchingConditions"] = json!([
        { "afterStepOrder": 1, "conditionExpression": "nothing > 1", "ifTrueAction": "continue" },
        { "afterStepOrder": 1, "conditionExpression": "confidence > 0.5", "ifTrueAction": "continue" },
    ]);
    let made = keep(agent, "create_research_plan", plan);
    let plan = &made["planId"];
    let planned = json!({ "planId": plan });
    let skill = json!({ "skillName": "s", "status": "started", "planId": plan });
    let skill = keep(agent, "log_skill_execution", skill);
    let ended =
        json!({ "skillName": "s", "status": "completed", "executionId": skill["executionId"] });
    keep(agent, "log_skill_execution", ended);
    keep(agent, "list_active_plans", json!({ "limit": 1 }));
    keep(agent, "get_plan_status", planned.clone());
    let step = keep(agent, "get_next_step", planned.clone());
    let about = json!({ "stepId": step["stepId"] });
    keep(agent, "report_step_progress", about.clone());
    keep(
        agent,
        "get_plan_status",
        json!({ "planId": plan, "thresholdMs": 1 }),
    );
    keep(
        agent,
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
    let second = &made["steps"][1]["stepId"];
    keep(agent, "get_step_context", json!({ "stepId": second }));
    keep(
        agent,
        "request_user_review",
        json!({ "stepId": second, "summary": "Ok?" }),
    );
    keep(agent, "get_next_step", planned.clone());
    keep(
        agent,
        "get_research_context",
        json!({ "planId": plan, "sessionId": "s" }),
    );
    keep(agent, "get_plan_status", planned.clone());
    keep(
        agent,
        "submit_user_decision",
        json!({ "stepId": second, "decision": "modify", "feedback": "No" }),
    );
    let third = &made["steps"][2]["stepId"];
    let failed = json!({ "planId": plan, "action": "fail_step", "stepId": third, "reason": "No" });
    keep(agent, "modify_plan", failed);
    let fourth = json!({ "stepId": made["steps"][3]["stepId"], "resultSummary": "Done" });
    keep(agent, "submit_step_result", fourth);
    keep(agent, "get_next_step", planned.clone());
    // The second step comes once more, as it was decided; then nothing is left to hand out.
    let waiting = keep(agent, "get_next_step", planned.clone());
    assert_eq!(waiting["status"], "no_pending_steps");
    keep(
        agent,
        "submit_step_result",
        json!({ "stepId": second, "resultSummary": "Done" }),
    );
    let over = keep(agent, "get_next_step", planned.clone());
    assert_eq!(over["status"], "plan_complete");
    keep(
        agent,
        "list_plan_steps",
        json!({ "planId": plan, "limit": 2 }),
    );
    keep(
        agent,
        "get_research_context",
        json!({ "planId": plan, "maxChars": 100 }),
    );
    keep(agent, "get_plan_status", planned);
    keep(
        agent,
        "list_active_plans",
        json!({ "includeFinished": true }),
    );
    keep(
        agent,
        "submit_feedback",
        json!({ "planId": plan, "comment": "Good" }),
    );
    failed_plan(agent, &mut all);
    session(agent, &mut all);
    research(agent, plan, second, &mut all);
    all
}

fn research(agent: &mut Agent, plan: &Value, step: &Value, all: &mut Vec<(&'static str, Value)>) {
    let mut keep = |tool: &'static str, arguments: Value| {
        let answer = agent.call(tool, arguments);
        all.push((tool, answer.clone()));
        answer
    };
    let words = "Two tides a day.";
    let plain = keep(
        "store_research",
        json!({ "title": "Plain", "content": words }),
    );
    assert_eq!(
        (&plain["chunks"], &plain["indexed"]),
        (&json!(1), &json!(true))
    );
    keep(
        "store_research",
        json!({
            "title": "Tides", "content": words, "artifactType": "quote", "planId": plan,
            "stepId": step, "sourceUrl": "https://example.org", "metadata": { "page": null },
            "claimToken": "t", "sessionId": "s",
        }),
    );
    for version in [1, 2] {
        let output = json!({ "planId": plan, "title": "Answer", "content": words });
        let stored = keep("store_research_output", output);
        assert_eq!(stored["version"], version);
        let said = json!({ "planId": plan, "rating": 5, "outputId": stored["outputId"] });
        keep("submit_feedback", said);
    }
    let found = keep("search_sources", json!({ "query": "tides" }));
    assert_eq!(found["mode"], "keyword");
    assert_eq!(found["results"].as_array().unwrap().len(), 3);
    let narrow = json!({
        "query": "tides", "limit": 1, "planId": plan, "artifactType": "quote",
        "createdAfter": "2020-01-01T00:00:00Z", "createdBefore": "2100-01-01T00:00:00Z",
    });
    let found = keep("search_sources", narrow);
    assert_eq!(found["results"][0]["title"], "Tides");
    assert_eq!(found["results"][0]["snippet"], words);
    for required in ["moons", "planets"] {
        let schema = json!({ "type": "object", "required": [required] });
        keep(
            "extract_data",
            json!({ "schema": schema, "sourceText": "Io" }),
        );
    }
    keep("get_step_context", json!({ "stepId": step }));
    let context = keep("get_research_context", json!({ "planId": plan }));
    assert_eq!(context["outputs"][0]["version"], 2);
}

/// Whoever names its session when it works on a plan can ask how it is.
fn session(agent: &mut Agent, all: &mut Vec<(&'static str, Value)>) {
    let made = agent.call("create_research_plan", works::plan(1));
    let next = json!({ "planId": made["planId"], "sessionId": "health" });
    agent.call("get_next_step", next);
    let health = agent.call("get_session_health", json!({ "sessionId": "health" }));
    assert_eq!(health["plans"][0]["planId"], made["planId"]);
    assert_eq!(health["calls"]["list"], json!([]));
    all.push(("get_session_health", health));
}

fn failed_plan(agent: &mut Agent, all: &mut Vec<(&'static str, Value)>) {
    let mut plan = works::plan(2);
    plan["branchingConditions"] = json!([
        {
            "afterStepOrder": 1,
            "conditionExpression": "true",
            "ifTrueAction": "fail",
            "actionParams": { "reason": "Enough" },
        },
    ]);
    let made = agent.call("create_research_plan", plan);
    let step = &made["steps"][0]["stepId"];
    let done = json!({ "stepId": step, "resultSummary": "Done", "claimNext": true });
    let done = agent.call("submit_step_result", done);
    assert_eq!(done["branchTaken"]["reason"], "Enough");
    all.push(("submit_step_result", done));
    let next = agent.call("get_next_step", json!({ "planId": made["planId"] }));
    assert_eq!(next["status"], "plan_failed");
    all.push(("get_next_step", next));
}

#[test]
fn every_answer_fits_the_schema_of_its_tool() {
    let place = Place::file();
    let mut command = place.onward();
    command.arg("mcp").env("ONWARD_EXTRACTION_MODEL", "m");
    command.env("ONWARD_EXTRACTION_URL", model::start());
    let mut agent = Agent::of(&mut command, Era::Handshake, json!({}));
    let tools = agent.tools();
    let mut tried: BTreeMap<&str, usize> = BTreeMap::new();
    for (name, answer) in answers(&mut agent) {
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        let schema = jsonschema::validator_for(&tool["outputSchema"]).expect("a schema");
        let wrong: Vec<String> = schema
            .iter_errors(&answer)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(wrong.is_empty(), "{name}: {wrong:?} in {answer}");
        *tried.entry(name).or_default() += 1;
    }
    for tool in &tools {
        let name = tool["name"].as_str().unwrap();
        assert!(tried.contains_key(name), "{name} was not tried");
    }
}

/// A schema that lets everything through would prove nothing.
#[test]
fn the_output_schemas_refuse_what_is_no_answer() {
    let place = Place::file();
    let mut agent = Agent::start(&place, Era::Handshake);
    for tool in agent.tools() {
        let schema = jsonschema::validator_for(&tool["outputSchema"]).expect("a schema");
        assert!(!schema.is_valid(&json!({})), "{}", tool["name"]);
        let input = jsonschema::validator_for(&tool["inputSchema"]).expect("a schema");
        assert!(
            !input.is_valid(&json!({ "nonsense": 1 })),
            "{}",
            tool["name"]
        );
    }
}

/// `true` is a schema, too, but clients of the official SDKs then refuse the whole list.
#[test]
fn every_field_of_a_schema_is_described_by_an_object() {
    fn fields(schema: &Value, inside: &str) {
        for (word, part) in schema.as_object().into_iter().flatten() {
            if word == "properties" {
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
    let place = Place::file();
    let mut agent = Agent::start(&place, Era::Handshake);
    for tool in agent.tools() {
        let name = tool["name"].as_str().unwrap();
        fields(&tool["inputSchema"], name);
        fields(&tool["outputSchema"], name);
    }
}

/// Every row of a plan.
fn rows(place: &Place, plan: &str) -> Value {
    let mut rows = place.json(&["export", plan]);
    let exported = rows
        .as_object_mut()
        .and_then(|rows| rows.remove("exportedAt"));
    assert!(exported.is_some(), "the only thing that time alone changes");
    rows
}

#[test]
fn a_tool_that_says_it_only_reads_changes_no_row() {
    let place = Place::file();
    let mut agent = Agent::start(&place, Era::Handshake);
    let plan = works::created(&mut agent, 3);
    let (step, _) = works::next(&mut agent, &plan);
    place.engine(async |engine, caller| {
        let heard = Heard {
            session: "another".to_owned(),
            agent: "codex".to_owned(),
            ..Heard::default()
        };
        let told = engine.end_turn(caller, heard).await;
        told.expect("a session can be told of");
    });
    let before = rows(&place, &plan);
    let tools = agent.tools();
    let reading = tools
        .iter()
        .filter(|tool| tool["annotations"]["readOnlyHint"] == true);
    for tool in reading {
        let name = tool["name"].as_str().unwrap();
        let known = tool["inputSchema"]["properties"].as_object().unwrap();
        let mut input = json!({});
        for (field, value) in [
            ("planId", json!(plan)),
            ("stepId", json!(step)),
            ("sessionId", json!("another")),
            ("thresholdMs", json!(1)),
            ("query", json!("words")),
        ] {
            if known.contains_key(field) {
                input[field] = value;
            }
        }
        agent.call(name, input);
        assert_eq!(rows(&place, &plan), before, "{name}");
        assert_eq!(tool["annotations"]["idempotentHint"], true, "{name}");
        assert_eq!(tool["annotations"]["destructiveHint"], false, "{name}");
    }
}

#[test]
fn a_tool_that_says_it_can_be_repeated_changes_no_row_the_second_time() {
    let place = Place::file();
    let mut agent = Agent::start(&place, Era::Handshake);
    let plan = works::created(&mut agent, 3);
    let (step, token) = works::next(&mut agent, &plan);
    let tools = agent.tools();
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
        let once = agent.call(tool, input.clone());
        let before = rows(&place, &plan);
        let twice = agent.call(tool, input);
        assert_eq!(rows(&place, &plan), before, "{tool}");
        if tool == "submit_step_result" {
            assert_eq!(once, twice);
        }
    }
}

#[test]
fn pages_follow_each_other_to_the_end() {
    let place = Place::file();
    let mut agent = Agent::start(&place, Era::Handshake);
    let plans: Vec<String> = (0..5).map(|_| works::created(&mut agent, 5)).collect();
    let mut seen = Vec::new();
    let mut cursor = Value::Null;
    loop {
        let page = agent.call("list_active_plans", json!({ "limit": 2, "cursor": cursor }));
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
        let page = agent.call("list_plan_steps", input);
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
        assert_eq!(agent.refused(tool, input).paths(), ["cursor"], "{tool}");
    }
}

#[test]
fn a_list_to_reorder_by_is_told_what_it_lacks() {
    let place = Place::file();
    let mut agent = Agent::start(&place, Era::Handshake);
    let made = agent.call("create_research_plan", works::plan(2));
    let (first, second) = (&made["steps"][0]["stepId"], &made["steps"][1]["stepId"]);
    let never = "00000000-0000-4000-8000-000000000000";
    let input = json!({
        "planId": made["planId"],
        "action": "reorder_steps",
        "stepIds": [first, never],
    });
    let refused = agent.refused("modify_plan", input);
    assert_eq!(refused.code, "incomplete_step_list");
    let details = &refused.error["details"];
    assert_eq!(details["missing"], json!([second]));
    assert_eq!(details["unknown"], json!([never]));
    let input = json!({
        "planId": made["planId"],
        "action": "reorder_steps",
        "stepIds": [second, first],
    });
    let modified = agent.call("modify_plan", input);
    assert_eq!(modified["steps"][0]["stepId"], *second);
    assert_eq!(modified["steps"][0]["stepOrder"], 1);
}

#[test]
fn an_order_outside_of_the_plan_and_a_broken_condition_have_codes_of_their_own() {
    let place = Place::file();
    let mut agent = Agent::start(&place, Era::Handshake);
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
        let mut plan = works::plan(2);
        plan["branchingConditions"] = branches;
        assert_eq!(agent.refused("create_research_plan", plan).code, code);
    }
    let mut plan = works::plan(2);
    plan["steps"][0]["dependsOn"] = json!([2]);
    plan["steps"][1]["dependsOn"] = json!([1]);
    let refused = agent.refused("create_research_plan", plan);
    assert_eq!(refused.code, "invalid_dependency");
    let mut plan = works::plan(1);
    plan["idempotencyKey"] = json!("k");
    let once = agent.call("create_research_plan", plan.clone());
    assert_eq!(agent.call("create_research_plan", plan.clone()), once);
    plan["name"] = json!("Another");
    assert_eq!(agent.refused("create_research_plan", plan).code, "conflict");
}
