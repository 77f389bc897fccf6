//! The official client works through a whole plan, in both eras and on both databases: branches, a
//! review, a step that falls silent and is taken over, a result that comes too late.

use rmcp::model::{CallToolRequestParams, CallToolResult, ClientConfig, ProtocolVersion};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt, RoleClient, RunningService};
use rmcp::transport::TokioChildProcess;
use serde_json::{Value, json};

use crate::agent::{ERAS, Era};
use crate::place::Place;

struct Client(RunningService<RoleClient, ClientConfig>);

impl Client {
    async fn start(place: &Place, era: Era) -> Self {
        let mut command = tokio::process::Command::from(place.onward());
        command.arg("mcp");
        let process = TokioChildProcess::new(command).expect("the binary starts");
        let lifecycle = match era {
            Era::Handshake => ClientLifecycleMode::Initialize,
            Era::Stateless => ClientLifecycleMode::Discover {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            },
        };
        let client = ClientConfig::default();
        let running = client.serve_with_lifecycle(process, lifecycle).await;
        Self(running.expect("they understand each other"))
    }

    async fn send(&self, tool: &str, arguments: Value) -> CallToolResult {
        let arguments = arguments.as_object().expect("an object").clone();
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let answer = self.0.call_tool(params).await;
        answer.unwrap_or_else(|why| panic!("{tool}: {why}"))
    }

    async fn call(&self, tool: &str, arguments: Value) -> Value {
        let answer = self.send(tool, arguments).await;
        assert_ne!(answer.is_error, Some(true), "{tool}: {answer:?}");
        answer.structured_content.expect("structured content")
    }

    async fn refused(&self, tool: &str, arguments: Value) -> Value {
        let answer = self.send(tool, arguments).await;
        assert_eq!(answer.is_error, Some(true), "{tool}: {answer:?}");
        assert!(answer.structured_content.is_none(), "{tool}");
        let text = answer.content[0].as_text().expect("a text");
        let said: Value = serde_json::from_str(&text.text).expect("the text is JSON");
        said["error"].clone()
    }

    async fn next(&self, plan: &Value) -> Value {
        let next = self.call("get_next_step", json!({ "planId": plan })).await;
        assert_eq!(next["status"], "step_started", "{next}");
        next
    }
}

/// Seven steps: one is passed over by a branch, one is added by another.
fn plan() -> Value {
    let step =
        |kind: &str, instructions: &str| json!({ "stepType": kind, "instructions": instructions });
    json!({
        "name": "Whole",
        "researchQuestion": "Does all of it work?",
        "sessionId": "first",
        "outputFormattingNotes": "Short.",
        "steps": [
            step("search", "Find"),
            step("extract", "Passed over"),
            step("analyze", "Think"),
            step("critique", "Doubt"),
            step("synthesize", "Write"),
        ],
        "branchingConditions": [
            {
                "afterStepOrder": 1,
                "conditionExpression": "result.sources.size() >= 2",
                "ifTrueAction": "skip_to",
                "actionParams": { "targetStepOrder": 3 },
            },
            {
                "afterStepOrder": 3,
                "conditionExpression": "confidence < 0.5",
                "ifTrueAction": "add_steps",
                "actionParams": { "steps": [step("search", "Look again")] },
            },
        ],
    })
}

