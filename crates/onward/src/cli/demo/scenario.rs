//! The sequence of events of the demo.
//!
//! Two sessions of one agent work on a plan about heat pumps: `laptop`, which stops in the middle
//! of a step, and `desk`, which takes over. All calls are regular MCP tool calls and hooks. The
//! demo waits for the effects of the sweep and of the user's decision.

use std::process::{Child, Command};
use std::time::Duration;

use onward_engine::machine::detects_exits;
use serde_json::{Value, json};

use super::agent::{Agent, RUN_AGAIN, run_hook};
use super::narrator::Narrator;
use super::server::Server;
use crate::failure::{Failure, Result};
use crate::output::format;

/// The session that stops.
const LAPTOP: &str = "laptop";
/// The session that takes over.
const DESK: &str = "desk";
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// How long to wait for the sweep.
const SWEEP_TIMEOUT: Duration = Duration::from_secs(30);
/// Steps without progress until the tools are disabled.
const IDLE_STEPS: u32 = 8;
const REPORT: &str = "report this bug";
const SEE_LOG: &str = "see the log of the server with `onward -v demo`";

pub(super) struct Scenario<'a> {
    server: &'a Server,
    narrator: &'a Narrator,
    agent: Agent,
    is_fast: bool,
}

/// A step assigned to a session.
struct ClaimedStep {
    step: String,
    token: String,
    order: u64,
    title: String,
    attempt: u64,
}

impl ClaimedStep {
    fn name(&self) -> String {
        match self.attempt {
            0 | 1 => format!("step {}: {}", self.order, self.title),
            attempt => format!("step {}: {}, attempt {attempt}", self.order, self.title),
        }
    }
}

impl<'a> Scenario<'a> {
    pub(super) fn new(server: &'a Server, narrator: &'a Narrator, is_fast: bool) -> Result<Self> {
        Ok(Self {
            agent: Agent::new(server)?,
            server,
            narrator,
            is_fast,
        })
    }

    /// Runs all chapters, and returns the id of the plan.
    pub(super) async fn run(&self) -> Result<String> {
        let plan = self.create_plan().await?;
        self.skip_by_branch(&plan).await?;
        self.take_over_a_stuck_step(&plan).await?;
        self.stop_a_looping_turn(&plan).await?;
        self.interrupt_a_dead_call().await?;
        if self.request_review(&plan).await? {
            self.complete_plan(&plan).await?;
        }
        Ok(plan)
    }

    async fn create_plan(&self) -> Result<String> {
        let narrator = self.narrator;
        narrator.chapter(1, "An agent creates a plan").await?;
        // Long enough for a working agent, short enough to watch.
        let stall_threshold = if self.is_fast { 700 } else { 4_000 };
        let step = |kind: &str, title: &str, instructions: &str| json!({ "stepType": kind, "title": title, "instructions": instructions });
        let mut collect = step(
            "extract",
            "Collect the figures",
            "Collect efficiency, noise and price from each test.",
        );
        collect["stallThresholdMs"] = json!(stall_threshold);
        let check = step(
            "critique",
            "Check the outlier",
            "One price is far from the others. Find out why before you continue.",
        );
        let arguments = json!({
            "name": "Which heat pump for an old house?",
            "researchQuestion": "Which heat pump suits a house from 1965 with radiators, and what does it cost over 20 years?",
            "sessionId": LAPTOP,
            "steps": [
                step("search", "Find tests", "Find independent tests of heat pumps in existing houses."),
                step("search", "Find more tests", "Search for tests in other languages."),
                collect,
                step("analyze", "Costs over 20 years", "Calculate the costs over 20 years for each candidate."),
                step("checkpoint", "Choose a candidate", "Ask the user which candidate to recommend."),
                step("synthesize", "Recommend", "Write a one-page recommendation."),
            ],
            "branchingConditions": [
                {
                    "afterStepOrder": 1,
                    "conditionExpression": "confidence >= 0.8",
                    "ifTrueAction": "skip_to",
                    "actionParams": { "targetStepOrder": 3 },
                },
                {
                    "afterStepOrder": 4,
                    "conditionExpression": "result.spreadPercent > 25",
                    "ifTrueAction": "add_steps",
                    "actionParams": { "steps": [check] },
                },
            ],
        });
        let created = self.agent.call("create_research_plan", arguments).await?;
        let plan = text(&created, "planId");
        narrator
            .call(LAPTOP, "create_research_plan", "6 steps, 2 branches")
            .await?;
        narrator
            .explain(
                "The plan is on disk before the agent gets the response; so is every later change. \
                 The agent requests each step; the server never pushes work.",
            )
            .await?;
        Ok(plan)
    }

