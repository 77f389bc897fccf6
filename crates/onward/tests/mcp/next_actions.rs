//! Every `next` of a response names a call that works: the tests follow it like an agent.

use onward_testbed::mcp_client::{Client, Era};
use serde_json::{Value, json};

use crate::fixtures;
use crate::program;

/// The first tool that a text names in backticks, besides fields.
fn named_tool(text: &str) -> &str {
    let mut quoted = text.split('`').skip(1).step_by(2);
    let is_tool = |word: &&str| {
        word.contains('_')
            && word
                .chars()
                .all(|char| char.is_ascii_lowercase() || char == '_')
    };
    quoted
        .find(is_tool)
        .unwrap_or_else(|| panic!("no tool in {text:?}"))
}

/// An agent with one plan that calls what `next` names.
struct Agent {
    client: Client,
    plan: String,
    /// The step that the agent holds, with its token.
    step: Option<(Value, Value)>,
}

impl Agent {
    fn with_plan(plan: Value) -> Self {
        let mut client = Client::start(&program(), Era::Stateless);
        let created = client.call("create_research_plan", plan);
        let plan = created["planId"].as_str().expect("plan id").to_owned();
        Self {
            client,
            plan,
            step: None,
        }
    }

    fn hold(&mut self, started: &Value) {
        assert_eq!(started["status"], "step_started", "{started}");
        self.step = Some((started["stepId"].clone(), started["claimToken"].clone()));
    }

    fn context(&mut self) -> Value {
        let plan = json!({ "planId": self.plan });
        self.client.call("get_research_context", plan)
    }

    /// Follows the `next` of the context and returns the tool with its response.
    fn follow_context(&mut self) -> (String, Value) {
        let context = self.context();
        let next = context["next"].as_str().expect("next action").to_owned();
        assert!(!next.contains("waitMs"), "nothing to wait for: {next}");
        let tool = named_tool(&next).to_owned();
        let response = self.call(&tool, &next);
        (tool, response)
    }

    fn call(&mut self, tool: &str, next: &str) -> Value {
        let held = self.step.clone();
        let (step, token) = held.unwrap_or_default();
        let plan = self.plan.clone();
        let arguments = match tool {
            "get_next_step" => {
                let stalled = next.contains("includeStalled");
                json!({ "planId": plan, "includeStalled": stalled })
            }
            "submit_step_result" => json!({
                "stepId": step, "claimToken": token, "resultSummary": "Done.",
            }),
            "submit_user_decision" => json!({ "stepId": step, "decision": "approve" }),
            "store_research_output" => {
                json!({ "planId": plan, "title": "Report", "content": "All of it." })
            }
            "create_research_plan" => fixtures::plan(1),
            "modify_plan" => json!({
                "planId": plan, "action": "redo_step", "stepId": step, "reason": "again",
            }),
            other => panic!("`{other}` in {next:?}"),
        };
        let response = self.client.call(tool, arguments);
        match tool {
            "get_next_step" if response["status"] == "step_started" => self.hold(&response),
            "submit_step_result" => self.step = None,
            _ => {}
        }
        response
    }
}

#[test]
fn an_agent_that_follows_the_context_finishes_the_plan() {
    let mut agent = Agent::with_plan(fixtures::plan(2));
    let mut tools = Vec::new();
    loop {
        let (tool, response) = agent.follow_context();
        tools.push(tool);
        if response.get("outputId").is_some() {
            break;
        }
        assert!(tools.len() < 10, "{tools:?}");
    }
    let per_step = ["get_next_step", "submit_step_result"];
    let expected = [&per_step[..], &per_step, &["store_research_output"]].concat();
    assert_eq!(tools, expected);
}

#[test]
fn an_agent_that_follows_its_results_finishes_the_plan() {
    let mut agent = Agent::with_plan(fixtures::plan(3));
    agent.call("get_next_step", "");
    for remaining in (0..3).rev() {
        let (step, token) = agent.step.take().expect("a claimed step");
        let submitted = agent.client.call(
            "submit_step_result",
            json!({
                "stepId": step, "claimToken": token, "claimNext": true,
                "resultSummary": "Done.",
            }),
        );
        if remaining == 0 {
            assert_eq!(submitted["next"], "plan_complete", "{submitted}");
            let next = submitted["nextStep"]["next"].as_str().expect("last action");
            assert_eq!(named_tool(next), "store_research_output");
            let stored = agent.call("store_research_output", next);
            assert!(stored["outputId"].is_string(), "{stored}");
        } else {
            assert_eq!(submitted["next"], "submit_step_result", "{submitted}");
            agent.hold(&submitted["nextStep"]);
        }
    }
}

#[test]
fn a_result_without_a_claim_names_the_request_for_the_next_step() {
    let mut agent = Agent::with_plan(fixtures::plan(2));
    agent.call("get_next_step", "");
    let submitted = agent.call("submit_step_result", "");
    assert_eq!(submitted["next"], "get_next_step");
    let next = agent.call("get_next_step", "");
    assert_eq!(next["status"], "step_started");
}