async fn walk(place: &Place, era: Era) {
    let client = Client::start(place, era).await;
    let skill = client
        .call(
            "log_skill_execution",
            json!({
                "skillName": "research",
                "status": "started",
                "sessionId": "first",
                "metadata": { "outputMediaType": "text/markdown" },
            }),
        )
        .await;
    let made = client.call("create_research_plan", plan()).await;
    assert_eq!(made["skillExecutionId"], skill["executionId"]);
    assert_eq!(made["stepCount"], 5);
    assert_eq!(made["firstStep"]["instructions"], "Find");
    let plan = &made["planId"];

    branches(&client, plan).await;
    let late = take_over(&client, plan).await;
    review(&client, plan).await;
    end(&client, plan, &late).await;

    client.0.cancel().await.expect("it ends");
    let trail = place.json(&["plan", "log", plan.as_str().expect("an id")]);
    let events = trail["events"].as_array().expect("a trail");
    let names: Vec<&str> = events
        .iter()
        .filter_map(|event| event["eventType"].as_str())
        .collect();
    for name in [
        "branch_taken",
        "step_requeued",
        "user_reviewed",
        "plan_completed",
    ] {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
    place.run(&["doctor"]);
}

/// Steps 1 and 3: one branch passes over step 2, the other adds a step.
async fn branches(client: &Client, plan: &Value) {
    let step = client.next(plan).await;
    let submitted = client
        .call(
            "submit_step_result",
            json!({
                "stepId": step["stepId"],
                "claimToken": step["claimToken"],
                "resultSummary": "Two",
                "result": { "sources": ["a", "b"] },
                "claimNext": true,
            }),
        )
        .await;
    assert_eq!(submitted["branchTaken"]["action"], "skip_to");
    let skipped = submitted["branchTaken"]["skippedStepIds"].as_array();
    assert_eq!(skipped.map(Vec::len), Some(1));
    let step = &submitted["nextStep"];
    assert_eq!(step["stepOrder"], 3);
    let context = json!({ "stepId": step["stepId"] });
    let context = client.call("get_step_context", context).await;
    assert_eq!(context["priorResults"][0]["resultSummary"], "Two");
    let submitted = client
        .call(
            "submit_step_result",
            json!({
                "stepId": step["stepId"],
                "claimToken": step["claimToken"],
                "resultSummary": "Not sure",
                "confidence": 0.2,
            }),
        )
        .await;
    assert_eq!(submitted["next"], "get_next_step");
    let added = submitted["branchTaken"]["addedStepIds"].as_array();
    assert_eq!(added.map(Vec::len), Some(1));
}

/// Step 4 falls silent and is handed out again; the first agent's result comes too late, and is kept.
async fn take_over(client: &Client, plan: &Value) -> Value {
    let silent = client.next(plan).await;
    assert_eq!(silent["instructions"], "Look again");
    // Nobody waits half an hour here: the step is given back by hand, as a stall would.
    client
        .call(
            "modify_plan",
            json!({ "planId": plan, "action": "requeue_step", "stepId": silent["stepId"] }),
        )
        .await;
    let taken = client.next(plan).await;
    assert_eq!(taken["stepId"], silent["stepId"]);
    assert_eq!(taken["attempt"], 2);
    let late = client
        .refused(
            "submit_step_result",
            json!({
                "stepId": silent["stepId"],
                "claimToken": silent["claimToken"],
                "resultSummary": "Too late",
            }),
        )
        .await;
    assert_eq!(late["code"], "claim_superseded");
    assert!(late["details"]["keptArtifactId"].is_string(), "{late}");
    let progress =
        json!({ "stepId": taken["stepId"], "claimToken": taken["claimToken"], "percent": 50 });
    let progress = client.call("report_step_progress", progress).await;
    assert_eq!(progress["planStatus"], "executing");
    let submission = json!({
        "stepId": taken["stepId"],
        "claimToken": taken["claimToken"],
        "resultSummary": "Found",
        "claimNext": true,
    });
    let once = client.call("submit_step_result", submission.clone()).await;
    let twice = client.call("submit_step_result", submission).await;
    assert_eq!(once, twice, "the same result gets the same answer");
    late["details"]["keptArtifactId"].clone()
}

/// Step 5 asks a person, who wants it otherwise first, and then approves.
async fn review(client: &Client, plan: &Value) {
    let status = client
        .call("get_plan_status", json!({ "planId": plan }))
        .await;
    let step = &status["currentStep"]["stepId"];
    let asked = json!({ "stepId": step, "summary": "Is it good?", "questions": ["Really?"] });
    let asked = client.call("request_user_review", asked).await;
    assert_eq!(asked["planStatus"], "awaiting_review");
    assert!(
        asked.get("decision").is_none(),
        "nobody was asked in a form"
    );
    let next = client
        .call("get_next_step", json!({ "planId": plan }))
        .await;
    assert_eq!(next["status"], "awaiting_review");
    assert_eq!(next["review"]["reviewId"], asked["reviewId"]);
    let decide = |decision: &str, feedback: Value| json!({ "stepId": step, "decision": decision, "feedback": feedback });
    let refused = client
        .refused("submit_user_decision", decide("modify", Value::Null))
        .await;
    assert_eq!(refused["code"], "feedback_required");
    let decided = client
        .call("submit_user_decision", decide("modify", "Shorter".into()))
        .await;
    assert_eq!(decided["stepStatus"], "in_progress");
    let instructions = decided["instructions"].as_str().expect("a text");
    assert!(instructions.contains("User feedback:"), "{instructions}");
    let again = client.next(plan).await;
    assert_eq!(again["stepId"], *step, "told once of what was decided");
    let asked = json!({ "stepId": step, "summary": "Now?" });
    client.call("request_user_review", asked).await;
    let decided = client
        .call("submit_user_decision", decide("approve", Value::Null))
        .await;
    assert_eq!(decided["stepStatus"], "completed");
}

/// The last step, and what remains of it all.
async fn end(client: &Client, plan: &Value, late: &Value) {
    let step = client.next(plan).await;
    let submitted = client
        .call(
            "submit_step_result",
            json!({ "stepId": step["stepId"], "resultSummary": "All of it", "claimNext": true }),
        )
        .await;
    assert_eq!(submitted["next"], "plan_complete");
    let end = &submitted["nextStep"];
    assert_eq!(end["status"], "plan_complete");
    assert_eq!(end["outputMediaType"], "text/markdown");
    assert_eq!(end["planFormattingNotes"], "Short.");
    let status = client
        .call("get_plan_status", json!({ "planId": plan }))
        .await;
    assert_eq!(status["status"], "completed");
    assert_eq!(status["progress"], 100);
    let feedback = json!({ "planId": plan, "rating": 5 });
    let feedback = client.call("submit_feedback", feedback).await;
    assert!(feedback["feedbackId"].is_string());
    let context = json!({ "planId": plan, "sessionId": "second" });
    let context = client.call("get_research_context", context).await;
    let artifacts = context["artifacts"].as_array().expect("a list");
    assert!(
        artifacts.iter().any(|one| one["artifactId"] == *late),
        "{context}"
    );
    assert_eq!(context["steps"].as_array().map(Vec::len), Some(6));
    let active = client.call("list_active_plans", json!({})).await;
    assert_eq!(active["plans"], json!([]));
}

fn run(place: &Place, era: Era) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime starts");
    runtime.block_on(walk(place, era));
}

