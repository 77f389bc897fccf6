//! What happens in the demo, in which order.
//!
//! Two sessions of one agent work on a plan about heat pumps: one on a laptop that is closed in the
//! middle, one at a desk that goes on. Every call is one that any agent makes. What depends on others,
//! the sweep and the person, is waited for, and not assumed.

use std::process::{Child, Command};
use std::time::Duration;

use serde_json::{Value, json};

use super::agent::{Agent, hook};
use super::server::Server;
use super::teller::Teller;
use crate::failure::{Failure, Result};
use crate::output::words;

/// The session that goes silent.
const LAPTOP: &str = "laptop";
/// The session that goes on.
const DESK: &str = "desk";
/// How often it is asked whether something has happened.
const OFTEN: Duration = Duration::from_millis(100);
/// The sweep needs no longer to mark a plan.
const PATIENCE: Duration = Duration::from_secs(30);
/// Steps in a row that bring nothing, until the agent must answer.
const ROUNDS: u32 = 8;

/// The story, with all that is needed to tell it.
pub(super) struct Story<'a> {
    server: &'a Server,
    teller: &'a Teller,
    agent: Agent,
    is_fast: bool,
}

/// A step that was handed out.
struct Handed {
    step: String,
    token: String,
    order: u64,
    title: String,
    attempt: u64,
}

impl Handed {
    fn name(&self) -> String {
        match self.attempt {
            0 | 1 => format!("step {}: {}", self.order, self.title),
            attempt => format!("step {}: {}, attempt {attempt}", self.order, self.title),
        }
    }
}

impl<'a> Story<'a> {
    pub(super) fn new(server: &'a Server, teller: &'a Teller, is_fast: bool) -> Result<Self> {
        Ok(Self {
            agent: Agent::new(server)?,
            server,
            teller,
            is_fast,
        })
    }

    /// Tells all of it; the id of the plan.
    pub(super) async fn tell(&self) -> Result<String> {
        let plan = self.a_plan_is_made().await?;
        self.a_branch_skips(&plan).await?;
        self.a_step_falls_silent(&plan).await?;
        self.a_turn_goes_round_in_circles(&plan).await?;
        self.a_call_dies().await?;
        if self.a_person_decides(&plan).await? {
            self.the_plan_ends(&plan).await?;
        }
        Ok(plan)
    }