    async fn skip_by_branch(&self, plan: &str) -> Result<()> {
        let narrator = self.narrator;
        narrator.chapter(2, "A branch skips a step").await?;
        let step = self.next(plan, LAPTOP, false).await?;
        let result = json!({
            "resultSummary": "Four independent tests from 2024 to 2026 that use the same method.",
            "confidence": 0.9,
            "result": { "tests": 4 },
        });
        self.submit(&step, LAPTOP, result, "four tests, confidence 0.9")
            .await?;
        narrator
            .explain(
                "The plan has a branch: after step 1, if `confidence >= 0.8`, skip to step 3. The \
                 confidence was 0.9, so step 2 (Find more tests) is skipped. The audit trail \
                 records the condition.",
            )
            .await
    }

    async fn take_over_a_stuck_step(&self, plan: &str) -> Result<()> {
        let narrator = self.narrator;
        narrator.chapter(3, "A stuck step is taken over").await?;
        let stuck = self.next(plan, LAPTOP, false).await?;
        narrator
            .incident(LAPTOP, "… is closed in the middle of the step")
            .await?;
        self.wait_until_stalled(plan).await?;
        narrator
            .incident("onward", "marks the plan as stuck: no update for step 3")
            .await?;
        narrator
            .explain(
                "The default limit is 30 minutes without an update; this step has a limit of \
                 seconds. The step is still assigned to the laptop. The dashboard shows which step \
                 is stuck, since when, and what you can do. Here another session takes it over.",
            )
            .await?;
        let step = self.next(plan, DESK, true).await?;
        let result = json!({
            "resultSummary": "Efficiency 3.9 to 4.6, 29 to 54 dB, 14,000 to 23,000 euros.",
            "confidence": 0.8,
            "result": { "candidates": 4 },
        });
        self.submit(&step, DESK, result, "figures for four candidates")
            .await?;
        let late = json!({
            "stepId": stuck.step,
            "claimToken": stuck.token,
            "sessionId": LAPTOP,
            "resultSummary": "Efficiency and price of two candidates.",
        });
        let late = self.agent.try_call("submit_step_result", late).await?;
        let Err(refusal) = late else {
            let message = "demo failed: the server accepted a late result";
            return Err(Failure::failed(message, REPORT));
        };
        let result = format!("rejected: {}", refusal.code());
        narrator.call(LAPTOP, "submit_step_result", &result).await?;
        if refusal.details.get("keptArtifactId").is_none() {
            let message = "demo failed: the server did not store a late result";
            return Err(Failure::failed(message, REPORT));
        }
        narrator
            .explain(
                "The laptop resumes and submits its result. Its claim was taken over, so the result \
                 is rejected and the step does not change. No work is lost: the late result is \
                 stored as an artifact, whose id is in the error.",
            )
            .await
    }

