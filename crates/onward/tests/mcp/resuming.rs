//! What a session needs to continue a plan: the steps it holds, instructions, branches, notes and
//! feedback of users.

use std::time::Instant;

use onward_testbed::TIMEOUT;
use onward_testbed::mcp_client::{Client, Era};
use serde_json::{Value, json};

use crate::fixtures;
use crate::program;

/// Maximum number of significant events in a context.
const MAX_EVENTS: usize = 6;

/// Requests a review of a step and approves it with this feedback.
fn approve(client: &mut Client, step: &Value, feedback: &str) -> Value {
    let review = json!({ "stepId": step, "summary": "Ready" });
    client.call("request_user_review", review);
    let approve = json!({ "stepId": step, "decision": "approve", "feedback": feedback });
    client.call("submit_user_decision", approve)
}

#[test]
fn a_session_receives_the_steps_it_holds_again() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Stateless);
    let plan = fixtures::create_plan(&mut client, 2);
    let mine = json!({ "planId": plan, "sessionId": "session-1" });
    let first = client.call("get_next_step", mine.clone());
    assert!(first.get("held").is_none(), "{first}");
    let second = client.call("get_next_step", mine.clone());
    let held = second["held"].as_array().expect("held steps");
    assert_eq!(held.len(), 1, "{second}");
    assert_eq!(held[0]["stepId"], first["stepId"]);
    assert_eq!(held[0]["stepOrder"], 1);
    assert!(held[0]["since"].is_string(), "{second}");
    let again = client.call("get_next_step", mine.clone());
    assert_eq!(again["resumed"], true, "{again}");
    for field in ["stepId", "claimToken", "instructions", "attempt"] {
        assert_eq!(again[field], first[field], "{again}");
    }
    let context = client.call("get_research_context", mine);
    let held = context["heldSteps"].as_array().expect("held steps");
    for (held, claimed) in held.iter().zip([&first, &second]) {
        for field in ["stepId", "claimToken", "instructions", "attempt"] {
            assert_eq!(held[field], claimed[field], "{context}");
        }
    }
    assert_eq!(held.len(), 2);
    let other = json!({ "planId": plan, "sessionId": "session-2" });
    let none = client.call("get_next_step", other.clone());
    assert!(none.get("held").is_none(), "{none}");
    let context = client.call("get_research_context", other);
    assert!(context.get("heldSteps").is_none(), "{context}");
}

#[test]
fn a_new_session_receives_instructions_branches_notes_and_feedback() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Stateless);
    let mut arguments = fixtures::plan(3);
    let branch = |order: u32, field: &str| {
        json!({
            "afterStepOrder": order,
            "conditionExpression": format!("result.{field} == 'redo'"),
            "ifTrueAction": "skip_to",
            "actionParams": { "targetStepOrder": 3 },
        })
    };
    arguments["branchingConditions"] = json!([branch(1, "verdict"), branch(2, "quality")]);
    let plan = client.call("create_research_plan", arguments)["planId"].clone();
    let first = client.call("get_next_step", json!({ "planId": plan }));
    let line = first["branches"][0].as_str().expect("branch of step 1");
    assert!(line.contains("result.verdict"), "{line}");
    let note = json!({ "stepId": first["stepId"], "note": "two of five claims" });
    client.call("report_step_progress", note);
    for round in 0..2 * MAX_EVENTS {
        let update = json!({
            "planId": plan,
            "action": "update_step_instructions",
            "stepId": first["stepId"],
            "instructions": format!("Do 1 in round {round}"),
        });
        client.call("modify_plan", update);
    }
    let resumed = json!({ "planId": plan, "sessionId": "session-2" });
    let context = client.call("get_research_context", resumed.clone());
    let interrupted = &context["interruptedSteps"][0];
    assert_eq!(interrupted["instructions"], "Do 1 in round 11", "{context}");
    let line = interrupted["branches"][0].as_str().expect("branch");
    assert!(line.contains("result.verdict"), "{line}");
    let pending = &context["steps"][1];
    assert_eq!(pending["instructions"], "Do 2", "{context}");
    let line = pending["branches"][0].as_str().expect("branch");
    assert!(line.contains("result.quality"), "{line}");
    assert_eq!(context["notes"][0]["note"], "two of five claims");
    let events = context["recentEvents"].as_array().expect("events");
    assert!((1..=MAX_EVENTS).contains(&events.len()), "{context}");
    approve(&mut client, &first["stepId"], "cite the sources");
    let context = client.call("get_research_context", resumed.clone());
    assert_eq!(context["feedback"][0]["text"], "cite the sources");
    assert_eq!(context["feedback"][0]["decision"], "approve");
    let second = client.call("get_next_step", resumed);
    assert_eq!(second["feedback"], json!(["cite the sources"]), "{second}");
}

