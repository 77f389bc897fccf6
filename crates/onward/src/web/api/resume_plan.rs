//! `resume_plan`: clears the stalled status of a plan. Its steps are not changed. The same stall
//! marks the plan again only if no agent works on it for the duration of the step's threshold.

use onward_engine::Caller;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::tools::{Hints, Spec, ToolContext, ToolError, params};
use crate::wire::plan::ChangedPlan;

pub(super) struct ResumePlan;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    plan_id: String,
}

impl Spec for ResumePlan {
    type Input = Input;
    type Output = ChangedPlan;

    const NAME: &'static str = "resume_plan";
    const TITLE: &'static str = "Resume a plan";
    const DESCRIPTION: &'static str =
        "Clear the stalled status of a plan. Its steps are not changed.";
    const HINTS: Hints = Hints::ADDITIVE;

    async fn run(
        context: &ToolContext,
        caller: &Caller,
        input: Input,
    ) -> Result<ChangedPlan, ToolError> {
        let plan = params::plan_id(&input.plan_id)?;
        let status = context.engine.resume_plan(caller, plan).await?;
        let sheet = context.engine.sheet(caller, plan).await?;
        Ok(ChangedPlan::new(plan, sheet.brief.name, status))
    }
}