    async fn stop_a_looping_turn(&self, plan: &str) -> Result<()> {
        let narrator = self.narrator;
        narrator.chapter(4, "A looping turn is stopped").await?;
        let step = self.next(plan, DESK, false).await?;
        self.run_hook(&json!({ "hook_event_name": "UserPromptSubmit", "prompt": "Continue." }))?;
        for number in 1..=IDLE_STEPS {
            let event = json!({
                "hook_event_name": "PostToolBatch",
                "tool_calls": [{
                    "tool_name": "Bash",
                    "tool_input": { "command": ":" },
                    "tool_use_id": format!("toolu_{number}"),
                    "tool_response": "",
                }],
            });
            let response = self.run_hook(&event)?;
            narrator
                .call(DESK, "Bash", "`:`, which has no effect")
                .await?;
            let context = response
                .as_ref()
                .and_then(|response| response.pointer("/hookSpecificOutput/additionalContext"));
            if let Some(context) = context.and_then(Value::as_str) {
                narrator.quote(context).await?;
            }
        }
        let event = json!({
            "hook_event_name": "PreToolUse",
            "tool_name": "Bash",
            "tool_input": { "command": ":" },
            "tool_use_id": "toolu_9",
        });
        let response = self.run_hook(&event)?;
        let decision = response
            .as_ref()
            .and_then(|response| response.pointer("/hookSpecificOutput/permissionDecision"));
        if decision.and_then(Value::as_str) == Some("deny") {
            narrator
                .call(DESK, "Bash", "denied: tools are disabled for this turn")
                .await?;
        }
        self.run_hook(&json!({
            "hook_event_name": "Stop",
            "stop_hook_active": false,
            "last_assistant_message": "I am stuck: prices differ by 64%, and I do not know why.",
        }))?;
        narrator
            .explain(
                "After eight responses without progress, tool calls are denied and the agent can \
                 only respond with text. It reports where it is stuck instead of looping until it \
                 hits a limit. The next prompt enables the tools again.",
            )
            .await?;
        let result = json!({
            "resultSummary": "31,000 to 51,000 euros over 20 years; one price is far from the others.",
            "confidence": 0.6,
            "result": { "spreadPercent": 64 },
        });
        self.submit(&step, DESK, result, "prices differ by 64%")
            .await?;
        let added = self.next(plan, DESK, false).await?;
        let result = json!({
            "resultSummary": "That price includes new radiators. Without them it matches the others.",
            "confidence": 0.9,
        });
        self.submit(&added, DESK, result, "the price includes new radiators")
            .await?;
        narrator
            .explain(
                "The second branch, `result.spreadPercent > 25`, matched, so a step was added to the \
                 plan. The agent has completed it.",
            )
            .await
    }

    async fn interrupt_a_dead_call(&self) -> Result<()> {
        let narrator = self.narrator;
        narrator
            .chapter(5, "A dead tool call is interrupted")
            .await?;
        if !detects_exits() {
            return narrator
                .explain(
                    "Skipped: this system does not show the state of processes, so Onward interrupts a \
                     dead call only at its timeout.",
                )
                .await;
        }
        let tool = ToolProcess::start()?;
        let call = json!({
            "agent": "claude-code",
            "callId": "toolu_10",
            "tool": "Bash",
            "input": { "command": "./measure-noise --minutes 30" },
            "status": "running",
            "owner": { "processId": tool.id() },
        });
        self.agent
            .post(&format!("/api/v1/sessions/{DESK}/calls"), call)
            .await?;
        narrator
            .call(DESK, "Bash", "`./measure-noise --minutes 30`")
            .await?;
        drop(tool);
        narrator
            .incident(DESK, "… the process of the call is killed")
            .await?;
        let call = self.wait_until_interrupted().await?;
        narrator
            .incident("onward", "interrupts the call: its process has exited")
            .await?;
        narrator.quote(&text(&call, "result")).await?;
        narrator
            .explain(
                "The server checked the process, so no timeout was needed. The call now has exactly \
                 one result: the agent does not wait forever, and model APIs still accept the \
                 conversation. Onward did not run the command again.",
            )
            .await
    }

