//! `abandon_plan`: cancels a plan. The plan is kept, as failed, with the reason.

use onward_engine::Caller;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::tools::{Hints, Spec, ToolContext, ToolError, params};
use crate::wire::plan::ChangedPlan;

pub(super) struct AbandonPlan;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    plan_id: String,
    #[schemars(length(max = 10_000))]
    reason: Option<String>,
}

impl Spec for AbandonPlan {
    type Input = Input;
    type Output = ChangedPlan;

    const NAME: &'static str = "abandon_plan";
    const TITLE: &'static str = "Abandon a plan";
    const DESCRIPTION: &'static str = "Cancel a plan. It becomes failed and stays readable.";
    const HINTS: Hints = Hints::DESTRUCTIVE;

    async fn run(
        context: &ToolContext,
        caller: &Caller,
        input: Input,
    ) -> Result<ChangedPlan, ToolError> {
        let plan = params::plan_id(&input.plan_id)?;
        let status = context
            .engine
            .abandon_plan(caller, plan, input.reason)
            .await?;
        let sheet = context.engine.sheet(caller, plan).await?;
        Ok(ChangedPlan::new(plan, sheet.brief.name, status))
    }
}