#[test]
fn a_decision_returns_the_branch_taken_and_the_reason_of_a_failure() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Stateless);
    let mut arguments = fixtures::plan(2);
    arguments["branchingConditions"] = json!([{
        "afterStepOrder": 1,
        "conditionExpression": "resultSummary == 'Ready'",
        "ifTrueAction": "fail",
        "actionParams": { "reason": "no budget" },
    }]);
    let plan = client.call("create_research_plan", arguments)["planId"].clone();
    let step = client.call("get_next_step", json!({ "planId": plan }));
    let decided = approve(&mut client, &step["stepId"], "fine");
    assert_eq!(decided["planStatus"], "failed", "{decided}");
    assert_eq!(decided["branchTaken"]["action"], "fail", "{decided}");
    let reason = decided["reason"].as_str().expect("reason");
    assert!(reason.contains("no budget"), "{reason}");
}

#[test]
fn a_long_condition_is_shown_completely() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Stateless);
    let mut arguments = fixtures::plan(2);
    let condition = format!("result.verdict == '{}'", "x".repeat(500));
    let branch = |order: u32| {
        json!({
            "afterStepOrder": order,
            "conditionExpression": condition,
            "ifTrueAction": "fail",
        })
    };
    arguments["branchingConditions"] = json!([branch(1), branch(2)]);
    let plan = client.call("create_research_plan", arguments)["planId"].clone();
    let mine = json!({ "planId": plan, "sessionId": "session-1" });
    let step = client.call("get_next_step", mine.clone());
    let short = client.call("get_research_context", mine.clone());
    let mut all = mine;
    all["maxChars"] = 40_000.into();
    let whole = client.call("get_research_context", all);
    for branches in [
        &step["branches"],
        &short["heldSteps"][0]["branches"],
        &whole["heldSteps"][0]["branches"],
        &whole["steps"][1]["branches"],
    ] {
        let line = branches[0].as_str().expect("a branch");
        assert!(line.contains(&condition), "{line}");
    }
    // A condition that does not fit is omitted, not cut.
    let is_complete = short["steps"][1]["branches"] == whole["steps"][1]["branches"];
    assert_eq!(short["truncated"], !is_complete, "{short}");
}

#[test]
fn names_the_takeover_of_a_stalled_step_instead_of_waiting() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Stateless);
    let mut arguments = fixtures::plan(1);
    arguments["stallThresholdMs"] = 1.into();
    let plan = client.call("create_research_plan", arguments)["planId"].clone();
    let mine = json!({ "planId": plan, "sessionId": "session-1" });
    client.call("get_next_step", mine);
    let other = json!({ "planId": plan, "sessionId": "session-2" });
    let deadline = Instant::now() + TIMEOUT;
    let none = loop {
        let none = client.call("get_next_step", other.clone());
        if none["inProgress"][0]["stalled"] == true {
            break none;
        }
        assert!(Instant::now() < deadline, "{none}");
    };
    assert_eq!(none["status"], "no_pending_steps");
    assert_eq!(none["inProgress"][0]["sessionId"], "session-1", "{none}");
    let hint = none["hint"].as_str().expect("a hint");
    assert!(hint.contains("includeStalled"), "{hint}");
    // Only a hint to wait names the holder.
    assert!(!hint.contains("session-1"), "{hint}");
}
