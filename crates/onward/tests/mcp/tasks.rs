//! Calls as tasks: every test replaces the server process between all calls, with SIGKILL, on both
//! databases.

use std::time::Instant;

use onward_engine::{TaskOutcome, TaskPhase};
use onward_testbed::mcp_client::{Client, Era, success};
use onward_testbed::mock_server::{MockServer, Reply};
use onward_testbed::{Program, TIMEOUT, model_api};
use serde_json::{Value, json};

use crate::engine::with_engine;
use crate::fixtures;
use crate::program;

const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// A client that kills the server before every request and starts another one.
struct Killer<'p> {
    program: &'p Program,
    capabilities: Value,
    environment: Vec<(String, String)>,
    /// The server of the last request.
    client: Option<Client>,
}

impl<'p> Killer<'p> {
    fn new(program: &'p Program, capabilities: Value) -> Self {
        Self {
            program,
            capabilities,
            environment: Vec::new(),
            client: None,
        }
    }

    fn restart(&mut self) -> &mut Client {
        // Dropping a client kills its server.
        drop(self.client.take());
        let mut command = self.program.command(&["mcp"]);
        let environment = self.environment.iter().map(|(name, value)| (name, value));
        command.envs(environment);
        let client = Client::from_command(&mut command, Era::Stateless, self.capabilities.clone());
        self.client.insert(client)
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        self.restart().request(method, params)
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.restart().call(tool, arguments)
    }

    /// Calls a tool that must return a task. Returns the task's id.
    fn start(&mut self, tool: &str, arguments: Value) -> String {
        let params = json!({ "name": tool, "arguments": arguments });
        let response = self.request("tools/call", params);
        let result = &response["result"];
        assert_eq!(result["resultType"], "task", "{response}");
        assert_eq!(result["status"], "working", "{response}");
        assert_eq!(result["ttlMs"], Value::Null, "{response}");
        assert!(result["pollIntervalMs"].is_u64(), "{response}");
        result["taskId"].as_str().expect("task id").to_owned()
    }

    fn get(&mut self, task: &str) -> Value {
        let response = self.request("tasks/get", json!({ "taskId": task }));
        let result = response["result"].clone();
        assert_eq!(result["resultType"], "complete", "{response}");
        assert_eq!(result["taskId"], task, "{response}");
        result
    }

    fn update(&mut self, task: &str, answer: Value) -> Value {
        let params = json!({ "taskId": task, "inputResponses": { "review": answer } });
        self.request("tasks/update", params)
    }

    fn cancel(&mut self, task: &str) {
        let response = self.request("tasks/cancel", json!({ "taskId": task }));
        assert_eq!(response["result"]["resultType"], "complete", "{response}");
    }

    /// Polls until the task has ended.
    fn outcome(&mut self, task: &str) -> Value {
        let began = Instant::now();
        loop {
            let result = self.get(task);
            if result["status"] != "working" {
                return result;
            }
            assert!(began.elapsed() < TIMEOUT, "{result}");
        }
    }
}

fn with_tasks() -> Value {
    json!({ "extensions": { EXTENSION: {} } })
}

fn with_tasks_and_forms() -> Value {
    json!({ "extensions": { EXTENSION: {} }, "elicitation": {} })
}

fn accept(decision: &str, feedback: &str) -> Value {
    json!({ "action": "accept", "content": { "decision": decision, "feedback": feedback } })
}

fn both_databases() -> [Program; 2] {
    [program(), program().on_postgres()]
}

/// The tool's response in a completed task.
fn content(task: &Value) -> Value {
    assert_eq!(task["status"], "completed", "{task}");
    success("task", &json!({ "result": task["result"] }))
}

/// Creates a plan of one step and claims it. Returns the ids of plan and step.
fn claimed_step(client: &mut Killer<'_>) -> (String, String) {
    let plan = fixtures::create_plan(client.restart(), 1);
    let (step, _) = fixtures::claim_step(client.restart(), &plan);
    (plan, step)
}

fn review_arguments(step: &str) -> Value {
    json!({ "stepId": step, "summary": "Ready to publish", "questions": ["Under which name?"] })
}

