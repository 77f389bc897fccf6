//! `create_research_plan`: creates a plan with its steps and branches in one transaction.

use onward_core::command::CreatePlan;
use onward_core::policy::{
    MAX_BRANCHES, MAX_NAME, MAX_QUESTION, MAX_REMARK, MAX_SESSION_ID, MAX_STEPS, OnStall,
};
use onward_engine::Caller;
use schemars::JsonSchema;
use serde::Deserialize;

use super::params::{self, Branch, MAX_KEY, MAX_THRESHOLD_MS, MIN_THRESHOLD_MS, Step};
use super::{Hints, Spec, ToolContext, ToolError};
use crate::wire::created::CreatedPlan;

pub(super) struct CreateResearchPlan;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// Short title
    #[schemars(length(min = 1, max = MAX_NAME))]
    name: String,
    /// Question or goal
    #[schemars(length(min = 1, max = MAX_QUESTION))]
    research_question: String,
    /// Steps (tasks) in order
    #[schemars(length(min = 1, max = MAX_STEPS))]
    steps: Vec<Step>,
    /// Evaluated in order after their step, at most 100 per step; the first true one applies
    #[schemars(length(max = MAX_BRANCHES))]
    branching_conditions: Option<Vec<Branch>>,
    /// Session id
    #[schemars(length(min = 1, max = MAX_SESSION_ID))]
    session_id: Option<String>,
    /// Why these steps
    #[schemars(length(max = MAX_REMARK))]
    plan_design_rationale: Option<String>,
    /// Format of the final output
    #[schemars(length(max = MAX_REMARK))]
    output_formatting_notes: Option<String>,
    /// Inactivity until a step is stalled; default 30 min
    #[schemars(range(min = MIN_THRESHOLD_MS, max = MAX_THRESHOLD_MS))]
    stall_threshold_ms: Option<u64>,
    on_stall: Option<Policy>,
    /// A retry with the same key returns the same plan
    #[schemars(length(min = 1, max = MAX_KEY))]
    idempotency_key: Option<String>,
}

/// mark (default): mark the plan as stalled and notify; requeue: new attempt; fail: fail the step;
/// ignore: no effect
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Policy {
    Mark,
    Requeue,
    Fail,
    Ignore,
}

impl From<Policy> for OnStall {
    fn from(policy: Policy) -> Self {
        match policy {
            Policy::Mark => OnStall::Mark,
            Policy::Requeue => OnStall::Requeue,
            Policy::Fail => OnStall::Fail,
            Policy::Ignore => OnStall::Ignore,
        }
    }
}

impl Spec for CreateResearchPlan {
    type Input = Input;
    type Output = CreatedPlan;

    const NAME: &'static str = "create_research_plan";
    const TITLE: &'static str = "Create a plan";
    const DESCRIPTION: &'static str = "Create a durable plan (task list, todo) for long work that any \
        session can resume. Then repeat `get_next_step` and `submit_step_result`.";
    const HINTS: Hints = Hints::ADDITIVE;
    const IN_CORE: bool = true;
    const UNLISTED_IN_CORE: &'static [&'static str] = &[
        "/properties/planDesignRationale",
        "/properties/steps/items/properties/stallThresholdMs",
    ];
    // Before the plan is created, its steps have no ids.
    const UNLISTED: &'static [&'static str] =
        &["/properties/branchingConditions/items/properties/actionParams/properties/targetStepId"];
    const REPEATED: &'static [&'static str] =
        &["/properties/branchingConditions/items/properties/actionParams/properties/steps"];

    async fn run(
        context: &ToolContext,
        caller: &Caller,
        input: Input,
    ) -> Result<CreatedPlan, ToolError> {
        let engine = &context.engine;
        let mut branches = Vec::new();
        for (index, branch) in input.branching_conditions.into_iter().flatten().enumerate() {
            branches.push(branch.spec(&format!("branchingConditions[{index}]"), engine)?);
        }
        let command = CreatePlan {
            plan: engine.new_plan_id(),
            name: input.name,
            research_question: input.research_question,
            steps: params::steps(input.steps, "steps", engine)?,
            branches,
            design_rationale: input.plan_design_rationale,
            output_formatting_notes: input.output_formatting_notes,
            stall_threshold: params::duration(input.stall_threshold_ms),
            on_stall: input.on_stall.map(OnStall::from).unwrap_or_default(),
            session: params::session_id(input.session_id),
        };
        let created = engine.create_plan(caller, command, input.idempotency_key);
        Ok(CreatedPlan::new(&created.await?))
    }
}