    /// Requests a review and applies the decision. Returns whether the plan continues.
    async fn request_review(&self, plan: &str) -> Result<bool> {
        let narrator = self.narrator;
        narrator.chapter(6, "The user decides").await?;
        let mut step = self.next(plan, DESK, false).await?;
        let mut summary = "Two candidates fit: a quiet one for 17,000 euros, and a cheap one for 14,000 euros with 54 dB.";
        loop {
            let question = json!({
                "stepId": step.step,
                "claimToken": step.token,
                "sessionId": DESK,
                "summary": summary,
                "questions": ["Should I recommend the quiet one?"],
            });
            let requested = self.agent.call("request_user_review", question).await?;
            narrator
                .call(DESK, "request_user_review", "which one should I recommend?")
                .await?;
            if self.is_fast {
                let decision = json!({ "stepId": step.step, "decision": "approve" });
                self.agent.call("submit_user_decision", decision).await?;
                narrator.call("user", "approves", "the quiet one").await?;
            } else {
                narrator.print(&format!(
                    "\n   Your turn: read the review and decide.\n\n   {}/reviews/{}\n",
                    self.server.url,
                    text(&requested, "reviewId")
                ))?;
                self.wait_until_decided(plan).await?;
            }
            let arguments = json!({ "planId": plan, "sessionId": DESK });
            let next = self.agent.call("get_next_step", arguments).await?;
            match text(&next, "status").as_str() {
                "step_started" if text(&next, "stepId") == step.step => {
                    step = claimed_step(&next);
                    narrator
                        .call(DESK, "get_next_step", "the same step, with your feedback")
                        .await?;
                    let instructions = text(&next, "instructions");
                    let feedback = instructions
                        .rsplit("User feedback:")
                        .next()
                        .unwrap_or_default();
                    narrator.quote(feedback).await?;
                    summary = "Based on your feedback, the quiet one for 17,000 euros is the better choice.";
                }
                "step_started" => {
                    narrator
                        .explain(
                            "A review has no timeout. The audit trail records the decision and the \
                             reviewer.",
                        )
                        .await?;
                    self.submit_recommendation(&claimed_step(&next)).await?;
                    return Ok(true);
                }
                "plan_failed" => {
                    narrator
                        .explain("You rejected the review: the step and the plan have failed, and no more steps are assigned.")
                        .await?;
                    return Ok(false);
                }
                other => {
                    return Err(unexpected_status(other));
                }
            }
        }
    }

    async fn submit_recommendation(&self, step: &ClaimedStep) -> Result<()> {
        self.narrator
            .call(DESK, "get_next_step", &step.name())
            .await?;
        let result = json!({ "resultSummary": "The quiet one: 17,000 euros, 29 dB, 4.4." });
        self.submit(step, DESK, result, "the recommendation").await
    }

    async fn complete_plan(&self, plan: &str) -> Result<()> {
        let narrator = self.narrator;
        narrator.chapter(7, "The plan is completed").await?;
        let output = json!({
            "planId": plan,
            "title": "Recommendation",
            "content": "# Choose the quiet one\n\n17,000 euros, 29 dB, efficiency 4.4.\n",
        });
        self.agent.call("store_research_output", output).await?;
        narrator
            .call(DESK, "store_research_output", "one page, version 1")
            .await?;
        let arguments = json!({ "planId": plan });
        let status = self.agent.call("get_plan_status", arguments).await?;
        let result = format!(
            "{}, {}%",
            text(&status, "status"),
            number(&status, "progress")
        );
        narrator.call(DESK, "get_plan_status", &result).await?;
        narrator
            .explain(
                "Every change is in the audit trail; replaying it reproduces the plan. Acknowledged \
                 changes survive a crash of the server.",
            )
            .await
    }

    /// Claims the next step.
    async fn next(&self, plan: &str, session: &str, take_over: bool) -> Result<ClaimedStep> {
        let mut arguments = json!({ "planId": plan, "sessionId": session });
        if take_over {
            arguments["includeStalled"] = json!(true);
        }
        let next = self.agent.call("get_next_step", arguments).await?;
        let status = text(&next, "status");
        if status != "step_started" {
            return Err(unexpected_status(&status));
        }
        let step = claimed_step(&next);
        self.narrator
            .call(session, "get_next_step", &step.name())
            .await?;
        Ok(step)
    }