/// A plan whose second step depends on the first, which is claimed. Returns the ids of the plan and
/// of the claimed step.
fn started_plan(client: &mut Killer<'_>) -> (String, String, Client) {
    let mut plan = fixtures::plan(2);
    plan["steps"][1]["dependsOn"] = json!([1]);
    let created = client.call("create_research_plan", plan);
    let plan = created["planId"].as_str().expect("plan id").to_owned();
    let mut holder = Client::start(client.program, Era::Stateless);
    let (step, _) = fixtures::claim_step(&mut holder, &plan);
    (plan, step, holder)
}

#[test]
fn a_review_task_survives_the_death_of_the_server_between_all_calls() {
    for dir in both_databases() {
        let mut client = Killer::new(&dir, with_tasks_and_forms());
        let (plan, step) = claimed_step(&mut client);
        let task = client.start("request_user_review", review_arguments(&step));
        for _ in 0..2 {
            let open = client.get(&task);
            assert_eq!(open["status"], "input_required", "{open}");
            let form = &open["inputRequests"]["review"];
            assert_eq!(form["method"], "elicitation/create", "{open}");
            let message = form["params"]["message"].as_str().expect("message");
            assert!(message.contains("Ready to publish") && message.contains("Under which name?"));
            let fields = &form["params"]["requestedSchema"]["properties"];
            assert!(fields["decision"].is_object(), "{open}");
        }
        // An answer that the review rejects leaves it open.
        let refused = client.update(&task, accept("modify", " "));
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
        assert_eq!(
            refused["error"]["data"]["error"]["code"],
            "feedback_required"
        );
        let accepted = client.update(&task, accept("approve", ""));
        assert_eq!(accepted["result"]["resultType"], "complete", "{accepted}");
        let decided = client.get(&task);
        let outcome = content(&decided);
        assert_eq!(outcome["decision"], "approve");
        assert_eq!(outcome["planStatus"], "completed");
        let uri = format!("onward://plan/{plan}");
        assert_eq!(
            decided["result"]["content"][1]["uri"],
            uri.as_str(),
            "{decided}"
        );
        // The outcome is final: later answers and cancellations are acknowledged and ignored.
        client.update(&task, accept("reject", ""));
        client.cancel(&task);
        assert_eq!(client.get(&task), decided);
    }
}

#[test]
fn a_decision_in_another_interface_ends_the_task_with_that_decision() {
    for dir in both_databases() {
        let mut client = Killer::new(&dir, with_tasks());
        let (plan, step) = claimed_step(&mut client);
        let task = client.start("request_user_review", review_arguments(&step));
        // Without forms, the user decides elsewhere.
        assert_eq!(client.get(&task)["status"], "working");
        let modify = json!({ "stepId": step, "decision": "modify", "feedback": "Louder" });
        client.call("submit_user_decision", modify);
        // The plan changes before the client polls.
        let second = client.start("request_user_review", review_arguments(&step));
        let skip = json!({ "stepId": step, "decision": "skip" });
        client.call("submit_user_decision", skip);
        let outcome = content(&client.get(&task));
        assert_eq!(outcome["decision"], "modify", "{outcome}");
        assert_eq!(outcome["planStatus"], "executing");
        let instructions = outcome["instructions"].as_str().expect("instructions");
        assert!(instructions.contains("Louder"));
        assert_eq!(content(&client.get(&second))["decision"], "skip");
        // The task is deleted with its plan.
        with_engine(&dir, async |engine, caller| {
            let plan = plan.parse().expect("plan id");
            engine
                .delete_plan(caller, plan)
                .await
                .expect("plan is deleted");
        });
        let deleted = client.request("tasks/get", json!({ "taskId": task }));
        assert_eq!(deleted["error"]["code"], -32602, "{deleted}");
    }
}