#[test]
fn a_review_names_the_decision() {
    let mut agent = Agent::with_plan(fixtures::plan(2));
    agent.call("get_next_step", "");
    let (step, _) = agent.step.clone().expect("a claimed step");
    let review = json!({ "stepId": step, "summary": "Ready" });
    agent.client.call("request_user_review", review);
    let (tool, decided) = agent.follow_context();
    assert_eq!(tool, "submit_user_decision");
    assert_eq!(decided["stepStatus"], "completed", "{decided}");
}

#[test]
fn a_failed_plan_names_a_new_one() {
    let mut plan = fixtures::plan(1);
    plan["branchingConditions"] = json!([{
        "afterStepOrder": 1, "conditionExpression": "true", "ifTrueAction": "fail",
    }]);
    let mut agent = Agent::with_plan(plan);
    agent.call("get_next_step", "");
    let submitted = agent.call("submit_step_result", "");
    assert_eq!(submitted["next"], "plan_failed");
    let (tool, created) = agent.follow_context();
    assert_eq!(tool, "create_research_plan");
    assert!(created["planId"].is_string(), "{created}");
}

#[test]
fn a_blocked_plan_names_the_redo_of_the_failed_step() {
    let mut plan = fixtures::plan(2);
    plan["steps"][1]["dependsOn"] = json!([1]);
    let mut agent = Agent::with_plan(plan);
    agent.call("get_next_step", "");
    let (step, _) = agent.step.clone().expect("a claimed step");
    let fail = json!({
        "planId": agent.plan, "action": "fail_step", "stepId": step, "reason": "no access",
    });
    agent.client.call("modify_plan", fail);
    let plan = json!({ "planId": agent.plan });
    let none = agent.client.call("get_next_step", plan);
    assert_eq!(none["status"], "no_pending_steps");
    assert_eq!(
        (&none["blockedCount"], &none["inProgressCount"]),
        (&json!(1), &json!(0))
    );
    assert_eq!(
        named_tool(none["hint"].as_str().expect("hint")),
        "modify_plan"
    );
    let (tool, _) = agent.follow_context();
    assert_eq!(tool, "modify_plan");
    let next = agent.call("get_next_step", "");
    assert_eq!(next["status"], "step_started", "{next}");
}

#[test]
fn a_step_names_the_outcomes_of_its_dependencies() {
    let mut plan = fixtures::plan(3);
    plan["steps"][2]["dependsOn"] = json!([1, 2]);
    plan["onDependencyFailure"] = json!("continue");
    let mut agent = Agent::with_plan(plan);
    agent.call("get_next_step", "");
    agent.call("submit_step_result", "");
    agent.call("get_next_step", "");
    let (step, _) = agent.step.clone().expect("a claimed step");
    let fail = json!({
        "planId": agent.plan, "action": "fail_step", "stepId": step, "reason": "no access",
    });
    agent.client.call("modify_plan", fail);
    let next = agent.call("get_next_step", "");
    let context = json!({ "stepId": next["stepId"] });
    let context = agent.client.call("get_step_context", context);
    for dependencies in [&next["dependencies"], &context["dependencies"]] {
        let outcome = |index: usize| {
            let dependency = &dependencies[index];
            (dependency["step"].as_u64(), dependency["status"].as_str())
        };
        assert_eq!(outcome(0), (Some(1), Some("completed")), "{dependencies}");
        assert_eq!(outcome(1), (Some(2), Some("failed")), "{dependencies}");
        assert_eq!(dependencies[0]["resultSummary"], "Done.");
        assert!(
            dependencies[1]["reason"]
                .as_str()
                .is_some_and(|why| why.contains("no access"))
        );
    }
}

#[test]
fn a_session_that_starts_later_continues_immediately() {
    let program = program();
    let mut first = Client::start(&program, Era::Stateless);
    let plan = fixtures::create_plan(&mut first, 1);
    let step = first.call("get_next_step", json!({ "planId": plan }));
    let again = first.call("get_next_step", json!({ "planId": plan }));
    assert_eq!(again["resumed"], true);
    for field in ["stepId", "claimToken", "attempt", "instructions"] {
        assert_eq!(again[field], step[field], "{again}");
    }
    first.close();
    let listed = program.run_json(&["plan", "list", "--json"]);
    assert_eq!(listed["plans"][0]["attention"], "no_agent", "{listed}");
    let sessions = program.run_json(&["session", "list", "--json"]);
    assert_eq!(sessions["sessions"][0]["planId"], plan, "{sessions}");
    let client = Client::start(&program, Era::Stateless);
    let mut agent = Agent {
        client,
        plan,
        step: None,
    };
    let (tool, taken) = agent.follow_context();
    assert_eq!(tool, "get_next_step");
    assert_eq!(
        (&taken["stepId"], &taken["attempt"]),
        (&step["stepId"], &json!(2))
    );
    assert!(taken.get("resumed").is_none(), "{taken}");
    let late = first_result(&step);
    let rejected = agent.client.call_rejected("submit_step_result", late);
    assert_eq!(rejected.code, "claim_superseded");
    let submitted = agent.call("submit_step_result", "");
    assert_eq!(submitted["next"], "plan_complete");
}

fn first_result(step: &Value) -> Value {
    json!({
        "stepId": step["stepId"], "claimToken": step["claimToken"],
        "resultSummary": "Late.",
    })
}