    async fn a_plan_is_made(&self) -> Result<String> {
        let teller = self.teller;
        teller.chapter(1, "An agent makes a plan").await?;
        // Long enough that nobody is marked who is at work, short enough to be watched.
        let silence = if self.is_fast { 700 } else { 4_000 };
        let step = |kind: &str, title: &str, instructions: &str| json!({ "stepType": kind, "title": title, "instructions": instructions });
        let mut collect = step(
            "extract",
            "Collect the figures",
            "Collect efficiency, noise and price from each test.",
        );
        collect["stallThresholdMs"] = json!(silence);
        let check = step(
            "critique",
            "Check the outlier",
            "One price is far from the others. Find out why before you go on.",
        );
        let made = json!({
            "name": "Which heat pump for an old house?",
            "researchQuestion": "Which heat pump fits a house of 1965 with radiators, and what does it cost over 20 years?",
            "sessionId": LAPTOP,
            "steps": [
                step("search", "Find tests", "Find independent tests of heat pumps in existing houses."),
                step("search", "Find more tests", "Look for tests in other languages, too."),
                collect,
                step("analyze", "Costs over 20 years", "Work out the costs over 20 years for each candidate."),
                step("checkpoint", "Ask which matters", "Ask a person which of the candidates to recommend."),
                step("synthesize", "Recommend", "Write a recommendation of one page."),
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
        let made = self.agent.call("create_research_plan", made).await?;
        let plan = text(&made, "planId");
        teller
            .call(LAPTOP, "create_research_plan", "6 steps, 2 branches")
            .await?;
        teller
            .explain(
                "The plan is on disk before the agent hears of it, and so is every change from now \
                 on. The agent asks for work; the server never pushes it.",
            )
            .await?;
        Ok(plan)
    }

    async fn a_branch_skips(&self, plan: &str) -> Result<()> {
        let teller = self.teller;
        teller
            .chapter(2, "A branch decides what comes next")
            .await?;
        let step = self.next(plan, LAPTOP, false).await?;
        let result = json!({
            "resultSummary": "Four independent tests, of 2024 to 2026, that agree on the method.",
            "confidence": 0.9,
            "result": { "tests": 4 },
        });
        self.submit(&step, LAPTOP, result, "four tests, confidence 0.9")
            .await?;
        teller
            .explain(
                "The plan says: after step 1, if `confidence >= 0.8`, skip to step 3. It was 0.9, so \
                 step 2 (Find more tests) is skipped, and the trail says why.",
            )
            .await
    }

    async fn a_step_falls_silent(&self, plan: &str) -> Result<()> {
        let teller = self.teller;
        teller
            .chapter(3, "A step that nobody works on any more")
            .await?;
        let lost = self.next(plan, LAPTOP, false).await?;
        teller
            .trouble(LAPTOP, "… is closed, in the middle of the step")
            .await?;
        self.until_stalled(plan).await?;
        teller
            .trouble("onward", "marks the plan: step 3 has fallen silent")
            .await?;
        teller
            .explain(
                "Half an hour of silence is the default; this step was given seconds. Nothing was \
                 taken away yet: in the dashboard the plan now says which step, since when, and what \
                 helps. Here another session of the agent takes it over.",
            )
            .await?;
        let taken = self.next(plan, DESK, true).await?;
        let result = json!({
            "resultSummary": "Efficiency 3.9 to 4.6, 29 to 54 dB, 14,000 to 23,000 euros.",
            "confidence": 0.8,
            "result": { "candidates": 4 },
        });
        self.submit(&taken, DESK, result, "figures of four candidates")
            .await?;
        let late = json!({
            "stepId": lost.step,
            "claimToken": lost.token,
            "sessionId": LAPTOP,
            "resultSummary": "Efficiency and price of two candidates.",
        });
        let late = self.agent.try_call("submit_step_result", late).await?;
        let Err(refusal) = late else {
            let why = "the story cannot go on: a late result was taken for one in time";
            return Err(Failure::failed(why, "please report this"));
        };
        let what = format!("refused: {}", refusal.code());
        teller.call(LAPTOP, "submit_step_result", &what).await?;
        if refusal.details.get("keptArtifactId").is_none() {
            let why = "the story cannot go on: a late result was not kept";
            return Err(Failure::failed(why, "please report this"));
        }
        teller
            .explain(
                "The laptop woke up and handed in what it had. Its claim was taken over, so the step \
                 stays as it is; but work is never thrown away: what it sent is kept as an artifact, \
                 which the refusal names.",
            )
            .await
    }

    async fn a_turn_goes_round_in_circles(&self, plan: &str) -> Result<()> {
        let teller = self.teller;
        teller
            .chapter(4, "A turn that goes round in circles")
            .await?;
        let step = self.next(plan, DESK, false).await?;
        self.hook(&json!({ "hook_event_name": "UserPromptSubmit", "prompt": "Go on." }))?;
        for round in 1..=ROUNDS {
            let event = json!({
                "hook_event_name": "PostToolBatch",
                "tool_calls": [{
                    "tool_name": "Bash",
                    "tool_input": { "command": ":" },
                    "tool_use_id": format!("toolu_{round}"),
                    "tool_response": "",
                }],
            });
            let said = self.hook(&event)?;
            teller.call(DESK, "Bash", "`:`, which does nothing").await?;
            let said = said
                .as_ref()
                .and_then(|said| said.pointer("/hookSpecificOutput/additionalContext"));
            if let Some(said) = said.and_then(Value::as_str) {
                teller.quote(said).await?;
            }
        }
        let event = json!({
            "hook_event_name": "PreToolUse",
            "tool_name": "Bash",
            "tool_input": { "command": ":" },
            "tool_use_id": "toolu_9",
        });
        let denied = self.hook(&event)?;
        let decision = denied
            .as_ref()
            .and_then(|said| said.pointer("/hookSpecificOutput/permissionDecision"));
        if decision.and_then(Value::as_str) == Some("deny") {
            teller
                .call(DESK, "Bash", "refused: tools are closed for this turn")
                .await?;
        }
        self.hook(&json!({
            "hook_event_name": "Stop",
            "stop_hook_active": false,
            "last_assistant_message": "I am stuck: prices differ by 64 %, and I do not know why.",
        }))?;
        teller
            .explain(
                "After eight steps that brought nothing new, the agent is reminded and can only answer \
                 in text. So it says where it is stuck, instead of running on until a limit ends it. \
                 The next prompt opens the tools again.",
            )
            .await?;
        let result = json!({
            "resultSummary": "31,000 to 51,000 euros over 20 years; one price is far from the others.",
            "confidence": 0.6,
            "result": { "spreadPercent": 64 },
        });
        self.submit(&step, DESK, result, "prices differ by 64 %")
            .await?;
        let added = self.next(plan, DESK, false).await?;
        let result = json!({
            "resultSummary": "That price includes new radiators. Without them it is in line.",
            "confidence": 0.9,
        });
        self.submit(&added, DESK, result, "it includes new radiators")
            .await?;
        teller
            .explain(
                "The second branch said `result.spreadPercent > 25`: it was true, so a step was added \
                 that nobody had planned, and the agent has done it already.",
            )
            .await
    }

    async fn a_call_dies(&self) -> Result<()> {
        let teller = self.teller;
        teller.chapter(5, "A call that will never answer").await?;
        let tool = Tool::start()?;
        let call = json!({
            "agent": "claude-code",
            "callId": "toolu_10",
            "tool": "Bash",
            "input": { "command": "./measure-noise --minutes 30" },
            "status": "running",
            "owner": { "processId": tool.id() },
        });
        self.agent
            .tell(&format!("/api/v1/sessions/{DESK}/calls"), call)
            .await?;
        teller
            .call(DESK, "Bash", "`./measure-noise --minutes 30`")
            .await?;
        drop(tool);
        teller
            .trouble(DESK, "… the process that ran it was killed")
            .await?;
        let lost = self.until_given_up().await?;
        teller
            .trouble("onward", "gives the call up: its process is gone")
            .await?;
        teller.quote(&text(&lost, "result")).await?;
        teller
            .explain(
                "A death that is proven needs no timeout: the server looked the process up. The call \
                 has one result now, recorded once, so that no spinner turns for ever and every API \
                 still accepts the conversation. Nothing was run again by itself.",
            )
            .await
    }

    /// Asks a person, and does what they decide; whether the plan goes on.
    async fn a_person_decides(&self, plan: &str) -> Result<bool> {
        let teller = self.teller;
        teller.chapter(6, "A person decides").await?;
        let mut step = self.next(plan, DESK, false).await?;
        let mut summary =
            "Two fit: a quiet one for 17,000 euros, and a cheap one for 14,000 that hums at 54 dB.";
        loop {
            let question = json!({
                "stepId": step.step,
                "claimToken": step.token,
                "sessionId": DESK,
                "summary": summary,
                "questions": ["Shall I recommend the quiet one?"],
            });
            let asked = self.agent.call("request_user_review", question).await?;
            teller
                .call(DESK, "request_user_review", "which one shall it be?")
                .await?;
            if self.is_fast {
                let decision = json!({ "stepId": step.step, "decision": "approve" });
                self.agent.call("submit_user_decision", decision).await?;
                teller.call("person", "approves", "the quiet one").await?;
            } else {
                teller.plain(&format!(
                    "\n   It is your turn. Read what the agent says, and decide:\n\n   {}/reviews/{}\n",
                    self.server.url,
                    text(&asked, "reviewId")
                ))?;
                self.until_decided(plan).await?;
            }
            let asked = json!({ "planId": plan, "sessionId": DESK });
            let next = self.agent.call("get_next_step", asked).await?;
            match text(&next, "status").as_str() {
                "step_started" if text(&next, "stepId") == step.step => {
                    step = handed(&next);
                    teller
                        .call(DESK, "get_next_step", "the same step, with your feedback")
                        .await?;
                    let told = text(&next, "instructions");
                    let feedback = told.rsplit("User feedback:").next().unwrap_or_default();
                    teller.quote(feedback).await?;
                    summary =
                        "With what you said: the quiet one for 17,000 euros is the better choice.";
                }
                "step_started" => {
                    teller
                        .explain(
                            "A plan waits for a person as long as it takes: no clock runs meanwhile. \
                             The decision is in the trail, with who made it.",
                        )
                        .await?;
                    self.finish(&handed(&next)).await?;
                    return Ok(true);
                }
                "plan_failed" => {
                    teller
                        .explain("You rejected it: the step and its plan have failed, and nothing is handed out any more.")
                        .await?;
                    return Ok(false);
                }
                other => {
                    let why = format!("the story cannot go on: the plan answers `{other}`");
                    let hint =
                        "run it once more, and leave its plan to the agent until it asks you";
                    return Err(Failure::failed(why, hint));
                }
            }
        }
    }

    async fn finish(&self, step: &Handed) -> Result<()> {
        self.teller
            .call(DESK, "get_next_step", &step.name())
            .await?;
        let result = json!({ "resultSummary": "The quiet one: 17,000 euros, 29 dB, 4.4." });
        self.submit(step, DESK, result, "the recommendation").await
    }

    async fn the_plan_ends(&self, plan: &str) -> Result<()> {
        let teller = self.teller;
        teller.chapter(7, "The plan is complete").await?;
        let output = json!({
            "planId": plan,
            "title": "Recommendation",
            "content": "# Take the quiet one\n\n17,000 euros, 29 dB, an efficiency of 4.4.\n",
        });
        self.agent.call("store_research_output", output).await?;
        teller
            .call(DESK, "store_research_output", "one page, version 1")
            .await?;
        let status = json!({ "planId": plan });
        let status = self.agent.call("get_plan_status", status).await?;
        let what = format!(
            "{}, {}%",
            text(&status, "status"),
            number(&status, "progress")
        );
        teller.call(DESK, "get_plan_status", &what).await?;
        teller
            .explain(
                "Everything that happened is in the audit trail: replaying it gives the same plan, \
                 step by step. What was answered stays, also where the server is killed.",
            )
            .await
    }

    /// Takes the next step on.
    async fn next(&self, plan: &str, who: &str, take_over: bool) -> Result<Handed> {
        let mut asked = json!({ "planId": plan, "sessionId": who });
        if take_over {
            asked["includeStalled"] = json!(true);
        }
        let next = self.agent.call("get_next_step", asked).await?;
        if text(&next, "status") != "step_started" {
            let why = format!(
                "the story cannot go on: the plan answers `{}`",
                text(&next, "status")
            );
            let hint = "run it once more, and leave its plan to the agent until it asks you";
            return Err(Failure::failed(why, hint));
        }
        let step = handed(&next);
        self.teller.call(who, "get_next_step", &step.name()).await?;
        Ok(step)
    }

    async fn submit(&self, step: &Handed, who: &str, mut result: Value, what: &str) -> Result<()> {
        result["stepId"] = json!(step.step);
        result["claimToken"] = json!(step.token);
        result["sessionId"] = json!(who);
        self.agent.call("submit_step_result", result).await?;
        self.teller.call(who, "submit_step_result", what).await
    }

    /// What the hooks of the session at the desk tell, and are answered.
    fn hook(&self, event: &Value) -> Result<Option<Value>> {
        let mut event = event.clone();
        event["session_id"] = json!(DESK);
        event["prompt_id"] = json!("prompt-1");
        event["cwd"] = json!(self.server.folder().display().to_string());
        hook(self.server.onward()?, &event)
    }

    async fn status(&self, plan: &str) -> Result<String> {
        let asked = json!({ "planId": plan });
        let status = self.agent.call("get_plan_status", asked).await?;
        Ok(text(&status, "status"))
    }

    async fn until_stalled(&self, plan: &str) -> Result<()> {
        let marked = async {
            while self.status(plan).await? != "stalled" {
                tokio::time::sleep(OFTEN).await;
            }
            Ok(())
        };
        tokio::time::timeout(PATIENCE, marked)
            .await
            .unwrap_or_else(|_| {
                let why = format!("the plan was not marked within {}", words::span(PATIENCE));
                Err(Failure::failed(
                    why,
                    "`onward -v demo` shows what the server says",
                ))
            })
    }

    /// The call that was given up.
    async fn until_given_up(&self) -> Result<Value> {
        let asked = json!({ "sessionId": DESK });
        let given_up = async {
            loop {
                let health = self.agent.call("get_session_health", asked.clone()).await?;
                let calls = health.pointer("/calls/list").and_then(Value::as_array);
                let lost = calls.into_iter().flatten();
                let mut lost = lost.filter(|call| text(call, "status") == "interrupted");
                if let Some(lost) = lost.next() {
                    return Ok(lost.clone());
                }
                tokio::time::sleep(OFTEN).await;
            }
        };
        tokio::time::timeout(PATIENCE, given_up)
            .await
            .unwrap_or_else(|_| {
                let why = format!("the call was not given up within {}", words::span(PATIENCE));
                Err(Failure::failed(
                    why,
                    "`onward -v demo` shows what the server says",
                ))
            })
    }

    /// A person has all the time in the world; Ctrl-C ends it.
    async fn until_decided(&self, plan: &str) -> Result<()> {
        while self.status(plan).await? == "awaiting_review" {
            tokio::time::sleep(OFTEN).await;
        }
        Ok(())
    }
}

/// A tool at work, until it is let go of.
struct Tool(Child);

impl Tool {
    fn start() -> Result<Self> {
        let started = Command::new("sleep").arg("600").spawn();
        started.map(Self).map_err(|why| {
            let message = format!("`sleep` cannot be run: {why}");
            Failure::failed(message, "the demo needs it for a tool that can be killed")
        })
    }

    fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Tool {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn handed(next: &Value) -> Handed {
    Handed {
        step: text(next, "stepId"),
        token: text(next, "claimToken"),
        order: number(next, "stepOrder"),
        title: text(next, "title"),
        attempt: number(next, "attempt"),
    }
}

fn text(answer: &Value, name: &str) -> String {
    let text = answer.get(name).and_then(Value::as_str);
    text.unwrap_or_default().to_owned()
}

fn number(answer: &Value, name: &str) -> u64 {
    answer.get(name).and_then(Value::as_u64).unwrap_or_default()
}
