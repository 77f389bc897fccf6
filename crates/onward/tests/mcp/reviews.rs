//! Reviews that a person decides in a form of their agent's own window: accepted, declined, cancelled,
//! not answered in time; asked by a request, or by an answer that asks for more.

use serde_json::{Value, json};

use crate::agent::{Agent, Era, done, refusal};
use crate::place::Place;
use crate::works;

/// A client that shows forms.
fn with_forms(place: &Place, era: Era) -> Agent {
    Agent::with(place, era, &[], json!({ "elicitation": {} }))
}

/// A step that is worked on.
fn step(agent: &mut Agent) -> (String, String) {
    let plan = works::created(agent, 1);
    let (step, _) = works::next(agent, &plan);
    (plan, step)
}

fn question(step: &str) -> Value {
    json!({ "stepId": step, "summary": "Ready to publish", "questions": ["Under which name?"] })
}

/// Asks for a review in a client of 2025-11-25, and gives the answer to the form.
fn asked(agent: &mut Agent, step: &str, answer: Value) -> Value {
    let id = agent.send_call("request_user_review", question(step));
    let form = agent.note("elicitation/create");
    let params = &form["params"];
    let message = params["message"].as_str().unwrap();
    assert!(message.contains("Ready to publish") && message.contains("Under which name?"));
    let decision = &params["requestedSchema"]["properties"]["decision"];
    assert_eq!(
        decision["enum"],
        json!(["approve", "reject", "modify", "skip"])
    );
    agent.say(&json!({ "jsonrpc": "2.0", "id": form["id"], "result": answer }));
    agent.answer_to(id)
}

fn accepted(decision: &str, feedback: &str) -> Value {
    json!({
        "action": "accept",
        "content": { "decision": decision, "feedback": feedback },
    })
}

const STATUSES: [(&str, &str, &str); 4] = [
    ("approve", "completed", "completed"),
    ("reject", "failed", "failed"),
    ("modify", "in_progress", "executing"),
    ("skip", "skipped", "completed"),
];

#[test]
fn a_decision_in_a_form_is_a_decision() {
    for (decision, step_status, plan_status) in STATUSES {
        let place = Place::file();
        let mut agent = with_forms(&place, Era::Handshake);
        let (plan, step) = step(&mut agent);
        let answer = asked(&mut agent, &step, accepted(decision, "Louder"));
        let answer = done("request_user_review", &answer);
        assert_eq!(answer["decision"], decision);
        assert_eq!(answer["stepStatus"], step_status);
        assert_eq!(answer["planStatus"], plan_status);
        let told = answer["instructions"].as_str().unwrap_or_default();
        assert_eq!(told.contains("Louder"), decision == "modify");
        // The trail says that it was asked first, and decided then.
        let trail = place.json(&["plan", "log", &plan]);
        let events = trail["events"].as_array().unwrap();
        let actions: Vec<&str> = events
            .iter()
            .filter(|event| event["eventType"] == "user_reviewed")
            .filter_map(|event| event["details"]["action"].as_str())
            .collect();
        assert_eq!(actions, ["review_requested", decision]);
    }
}

#[test]
fn whatever_is_no_decision_leaves_the_review_open() {
    for answer in [
        json!({ "action": "decline" }),
        json!({ "action": "cancel" }),
        json!({ "action": "accept", "content": { "decision": "maybe" } }),
        json!({ "action": "accept" }),
    ] {
        let place = Place::file();
        let mut agent = with_forms(&place, Era::Handshake);
        let (plan, step) = step(&mut agent);
        let answer = asked(&mut agent, &step, answer);
        let answer = done("request_user_review", &answer);
        assert_eq!(answer["planStatus"], "awaiting_review");
        assert!(answer.get("decision").is_none(), "{answer}");
        let next = agent.call("get_next_step", json!({ "planId": plan }));
        assert_eq!(next["review"]["reviewId"], answer["reviewId"]);
    }
}

