//! Reviews in elicitation forms: accepted, declined, cancelled and timed out, with both protocol
//! eras.

use onward_testbed::Program;
use onward_testbed::mcp_client::{Client, Era, rejection, success};
use serde_json::{Value, json};

use crate::fixtures;
use crate::program;

/// A client that supports forms.
fn with_forms(dir: &Program, era: Era) -> Client {
    Client::with_options(dir, era, &[], json!({ "elicitation": {} }))
}

/// Creates a plan and claims its step. Returns both ids.
fn claimed_step(client: &mut Client) -> (String, String) {
    let plan = fixtures::create_plan(client, 1);
    let (step, _) = fixtures::claim_step(client, &plan);
    (plan, step)
}

fn review_arguments(step: &str) -> Value {
    json!({ "stepId": step, "summary": "Ready to publish", "questions": ["Under which name?"] })
}

/// Requests a review with a 2025-11-25 client, answers the form and returns the response.
fn review(client: &mut Client, step: &str, answer: Value) -> Value {
    let id = client.send_call("request_user_review", review_arguments(step));
    let form = client.notification("elicitation/create");
    let params = &form["params"];
    let message = params["message"].as_str().unwrap();
    assert!(message.contains("Ready to publish") && message.contains("Under which name?"));
    assert_eq!(params["requestedSchema"]["required"], json!(["decision"]));
    client.send_message(&json!({ "jsonrpc": "2.0", "id": form["id"], "result": answer }));
    client.response_to(id)
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
fn a_decision_in_a_form_decides_the_review() {
    for (decision, step_status, plan_status) in STATUSES {
        let dir = program();
        let mut client = with_forms(&dir, Era::Handshake);
        let (plan, step) = claimed_step(&mut client);
        let response = review(&mut client, &step, accepted(decision, "Louder"));
        let response = success("request_user_review", &response);
        assert_eq!(response["decision"], decision);
        assert_eq!(response["stepStatus"], step_status);
        assert_eq!(response["planStatus"], plan_status);
        let instructions = response["instructions"].as_str().unwrap_or_default();
        assert_eq!(instructions.contains("Louder"), decision == "modify");
        // The request is recorded before the decision.
        let audit = dir.run_json(&["--json", "plan", "log", &plan]);
        let events = audit["events"].as_array().unwrap();
        let actions: Vec<&str> = events
            .iter()
            .filter(|event| event["eventType"] == "user_reviewed")
            .filter_map(|event| event["details"]["action"].as_str())
            .collect();
        assert_eq!(actions, ["review_requested", decision]);
    }
}

#[test]
fn a_form_without_a_decision_leaves_the_review_open() {
    for answer in [
        json!({ "action": "decline" }),
        json!({ "action": "cancel" }),
        json!({ "action": "accept", "content": { "decision": "maybe" } }),
        json!({ "action": "accept" }),
    ] {
        let dir = program();
        let mut client = with_forms(&dir, Era::Handshake);
        let (plan, step) = claimed_step(&mut client);
        let response = review(&mut client, &step, answer);
        let response = success("request_user_review", &response);
        assert_eq!(response["planStatus"], "awaiting_review");
        assert!(response.get("decision").is_none(), "{response}");
        let next = client.call("get_next_step", json!({ "planId": plan }));
        assert_eq!(next["review"]["reviewId"], response["reviewId"]);
    }
}

#[test]
fn a_failed_form_leaves_the_review_open() {
    let dir = program();
    let mut client = with_forms(&dir, Era::Handshake);
    let (_, step) = claimed_step(&mut client);
    let id = client.send_call("request_user_review", review_arguments(&step));
    let form = client.notification("elicitation/create");
    let error = json!({ "code": -32603, "message": "no window" });
    client.send_message(&json!({ "jsonrpc": "2.0", "id": form["id"], "error": error }));
    let response = client.response_to(id);
    assert_eq!(
        success("request_user_review", &response)["planStatus"],
        "awaiting_review"
    );
}

#[test]
fn a_form_with_modify_requires_feedback() {
    let dir = program();
    let mut client = with_forms(&dir, Era::Handshake);
    let (plan, step) = claimed_step(&mut client);
    let response = review(&mut client, &step, accepted("modify", " "));
    assert_eq!(
        rejection("request_user_review", &response).code,
        "feedback_required"
    );
    let status = client.call("get_plan_status", json!({ "planId": plan }));
    assert_eq!(status["status"], "awaiting_review");
}

/// Uses the shortest configurable timeout.
#[test]
fn a_form_timeout_leaves_the_review_open() {
    let dir = program();
    let mut command = dir.command(&[]);
    command.arg("mcp").env("ONWARD_REVIEWS__FORM_SECONDS", "1");
    let mut client =
        Client::from_command(&mut command, Era::Handshake, json!({ "elicitation": {} }));
    let (_, step) = claimed_step(&mut client);
    let id = client.send(
        "tools/call",
        json!({
            "name": "request_user_review",
            "arguments": review_arguments(&step),
            "_meta": { "progressToken": "p" },
        }),
    );
    let response = client.response_to(id);
    assert_eq!(
        success("request_user_review", &response)["planStatus"],
        "awaiting_review"
    );
    // The server sent progress notifications and cancelled the form.
    let form = client.notification("elicitation/create");
    let cancelled = client.notification("notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], form["id"]);
    let progress = client.notification("notifications/progress");
    assert_eq!(progress["params"]["progressToken"], "p");
}

#[test]
fn sends_no_form_if_forms_are_disabled_or_unsupported() {
    let dir = program();
    let mut command = dir.command(&[]);
    command.arg("mcp").env("ONWARD_REVIEWS__FORM_SECONDS", "0");
    let disabled = Client::from_command(&mut command, Era::Handshake, json!({ "elicitation": {} }));
    let unsupported = Client::start(&dir, Era::Handshake);
    let only_urls = Client::with_options(
        &dir,
        Era::Handshake,
        &[],
        json!({ "elicitation": { "url": {} } }),
    );
    let stateless = Client::start(&dir, Era::Stateless);
    for mut client in [disabled, unsupported, only_urls, stateless] {
        let (_, step) = claimed_step(&mut client);
        let response = client.call("request_user_review", review_arguments(&step));
        assert_eq!(response["stepStatus"], "awaiting_input");
        assert!(
            client.notifications.is_empty(),
            "{:?}",
            client.notifications
        );
    }
}

#[test]
fn an_open_form_does_not_delay_shutdown() {
    let dir = program();
    let mut client = with_forms(&dir, Era::Handshake);
    let (plan, step) = claimed_step(&mut client);
    client.send_call("request_user_review", review_arguments(&step));
    client.notification("elicitation/create");
    client.close_input();
    let rest = client.remaining();
    assert!(client.wait().success());
    let response = rest.iter().find(|line| line.get("result").is_some());
    let response = success("request_user_review", response.expect("response"));
    assert_eq!(response["planStatus"], "awaiting_review");
    assert_eq!(
        dir.run_json(&["--json", "plan", "show", &plan])["status"],
        "awaiting_review"
    );
}

/// Requests a review with a 2026-07-28 client. Returns the form and the request state.
fn input_required(client: &mut Client, step: &str) -> (Value, String) {
    let call = json!({ "name": "request_user_review", "arguments": review_arguments(step) });
    let response = client.request("tools/call", call);
    let result = &response["result"];
    assert_eq!(result["resultType"], "input_required", "{response}");
    let form = result["inputRequests"]["review"].clone();
    assert_eq!(form["method"], "elicitation/create");
    (form, result["requestState"].as_str().unwrap().to_owned())
}

/// Repeats the call with an answer to the form.
fn retry(client: &mut Client, step: &str, state: &str, answer: &Value) -> Value {
    client.request(
        "tools/call",
        json!({
            "name": "request_user_review",
            "arguments": review_arguments(step),
            "requestState": state,
            "inputResponses": { "review": answer },
        }),
    )
}

#[test]
fn a_retry_with_a_decision_decides_the_review_idempotently() {
    for (decision, step_status, plan_status) in STATUSES {
        let dir = program();
        let mut client = with_forms(&dir, Era::Stateless);
        let (plan, step) = claimed_step(&mut client);
        let (_, state) = input_required(&mut client, &step);
        // The review is recorded before the form is sent.
        let status = client.call("get_plan_status", json!({ "planId": plan }));
        assert_eq!(status["status"], "awaiting_review");
        let accepted = accepted(decision, "Louder");
        let once = retry(&mut client, &step, &state, &accepted);
        let once = success("request_user_review", &once);
        assert_eq!(once["decision"], decision);
        assert_eq!(once["stepStatus"], step_status);
        assert_eq!(once["planStatus"], plan_status);
        let events =
            |dir: &Program| dir.run_json(&["--json", "plan", "log", &plan])["events"].clone();
        let before = events(&dir);
        let twice = retry(&mut client, &step, &state, &accepted);
        assert_eq!(success("request_user_review", &twice), once);
        assert_eq!(events(&dir), before);
    }
}

#[test]
fn a_retry_without_a_decision_leaves_the_review_open() {
    let dir = program();
    let mut client = with_forms(&dir, Era::Stateless);
    let (plan, step) = claimed_step(&mut client);
    let (_, state) = input_required(&mut client, &step);
    for answer in [
        json!({ "action": "decline" }),
        json!({ "action": "cancel" }),
        json!("invalid"),
    ] {
        let response = retry(&mut client, &step, &state, &answer);
        let response = success("request_user_review", &response);
        assert_eq!(response["planStatus"], "awaiting_review");
        assert!(response.get("decision").is_none());
    }
    // After a decision elsewhere, a late answer returns the current state.
    dir.run_ok(&["review", "decide", &step, "skip"]);
    let response = retry(&mut client, &step, &state, &accepted("reject", ""));
    let response = success("request_user_review", &response);
    assert_eq!(response["stepStatus"], "skipped");
    assert!(response.get("decision").is_none(), "{response}");
    let status = client.call("get_plan_status", json!({ "planId": plan }));
    assert_eq!(status["status"], "completed");
}

#[test]
fn rejects_a_tampered_or_foreign_request_state() {
    let dir = program();
    let mut client = with_forms(&dir, Era::Stateless);
    let (_, step_one) = claimed_step(&mut client);
    let (plan, step_two) = claimed_step(&mut client);
    let (_, state) = input_required(&mut client, &step_one);
    let (_, other) = input_required(&mut client, &step_two);
    let mut broken = state.clone();
    let last = broken.pop().unwrap();
    broken.push(if last == 'A' { 'B' } else { 'A' });
    for (step, state) in [
        (&step_one, &other),
        (&step_two, &broken),
        (&step_two, &"x".to_owned()),
    ] {
        let response = retry(&mut client, step, state, &accepted("approve", ""));
        let rejected = rejection("request_user_review", &response);
        assert_eq!(rejected.code, "invalid_input");
        assert_eq!(rejected.paths(), ["requestState"]);
    }
    let status = client.call("get_plan_status", json!({ "planId": plan }));
    assert_eq!(status["status"], "awaiting_review");
}

#[test]
fn the_fields_of_a_form_are_typed_and_have_titles_and_defaults() {
    for era in [Era::Handshake, Era::Stateless] {
        let dir = program();
        let mut client = with_forms(&dir, era);
        let (_, step) = claimed_step(&mut client);
        let form = match era {
            Era::Handshake => {
                client.send_call("request_user_review", review_arguments(&step));
                client.notification("elicitation/create")
            }
            Era::Stateless => input_required(&mut client, &step).0,
        };
        let fields = &form["params"]["requestedSchema"]["properties"];
        let decision = &fields["decision"];
        assert_eq!(decision["title"], "Decision");
        let options = decision["oneOf"].as_array().expect("options");
        let values: Vec<_> = options.iter().map(|option| &option["const"]).collect();
        assert_eq!(values, ["approve", "modify", "skip", "reject"]);
        assert!(options.iter().all(|option| option["title"].is_string()));
        // The user must choose: an empty form does not approve.
        assert!(decision.get("default").is_none());
        assert_eq!(fields["answer1"]["title"], "1. Under which name?");
        for name in ["answer1", "feedback"] {
            assert_eq!(fields[name]["type"], "string", "{name}");
            assert_eq!(fields[name]["default"], "", "{name}");
            assert_eq!(fields[name]["maxLength"], 10_000, "{name}");
        }
        let names: Vec<_> = fields.as_object().expect("fields").keys().collect();
        assert_eq!(names.len(), 3, "{names:?}");
    }
}

#[test]
fn the_answers_of_a_form_are_part_of_the_feedback() {
    let answer = json!({
        "action": "accept",
        "content": { "decision": "modify", "answer1": "Onward", "feedback": "Louder" },
    });
    for era in [Era::Handshake, Era::Stateless] {
        let dir = program();
        let mut client = with_forms(&dir, era);
        let (plan, step) = claimed_step(&mut client);
        let response = match era {
            Era::Handshake => review(&mut client, &step, answer.clone()),
            Era::Stateless => {
                let (_, state) = input_required(&mut client, &step);
                retry(&mut client, &step, &state, &answer)
            }
        };
        success("request_user_review", &response);
        let audit = dir.run_json(&["--json", "plan", "log", &plan]);
        let events = audit["events"].as_array().expect("events");
        let feedback = events
            .iter()
            .find(|event| event["details"]["action"] == "modify")
            .map(|event| &event["details"]["feedback"]);
        assert_eq!(
            feedback.and_then(Value::as_str),
            Some("1. Under which name?\nOnward\n\nLouder")
        );
    }
}

/// Calls a tool with a client of version 2025-06-18, which sends no protocol version per call.
fn old_call(client: &mut Client, id: u64, name: &str, arguments: Value) {
    client.send_message(&json!({
        "jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": { "name": name, "arguments": arguments },
    }));
}

/// A client of version 2025-06-18 with forms, and a step that it claimed.
fn old_client(dir: &Program) -> (Client, String) {
    let mut command = dir.command(&["mcp"]);
    let mut client = Client::from_command(&mut command, Era::Stateless, json!({}));
    client.send_message(&json!({
        "jsonrpc": "2.0", "id": 1_000, "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": { "elicitation": {} },
            "clientInfo": { "name": "old", "version": "0" },
        },
    }));
    client.response_to(1_000);
    let mut answer = |id: u64, name: &str, arguments: Value| {
        old_call(&mut client, id, name, arguments);
        client.response_to(id)["result"]["structuredContent"].clone()
    };
    let plan = answer(1_001, "create_research_plan", fixtures::plan(1))["planId"].clone();
    let step = answer(1_002, "get_next_step", json!({ "planId": plan }))["stepId"].clone();
    (client, step.as_str().expect("step id").to_owned())
}

#[test]
fn a_client_of_an_older_version_gets_names_of_the_decisions() {
    let dir = program();
    let (mut client, step) = old_client(&dir);
    let mut review = review_arguments(&step);
    let options = json!([{ "value": "red", "title": "Red one" }, { "value": "blue" }]);
    review["fields"] = json!([
        { "name": "colour", "type": "choice", "options": options, "default": "red" },
        { "name": "sizes", "type": "choices", "options": options, "default": [] },
    ]);
    old_call(&mut client, 1_003, "request_user_review", review);
    let form = client.notification("elicitation/create");
    let fields = &form["params"]["requestedSchema"]["properties"];
    assert_eq!(fields["decision"]["enum"].as_array().map(Vec::len), Some(4));
    assert_eq!(
        fields["decision"]["enumNames"].as_array().map(Vec::len),
        Some(4)
    );
    assert!(fields["feedback"].get("default").is_none());
    let colour = json!({
        "type": "string", "title": "colour", "enum": ["red", "blue"],
        "enumNames": ["Red one", "blue"],
    });
    assert_eq!(fields["field_colour"], colour);
    assert!(fields.get("field_sizes").is_none());
}

#[test]
fn a_client_that_cannot_show_a_required_question_gets_no_form() {
    let dir = program();
    let (mut client, step) = old_client(&dir);
    let mut review = review_arguments(&step);
    let options = json!([{ "value": "red" }, { "value": "blue" }]);
    review["fields"] = json!([{ "name": "sizes", "type": "choices", "options": options }]);
    old_call(&mut client, 1_003, "request_user_review", review);
    let response = client.response_to(1_003);
    let requested = success("request_user_review", &response);
    assert_eq!(requested["stepStatus"], "awaiting_input");
    assert!(requested.get("decision").is_none());
}

#[test]
fn a_decision_elsewhere_ends_the_wait_for_a_form() {
    let dir = program();
    let mut client = with_forms(&dir, Era::Handshake);
    let (_, step) = claimed_step(&mut client);
    let id = client.send_call("request_user_review", review_arguments(&step));
    let form = client.notification("elicitation/create");
    dir.run_ok(&["review", "decide", &step, "approve"]);
    let response = client.response_to(id);
    let response = success("request_user_review", &response);
    assert_eq!(response["decision"], "approve");
    assert_eq!(response["stepStatus"], "completed");
    let cancelled = client.notification("notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], form["id"]);
}

#[test]
fn the_typed_questions_of_a_review_are_fields_of_the_form() {
    let dir = program();
    let mut client = with_forms(&dir, Era::Handshake);
    let plan = fixtures::create_plan(&mut client, 2);
    let (step, _) = fixtures::claim_step(&mut client, &plan);
    let colours = json!([{ "value": "red", "title": "Red one" }, { "value": "blue" }]);
    let arguments = json!({
        "stepId": step, "summary": "Ready to publish",
        "fields": [
            { "name": "colour", "type": "choice", "title": "Which?", "options": colours, "default": "blue" },
            { "name": "sizes", "type": "choices", "options": colours, "default": ["red"] },
            { "name": "sure", "type": "boolean", "default": true },
            { "name": "count", "type": "number" },
            { "name": "note", "type": "text" },
        ],
    });
    let id = client.send_call("request_user_review", arguments);
    let form = client.notification("elicitation/create");
    let fields = &form["params"]["requestedSchema"]["properties"];
    let colour = &fields["field_colour"];
    assert_eq!(colour["title"], "Which?");
    assert_eq!(colour["default"], "blue");
    assert_eq!(
        colour["oneOf"],
        json!([{ "const": "red", "title": "Red one" }, { "const": "blue", "title": "blue" }])
    );
    let sizes = &fields["field_sizes"];
    assert_eq!(sizes["type"], "array");
    assert_eq!(sizes["items"]["anyOf"].as_array().map(Vec::len), Some(2));
    assert_eq!(sizes["default"], json!(["red"]));
    assert_eq!(fields["field_sure"]["type"], "boolean");
    assert_eq!(fields["field_sure"]["default"], true);
    assert_eq!(fields["field_count"]["type"], "number");
    assert_eq!(fields["field_note"]["type"], "string");
    let content = json!({
        "decision": "approve", "field_sizes": ["red", "blue"], "field_count": 3,
        "field_note": "fine", "field_sure": false,
    });
    let answer = json!({ "action": "accept", "content": content });
    client.send_message(&json!({ "jsonrpc": "2.0", "id": form["id"], "result": answer }));
    let response = client.response_to(id);
    let response = success("request_user_review", &response);
    assert_eq!(response["decision"], "approve");
    let next = client.call("get_next_step", json!({ "planId": plan }));
    let expected = json!({
        "colour": "blue", "sizes": ["red", "blue"], "sure": false, "count": 3, "note": "fine",
    });
    let decision = json!({
        "stepId": response["stepId"], "stepOrder": 1, "decision": "approve", "answers": expected,
    });
    assert_eq!(next["decision"], decision);
    let context = client.call("get_step_context", json!({ "stepId": next["stepId"] }));
    assert_eq!(context["decision"], decision);
    let prior = &context["priorResults"][0];
    assert_eq!(prior["result"]["review"]["answers"], expected);
    let text = prior["resultSummary"].as_str().unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with('→')).collect();
    assert_eq!(lines.len(), 5, "{text}");
}

#[test]
fn invalid_questions_and_answers_are_rejected_with_their_paths() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Stateless);
    let (plan, step) = claimed_step(&mut client);
    let request = |field: Value| json!({ "stepId": step, "summary": "Ready", "fields": [field] });
    for (field, path) in [
        (json!({ "name": "a", "type": "colour" }), "fields[0].type"),
        (json!({ "name": "a b", "type": "text" }), "fields[0].name"),
        (
            json!({ "name": "a", "type": "choice" }),
            "fields[0].options",
        ),
        (
            json!({ "name": "a", "type": "text", "min": 1 }),
            "fields[0].min",
        ),
        (
            json!({ "name": "a", "type": "number", "default": "many" }),
            "fields[0].default",
        ),
    ] {
        let error = client.call_rejected("request_user_review", request(field));
        assert_eq!(error.paths(), [path]);
    }
    client.call(
        "request_user_review",
        request(json!({ "name": "count", "type": "number" })),
    );
    let decision = json!({ "stepId": step, "decision": "approve", "answers": { "count": "many" } });
    let error = client.call_rejected("submit_user_decision", decision);
    assert_eq!(error.paths(), ["answers.count"]);
    let missing = dir.run(&["review", "decide", &plan, "approve"]);
    assert_eq!(missing.code, Some(4), "{missing:?}");
    let arguments = ["review", "decide", &plan, "approve", "--answer", "count=2"];
    dir.run_ok(&arguments);
    let step = dir.run_json(&["--json", "step", "show", &step]);
    assert_eq!(step["data"]["review"]["answers"]["count"], 2, "{step}");
}

#[test]
fn an_invalid_deadline_is_rejected_with_its_path() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Stateless);
    let (_, step) = claimed_step(&mut client);
    for (options, path) in [
        (json!({ "onDeadline": "skip" }), "onDeadline"),
        (json!({ "dueAt": "tomorrow" }), "dueAt"),
        (json!({ "dueAt": "2020-01-01T00:00:00Z" }), "dueAt"),
        (json!({ "remindAfterMs": 1 }), "remindAfterMs"),
        (
            json!({ "remindAfterMs": 5_000, "onDeadline": "modify" }),
            "onDeadline",
        ),
        (
            json!({ "remindAfterMs": 5_000, "dueAt": "2100-01-01T00:00:00Z" }),
            "remindAfterMs",
        ),
    ] {
        let mut arguments = review_arguments(&step);
        let all = arguments.as_object_mut().expect("arguments");
        all.extend(options.as_object().cloned().unwrap_or_default());
        let error = client.call_rejected("request_user_review", arguments);
        assert_eq!(error.paths(), [path]);
    }
}