    async fn submit(
        &self,
        step: &ClaimedStep,
        session: &str,
        mut result: Value,
        summary: &str,
    ) -> Result<()> {
        result["stepId"] = json!(step.step);
        result["claimToken"] = json!(step.token);
        result["sessionId"] = json!(session);
        self.agent.call("submit_step_result", result).await?;
        self.narrator
            .call(session, "submit_step_result", summary)
            .await
    }

    /// Runs a hook of the session `desk`, and returns its response.
    fn run_hook(&self, event: &Value) -> Result<Option<Value>> {
        let mut event = event.clone();
        event["session_id"] = json!(DESK);
        event["prompt_id"] = json!("prompt-1");
        event["cwd"] = json!(self.server.directory().display().to_string());
        run_hook(self.server.onward()?, &event)
    }

    async fn status(&self, plan: &str) -> Result<String> {
        let arguments = json!({ "planId": plan });
        let status = self.agent.call("get_plan_status", arguments).await?;
        Ok(text(&status, "status"))
    }

    async fn wait_until_stalled(&self, plan: &str) -> Result<()> {
        let stalled = async {
            while self.status(plan).await? != "stalled" {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
            Ok(())
        };
        tokio::time::timeout(SWEEP_TIMEOUT, stalled)
            .await
            .unwrap_or_else(|_| {
                let limit = format::duration(SWEEP_TIMEOUT);
                let message =
                    format!("demo failed: the plan was not marked as stuck within {limit}");
                Err(Failure::failed(message, SEE_LOG))
            })
    }

    /// Waits for an interrupted call, and returns it.
    async fn wait_until_interrupted(&self) -> Result<Value> {
        let arguments = json!({ "sessionId": DESK });
        let interrupted = async {
            loop {
                let health = self
                    .agent
                    .call("get_session_health", arguments.clone())
                    .await?;
                let calls = health.pointer("/calls/list").and_then(Value::as_array);
                let mut calls = calls.into_iter().flatten();
                let interrupted = calls.find(|call| text(call, "status") == "interrupted");
                if let Some(call) = interrupted {
                    return Ok(call.clone());
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        tokio::time::timeout(SWEEP_TIMEOUT, interrupted)
            .await
            .unwrap_or_else(|_| {
                let limit = format::duration(SWEEP_TIMEOUT);
                let message = format!("demo failed: the call was not interrupted within {limit}");
                Err(Failure::failed(message, SEE_LOG))
            })
    }

    /// Waits for the decision, without a timeout.
    async fn wait_until_decided(&self, plan: &str) -> Result<()> {
        while self.status(plan).await? == "awaiting_review" {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }
}

/// The process of a tool call, killed on drop.
struct ToolProcess(Child);

impl ToolProcess {
    fn start() -> Result<Self> {
        let started = Command::new("sleep").arg("600").spawn();
        started.map(Self).map_err(|error| {
            let message = format!("cannot run `sleep`: {error}");
            Failure::failed(
                message,
                "install `sleep`, which the demo uses as a tool call",
            )
        })
    }

    fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for ToolProcess {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn unexpected_status(status: &str) -> Failure {
    let message = format!("demo failed: unexpected status `{status}` of the next step");
    Failure::failed(message, RUN_AGAIN)
}

fn claimed_step(next: &Value) -> ClaimedStep {
    ClaimedStep {
        step: text(next, "stepId"),
        token: text(next, "claimToken"),
        order: number(next, "stepOrder"),
        title: text(next, "title"),
        attempt: number(next, "attempt"),
    }
}

fn text(response: &Value, name: &str) -> String {
    let text = response.get(name).and_then(Value::as_str);
    text.unwrap_or_default().to_owned()
}

fn number(response: &Value, name: &str) -> u64 {
    response
        .get(name)
        .and_then(Value::as_u64)
        .unwrap_or_default()
}
