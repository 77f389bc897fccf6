//! The sizes of responses on the largest plan: 10,000 steps, texts of maximal length.
//!
//! By default a response has fewer than 8,000 characters, with `maxChars` at most 40,000. Truncated
//! texts and lists can be read in pages.

use onward_testbed::mcp_client::{Client, Era};
use onward_testbed::{Backend, Database, psql};
use serde_json::{Value, json};

use crate::program;

const STEPS: usize = 10_000;
/// A character that costs six in JSON, among others that cost one.
const LONG: &str = "Über Ebbe und Flut \u{1}\n";

fn text(chars: usize) -> String {
    LONG.chars().cycle().take(chars).collect()
}

fn plan() -> Value {
    let step = |order: usize| {
        // The limit of a message does not allow long instructions in every step.
        let chars = if order <= 20 { 100_000 } else { 30 };
        json!({
            "stepType": "search",
            "title": text(200),
            "instructions": text(chars),
        })
    };
    let branch = |order: usize| {
        json!({
            "afterStepOrder": order,
            "conditionExpression": format!("resultSummary == '{}'", "x".repeat(1_900)),
            "ifTrueAction": "fail",
        })
    };
    let last = json!({
        "afterStepOrder": 15,
        "conditionExpression": "confidence == 1.0",
        "ifTrueAction": "skip_to",
        "actionParams": { "targetStepOrder": STEPS },
    });
    let branches = (0..50).map(|_| branch(15)).chain([last]);
    json!({
        "name": text(200),
        "researchQuestion": text(10_000),
        "planDesignRationale": text(10_000),
        "outputFormattingNotes": text(10_000),
        "steps": (1..=STEPS).map(step).collect::<Vec<_>>(),
        "branchingConditions": branches.collect::<Vec<_>>(),
        "sessionId": "session-1",
    })
}

/// Calls tools and checks the sizes of the responses.
struct Sized {
    client: Client,
}

impl Sized {
    /// Calls a tool without and, if it can be repeated, with `maxChars`.
    fn read(&mut self, tool: &str, mut arguments: Value) -> Value {
        let response = self.call(tool, arguments.clone());
        arguments["maxChars"] = 40_000.into();
        let (large, chars) = self.response(tool, arguments);
        assert!(chars <= 40_000, "{tool}: {chars} characters");
        assert!(large.get("error").is_none(), "{large}");
        response
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let (response, chars) = self.response(tool, arguments);
        println!("{tool}: {chars} characters");
        assert!(chars < 8_000, "{tool}: {chars} characters");
        // A list that is the whole answer may be empty.
        let mut parts = response.clone();
        for answer in ["results", "plans"] {
            parts
                .as_object_mut()
                .expect("response is an object")
                .remove(answer);
        }
        assert!(no_empty_values(&parts), "{tool}: {response}");
        response
    }

    fn response(&mut self, tool: &str, arguments: Value) -> (Value, usize) {
        let params = json!({ "name": tool, "arguments": arguments });
        let response = self.client.request("tools/call", params);
        let text = response["result"]["content"][0]["text"].as_str();
        let text = text.unwrap_or_else(|| panic!("{response}"));
        let response: Value = serde_json::from_str(text).unwrap();
        assert_reports_cuts(response.get("error").unwrap_or(&response));
        (response, text.chars().count())
    }
}

/// A response with a cut text or list is marked as truncated, and a truncated response names the
/// call for the rest.
fn assert_reports_cuts(response: &Value) {
    let truncated = response["truncated"] == true;
    assert!(truncated || !has_cuts(response), "{response}");
    let names_rest = ["more", "nextOffset"].map(|name| response.get(name).is_some());
    assert!(!truncated || names_rest.contains(&true), "{response}");
}