#[test]
fn a_dismissed_form_is_not_shown_again_and_the_review_stays_open() {
    let dir = program();
    let mut client = Killer::new(&dir, with_tasks_and_forms());
    let (plan, step) = claimed_step(&mut client);
    let task = client.start("request_user_review", review_arguments(&step));
    // Answers to unknown keys are ignored.
    let params = json!({ "taskId": task, "inputResponses": { "other": accept("approve", "") } });
    let ignored = client.request("tasks/update", params);
    assert_eq!(ignored["result"]["resultType"], "complete", "{ignored}");
    assert_eq!(client.get(&task)["status"], "input_required");
    client.update(&task, json!({ "action": "decline" }));
    assert_eq!(client.get(&task)["status"], "working");
    client.update(&task, accept("reject", ""));
    let next = client.call("get_next_step", json!({ "planId": plan }));
    assert_eq!(next["status"], "awaiting_review", "{next}");
    // A cancelled task does not withdraw the review.
    client.cancel(&task);
    assert_eq!(client.get(&task)["status"], "cancelled");
    let next = client.call("get_next_step", json!({ "planId": plan }));
    assert_eq!(next["status"], "awaiting_review", "{next}");
}

#[test]
fn a_waiting_task_returns_its_claim_until_the_client_has_it() {
    for dir in both_databases() {
        let mut client = Killer::new(&dir, with_tasks());
        let (plan, first, _holder) = started_plan(&mut client);
        let wait = json!({ "planId": plan, "waitMs": 60_000 });
        let task = client.start("get_next_step", wait);
        assert_eq!(client.get(&task)["status"], "working");
        let result = json!({ "stepId": first, "resultSummary": "done" });
        client.call("submit_step_result", result);
        let claimed = client.get(&task);
        let step = content(&claimed);
        assert_eq!(step["status"], "step_started", "{step}");
        // A lost response is repeated.
        assert_eq!(client.get(&task), claimed);
        let result = json!({
            "stepId": step["stepId"], "claimToken": step["claimToken"], "resultSummary": "done",
        });
        let submitted = client.call("submit_step_result", result);
        assert_eq!(submitted["planStatus"], "completed", "{submitted}");
        assert_eq!(client.get(&task), claimed);
        let complete = client.call("get_next_step", json!({ "planId": plan, "waitMs": 60_000 }));
        assert_eq!(complete["status"], "plan_complete");
    }
}

#[test]
fn a_waiting_task_ends_with_its_time_and_a_cancelled_one_claims_nothing() {
    let dir = program();
    let mut client = Killer::new(&dir, with_tasks());
    let (plan, first, _holder) = started_plan(&mut client);
    let task = client.start("get_next_step", json!({ "planId": plan, "waitMs": 1 }));
    assert_eq!(
        content(&client.outcome(&task))["status"],
        "no_pending_steps"
    );
    let task = client.start("get_next_step", json!({ "planId": plan, "waitMs": 60_000 }));
    client.cancel(&task);
    let result = json!({ "stepId": first, "resultSummary": "done" });
    client.call("submit_step_result", result);
    assert_eq!(client.get(&task)["status"], "cancelled");
    let next = client.call("get_next_step", json!({ "planId": plan }));
    assert_eq!(next["status"], "step_started", "{next}");
}

#[test]
fn an_extraction_continues_on_another_server() {
    for dir in both_databases() {
        // The model answers nothing until the first server is dead.
        let silent = MockServer::with_handler(|_| Reply::never());
        let mut client = Killer::new(&dir, with_tasks());
        client.environment = model(&format!("{}/v1", silent.url));
        let schema = json!({ "type": "object", "required": ["moons"] });
        let arguments = json!({ "schema": schema, "sourceText": "Io and Europa" });
        let task = client.start("extract_data", arguments);
        assert_eq!(client.get(&task)["status"], "working");
        client.environment = model(&model_api::start());
        drop(client.client.take());
        expire_lease(&dir, &task);
        // This server runs the call; later ones wait for its lease.
        let id = task.clone();
        let extracted = {
            let server = client.restart();
            let began = Instant::now();
            loop {
                let response = server.request("tasks/get", json!({ "taskId": id }));
                if response["result"]["status"] != "working" {
                    break response["result"].clone();
                }
                assert!(began.elapsed() < TIMEOUT, "{response}");
            }
        };
        assert_eq!(content(&extracted)["data"], json!({ "moons": 2 }));
        assert_eq!(client.get(&task), extracted);
    }
}

