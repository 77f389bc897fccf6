//! `create_research_plan`: makes a plan, all of it or nothing.

use onward_core::command::CreatePlan;
use onward_core::policy::OnStall;
use onward_engine::Caller;
use schemars::JsonSchema;
use serde::Deserialize;

use super::given::{self, Branch, Step};
use super::{Desk, Hints, Refused, Spec};
use crate::wire::created::Created;

pub(super) struct CreateResearchPlan;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    #[schemars(length(min = 1, max = 200))]
    name: String,
    /// The question, or goal
    #[schemars(length(min = 1, max = 10_000))]
    research_question: String,
    #[schemars(length(min = 1, max = 10_000))]
    steps: Vec<Step>,
    /// Tried in order after their step; the first true one acts
    branching_conditions: Option<Vec<Branch>>,
    session_id: Option<String>,
    plan_design_rationale: Option<String>,
    output_formatting_notes: Option<String>,
    /// Silence until a step is stalled; default 30 min
    #[schemars(range(min = 1, max = 31_536_000_000_u64))]
    stall_threshold_ms: Option<u64>,
    on_stall: Option<Policy>,
    /// Same key, same plan: safe to retry
    idempotency_key: Option<String>,
}

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
    type Output = Created;

    const NAME: &'static str = "create_research_plan";
    const TITLE: &'static str = "Create a plan";
    const DESCRIPTION: &'static str = "Store a multi-step plan that survives disconnects. \
        Call it once for long work, then loop over `get_next_step`.";
    const HINTS: Hints = Hints::ADDS;
    const IN_CORE: bool = true;

    async fn run(desk: &Desk, caller: &Caller, input: Input) -> Result<Created, Refused> {
        let engine = &desk.engine;
        let mut branches = Vec::new();
        for (place, branch) in input.branching_conditions.into_iter().flatten().enumerate() {
            branches.push(branch.spec(&format!("branchingConditions[{place}]"), engine)?);
        }
        let command = CreatePlan {
            plan: engine.fresh_plan(),
            name: input.name,
            research_question: input.research_question,
            steps: given::steps(input.steps, engine),
            branches,
            design_rationale: input.plan_design_rationale,
            output_formatting_notes: input.output_formatting_notes,
            stall_threshold: given::span(input.stall_threshold_ms),
            on_stall: input.on_stall.map(OnStall::from).unwrap_or_default(),
            session: given::session(input.session_id),
        };
        let made = engine.create_plan(caller, command, input.idempotency_key);
        Ok(Created::of(&made.await?))
    }
}