#[test]
fn a_client_that_cannot_show_the_form_after_all_leaves_the_review_open() {
    let place = Place::file();
    let mut agent = with_forms(&place, Era::Handshake);
    let (_, step) = step(&mut agent);
    let id = agent.send_call("request_user_review", question(&step));
    let form = agent.note("elicitation/create");
    let error = json!({ "code": -32603, "message": "no window" });
    agent.say(&json!({ "jsonrpc": "2.0", "id": form["id"], "error": error }));
    let answer = agent.answer_to(id);
    assert_eq!(
        done("request_user_review", &answer)["planStatus"],
        "awaiting_review"
    );
}

#[test]
fn feedback_that_is_missing_is_refused_as_everywhere() {
    let place = Place::file();
    let mut agent = with_forms(&place, Era::Handshake);
    let (plan, step) = step(&mut agent);
    let answer = asked(&mut agent, &step, accepted("modify", " "));
    assert_eq!(
        refusal("request_user_review", &answer).code,
        "feedback_required"
    );
    let status = agent.call("get_plan_status", json!({ "planId": plan }));
    assert_eq!(status["status"], "awaiting_review");
}

/// The shortest time that a form can have; nothing here is measured.
#[test]
fn a_form_that_nobody_fills_in_ends_and_leaves_the_review_open() {
    let place = Place::file();
    let mut command = place.onward();
    command.arg("mcp").env("ONWARD_REVIEWS_FORM_SECONDS", "1");
    let mut agent = Agent::of(&mut command, Era::Handshake, json!({ "elicitation": {} }));
    let (_, step) = step(&mut agent);
    let id = agent.send(
        "tools/call",
        json!({
            "name": "request_user_review",
            "arguments": question(&step),
            "_meta": { "progressToken": "p" },
        }),
    );
    let answer = agent.answer_to(id);
    assert_eq!(
        done("request_user_review", &answer)["planStatus"],
        "awaiting_review"
    );
    // The client was told that the form is not needed any more, and meanwhile that the call lives.
    let form = agent.note("elicitation/create");
    let cancelled = agent.note("notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], form["id"]);
    let progress = agent.note("notifications/progress");
    assert_eq!(progress["params"]["progressToken"], "p");
}

#[test]
fn nobody_is_asked_where_forms_are_switched_off_or_cannot_be_shown() {
    let place = Place::file();
    let mut command = place.onward();
    command.arg("mcp").env("ONWARD_REVIEWS_FORM_SECONDS", "0");
    let off = Agent::of(&mut command, Era::Handshake, json!({ "elicitation": {} }));
    let cannot = Agent::start(&place, Era::Handshake);
    let only_pages = Agent::with(
        &place,
        Era::Handshake,
        &[],
        json!({ "elicitation": { "url": {} } }),
    );
    let stateless = Agent::start(&place, Era::Stateless);
    for mut agent in [off, cannot, only_pages, stateless] {
        let (_, step) = step(&mut agent);
        let answer = agent.call("request_user_review", question(&step));
        assert_eq!(answer["stepStatus"], "awaiting_input");
        assert!(agent.notes.is_empty(), "{:?}", agent.notes);
    }
}

#[test]
fn a_form_that_waits_does_not_hold_up_the_end() {
    let place = Place::file();
    let mut agent = with_forms(&place, Era::Handshake);
    let (plan, step) = step(&mut agent);
    agent.send_call("request_user_review", question(&step));
    agent.note("elicitation/create");
    agent.hang_up();
    let rest = agent.rest();
    assert!(agent.wait().success());
    let answer = rest.iter().find(|line| line.get("result").is_some());
    let answer = done("request_user_review", answer.expect("an answer"));
    assert_eq!(answer["planStatus"], "awaiting_review");
    assert_eq!(
        place.json(&["plan", "show", &plan])["status"],
        "awaiting_review"
    );
}

/// The first answer in a client of 2026-07-28: what to ask, and what to bring back.
fn more_wanted(agent: &mut Agent, step: &str) -> (Value, String) {
    let call = json!({ "name": "request_user_review", "arguments": question(step) });
    let answer = agent.ask("tools/call", call);
    let result = &answer["result"];
    assert_eq!(result["resultType"], "input_required", "{answer}");
    let form = result["inputRequests"]["review"].clone();
    assert_eq!(form["method"], "elicitation/create");
    (form, result["requestState"].as_str().unwrap().to_owned())
}

/// Comes back with an answer to the form.
fn come_back(agent: &mut Agent, step: &str, state: &str, answer: &Value) -> Value {
    agent.ask(
        "tools/call",
        json!({
            "name": "request_user_review",
            "arguments": question(step),
            "requestState": state,
            "inputResponses": { "review": answer },
        }),
    )
}

#[test]
fn a_decision_that_is_brought_back_is_a_decision_and_coming_back_twice_changes_nothing() {
    for (decision, step_status, plan_status) in STATUSES {
        let place = Place::file();
        let mut agent = with_forms(&place, Era::Stateless);
        let (plan, step) = step(&mut agent);
        let (_, state) = more_wanted(&mut agent, &step);
        // It is recorded before anybody is asked.
        let status = agent.call("get_plan_status", json!({ "planId": plan }));
        assert_eq!(status["status"], "awaiting_review");
        let accepted = accepted(decision, "Louder");
        let once = come_back(&mut agent, &step, &state, &accepted);
        let once = done("request_user_review", &once);
        assert_eq!(once["decision"], decision);
        assert_eq!(once["stepStatus"], step_status);
        assert_eq!(once["planStatus"], plan_status);
        let events = |place: &Place| place.json(&["plan", "log", &plan])["events"].clone();
        let before = events(&place);
        let twice = come_back(&mut agent, &step, &state, &accepted);
        assert_eq!(done("request_user_review", &twice), once);
        assert_eq!(events(&place), before);
    }
}

#[test]
fn coming_back_without_a_decision_leaves_the_review_open() {
    let place = Place::file();
    let mut agent = with_forms(&place, Era::Stateless);
    let (plan, step) = step(&mut agent);
    let (_, state) = more_wanted(&mut agent, &step);
    for answer in [
        json!({ "action": "decline" }),
        json!({ "action": "cancel" }),
        json!("nonsense"),
    ] {
        let answer = come_back(&mut agent, &step, &state, &answer);
        let answer = done("request_user_review", &answer);
        assert_eq!(answer["planStatus"], "awaiting_review");
        assert!(answer.get("decision").is_none());
    }
    // Decided elsewhere meanwhile: the form's answer is too late, and says where things stand.
    place.run(&["review", "decide", &step, "skip"]);
    let answer = come_back(&mut agent, &step, &state, &accepted("reject", ""));
    let answer = done("request_user_review", &answer);
    assert_eq!(answer["stepStatus"], "skipped");
    assert!(answer.get("decision").is_none(), "{answer}");
    let status = agent.call("get_plan_status", json!({ "planId": plan }));
    assert_eq!(status["status"], "completed");
}

#[test]
fn a_state_that_was_tampered_with_or_belongs_to_another_call_is_refused() {
    let place = Place::file();
    let mut agent = with_forms(&place, Era::Stateless);
    let (_, step_one) = step(&mut agent);
    let (plan, step_two) = step(&mut agent);
    let (_, state) = more_wanted(&mut agent, &step_one);
    let (_, other) = more_wanted(&mut agent, &step_two);
    let mut broken = state.clone();
    let last = broken.pop().unwrap();
    broken.push(if last == 'A' { 'B' } else { 'A' });
    for (step, state) in [
        (&step_one, &other),
        (&step_two, &broken),
        (&step_two, &"x".to_owned()),
    ] {
        let answer = come_back(&mut agent, step, state, &accepted("approve", ""));
        let refused = refusal("request_user_review", &answer);
        assert_eq!(refused.code, "invalid_input");
        assert_eq!(refused.paths(), ["requestState"]);
    }
    let status = agent.call("get_plan_status", json!({ "planId": plan }));
    assert_eq!(status["status"], "awaiting_review");
}