#[test]
fn a_call_that_kills_the_server_is_not_started_forever() {
    let dir = program();
    let silent = MockServer::with_handler(|_| Reply::never());
    let mut client = Killer::new(&dir, with_tasks());
    client.environment = model(&format!("{}/v1", silent.url));
    let arguments = json!({ "schema": {}, "sourceText": "Io" });
    let task = client.start("extract_data", arguments);
    for _ in 0..2 {
        drop(client.client.take());
        expire_lease(&dir, &task);
        assert_eq!(client.get(&task)["status"], "working");
    }
    drop(client.client.take());
    expire_lease(&dir, &task);
    let failed = client.get(&task);
    assert_eq!(failed["status"], "failed", "{failed}");
    assert_eq!(failed["error"]["code"], -32603, "{failed}");
    // Invalid arguments are reported without a task.
    let rejected = client
        .restart()
        .call_rejected("extract_data", json!({ "schema": {}, "x": 1 }));
    assert_eq!(rejected.code, "invalid_input");
}

fn model(url: &str) -> Vec<(String, String)> {
    let setting =
        |name: &str, value: &str| (format!("ONWARD_EXTRACTION__{name}"), value.to_owned());
    vec![setting("URL", url), setting("MODEL", "m")]
}

/// Ends the lease of a dead server, as the time would.
fn expire_lease(dir: &Program, task: &str) {
    with_engine(dir, async |engine, caller| {
        let caller = &onward_engine::Caller {
            name: owner(dir),
            ..caller.clone()
        };
        let stored = engine.task(caller, task.parse().expect("task id")).await;
        let stored = stored.expect("task is stored");
        let TaskPhase::Active(mut state) = stored.phase.clone() else {
            panic!("the task has ended: {stored:?}");
        };
        state["leasedUntil"] = 0.into();
        let changed = engine.change_task(caller, &stored, state).await;
        assert!(changed.expect("task is changed").is_some());
    });
}

/// The name of the user of this machine.
fn owner(dir: &Program) -> String {
    let mut client = Client::start(dir, Era::Stateless);
    let profile = json!({ "uri": "onward://user/profile" });
    let profile = client.request("resources/read", profile);
    let text = profile["result"]["contents"][0]["text"].as_str();
    let profile: Value = serde_json::from_str(text.expect("text")).expect("JSON");
    profile["user"].as_str().expect("user").to_owned()
}

#[test]
fn only_a_client_that_declares_the_extension_gets_tasks() {
    let dir = program();
    let mut client = Killer::new(&dir, with_tasks());
    let (_, step) = claimed_step(&mut client);
    let discovered = client.request("server/discover", json!({}));
    let extensions = &discovered["result"]["capabilities"]["extensions"];
    assert_eq!(extensions[EXTENSION], json!({}), "{discovered}");
    let task = client.start("request_user_review", review_arguments(&step));
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let unknown = json!({ "taskId": "x", "inputResponses": {} });
        let unknown = client.request(method, unknown);
        assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    }
    client.capabilities = json!({});
    let review = client.call("request_user_review", review_arguments(&step));
    assert_eq!(review["planStatus"], "awaiting_review");
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let params = json!({ "taskId": task, "inputResponses": {} });
        let refused = client.request(method, params);
        assert_eq!(refused["error"]["code"], -32021, "{refused}");
    }
    // 2025-11-25 has no such extension.
    let mut old = Client::with_options(&dir, Era::Handshake, &[], with_tasks());
    let review = old.call("request_user_review", review_arguments(&step));
    assert_eq!(review["planStatus"], "awaiting_review");
    with_engine(&dir, async |engine, caller| {
        let ended = engine.end_task(caller, task.parse().unwrap(), TaskOutcome::Cancelled);
        assert!(ended.await.is_err(), "another caller must not see the task");
    });
}