#[test]
fn a_whole_plan_is_worked_through_on_a_file() {
    for era in ERAS {
        run(&Place::file(), era);
    }
}

#[test]
fn a_whole_plan_is_worked_through_on_a_server() {
    for era in ERAS {
        run(&Place::server(), era);
    }
}

/// The sweep runs beside the agents: it marks the plan of a silent one, and whoever asks for stalled
/// steps resumes the plan and takes over.
#[test]
fn a_silent_step_is_noticed_and_taken_over() {
    let place = Place::file();
    let mut agent = crate::agent::Agent::start(&place, Era::Handshake);
    let mut plan = crate::works::plan(1);
    plan["stallThresholdMs"] = json!(1);
    let plan = agent.call("create_research_plan", plan)["planId"].clone();
    agent.ask("resources/subscribe", json!({ "uri": "onward://plans" }));
    let silent = agent.call("get_next_step", json!({ "planId": plan }));
    // Every change of a plan is told, so nobody has to look again and again.
    loop {
        agent.note("notifications/resources/updated");
        let status = agent.call("get_plan_status", json!({ "planId": plan }));
        if status["status"] == "stalled" {
            assert_eq!(status["stalledSteps"][0]["stepId"], silent["stepId"]);
            break;
        }
    }
    let taken = agent.call(
        "get_next_step",
        json!({ "planId": plan, "includeStalled": true, "sessionId": "second" }),
    );
    assert_eq!(taken["stepId"], silent["stepId"]);
    assert_eq!(taken["attempt"], 2);
}