fn has_cuts(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.iter().any(|(name, value)| {
            // The next page has the other steps and plans of a list.
            // A snippet is an excerpt; the ids beside it name the text.
            name.ends_with("Omitted") || (name != "snippet" && has_cuts(value))
        }),
        Value::Array(entries) => entries.iter().any(has_cuts),
        Value::String(text) => text.contains('…'),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Whether there is no null and no empty list.
fn no_empty_values(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Object(fields) => fields.values().all(no_empty_values),
        Value::Array(entries) => !entries.is_empty() && entries.iter().all(no_empty_values),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

#[test]
fn no_response_exceeds_its_limit_on_the_largest_plan() {
    let dir = program();
    let client = Client::start(&dir, Era::Stateless);
    let mut tools = Sized { client };
    let created = tools.call("create_research_plan", plan());
    assert_eq!(created["stepsOmitted"], STEPS - 50);
    assert_eq!(created["truncated"], true);
    let plan = created["planId"].clone();
    let session = json!({ "planId": plan, "sessionId": "session-1" });
    let first = tools.call("get_next_step", session.clone());
    let mut step = first.clone();
    let submit = |step: &Value, confidence: f64| {
        json!({
            "stepId": step["stepId"],
            "claimToken": step["claimToken"],
            "resultSummary": text(20_000),
            "result": { "data": text(10_000) },
            "confidence": confidence,
            "stepExecutionReport": { "how": text(50_000) },
            "outputFormattingNotes": text(10_000),
            "sessionId": "session-1",
            "claimNext": true,
        })
    };
    for _ in 1..14 {
        let submitted = tools.call("submit_step_result", submit(&step, 0.5));
        step = submitted["nextStep"].clone();
        assert_eq!(submitted["truncated"], true);
    }
    // Holds several steps.
    tools.call("get_next_step", session.clone());
    tools.read("get_plan_status", json!({ "planId": plan }));
    tools.read("get_research_context", session.clone());
    tools.read("list_plan_steps", json!({ "planId": plan }));
    tools.read(
        "list_plan_steps",
        json!({ "planId": plan, "limit": 1_000, "includeReports": true }),
    );
    tools.read("list_active_plans", json!({}));
    tools.read("get_step_context", json!({ "stepId": step["stepId"] }));
    tools.read("search_sources", json!({ "query": "Ebbe Flut" }));
    let all: Vec<&Value> = created["steps"].as_array().unwrap().iter().collect();
    let ids: Vec<&Value> = all.iter().map(|step| &step["stepId"]).collect();
    let reorder = json!({ "planId": plan, "action": "reorder_steps", "stepIds": ids });
    let rejected = tools.call("modify_plan", reorder);
    assert_eq!(rejected["error"]["code"], "incomplete_step_list");
    let details = &rejected["error"]["details"];
    assert_eq!(details["missing"].as_array().map(Vec::len), Some(50));
    assert_eq!(details["missingOmitted"], STEPS - 100);
    let steps = vec![json!({ "stepType": "search", "instructions": "More." }); 10];
    let add = json!({ "planId": plan, "action": "add_steps", "steps": steps });
    let modified = tools.call("modify_plan", add);
    assert_eq!(modified["error"]["code"], "limit_exceeded", "{modified}");
    let instructions = json!({
        "planId": plan,
        "action": "update_step_instructions",
        "stepId": step["stepId"],
        "instructions": text(100_000),
    });
    let modified = tools.call("modify_plan", instructions);
    assert_eq!(modified["steps"].as_array().map(Vec::len), Some(1));
    // Step 15 skips all steps but the last.
    let held = tools.call("get_research_context", session.clone());
    let fifteenth = held["heldSteps"].as_array().unwrap();
    let fifteenth = fifteenth.iter().find(|step| step["stepOrder"] == 15);
    let fifteenth = fifteenth.expect("the session holds step 15").clone();
    let skipped = tools.call("submit_step_result", submit(&fifteenth, 1.0));
    let taken = &skipped["branchTaken"];
    assert_eq!(taken["action"], "skip_to", "{skipped}");
    let listed = taken["skippedStepIds"].as_array().unwrap().len();
    let omitted = taken["skippedStepIdsOmitted"].as_u64().unwrap();
    assert_eq!(listed + usize::try_from(omitted).unwrap(), STEPS - 16);
    tools.read("get_plan_status", json!({ "planId": plan }));
    let review = json!({
        "stepId": step["stepId"],
        "summary": text(20_000),
        "questions": vec![text(1_000); 50],
    });
    tools.call("request_user_review", review);
    let waiting = tools.read("get_next_step", session.clone());
    assert_eq!(waiting["status"], "awaiting_review");
    assert_eq!(waiting["truncated"], true);
    tools.read("get_research_context", session.clone());
    let decision = json!({
        "stepId": step["stepId"],
        "decision": "approve",
        "feedback": text(10_000),
    });
    tools.call("submit_user_decision", decision);
    let last = &skipped["nextStep"];
    let done = tools.call("submit_step_result", submit(last, 0.5));
    assert_eq!(done["nextStep"]["status"], "plan_complete", "{done}");
    let done = tools.read("get_next_step", session);
    assert_eq!(done["status"], "plan_complete");
    assert!(
        done["next"]
            .as_str()
            .unwrap()
            .contains("store_research_output")
    );
    let status = tools.read("get_plan_status", json!({ "planId": plan }));
    assert!(status["completedAt"].is_string(), "{status}");

    // The truncated part can be read in pages.
    assert_eq!(first["truncated"], true);
    let cut = first["instructions"].as_str().unwrap();
    let (mut whole, mut offset) = (String::new(), Some(0));
    while let Some(from) = offset {
        let page = json!({
            "planId": plan,
            "stepId": first["stepId"],
            "part": "instructions",
            "offset": from,
            "maxChars": 40_000,
        });
        let (page, chars) = tools.response("get_research_context", page);
        assert!(chars <= 40_000, "{chars} characters");
        whole.push_str(page["content"].as_str().unwrap());
        offset = page["nextOffset"].as_u64();
    }
    assert_eq!(whole, text(100_000));
    assert!(whole.starts_with(cut.trim_end_matches('…')));
}

/// Completes all steps but the last ten with results of 20,000 characters, and fails one in ten.
/// Writes the rows directly: this many calls would take minutes.
const COMPLETE: &str = "
    UPDATE steps SET status = 'completed', claim_token = 'token', claim_session = 'session-0',
        started_at = 1, ended_at = 2, ended_commit = 1,
        result_summary = left(repeat('Über Ebbe und Flut ' || chr(1), 1001), 20000),
        result = '{\"data\":\"' || repeat('x', 1000) || '\"}',
        result_report = '{\"how\":\"' || repeat('x', 10000) || '\"}',
        result_notes = repeat('Notes', 2000)
    WHERE step_order <= 9990 AND step_order % 10 <> 0;
    UPDATE steps SET status = 'failed', ended_at = 2, ended_commit = 1, failure_kind = 'by_hand',
        failure_words = repeat('Reason', 1600)
    WHERE step_order <= 9990 AND step_order % 10 = 0;
    UPDATE plans SET status = 'executing', pending = 10, completed = 8991, failed = 999;
";

#[test]
fn no_response_exceeds_its_limit_after_ten_thousand_long_results() {
    let database = Database::create(Backend::Postgres).address();
    let dir = program().with_database(database.clone());
    let created = Client::start(&dir, Era::Stateless).call("create_research_plan", plan());
    psql(&database, COMPLETE).expect("rows were written");
    // A new process has no cached plan.
    let client = Client::start(&dir, Era::Stateless);
    let mut tools = Sized { client };
    let plan = created["planId"].clone();
    let session = json!({ "planId": plan, "sessionId": "session-1" });
    let step = tools.call("get_next_step", session.clone());
    assert_eq!(step["stepOrder"], 9_991);
    let status = tools.read("get_plan_status", json!({ "planId": plan }));
    assert_eq!(status["counts"]["completed"], 8_991);
    assert_eq!(status["truncated"], true);
    let context = tools.read("get_research_context", session.clone());
    assert_eq!(context["heldSteps"][0]["claimToken"], step["claimToken"]);
    assert_eq!(context["truncated"], true);
    for (status, reports) in [
        (None, false),
        (Some("completed"), true),
        (Some("failed"), false),
    ] {
        let mut list = json!({ "planId": plan, "limit": 1_000, "includeReports": reports });
        if let Some(status) = status {
            list["status"] = status.into();
        }
        let steps = tools.read("list_plan_steps", list);
        assert!(steps["nextCursor"].is_string(), "{steps}");
        assert_eq!(steps["truncated"], true);
    }
    tools.read("list_active_plans", json!({}));
    let step_id = &step["stepId"];
    tools.read("get_step_context", json!({ "stepId": step_id }));
    let note = json!({ "stepId": step_id, "note": text(10_000) });
    tools.call("report_step_progress", note);
    let result = json!({
        "stepId": step_id,
        "claimToken": step["claimToken"],
        "resultSummary": text(20_000),
        "sessionId": "session-1",
        "claimNext": true,
    });
    let submitted = tools.call("submit_step_result", result);
    assert_eq!(submitted["nextStep"]["stepOrder"], 9_992, "{submitted}");
    tools.read("get_research_context", session);
}

#[test]
fn a_response_that_omits_steps_is_truncated() {
    let dir = program();
    let client = Client::start(&dir, Era::Stateless);
    let mut tools = Sized { client };
    let steps = vec![json!({ "stepType": "search", "instructions": "Do it" }); 60];
    let plan = json!({ "name": "A plan", "researchQuestion": "Why?", "steps": steps });
    let created = tools.call("create_research_plan", plan);
    let plan = json!({ "planId": created["planId"] });
    let status = tools.call("get_plan_status", plan.clone());
    let listed = status["pendingSteps"].as_array().unwrap().len();
    assert_eq!(status["pendingStepsOmitted"], 60 - listed);
    assert_eq!(status["truncated"], true, "{status}");
    let mut short = plan.clone();
    short["maxChars"] = 1_000.into();
    let (status, chars) = tools.response("get_plan_status", short);
    assert!(chars <= 1_000, "{chars} characters");
    assert_eq!(status["truncated"], true, "{status}");
}

#[test]
fn the_first_step_of_a_new_plan_is_the_one_that_is_assigned_first() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Stateless);
    let step = |depends_on: Value| json!({ "stepType": "search", "instructions": "Do it", "dependsOn": depends_on });
    let plan = json!({
        "name": "A plan",
        "researchQuestion": "Why?",
        "steps": [step(json!([2])), step(json!([]))],
    });
    let created = client.call("create_research_plan", plan);
    let next = client.call("get_next_step", json!({ "planId": created["planId"] }));
    assert_eq!(created["firstStep"]["stepId"], next["stepId"]);
    assert_eq!(created["firstStep"]["stepOrder"], 2);
}
